"""A worker of a live study, for tests that start several and kill some.

python worker_main.py ADDRESS STUDY NAME TRIALS LEASE: ask and tell until so many are told or the study stops. The
reward follows from the trial's number, so that a replay can be checked. Prints "told NUMBER" for each trial it was
acknowledged. Where the storage fails it prints "outage" with the message, and does the same again until it works.
"""

import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

import dbcare
from dbcare.errors import StorageError

Got = TypeVar("Got")


def reward_of(trial: int) -> float:
    return float(np.random.default_rng(trial).normal())


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def insisting(attempt: Callable[[], Got]) -> Got:
    while True:
        try:
            return attempt()
        except StorageError as failure:
            say(f"outage {failure}")
            time.sleep(0.02)


def work(address: str, name: str, worker: str, trials: int, lease: str) -> None:
    study = insisting(lambda: dbcare.load_study(name, storage=address))
    told = 0
    while told < trials and not insisting(study.should_stop):
        trial = insisting(lambda: study.ask(lease=lease, worker=worker))
        if trial is None:
            time.sleep(0.002)
            continue
        insisting(lambda trial=trial: study.tell(trial, reward_of(trial.id)))  # type: ignore[misc]  # as loops need it
        told += 1
        say(f"told {trial.id}")


if __name__ == "__main__":
    address, name, worker, trials, lease = sys.argv[1:]
    work(address, name, worker, int(trials), lease)
