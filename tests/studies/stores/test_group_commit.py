"""Operations that arrive together share a commit; each has its own result or error, and nobody is left waiting."""

import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dbcare
from dbcare.errors import AlreadyToldError, StorageError, StudyNotFoundError
from dbcare.studies.record.commits import StudyOperation
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.sync import Transaction
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.group_commit import MAX_WEIGHT, FairQueue, GroupCommit, Operation
from dbcare.studies.stores.sql.store import SqlStore
from dbcare.studies.trial import AskRequest, Trial

PATIENCE_SECONDS = 30.0


class Step(Operation[str]):
    """An operation that is done at once, unless it is told to wait; groups are noted."""

    groups: list[list[str]]
    may_go: threading.Event

    def __init__(self, name: str, lane: str = "one", weight: int = 1) -> None:
        super().__init__(lane, weight)
        self.name = name

    @staticmethod
    def carry_out(group: list[Any]) -> None:
        Step.groups.append([step.name for step in group])
        if group[0].name == "slow":
            assert Step.may_go.wait(PATIENCE_SECONDS)
        if group[0].name == "interrupted":
            for step in group:
                step.error = StorageError("interrupted")
            raise KeyboardInterrupt
        for step in group:
            step.result = step.name.upper()


@pytest.fixture(autouse=True)
def fresh_steps() -> None:
    Step.groups, Step.may_go = [], threading.Event()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that other threads do."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def queued(commits: GroupCommit) -> int:
    """Return how many operations are waiting."""
    return sum(map(len, commits._queue._lanes.values()))


def take_names(queue: FairQueue) -> list[str]:
    """Take the next group; return the names of its steps."""
    return [step.name for step in queue.take() if isinstance(step, Step)]


def test_what_arrives_during_a_commit_shares_the_next_one() -> None:
    commits = GroupCommit()
    with ThreadPoolExecutor(11) as threads:
        slow = threads.submit(commits.run, Step("slow"))
        wait_until(lambda: Step.groups == [["slow"]])
        others = [threads.submit(commits.run, Step(f"s{number}")) for number in range(10)]
        wait_until(lambda: queued(commits) == 10)
        Step.may_go.set()
        assert slow.result(PATIENCE_SECONDS) == "SLOW"
        assert [other.result(PATIENCE_SECONDS) for other in others] == [f"S{number}" for number in range(10)]
    assert len(Step.groups) == 2
    assert sorted(Step.groups[1]) == sorted(f"s{number}" for number in range(10))
    assert commits.run(Step("later")) == "LATER"  # nobody is taken to lead still


def test_operations_without_a_waiting_thread() -> None:
    """They are led by a thread of the executor, also after a thread that waited, and before one that waits."""
    commits, delivered = GroupCommit(), []
    with ThreadPoolExecutor(1) as writer, ThreadPoolExecutor(2) as threads:
        slow = threads.submit(commits.run, Step("slow"))
        wait_until(lambda: Step.groups == [["slow"]])
        steps = [Step(f"s{number}", weight=MAX_WEIGHT) for number in range(3)]  # each fills a group
        for step in steps:
            commits.submit(step, writer, lambda step=step: delivered.append(step.outcome()))  # type: ignore[misc]  # binds the value
        last = threads.submit(commits.run, Step("last"))
        wait_until(lambda: queued(commits) == 4)
        Step.may_go.set()
        assert (slow.result(PATIENCE_SECONDS), last.result(PATIENCE_SECONDS)) == ("SLOW", "LAST")
        wait_until(lambda: len(delivered) == 3)
    assert delivered == ["S0", "S1", "S2"]
    assert Step.groups == [["slow"], ["s0"], ["s1"], ["s2"], ["last"]]


def test_an_executor_that_was_shut_down_holds_up_nobody() -> None:
    commits, delivered = GroupCommit(), []
    writer = ThreadPoolExecutor(1)
    writer.shutdown()
    step = Step("late")
    commits.submit(step, writer, lambda: delivered.append(step.outcome()))
    assert commits.run(Step("next")) == "NEXT"
    wait_until(lambda: delivered == ["LATE"])


