"""Processes forked while their threads are in the middle of a study: children go on at once, and nothing is lost."""

import itertools
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import dbcare
from dbcare import Study
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.stores.open import open_store
from dbcare.studies.trial import make_tag
from tests.helpers.forked_child import MAX_SECONDS, ForkedChild
from tests.helpers.postgres import Server
from tests.helpers.service_process import run_service
from tests.helpers.worker_main import draw_reward
from tests.helpers.worker_processes import ARMS, replay_study

pytestmark = [pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"), pytest.mark.service]

FORKS = 8
THREADS = 4
NUMBERS = itertools.count()  # of studies in memory, which share one store
STORES = ["memory", "sqlite", "postgresql"]


@pytest.fixture(params=STORES)
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Study]:
    """Create a study that this process has open."""
    if request.param == "memory":
        yield create(f"forked {next(NUMBERS)}", None)
    elif request.param == "http":
        with run_service(f"sqlite:///{tmp_path / 'live.db'}") as url, dbcare.connect(url) as client:
            yield client.create_study("forked", ARMS, cost=1e-9, sigma=1.0, max_ahead=1000)
    else:
        postgres: Server | None = request.getfixturevalue("postgres") if request.param == "postgresql" else None
        address = f"sqlite:///{tmp_path / 'live.db'}" if postgres is None else postgres.create_database()
        yield create("forked", address)
        open_store(address).close()


def create(name: str, address: str | None) -> Study:
    return dbcare.create_study(name, ARMS, cost=1e-9, sigma=1.0, max_ahead=1000, storage=address)


def work(study: Study, trials: int) -> list[int]:
    """Ask and tell this many trials, and return their numbers."""
    told = []
    for _ in range(trials):
        trial = study.ask(lease=None)
        assert trial is not None
        study.tell(trial, draw_reward(trial.id))
        told.append(trial.id)
    return told


@contextmanager
def keep_busy(study: Study) -> Iterator[list[int]]:
    """Ask and tell in threads without a pause; yield the list of what was told, complete in the end."""
    told: list[int] = []
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            told.extend(work(study, 1))

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        yield told
    finally:
        done.set()
        for thread in threads:
            thread.join(60.0)
    assert not any(thread.is_alive() for thread in threads)


def is_shared(study: Study) -> bool:
    """Return whether parent and child write to the same study; in memory, each has its own."""
    return not study.name.startswith("forked ")


def check_stored(study: Study, told: list[int]) -> None:
    """Check that exactly these trials are stored as told, each once and with its reward."""
    assert len(set(told)) == len(told)
    rows = [row for row in study.trials() if row.status == "told"]
    assert sorted(row.trial for row in rows) == sorted(told)
    assert all(row.reward == draw_reward(row.trial) for row in rows)
    study.check()


def test_children_of_a_busy_process(study: Study) -> None:
    """All go on. Before a fork waited for commits, a child of a process with an SQLite file hung in 2 of 3 cases, so
    that a test that forks 8 times would miss this with a probability of 2e-4.
    """
    chance = random.Random(1)
    told: list[int] = []

    def go_on() -> list[int]:
        before = study.status().counted
        numbers = work(study, 3)
        assert study.status().counted >= before
        return numbers

    with keep_busy(study) as told_by_threads:
        while not told_by_threads:
            time.sleep(0.001)
        for _ in range(FORKS):
            time.sleep(0.01 * chance.random())
            numbers = ForkedChild(go_on).wait()
            assert len(numbers) == 3
            if is_shared(study):
                told += numbers
        told += work(study, 3)  # so does the parent
    check_stored(study, told + told_by_threads)


@pytest.mark.parametrize("study", [*STORES, "http"], indirect=True)
def test_children_that_work_at_the_same_time(study: Study) -> None:
    """Children of a busy process and its threads, all at once; children of children too."""

    def go_on() -> list[int]:
        grandchild = ForkedChild(lambda: work(study, 5))
        numbers = work(study, 5)
        return numbers + (grandchild.wait() if is_shared(study) else grandchild.wait()[:0])

    with keep_busy(study) as told_by_threads:
        while not told_by_threads:
            time.sleep(0.001)
        children = [ForkedChild(go_on) for _ in range(4)]
        told = [trial for child in children for trial in child.wait()]
    assert len(told) == 4 * (10 if is_shared(study) else 5)
    check_stored(study, [*told, *told_by_threads] if is_shared(study) else told_by_threads)


