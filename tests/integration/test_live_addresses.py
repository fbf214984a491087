"""Addresses of databases that are wrong or cannot be reached: one clear line each, and never a password in it."""

import subprocess
import sys

import pytest
from helpers.postgres import GUARDED, PASSWORD, Server

from dbcare.errors import StorageError
from dbcare.live.stores.sql.store import SqlStore


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ads.db", r"must be an address such as sqlite:///ads\.db or postgresql://me@host/studies but got 'ads\.db'\."),
        ("mysql://me:s3cret@host/db", r"but got 'mysql://\.\.\.'\."),
        ("postgresql//me:s3cret@host/db", r"but got 'postgresql//\.\.\.'\."),
        ("postgresql://me:s3cret", r"but got 'postgresql://\.\.\.'\."),
        ("postgresql://me:s3cret//x", r"but got 'postgresql://\.\.\.'\."),
        ("me:s3cret@host/db", r"but got '\.\.\.'\."),
        ("sqlite://", "must name a file but got sqlite:///: a study without storage is kept in memory anyway"),
        ("sqlite:///:memory:", "must name a file but got sqlite:///:memory:"),
        ("sqlite:////tmp/x.db?timeout=long", "`timeout` in .* must be a number of seconds but got 'long'"),
        ("sqlite:////tmp/x.db?nonsense=1", "must have no option but timeout, or .*, but got nonsense"),
        ("postgresql+nonsense://me:s3cret@host/db", "must be an address such as"),
        ("postgresql://me:s3cret@/db?host=/nowhere", r"me:\*\*\*@/db\?host=.* must be the address of a running server"),
        ("postgresql://me@/db?host=/nowhere&password=s3cret", "must be the address of a running server"),
        ("postgresql://me:s3cret@/db?host=/nowhere&nonsense=1", r"must answer but said: .*nonsense"),
    ],
)
def test_wrong_addresses(address: str, message: str) -> None:
    with pytest.raises(StorageError, match=message) as raised:
        SqlStore(address)
    assert "s3cret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_wrong_databases_and_passwords_of_postgresql(postgres: Server) -> None:
    with pytest.raises(StorageError, match=r"/missing.* must name a database but there is none of that name: create"):
        SqlStore(postgres.address("missing"))
    postgres.sql(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'")
    address = postgres.new_database()
    guarded = address.replace("postgres@", f"{GUARDED}:{{}}@")
    for attempt in ("wrong", ""):
        with pytest.raises(
            StorageError, match="must be open to this user but is not: check user and password"
        ) as raised:
            SqlStore(guarded.format(attempt))
        assert "wrong" not in str(raised.value)
    with pytest.raises(StorageError, match="must let this user create and write tables but does not: ask") as raised:
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
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "me:***@host/db must have its driver installed but got" in said
    assert "pip install 'dbcare[postgresql]'." in said