def test_an_interrupted_leader_passes_on_the_lead_to_an_executor() -> None:
    commits, delivered = GroupCommit(), []
    with ThreadPoolExecutor(3) as threads:
        slow = threads.submit(commits.run, Step("slow"))
        wait_until(lambda: Step.groups == [["slow"]])
        interrupted = threads.submit(commits.run, Step("interrupted", weight=MAX_WEIGHT))
        wait_until(lambda: queued(commits) == 1)
        step = Step("other")
        commits.submit(step, threads, lambda: delivered.append(step.outcome()))
        Step.may_go.set()
        slow.result(PATIENCE_SECONDS)
        with pytest.raises(KeyboardInterrupt):
            interrupted.result(PATIENCE_SECONDS)
        wait_until(lambda: delivered == ["OTHER"])


def test_a_thousand_operations_of_one_study_do_not_delay_another() -> None:
    queue = FairQueue()
    for number in range(1000):
        queue.add(Step(f"a{number}", "a"))
    for number in range(3):
        queue.add(Step(f"b{number}", "b"))
    first = take_names(queue)
    assert len(first) == MAX_WEIGHT
    assert first[:7] == ["a0", "b0", "a1", "b1", "a2", "b2", "a3"]
    assert take_names(queue)[0] == f"a{MAX_WEIGHT - 3}"


def test_a_heavy_operation_goes_alone() -> None:
    queue = FairQueue()
    for step in (Step("light"), Step("heavy", weight=20_000), Step("other", "b")):
        queue.add(step)
    groups = [take_names(queue) for _ in range(3)]
    assert groups == [["light", "other"], ["heavy"], []]


def test_an_interrupted_leader_passes_on_the_lead() -> None:
    commits = GroupCommit()
    with ThreadPoolExecutor(4) as threads:
        slow = threads.submit(commits.run, Step("slow"))
        wait_until(lambda: Step.groups == [["slow"]])
        interrupted = threads.submit(commits.run, Step("interrupted", weight=MAX_WEIGHT))
        wait_until(lambda: queued(commits) == 1)
        other = threads.submit(commits.run, Step("other"))
        wait_until(lambda: queued(commits) == 2)
        Step.may_go.set()
        slow.result(PATIENCE_SECONDS)
        with pytest.raises(KeyboardInterrupt):
            interrupted.result(PATIENCE_SECONDS)
        assert other.result(PATIENCE_SECONDS) == "OTHER"


