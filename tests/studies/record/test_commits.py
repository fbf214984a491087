"""A value that the database refuses harms nobody but whoever sent it."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

import dbcare
from dbcare.errors import InvalidValueError
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.studies.record.commits import StudyOperation
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.open import open_store
from tests.helpers.postgres import Server
from tests.helpers.service_process import run_limited_service

pytestmark = pytest.mark.service

INNOCENTS, CULPRITS, TELLS = 6, 2, 12
REASON = "".join(map(chr, range(0x20000, 0x20000 + 1_000)))  # 4,000 bytes that cannot be compressed
TRIGGER = """CREATE TRIGGER refuse BEFORE INSERT ON events WHEN length(NEW.note) > 900
BEGIN SELECT RAISE(ABORT, 'too long'); END"""


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a database whose operator has a rule against long texts."""
    if request.param == "sqlite":
        address = f"sqlite:///{tmp_path / 'studies.db'}"
        open_store(address, create=True).close()
        with closing(sqlite3.connect(tmp_path / "studies.db")) as connection:
            connection.execute(TRIGGER)
        return address
    postgres: Server = request.getfixturevalue("postgres")
    address = postgres.create_database()
    with closing(open_store(address, create=True)) as store:
        engine = store.engines.get().writing  # type: ignore[attr-defined]  # an SqlStore
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE INDEX ours ON events (note)")  # at most 2,704 bytes
    return address


def make_study(storage: str) -> dbcare.Study:
    return dbcare.create_study(
        "shared", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=1_000_000, storage=storage, not_before=100_000
    )


def run_together(works: list[Callable[[], None]]) -> None:
    """Run functions in threads, and raise the first error of any of them."""
    failures: list[BaseException] = []

    def guard(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:  # raised again below
            failures.append(failure)

    threads = [threading.Thread(target=guard, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120.0)
    if failures:
        raise failures[0]


def check_everything_is_stored(storage: str) -> None:
    """Check that exactly the innocents' rewards are stored, and that events, summary, and replay agree."""
    study = dbcare.load_study("shared", storage)
    assert [row.reward for row in study.trials() if row.status == "told"] == [0.5] * (INNOCENTS * TELLS)
    assert study.check() == 2 * INNOCENTS * TELLS + CULPRITS * TELLS


def test_a_refused_reason_fails_alone_in_the_library(storage: str) -> None:
    study = make_study(storage)
    refused: list[str] = []

    def tell() -> None:
        for trial in study.ask(TELLS, lease=None):
            study.tell(trial, 0.5)

    def fail() -> None:
        for trial in study.ask(TELLS, lease=None):
            with pytest.raises(InvalidValueError, match=r"^The database refuses a value: ") as error:
                study.tell(trial, failed=True, reason=REASON)
            refused.append(str(error.value))

    run_together([tell] * INNOCENTS + [fail] * CULPRITS)
    assert len(refused) == CULPRITS * TELLS
    check_everything_is_stored(storage)


def test_a_refused_reason_fails_alone_in_the_service(storage: str) -> None:
    make_study(storage)
    key = Keys(open_records(open_store(storage))).create("worker", "worker")[1]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def requests(port: int) -> Iterator[tuple[HTTPConnection, int]]:
        with closing(HTTPConnection("127.0.0.1", port, timeout=60.0)) as connection:
            trials = json.loads(send(connection, "ask", {"n": TELLS, "lease": None}, 200))["trials"]
            for trial in trials:
                yield connection, trial["id"]

    def send(connection: HTTPConnection, action: str, body: dict[str, object], status: int) -> str:
        connection.request("POST", f"/v1/studies/shared/{action}", json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read().decode()
        assert response.status == status, text
        return text

    with run_limited_service(storage) as service:

        def tell() -> None:
            for connection, trial in requests(service.port):
                send(connection, "tell", {"trial": trial, "reward": 0.5}, 204)

        def fail() -> None:
            for connection, trial in requests(service.port):
                assert "The database refuses a value" in send(
                    connection, "fail", {"trial": trial, "reason": REASON}, 422
                )

        run_together([tell] * INNOCENTS + [fail] * CULPRITS)
    check_everything_is_stored(storage)


@pytest.mark.parametrize("place", [0, 17, 31])
def test_a_group_finds_the_one_that_is_refused(storage: str, place: int) -> None:
    """In whatever place of a group it is; the others are stored in their order."""
    study = make_study(storage)
    assert isinstance(study, StoredStudy)
    trials = study.ask(32, lease=None)
    operations = [study.tell_later(trial, 0.5) for trial in trials]
    operations[place] = study.tell_later(trials[place], None, reason=REASON)
    StudyOperation.carry_out(operations)
    assert [operation.error is None for operation in operations] == [number != place for number in range(32)]
    assert isinstance(operations[place].error, InvalidValueError)
    told = [row.trial for row in dbcare.load_study("shared", storage).trials() if row.status == "told"]
    assert told == [trial.id for trial in trials if trial is not trials[place]]


def test_reasons_may_have_any_characters(postgres: Server) -> None:
    """Without a rule of the operator's, 1,000 characters are stored, whatever their bytes."""
    storage = postgres.create_database()
    study = make_study(storage)
    trial, *_ = study.ask(2, lease=None)
    study.tell(trial, failed=True, reason=REASON)
    study.retire("A", REASON)
    study.stop(REASON)
    assert next(iter(study.trials())).reason == REASON
