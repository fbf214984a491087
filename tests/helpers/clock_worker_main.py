"""A worker that does what it is told, line by line, so that a test can move its clock in between.

python clock_worker_main.py ADDRESS STUDY: for "time", print the time; for "ask LEASE", ask and print the trial's number
and when its lease ends; for "tell NUMBER", tell its reward and print "told". An error is printed instead.
"""

import sys
import time

import dbcare
from dbcare.errors import DbcareError
from tests.helpers.worker_main import draw_reward, report


def carry_out(study: dbcare.Study, command: str, *arguments: str) -> str:
    """Carry out a command; return what to print."""
    if command == "time":
        return str(time.time())
    if command == "ask":
        trial = study.ask(lease=arguments[0], worker="moving")
        return "none" if trial is None else f"{trial.id} {trial.expires}"
    study.tell(int(arguments[0]), draw_reward(int(arguments[0])))
    return "told"


if __name__ == "__main__":
    address, name = sys.argv[1:]
    study = dbcare.load_study(name, storage=address)
    report("ready")
    for line in sys.stdin:
        try:
            report(carry_out(study, *line.split()))
        except DbcareError as error:
            report(f"{type(error).__name__} {error}")
