"""Workers in processes of their own, and what they said before they ended or were killed."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from dbcare import Study
from dbcare.live.events import EventKind
from dbcare.live.ledger import Ledger
from dbcare.live.stores.open import open_store
from helpers.worker_main import reward_of

WORKER = Path(__file__).with_name("worker_main.py")
ARMS = ["A", "B", "C"]
ANSWERS = (EventKind.TOLD, EventKind.SURPLUS)


class Worker:
    """One process; what it says goes to a file, which is there whatever happens to the process."""

    def __init__(self, address: str, study: str, number: int, trials: int, folder: Path, lease: str) -> None:
        self.said = folder / f"worker-{number}.txt"
        command = [sys.executable, str(WORKER), address, study, f"worker {number}", str(trials), lease]
        with self.said.open("w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def lines(self) -> list[str]:
        """All it said so far; a line that was cut off does not count."""
        text = self.said.read_text()
        return text[: text.rfind("\n") + 1].splitlines()

    def told(self) -> list[int]:
        return [int(line.split()[1]) for line in self.lines() if line.startswith("told ")]

    def outages(self) -> list[str]:
        return [line for line in self.lines() if line.startswith("outage ")]


def told_by(workers: Iterable[Worker]) -> list[int]:
    return [trial for worker in workers for trial in worker.told()]


def answered_since(position: int, study: Study, address: str) -> tuple[int, set[int]]:
    """The last position, and the trials that were answered behind the one given."""
    with open_store(address).session(study.name, write=False) as session:
        placed = session.events_after(position)
    return (placed[-1][0] if placed else position), {event.trial for _, event in placed if event.kind in ANSWERS}


def replayed(study: Study, address: str) -> tuple[Ledger, list[int]]:
    """A replay of all events in this process, each ask compared with what the ledger says; and the trials answered."""
    ledger, answered = Ledger(study.settings), []
    with open_store(address).session(study.name, write=False) as session:
        for _, event in session.events_after(0):
            if event.kind is EventKind.ASKED:
                assert event.trial == ledger.asked + 1
                assert event.arm == ledger.next_arm()
            if event.kind in ANSWERS:
                assert event.reward == reward_of(event.trial)
                answered.append(event.trial)
            ledger.apply(event)
    return ledger, answered
