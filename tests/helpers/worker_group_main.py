"""A process whose threads ask and tell at the same time, so that their operations share commits, until it is killed.

python worker_group_main.py ADDRESS STUDY NAME THREADS [early]: each thread prints "asking KEY" before it asks with that
key, "asked KEY NUMBER" once it has a trial, and "told NUMBER" once the reward was acknowledged. With "early", the
threads are deliberately broken: they acknowledge a reward that has not been committed.
"""

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import dbcare
from dbcare.studies.stored import StoredStudy
from tests.helpers.worker_main import draw_reward, retry


def report(line: str) -> None:
    """Write a line in one piece; standard output is a file opened for appending."""
    os.write(1, f"{line}\n".encode())


def work(study: StoredStudy, name: str, executor: ThreadPoolExecutor | None) -> None:
    """Ask and tell forever."""
    for turn in count():
        key = f"{name}/{turn}"
        report(f"asking {key}")
        trial = retry(lambda: study.ask(lease=None, worker=name, key=key))  # noqa: B023  # called at once
        if trial is None:
            time.sleep(0.002)
            continue
        report(f"asked {key} {trial.id}")
        if executor is None:
            retry(lambda: study.tell(trial, draw_reward(trial.id)))  # noqa: B023  # called at once
        else:
            study.commits.submit(study.tell_later(trial, draw_reward(trial.id)), executor, lambda: None)
        report(f"told {trial.id}")


if __name__ == "__main__":
    address, name, worker, threads, *early = sys.argv[1:]
    study = retry(lambda: dbcare.load_study(name, storage=address))
    assert isinstance(study, StoredStudy)
    executor = ThreadPoolExecutor(1) if early else None
    group = [
        threading.Thread(target=work, args=(study, f"{worker}.{number}", executor)) for number in range(int(threads))
    ]
    for thread in group:
        thread.start()
    for thread in group:
        thread.join()  # an executor takes nothing once the main thread has ended