def test_an_interrupted_wait_is_not_carried_out() -> None:
    """Whoever is interrupted while waiting leaves the queue, and hands on the lead if it has just been given it."""
    commits, waiting = GroupCommit(), Step("waiting")
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(commits.run, Step("slow"))
        wait_until(lambda: Step.groups == [["slow"]])
        commits._enqueue(waiting)
        commits._leave(waiting)
        assert queued(commits) == 0
        commits._enqueue(waiting)
        other = threads.submit(commits.run, Step("other"))
        wait_until(lambda: queued(commits) == 2)
        Step.may_go.set()
        slow.result(PATIENCE_SECONDS)
        wait_until(lambda: waiting.leads)
        commits._leave(waiting)
        assert other.result(PATIENCE_SECONDS) == "OTHER"
    assert Step.groups == [["slow"], ["other"]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with closing(SqlStore(f"sqlite:///{tmp_path / 's.db'}")) as store:
        yield store


def make_study(store: SqlStore, name: str = "s") -> StoredStudy:
    dbcare.create_study(name, ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=5000, storage=store)
    return StoredStudy(store, name)


def list_events(store: SqlStore, name: str = "s") -> list[Event]:
    with store.session(name, write=False) as session:
        return [event for _, event in session.events_after(0)]


def fail_after_recording(transaction: Transaction) -> None:
    transaction.record(Event(EventKind.PAUSED, 1.0))
    raise AlreadyToldError("too late")


def test_one_that_fails_leaves_nothing_and_the_others_stand(store: SqlStore) -> None:
    study, other = make_study(store), make_study(store, "t")
    trial = study.ask()
    assert trial is not None
    study.tell(trial, 0.5)
    group: list[StudyOperation[Any]] = [
        study.ask_later(AskRequest(1, None)),
        study.tell_later(1, 0.25),  # contradicts what was told
        StudyOperation(study._ledger, fail_after_recording),
        other.ask_later(AskRequest(2, None)),
        study.tell_later(2, 0.75),  # asked in the same group
        study.tell_later(1, 0.5),
    ]
    StudyOperation.carry_out(group)
    assert [type(operation.error) for operation in group] == [
        type(None), AlreadyToldError, AlreadyToldError, type(None), type(None), type(None)
    ]  # fmt: skip
    kinds = [(event.kind, event.trial) for event in list_events(store)]
    assert kinds == [("asked", 1), ("told", 1), ("asked", 2), ("told", 2)]
    assert [event.trial for event in list_events(store, "t")] == [1, 2]
    assert study.status().counted == StoredStudy(store, "s").status().counted == 2
    assert study.status().state == "running"
    study.check()


def test_the_same_key_twice_in_one_group(store: SqlStore) -> None:
    study = make_study(store)
    group = [study.ask_later(AskRequest(2, None, key="again")) for _ in range(2)]
    StudyOperation.carry_out(group)
    assert group[0].outcome().trials == group[1].outcome().trials
    assert len(list_events(store)) == 2


def test_the_same_unit_twice_in_one_group(store: SqlStore) -> None:
    """The second finds the trial that is not stored yet, also through another ledger."""
    study, same = make_study(store), StoredStudy(store, "s")
    group = [opened.ask_later(AskRequest(1, None, unit="u")) for opened in (study, study, same)]
    StudyOperation.carry_out(group)
    (stored,) = list_events(store)
    assert [operation.outcome().trials for operation in group] == [[Trial(1, "A", None, "u", tag=stored.tag)]] * 3
    assert [operation.outcome().new for operation in group] == [1, 0, 0]


def test_the_same_study_opened_twice_in_one_group(store: SqlStore) -> None:
    study, same = make_study(store), StoredStudy(store, "s")
    group = [opened.ask_later(AskRequest(1, None)) for opened in (study, same, study)]
    StudyOperation.carry_out(group)
    assert sorted(operation.outcome().trials[0].id for operation in group) == [1, 2, 3]
    assert study.status().asked == same.status().asked == 3
    study.check()


def test_a_deleted_study_fails_its_own_operations_only(store: SqlStore) -> None:
    study, other, recreated = make_study(store), make_study(store, "t"), make_study(store, "u")
    for name in ("s", "u"):
        store.delete(name)
    make_study(store, "u")
    group = [opened.ask_later(AskRequest(1, None)) for opened in (study, other, recreated)]
    StudyOperation.carry_out(group)
    assert [type(operation.error) for operation in group] == [StudyNotFoundError, type(None), StudyNotFoundError]
    assert "was deleted and re-created" in str(group[2].error)
    assert len(list_events(store, "t")) == 1
    assert list_events(store, "u") == []


def test_a_study_that_cannot_be_read_fails_its_own_operations_only(store: SqlStore) -> None:
    study, other = make_study(store), make_study(store, "t")
    study.ask()
    with store.transaction(write=True) as connection:
        connection.exec_driver_sql("UPDATE events SET kind = 'tolled'")
    group = [opened.ask_later(AskRequest(1, None)) for opened in (StoredStudy(store, "s"), other)]
    StudyOperation.carry_out(group)
    assert isinstance(group[0].error, StorageError)
    assert group[1].outcome().trials[0].id == 1
    assert [event.trial for event in list_events(store, "t")] == [1]


def test_a_commit_that_fails_fails_everyone_and_keeps_nothing(store: SqlStore) -> None:
    """The file may not grow: what does not fit is an error for all, and the next group works again."""
    studies = [make_study(store), make_study(store, "t")]
    for study in studies:
        study.ask()
    with store.engines.begin_plainly(write=True) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    group = [study.ask_later(AskRequest(1000, None, "w" * 200)) for study in studies]
    StudyOperation.carry_out(group)
    assert [str(operation.error) for operation in group] == [
        f"{store.address} is on a full disk; free some space and retry."
    ] * 2
    with store.engines.begin_plainly(write=True) as connection:
        connection.execute(f"PRAGMA max_page_count = {1 << 30}")
    for study in studies:
        assert study.status().asked == 1
        assert [trial.id for trial in study.ask(2)] == [2, 3]
        study.check()


def test_retiring_an_arm_in_a_group(store: SqlStore) -> None:
    """What follows in the same group is decided without that arm."""
    dbcare.create_study("s", ["A", "B", "C"], cost=1e-9, sigma=1.0, max_ahead=50, storage=store)
    study = StoredStudy(store, "s")
    study.add((name, 0.25 * place) for place, name in enumerate("ABCABC"))
    prepared = study._ledger.replay_without(1, lambda: None)
    event = Event(EventKind.RETIRED, 1.0, arm=1, note="gone")
    group: list[StudyOperation[Any]] = [
        study.ask_later(AskRequest(4, None)),
        StudyOperation(study._ledger, lambda transaction: transaction.record(event, prepared)),
        study.ask_later(AskRequest(20, None)),
    ]
    StudyOperation.carry_out(group)
    assert {trial.arm for trial in group[2].outcome().trials} == {"A", "C"}
    assert study.status().arms == StoredStudy(store, "s").status().arms
    study.check()


def test_a_failure_after_an_arm_was_retired_in_the_same_group(store: SqlStore) -> None:
    """The ledger is built again for what stands, without that arm."""
    dbcare.create_study("s", ["A", "B", "C"], cost=1e-9, sigma=1.0, max_ahead=50, storage=store)
    study = StoredStudy(store, "s")
    study.add((name, 0.25 * place) for place, name in enumerate("ABCABC"))
    event = Event(EventKind.RETIRED, 1.0, arm=1, note="gone")
    group: list[StudyOperation[Any]] = [
        StudyOperation(study._ledger, lambda transaction: transaction.record(event)),
        StudyOperation(study._ledger, fail_after_recording),
        study.ask_later(AskRequest(20, None)),
    ]
    StudyOperation.carry_out(group)
    assert [type(operation.error) for operation in group] == [type(None), AlreadyToldError, type(None)]
    assert {trial.arm for trial in group[2].outcome().trials} == {"A", "C"}
    assert StoredStudy(store, "s").status().arms == study.status().arms
    study.check()


def test_arrivals_through_two_objects_of_one_study_keep_their_order(store: SqlStore) -> None:
    study, same = make_study(store), StoredStudy(store, "s")
    group = [opened.ask_later(AskRequest(1, None)) for opened in (study, same, study, same)]
    StudyOperation.carry_out(group)
    assert [operation.outcome().trials[0].id for operation in group] == [1, 2, 3, 4]
    study.check()


def test_a_locked_file_costs_one_timeout_for_all(tmp_path: Path) -> None:
    """Not one for each study of the group."""
    path = tmp_path / "locked.db"
    with closing(SqlStore(f"sqlite:///{path}?timeout=1")) as store:
        studies = [make_study(store, f"s{number}") for number in range(12)]
        group = [study.ask_later(AskRequest(1, None)) for study in studies]
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            StudyOperation.carry_out(group)
            assert time.monotonic() - began < 12 * 1.0
        assert {str(operation.error) for operation in group} == {
            f"{store.address} is locked by another process; retry when it finishes."
        }


def test_an_earlier_backup_without_events_has_no_gaps(tmp_path: Path) -> None:
    """What comes after it begins at position 1 again."""
    path, backup = tmp_path / "live.db", tmp_path / "backup.db"
    with closing(SqlStore(f"sqlite:///{path}")) as store:
        study = make_study(store)
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(backup)) as target:
            source.backup(target)
        study.tell_many((trial, 0.5) for trial in study.ask(5))
        store.close()
        backup.replace(path)
        study.ask()
        assert study.check() == 1


def test_ctrl_c_waits_for_the_commit() -> None:
    """In the thread that leads; the others' operations are done, and it is interrupted afterwards."""
    commits = GroupCommit()

    class Interrupted(Step):
        @staticmethod
        def carry_out(group: list[Any]) -> None:
            signal.raise_signal(signal.SIGINT)
            Step.carry_out(group)

    step = Interrupted("led")
    with pytest.raises(KeyboardInterrupt):
        commits.run(step)
    assert step.outcome() == "LED"
    assert commits.run(Step("next")) == "NEXT"


@pytest.mark.parametrize("threads", [8])
def test_threads_on_one_study_share_commits(store: SqlStore, threads: int) -> None:
    study, groups = make_study(store), []
    original = store.group

    def count(names: Any) -> Any:
        groups.append(names)
        return original(names)

    store.group = count  # type: ignore[method-assign]  # counted, not replaced

    def work(_: int) -> None:
        for _ in range(25):
            trial = study.ask()
            assert trial is not None
            study.tell(trial, 0.5)

    with ThreadPoolExecutor(threads) as workers:
        list(workers.map(work, range(threads)))
    assert study.status().counted == 25 * threads
    assert len(groups) < 2 * 25 * threads  # alone, each operation would be a commit
    study.check()
