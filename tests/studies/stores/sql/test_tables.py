"""Texts that a database cannot store or compare: a NUL, half of a surrogate pair, bytes that are not UTF-8.

Whoever sends them is told so, whatever the database: they are never a failure of it, which operators are alerted to.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

import dbcare
from dbcare.errors import DbcareError, StorageError, StudyNotFoundError
from tests.helpers.postgres import Server
from tests.helpers.service_process import run_service

pytestmark = pytest.mark.service

TEXTS = ["\ud800", "a\0b", "\0", "\udc80", "\x1b[2J", "\u202e", "\n"]
QUOTED = ["%00", "a%00b", "%ED%A0%80", "%FF", "%0A", "%E2%80%AE"]
JSON = {"Content-Type": "application/json"}
FIELDS = [
    ("ask", {"worker": ...}),
    ("ask", {"unit": ...}),
    ("ask", {"lease": ...}),
    ("assign", {"unit": ..., "fallback": "A"}),
    ("assign", {"unit": "u", "fallback": ...}),
    ("assign", {"unit": "u", "worker": ...}),
    ("assign", {"unit": "u", "tag": ...}),
    ("give-back", {"unit": ..., "tag": "t"}),
    ("give-back", {"unit": "u", "tag": ...}),
    ("tell-unit", {"unit": ..., "reward": 1}),
    ("tell-unit", {"unit": "u", "failed": ...}),
    ("tell", {"trial": 1, "reward": ...}),
    ("fail", {"trial": 1, "reason": ...}),
    ("add", {"observations": [{"arm": ..., "reward": 1}]}),
    ("retire", {"arm": ..., "reason": "gone"}),
    ("retire", {"arm": "A", "reason": ...}),
    ("stop", {"reason": ...}),
    ("tell", {"trial": 1, "reward": 1, ...: 1}),
]


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a database with one study."""
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    if request.param == "postgresql":
        postgres: Server = request.getfixturevalue("postgres")
        address = postgres.create_database()
    dbcare.create_study("shared", ["A", "B"], cost=1e-9, sigma=1.0, storage=address).ask(2)
    return address


@pytest.mark.parametrize("text", TEXTS)
def test_the_library_refuses_them(storage: str, text: str) -> None:
    study = dbcare.load_study("shared", storage)
    calls: list[Callable[[], Any]] = [
        lambda: dbcare.find_studies(text, storage),
        lambda: dbcare.find_studies(after=text, storage=storage),
        lambda: dbcare.load_study(text, storage),
        lambda: dbcare.delete_study(text, storage),
        lambda: dbcare.create_study(text, ["A", "B"], cost=0.1, storage=storage),
        lambda: dbcare.create_study("new", ["A", text], cost=0.1, storage=storage),
        lambda: dbcare.create_study("new", ["A", "B"], cost=0.1, description=text, storage=storage),
        lambda: dbcare.create_study("new", ["A", "B"], cost=0.1, blocks=["1", text], storage=storage),
        lambda: study.ask(worker=text),
        lambda: study.ask(unit=text),
        lambda: study.ask(key=text),
        lambda: study.assign(text),
        lambda: study.give_back("u", text),
        lambda: study.tell(unit=text, reward=1.0),
        lambda: study.tell(1, failed=True, reason=text),
        lambda: study.describe(text),
        lambda: study.retire("A", text),
        lambda: study.stop(text),
    ]
    for call in calls:
        with pytest.raises(DbcareError) as refused:
            call()
        assert not isinstance(refused.value, StorageError) or isinstance(refused.value, StudyNotFoundError)
    assert study.check() == 2


def put(value: Any, text: str) -> Any:
    """Return a body with the text in the place that is left open."""
    if isinstance(value, dict):
        return {text if key is ... else key: put(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [put(item, text) for item in value]
    return text if value is ... else value


def test_the_service_refuses_them(storage: str) -> None:
    """With 4xx, wherever they are; they may be part of what a page searches for and does not find."""
    with run_service(storage) as address, httpx.Client(base_url=address, timeout=60.0) as client:
        statuses: dict[tuple[str, ...], int] = {}
        for text in QUOTED:
            for path in ("?q={}", "?after={}", "/{}", "/{}/status", "/{}/history", "/shared/export?format={}"):
                statuses[path, text] = client.get(f"/v1/studies{path}".format(text)).status_code
            for path in ("/?q={}", "/?after={}", "/studies/{}"):
                statuses[path, text] = client.get(path.format(text)).status_code
        for text in TEXTS:
            for action, body in FIELDS:
                content = json.dumps(put(body, text))  # which escapes what UTF-8 does not have
                response = client.post(f"/v1/studies/shared/{action}", content=content, headers=JSON)
                statuses[action, str(body), text] = response.status_code
        accepted = {asked[0] for asked, status in statuses.items() if not 400 <= status < 500}
        assert accepted == {"?q={}", "/?q={}"}  # bytes that are not UTF-8 arrive as replacement characters
        assert max(statuses.values()) < 500
        assert client.get("/v1/studies/shared/status").json()["asked"] == 2
