"""A worker of a live study, for tests that start several and kill some.

python worker_main.py ADDRESS STUDY NAME TRIALS LEASE: ask and tell until that many trials are told or the study stops.
Rewards follow from the trial's number, so that a replay can be checked. The worker prints "told NUMBER" for each trial
whose reward was acknowledged. If the storage fails, it prints "outage" with the message and retries until it works.
"""

import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

import dbcare
from dbcare.errors import StorageError

Result = TypeVar("Result")


def draw_reward(trial: int) -> float:
    """Return the reward of a trial, which depends on its number only."""
    return float(np.random.default_rng(trial).normal())


def report(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def retry(attempt: Callable[[], Result]) -> Result:
    """Repeat a call until the storage works."""
    while True:
        try:
            return attempt()
        except StorageError as failure:
            report(f"outage {failure}")
            time.sleep(0.02)


def work(address: str, name: str, worker: str, trials: int, lease: str) -> None:
    """Ask and tell until `trials` trials are told or the study stops."""
    study = retry(lambda: dbcare.load_study(name, storage=address))
    told = 0
    while told < trials and not retry(study.should_stop):
        trial = retry(lambda: study.ask(lease=lease, worker=worker))
        if trial is None:
            time.sleep(0.01)
            continue
        retry(lambda trial=trial: study.tell(trial, draw_reward(trial.id)))  # type: ignore[misc]  # bound in a loop
        told += 1
        report(f"told {trial.id}")


if __name__ == "__main__":
    address, name, worker, trials, lease = sys.argv[1:]
    work(address, name, worker, int(trials), lease)
