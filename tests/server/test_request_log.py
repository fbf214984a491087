"""The service's log: who sent each request, what for, and no secret."""

import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2 as httpx
import pytest

from dbcare.server.access.gate import COOKIE
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.server.request_log import LOG, MAX_SHOWN, UtcFormatter, log_request
from dbcare.server.request_trace import RequestTrace
from dbcare.studies.stores.open import open_store
from tests.helpers.api_client import STUDY
from tests.helpers.serve_command import run_serve

pytestmark = pytest.mark.service

LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00 INFO (?P<id>\S+) (?P<who>-|\"[^\"]*\") (?P<key>-|[0-9a-f]{12}) "
    r"(?P<method>[A-Z]+) (?P<route>\S+) (?P<study>-|\"[^\"]*\") (?P<status>\d{3}) \d+\.\d ms 127\.0\.0\.1"
    r"( (?P<trial>-|\d+) (?P<reason>\".*\"))?"
)


@pytest.fixture
def storage(tmp_path: Path) -> str:
    """The address of an empty database."""
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    open_store(address, create=True).close()
    return address


def read_requests(log: Path) -> list[tuple[str, ...]]:
    """Return who did what; every line of the log must be one of these."""
    matches = [(line, LINE.fullmatch(line)) for line in log.read_text().splitlines()]
    assert [line for line, match in matches if match is None] == []
    return [match.group("who", "method", "route", "study", "status") for _, match in matches if match is not None]


def test_who_did_what(storage: str, tmp_path: Path) -> None:
    """Programs by the name of their key, browsers by that of the key they signed in with; strangers have none."""
    keys = Keys(open_records(open_store(storage)))
    texts = {name: keys.create(name, role)[1] for name, role in (("me", "admin"), ("shop 3", "worker"))}
    log = tmp_path / "log"
    with run_serve(storage, log) as url, httpx.Client(base_url=url, timeout=60.0) as client:
        me, shop = ({"Authorization": f"Bearer {text}"} for text in texts.values())
        client.post("/v1/studies", json=STUDY, headers=me)
        asked = client.post("/v1/studies/ads/ask", json={"worker": "body-text"}, headers=shop).json()["trials"]
        client.post("/v1/studies/ads/tell", json={"trial": asked[0]["id"], "reward": 0.5}, headers=shop)
        client.delete("/v1/studies/ads", headers=shop)
        client.get("/v1/studies/ads?format=query-text")
        client.post("/login", data={"key": texts["me"]})
        page = client.get("/studies/ads")
        token = re.search(r'name="csrf" value="(\w+)"', page.text)
        assert token is not None
        client.post("/studies/ads/stop", data={"csrf": token[1], "reason": "form-text"})
        cookie = client.cookies[COOKIE]
        client.cookies.clear()
        client.delete("/v1/studies/ads", headers=me)
        client.get("/nowhere/path-text")
    requests = read_requests(log)
    studies = "/v1/studies/{name}"
    assert [request for request in requests if request[2] != "/login"] == [
        ('"me"', "POST", "/v1/studies", '"ads"', "201"),
        ('"shop 3"', "POST", f"{studies}/ask", '"ads"', "200"),
        ('"shop 3"', "POST", f"{studies}/tell", '"ads"', "204"),
        ('"shop 3"', "DELETE", studies, '"ads"', "403"),
        ("-", "GET", studies, '"ads"', "401"),
        ('"me"', "GET", "/studies/{name}", '"ads"', "200"),
        ('"me"', "POST", "/studies/{name}/stop", '"ads"', "303"),
        ('"me"', "DELETE", studies, '"ads"', "204"),
        ("-", "GET", "-", "-", "404"),
    ]
    assert [(method, status) for _, method, route, _, status in requests if route == "/login"] == [("POST", "303")]
    logged = log.read_text()
    secrets = [*(text.split("_")[2] for text in texts.values()), cookie, token[1]]
    for text in secrets:
        assert len(text) >= 12
        assert text not in logged
    for part in ("body", "query", "form", "path"):
        assert f"{part}-text" not in logged


def test_a_page_that_is_open_when_the_server_stops_is_no_error(storage: str, tmp_path: Path) -> None:
    """Its stream of news ends; else the server would wait for it, and then log that it was cut off."""
    log = tmp_path / "log"
    with httpx.Client(timeout=60.0) as client, ExitStack() as open_page:
        with run_serve(storage, log) as url:
            client.post(f"{url}/v1/studies", json=STUDY)
            news = open_page.enter_context(client.stream("GET", f"{url}/studies/ads/events"))
            lines = news.iter_lines()  # which closes the connection when it is collected
            assert next(lines).startswith("data: ")
        assert read_requests(log)[0][1:] == ("POST", "/v1/studies", '"ads"', "201")


def test_a_quiet_service_logs_no_requests(storage: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with run_serve(storage, log, "--quiet") as url:
        assert httpx.get(f"{url}/v1/studies").status_code == 200
    assert log.read_text() == ""


def test_failures_are_logged_with_the_time(storage: str, tmp_path: Path) -> None:
    """Also by a quiet service; the response says nothing of the database."""
    log = tmp_path / "log"
    with run_serve(storage, log, "--quiet") as url:
        for path in tmp_path.glob("studies.db*"):
            path.unlink()
        assert httpx.get(f"{url}/v1/studies", timeout=60.0).status_code == 503
    lines = log.read_text().splitlines()
    assert lines
    assert all(re.match(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00 (ERROR|WARNING) ", line) for line in lines), lines
    assert "studies.db" in lines[0]


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What is logged."""
    logged: list[str] = []

    class ListHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logged.append(self.format(record))

    handler = ListHandler()
    handler.setFormatter(UtcFormatter())
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    yield logged
    LOG.setLevel(logging.NOTSET)
    LOG.removeHandler(handler)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("shop", '"shop"'),
        ("Läden & Söhne", '"Läden & Söhne"'),
        ('a "b" \\ c', r'"a \"b\" \\ c"'),
        ('x" 200\n2026-11-16 INFO "me" DELETE', r'"x\" 200\n2026-11-16 INFO \"me\" DELETE"'),
        ("\x1b[2J\x9b2J\r\u2028\u202e\udc80", r'"\u001b[2J\u009b2J\r\u2028\u202e\udc80"'),
        ("n" * 10_000, f'"{"n" * MAX_SHOWN}..."'),
        ("", '""'),
        (None, "-"),
    ],
)
def test_no_name_can_forge_a_line(lines: list[str], name: str | None, shown: str) -> None:
    """Names in quotes, with anything that ends a line or controls a terminal escaped."""
    refused = RequestTrace([])
    refused.trial, refused.reason = 7, name
    told = "POST", "/v1/studies/{name}/tell"
    log_request(name, "0123456789ab", *told, name, 204, 0.0123, "10.0.0.5", RequestTrace([]))
    log_request(None, None, "GET", None, None, 404, 1.5, "fe80::1", refused)
    assert [line.partition(" INFO ")[2] for line in lines] == [
        f"- {shown} 0123456789ab POST /v1/studies/{{name}}/tell {shown} 204 12.3 ms 10.0.0.5",
        f"- - - GET - - 404 1500.0 ms fe80::1{'' if name is None else f' 7 {shown}'}",
    ]


def test_an_address_from_a_proxy_can_forge_nothing(lines: list[str]) -> None:
    log_request("me", None, "GET", "/", None, 200, 0.001, '1.2.3.4\n- \x9b"', RequestTrace([]))
    assert lines[0].endswith(r'200 1.0 ms "1.2.3.4\n- \u009b\""')
