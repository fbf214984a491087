"""A worker of a live study, for tests that start several and kill some.

python live_worker.py ADDRESS STUDY NAME TRIALS: ask and tell until so many are told or the study stops. The reward
follows from the trial's number, so that a replay can be checked. Prints each trial it was acknowledged.
"""

import sys
import time

import numpy as np

import dbcare


def reward_of(trial: int) -> float:
    return float(np.random.default_rng(trial).normal())


if __name__ == "__main__":
    address, name, worker, trials = sys.argv[1:]
    study = dbcare.load_study(name, storage=address)
    told = 0
    while told < int(trials) and not study.should_stop():
        trial = study.ask(lease="2s", worker=worker)
        if trial is None:
            time.sleep(0.002)
            continue
        study.tell(trial, reward_of(trial.id))
        told += 1
        sys.stdout.write(f"{trial.id} {trial.arm}\n")
        sys.stdout.flush()
