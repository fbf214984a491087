"""Addresses that are invalid or cannot be reached: the error is one clear line, and never shows a password."""

import subprocess
import sys

import pytest

from dbcare.base.extras import say_how_to_install
from dbcare.errors import StorageError
from dbcare.studies.stores.sql.store import SqlStore
from tests.helpers.postgres import GUARDED, PASSWORD, Server


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ads.db", r"must be an address such as sqlite:///ads\.db or postgresql://me@host/studies but got 'ads\.db'\."),
        ("mysql://me:s3cret@host/db", r"but got 'mysql://\.\.\.'\."),
        ("postgresql//me:s3cret@host/db", r"but got 'postgresql//\.\.\.'\."),
        ("postgresql://me:s3cret", r"but got 'postgresql://\.\.\.'\."),
        ("postgresql://me:s3cret//x", r"but got 'postgresql://\.\.\.'\."),
        ("me:s3cret@host/db", r"but got '\.\.\.'\."),
        ("sqlite://", "must name a file but got sqlite:///; leave `storage` out to keep a study in memory"),
        ("sqlite:///:memory:", "must name a file but got sqlite:///:memory:"),
        ("sqlite:////tmp/x.db?timeout=long", "`timeout` in .* must be a number of seconds but got 'long'"),
        ("sqlite:////tmp/x.db?nonsense=1", "must have no option other than timeout, or .*, but got nonsense"),
        ("postgresql+nonsense://me:s3cret@host/db", "must be an address such as"),
        ("postgresql://me:s3cret@/db?host=/nowhere", r"me:\*\*\*@/db\?host=.* does not respond; start the server"),
        (
            "postgresql://me@/db?host=/nowhere&password=s3cret",
            "does not respond; start the server, or correct the address",
        ),
        ("postgresql://me:s3cret@/db?host=/nowhere&nonsense=1", r"failed: .*nonsense"),
    ],
)
def test_invalid_addresses(address: str, message: str) -> None:
    with pytest.raises(StorageError, match=message) as raised:
        SqlStore(address)
    assert "s3cret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_wrong_databases_and_passwords_of_postgresql(postgres: Server) -> None:
    with pytest.raises(StorageError, match=r"/missing.* does not exist; create the database first"):
        SqlStore(postgres.address("missing"))
    postgres.execute(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'")
    address = postgres.create_database()
    guarded = address.replace("postgres@", f"{GUARDED}:{{}}@")
    for password in ("wrong", ""):
        with pytest.raises(StorageError, match="does not admit this user; check the user name and password") as raised:
            SqlStore(guarded.format(password))
        assert "wrong" not in str(raised.value)
    with pytest.raises(StorageError, match="does not let this user create and write tables; ask") as raised:
        SqlStore(guarded.format(PASSWORD))
    assert PASSWORD not in str(raised.value)


def test_a_driver_that_is_not_installed() -> None:
    code = """
import sys
sys.modules["psycopg"] = None
import dbcare
try:
    dbcare.list_studies("postgresql://me:s3cret@host/db")
except dbcare.errors.StorageError as failure:
    print(failure)
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "me:***@host/db needs a driver that is not installed" in output
    assert f"{say_how_to_install('postgresql')}." in output
