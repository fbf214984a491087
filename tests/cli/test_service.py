"""Keys that expire, as a running service and the command line treat them."""

import json
import time
from datetime import datetime
from pathlib import Path

import httpx2 as httpx
import pytest
from typer.testing import CliRunner

from dbcare.cli import app
from dbcare.cli.service import announce
from dbcare.server.access.gate import COOKIE
from dbcare.server.access.keys import Keys, Sessions
from dbcare.server.access.records import open_records
from dbcare.studies.stores.open import open_store
from tests.helpers.api_client import ApiServer, assert_refused
from tests.helpers.serve_command import run_serve

pytestmark = pytest.mark.service


def test_an_expired_key_is_refused_at_once(server: ApiServer) -> None:
    """Every request sent after it expired, although the same key was accepted a moment before; its session too."""
    records = open_records(open_store(server.storage))
    key, text = Keys(records).create("brief", "viewer", 1.5)
    assert key.expires is not None
    expires = datetime.fromisoformat(key.expires).timestamp()
    cookie = Sessions(records).open(key)
    accepted = refused = 0
    with (
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {text}"}) as program,
        httpx.Client(base_url=server.url, cookies={COOKIE: cookie}) as browser,
    ):
        assert browser.get("/").status_code == 200
        while refused < 5:
            sent = time.time()
            response = program.get("/v1/studies")
            assert time.time() < expires + 30.0
            if sent >= expires:
                assert_refused(response, 401, "This API key is not valid")
                refused += 1
            elif time.time() < expires:
                assert response.status_code == 200
                accepted += 1
        page = browser.get("/")
        assert (page.status_code, page.headers["location"]) == (303, "/login?next=/")
        assert browser.post("/login", data={"key": text}).status_code == 401
    assert accepted > 5


def test_expiry_on_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: str, code: int = 0) -> str:
        storage = f"sqlite:///{tmp_path / 's.db'}"
        result = CliRunner().invoke(app, ["keys", *arguments, "--storage", storage])
        assert result.exit_code == code, result.output
        return result.stderr if code else result.stdout

    invalid = run("create", "--role", "worker", "--name", "shop", "--expires", "90 days", code=2)
    assert "`--expires` must be a duration such as" in invalid
    created = json.loads(run("create", "--role", "worker", "--name", "shop", "--expires", "90d", "--format", "json"))
    seconds = [datetime.fromisoformat(created[name]).timestamp() for name in ("created", "expires")]
    assert seconds[1] - seconds[0] == pytest.approx(90 * 86_400.0, abs=1e-3)
    run("create", "--role", "admin", "--name", "me")
    rows = [line.split("\t") for line in run("list").splitlines()]
    assert [row[1:3] + row[4:] for row in rows] == [
        ["shop", "worker", created["expires"], "-", "-"],
        ["me", "admin", "-", "-", "-"],
    ]


def test_keys_over_plain_http_on_a_public_address_get_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storage, log = f"sqlite:///{tmp_path / 's.db'}", tmp_path / "log"
    Keys(open_records(open_store(storage, create=True))).create("first", "admin")
    with run_serve(storage, log, "--host", "0.0.0.0"):
        pass
    assert "Warning: this is HTTP without encryption, so whoever can listen" in log.read_text()
    for host, has_proxy, warns in (
        ("192.0.2.7", False, True),
        ("[::]", False, True),
        ("192.0.2.7", True, False),  # which has HTTPS
        ("127.0.0.1", False, False),
        ("[::1]", False, False),
        ("localhost", False, False),
    ):
        announce(storage, has_proxy, f"http://{host}:8080", True)
        printed = capsys.readouterr()
        assert printed.out == f"Serving at http://{host}:8080\n"
        assert ("Warning" in printed.err) == warns
