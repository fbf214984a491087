"""Live studies on SQLite: against Optuna's storage and the disk itself, and as they grow.

`make bench`, or `python benchmarks/live.py [--out DIR]`. Everything is measured in one run on one disk. An ask and a
tell are two durable transactions: each waits until the disk has it (WAL, synchronous = FULL). "The disk itself" is two
such commits of one row each, with nothing around them.
"""

import logging
import random
import sqlite3
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import optuna
from bars import Bars

import dbcare
from dbcare import Study
from dbcare.live.stores.sql.store import SqlStore
from dbcare.live.studies import store_of

ARMS = ("A", "B", "C")
PAIRS = 300
BATCH = 20_000
SMALL, LARGE = 1_000, 100_000


def new_study(folder: Path, name: str, max_ahead: int | None = None) -> Study:
    """A study that will not stop by itself, in a file of its own."""
    address = f"sqlite:///{folder / name}.db"
    return dbcare.create_study(name, ARMS, cost=1e-15, sigma=1.0, max_ahead=max_ahead, storage=address)


def grown(folder: Path, name: str, trials: int) -> Study:
    """A study with so many trials behind it."""
    study, chance = new_study(folder, name, max_ahead=BATCH), random.Random(trials)
    while (left := trials - study.status().asked) > 0:
        study.tell_many([(trial, chance.gauss(0.0, 1.0)) for trial in study.ask(min(left, BATCH))])
    return study


def seconds_a_pair(study: Study, pairs: int) -> float:
    """Of asking for a trial and telling it."""
    chance = random.Random(pairs)
    began = time.perf_counter()
    for _ in range(pairs):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, chance.gauss(0.0, 1.0))
    return (time.perf_counter() - began) / pairs


def optuna_study(folder: Path) -> optuna.Study:
    """A study of Optuna's, with the sampler that costs next to nothing."""
    optuna.logging.set_verbosity(logging.WARNING)
    sampler = optuna.samplers.RandomSampler(seed=1)
    return optuna.create_study(storage=f"sqlite:///{folder / 'optuna.db'}", sampler=sampler, direction="maximize")


def optuna_seconds_a_pair(study: optuna.Study, pairs: int) -> float:
    """The same by Optuna."""
    chance = random.Random(pairs)
    began = time.perf_counter()
    for _ in range(pairs):
        trial = study.ask()
        trial.suggest_categorical("arm", ARMS)
        study.tell(trial, chance.gauss(0.0, 1.0))
    return (time.perf_counter() - began) / pairs


def disk_seconds_a_pair(file: Path, pairs: int) -> float:
    """Two durable commits."""
    connection = sqlite3.connect(file, isolation_level=None)
    for line in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE t (a, b, c, d)"):
        connection.execute(line)
    began = time.perf_counter()
    for number in range(2 * pairs):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?, ?, ?, ?)", (number, "asked", 1.0, 2.0))
        connection.execute("COMMIT")
    seconds = (time.perf_counter() - began) / pairs
    connection.close()
    return seconds


def opening(folder: Path, name: str) -> float:
    """Seconds until a study that nobody has open says where it stands."""
    began = time.perf_counter()
    store = SqlStore(f"sqlite:///{folder / name}.db")
    status = Study(store, name).status()
    seconds = time.perf_counter() - began
    assert status.asked >= LARGE
    store.close()
    return seconds


def batch_rate(folder: Path) -> float:
    """Answers a second by `tell_many`."""
    study, chance = new_study(folder, "batch", max_ahead=BATCH), random.Random(2)
    answers = [(trial, chance.gauss(0.0, 1.0)) for trial in study.ask(BATCH)]
    began = time.perf_counter()
    study.tell_many(answers)
    return BATCH / (time.perf_counter() - began)


def main() -> None:
    bars = Bars(__doc__)
    warnings.simplefilter("ignore")  # of Optuna, on what is experimental there
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:  # a disk, where /tmp may be memory
        folder = Path(name)
        bars.report("tell_many, answers a second, K=3", batch_rate(folder), 20_000, at_least=True)
        ours, theirs, disk = [], [], []
        study, other = new_study(folder, "ours"), optuna_study(folder)
        for turn in range(5):
            ours.append(seconds_a_pair(study, PAIRS))
            theirs.append(optuna_seconds_a_pair(other, PAIRS))
            disk.append(disk_seconds_a_pair(folder / f"disk {turn}.db", PAIRS))
        pair, by_optuna, disk_pair = (statistics.median(each) for each in (ours, theirs, disk))
        bars.report("rate of ask+tell / Optuna's", by_optuna / pair, 10.0, at_least=True, ours=pair, optuna=by_optuna)
        bars.report("rate of ask+tell / two durable commits", disk_pair / pair, 0.3, at_least=True, disk=disk_pair)
        small, large = grown(folder, "small", SMALL), grown(folder, "large", LARGE)
        ratios = [seconds_a_pair(large, PAIRS) / seconds_a_pair(small, PAIRS) for _ in range(5)]
        bars.report("ask+tell at 100,000 trials / at 1,000", statistics.median(ratios), 1.3)
        bars.report("opening 100,000 trials, seconds", max(opening(folder, "large") for _ in range(5)), 0.5)
        for each in ("batch", "ours", "small", "large"):
            store_of(f"sqlite:///{folder / each}.db").close()
    bars.save()


if __name__ == "__main__":
    main()
