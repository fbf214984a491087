"""Studies to measure, and the time of an ask and a tell, or of two commits of the disk itself."""

import random
import sqlite3
import time
import uuid
from pathlib import Path

import dbcare
from dbcare import Study

ARMS = ("A", "B", "C")
BATCH = 20_000


def new_study(folder: Path, name: str, max_ahead: int | None = None) -> Study:
    """Create a study that does not stop on its own, in its own file."""
    address = f"sqlite:///{folder / name}.db"
    return dbcare.create_study(name, ARMS, cost=1e-15, sigma=1.0, max_ahead=max_ahead, storage=address)


def grow_study(folder: Path, name: str, trials: int) -> Study:
    """Create a study that has already run `trials` trials."""
    study, chance = new_study(folder, name, max_ahead=BATCH), random.Random(trials)
    while (left := trials - study.status().asked) > 0:
        study.tell_many([(trial, chance.gauss(0.0, 1.0)) for trial in study.ask(min(left, BATCH))])
    return study


def seconds_per_pair(study: Study, pairs: int, *, with_key: bool = False) -> float:
    """Time asking for a trial and telling its reward."""
    chance = random.Random(pairs)
    keys = [uuid.uuid4().hex if with_key else None for _ in range(pairs)]
    began = time.perf_counter()
    for key in keys:
        trial = study.ask(key=key)
        assert trial is not None
        study.tell(trial, chance.gauss(0.0, 1.0))
    return (time.perf_counter() - began) / pairs


def disk_seconds_per_pair(file: Path, pairs: int) -> float:
    """Time two durable commits."""
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
