"""Measure live studies on SQLite, against Optuna's storage and the disk itself, and as they grow.

Everything is measured in one run on one disk. An ask and a tell are two durable transactions: each waits until the data
are on disk (WAL, synchronous = FULL). "The disk itself" is two such commits of one row each, and nothing else.
"""

import logging
import random
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import optuna

from benchmarks.parts.bars import Bars
from benchmarks.parts.study_load import ARMS, BATCH, disk_seconds_per_pair, grow_study, new_study, seconds_per_pair
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.open import open_store
from dbcare.studies.stores.sql.store import SqlStore

PAIRS = 300
SMALL, LARGE = 1_000, 100_000


def optuna_study(folder: Path) -> optuna.Study:
    """Create an Optuna study, with the sampler that costs next to nothing."""
    optuna.logging.set_verbosity(logging.WARNING)
    sampler = optuna.samplers.RandomSampler(seed=1)
    return optuna.create_study(storage=f"sqlite:///{folder / 'optuna.db'}", sampler=sampler, direction="maximize")


def optuna_seconds_per_pair(study: optuna.Study, pairs: int) -> float:
    """Time the same with Optuna."""
    chance = random.Random(pairs)
    began = time.perf_counter()
    for _ in range(pairs):
        trial = study.ask()
        trial.suggest_categorical("arm", ARMS)
        study.tell(trial, chance.gauss(0.0, 1.0))
    return (time.perf_counter() - began) / pairs


def seconds_to_open(folder: Path, name: str, trials: int) -> float:
    """Time opening a study that is not open yet, up to its status."""
    began = time.perf_counter()
    store = SqlStore(f"sqlite:///{folder / name}.db")
    status = StoredStudy(store, name).status()
    seconds = time.perf_counter() - began
    assert status.asked >= trials
    store.close()
    return seconds


def batch_rate(folder: Path) -> float:
    """Measure how many rewards per second `tell_many` accepts."""
    study, chance = new_study(folder, "batch", max_ahead=BATCH), random.Random(2)
    rewards = [(trial, chance.gauss(0.0, 1.0)) for trial in study.ask(BATCH)]
    began = time.perf_counter()
    study.tell_many(rewards)
    return BATCH / (time.perf_counter() - began)


def main() -> None:
    bars = Bars(__doc__)
    warnings.simplefilter("ignore")  # Optuna's, about its experimental features
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:  # on a disk; /tmp may be in memory
        folder = Path(name)
        bars.report("tell_many, rewards per second, K=3", batch_rate(folder), 20_000, at_least=True)
        pairs, most = bars.size((PAIRS, LARGE), (50, 10_000))
        our_times, optuna_times, disk_times = [], [], []
        study, other = new_study(folder, "ours"), optuna_study(folder)
        for turn in range(5):
            our_times.append(seconds_per_pair(study, pairs))
            optuna_times.append(optuna_seconds_per_pair(other, pairs))
            disk_times.append(disk_seconds_per_pair(folder / f"disk {turn}.db", pairs))
        ours, optunas, disk = (statistics.median(times) for times in (our_times, optuna_times, disk_times))
        bars.report("rate of ask+tell / Optuna's", optunas / ours, 10.0, at_least=True, ours=ours, optuna=optunas)
        ratios = [bare / own for bare, own in zip(disk_times, our_times, strict=True)]  # the disk's pace varies
        bars.report("rate of ask+tell / two durable commits", statistics.median(ratios), 0.75, at_least=True, disk=disk)
        small, large = grow_study(folder, "small", SMALL), grow_study(folder, "large", most)
        ratios = [seconds_per_pair(large, pairs) / seconds_per_pair(small, pairs) for _ in range(5)]
        bars.report(f"ask+tell at {most:,} trials / at 1,000", statistics.median(ratios), 1.3)
        keyed = [
            seconds_per_pair(large, pairs, with_key=True) / seconds_per_pair(small, pairs, with_key=True)
            for _ in range(5)
        ]
        bars.report(f"ask+tell with a key at {most:,} trials / at 1,000", statistics.median(keyed), 1.3)
        slowest = max(seconds_to_open(folder, "large", most) for _ in range(5))
        bars.report(f"opening {most:,} trials, seconds", slowest, 0.5)
        for study_name in ("batch", "ours", "small", "large"):
            open_store(f"sqlite:///{folder / study_name}.db").close()
    bars.save()