def test_processes_of_multiprocessing(study: Study) -> None:
    """With the start method that Linux used by default until Python 3.14, from a busy process."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    told = []
    with keep_busy(study) as told_by_threads:
        while not told_by_threads:
            time.sleep(0.001)
        children = [context.Process(target=lambda: results.put(work(study, 5)), daemon=True) for _ in range(3)]
        for child in children:
            child.start()
        for child in children:
            child.join(MAX_SECONDS)
        assert [child.exitcode for child in children] == [0] * 3
        told = [trial for _ in children for trial in results.get()]
    assert len(told) == 15
    check_stored(study, [*told, *told_by_threads] if is_shared(study) else told_by_threads)


def test_the_copy_of_a_study_in_memory_is_whole() -> None:
    """A fork waits until nothing is half written: in the child there is what was committed, and nothing more.

    The thread is in a transaction nearly all the time. Copied at any moment, a child had 1,502 events of one.
    """
    store = MemoryStore()
    store.create("s", {}, at=0.0)
    committed = [Event(EventKind.ASKED, 0.0, number, 0) for number in range(1, 11)]
    with store.session("s", write=True) as session:
        session.append(committed)
    done = threading.Event()

    def append_in_vain() -> None:
        while not done.is_set():
            with suppress(ZeroDivisionError), store.session("s", write=True) as session:
                session.append([Event(EventKind.ASKED, 0.0, number, 0) for number in range(11, 2_001)])
                raise ZeroDivisionError

    def read() -> list[int]:
        with store.session("s", write=False) as session:
            assert session.events_of_trials(1, 10_000) == committed
            return [position for position, _ in session.events_after(0)]

    thread = threading.Thread(target=append_in_vain)
    thread.start()
    try:
        assert [ForkedChild(read).wait() for _ in range(FORKS)] == [list(range(1, 11))] * FORKS
    finally:
        done.set()
        thread.join(60.0)


LEAVING_PARENT = r"""
import os, signal, sys, time, dbcare
from tests.helpers.worker_main import draw_reward
from dbcare.studies.stores.open import open_store
address, how, folder = sys.argv[1:]
study = dbcare.load_study("left", address)
def work(trials, name):
    with open(os.path.join(folder, name), "a") as journal:
        for _ in range(trials):
            trial = study.ask(lease=None)
            study.tell(trial, draw_reward(trial.id))
            journal.write(f"{trial.id}\n")
            journal.flush()
work(5, "parent")
if os.fork() == 0:
    work(5, "child")
    os.close(1)  # the test reads until the parent and the child have closed this
    sys.stdin.readline()
    work(20, "child")
    os.close(2)
    os._exit(0)
while not os.path.exists(os.path.join(folder, "child")):
    time.sleep(0.01)
if how == "closes":
    open_store(address).close()
    os.close(1)
    os.wait()
elif how == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def start_parent(*arguments: str) -> subprocess.Popen[str]:
    """Start a parent that leaves."""
    paths = Path(dbcare.__file__).parents[1], Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-c", LEAVING_PARENT, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


@pytest.mark.parametrize("how", ["closes", "is killed", "ends"])
def test_a_child_whose_parent_leaves(how: str, tmp_path: Path) -> None:
    """As a daemon's does: the file's locks of the parent go with it, and others open the file meanwhile.

    A child that took over its parent's open file wrote to a log that others had deleted.
    """
    address = f"sqlite:///{tmp_path / 'live.db'}"
    study = create("left", address)
    open_store(address).close()
    process = start_parent(address, how, str(tmp_path))
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdin, process.stdout, process.stderr:
        process.stdout.read()
        if how != "closes":
            process.wait(MAX_SECONDS)
        told = work(study, 5)  # as the only one who holds the file's locks, unless the child does
        open_store(address).close()
        process.stdin.close()
        errors = process.stderr.read()  # until the child has ended
    process.wait(MAX_SECONDS)
    journal = [int(line) for name in ("parent", "child") for line in (tmp_path / name).read_text().split()]
    assert len(journal) == 30, errors
    told += work(study, 1)
    check_stored(study, told + journal)
    assert replay_study(study, address)[0].counted == 36
    open_store(address).close()


def test_parent_and_children_draw_different_tags() -> None:
    """A tag tells copies of a study apart, so a child must not go on with its parent's sequence of tags.

    With 32 random bits, the chance that any two of these tags are equal by luck is 1.0e-7.
    """
    children = [ForkedChild(lambda: [int(make_tag(), 16) for _ in range(10)]) for _ in range(2)]
    tags = [int(make_tag(), 16) for _ in range(10)]
    for child in children:
        tags += child.wait()
    assert len(set(tags)) == len(tags) == 30
