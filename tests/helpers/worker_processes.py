"""Workers in processes of their own, and what they printed before they ended or were killed."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from dbcare import Study
from dbcare.studies.record.events import EventKind
from dbcare.studies.record.ledger import Ledger
from dbcare.studies.stores.open import open_store
from tests.helpers.prepared_process import PreparedProcess
from tests.helpers.worker_main import draw_reward

WORKER = Path(__file__).with_name("worker_main.py")
ARMS = ["A", "B", "C"]
WITH_REWARD = (EventKind.TOLD, EventKind.SURPLUS)


class Worker:
    """One process; its output goes to a file, which survives whatever happens to the process."""

    def __init__(
        self,
        address: str,
        study: str,
        number: int,
        trials: int,
        folder: Path,
        lease: str,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.output = folder / f"worker-{number}.txt"
        arguments = [address, study, f"worker {number}", str(trials), lease]
        self.process: PreparedProcess | subprocess.Popen[bytes]
        if environment is None:
            self.process = PreparedProcess(WORKER, arguments, self.output)
        else:
            with self.output.open("w") as file:
                command = [sys.executable, str(WORKER), *arguments]
                self.process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.process.kill()
        self.process.wait()

    def read_lines(self) -> list[str]:
        """Return the complete lines printed so far."""
        text = self.output.read_text()
        return text[: text.rfind("\n") + 1].splitlines()

    def list_told(self) -> list[int]:
        """Return the trials that were acknowledged."""
        return [int(line.split()[1]) for line in self.read_lines() if line.startswith("told ")]

    def list_outages(self) -> list[str]:
        """Return the lines about failures of the storage."""
        return [line for line in self.read_lines() if line.startswith("outage ")]


def list_told(workers: Iterable[Worker]) -> list[int]:
    """Return the trials that any of these workers was acknowledged."""
    return [trial for worker in workers for trial in worker.list_told()]


def list_rewarded_after(position: int, study: Study, address: str) -> tuple[int, set[int]]:
    """Return the last position, and the trials with rewards stored after `position`."""
    with open_store(address).session(study.name, write=False) as session:
        placed = session.events_after(position)
    return (placed[-1][0] if placed else position), {event.trial for _, event in placed if event.kind in WITH_REWARD}


def replay_study(study: Study, address: str) -> tuple[Ledger, list[int]]:
    """Replay all events, comparing each ask with the ledger's; return the ledger and the trials with rewards."""
    ledger, rewarded = Ledger(study.settings), []
    with open_store(address).session(study.name, write=False) as session:
        for _, event in session.events_after(0):
            if event.kind is EventKind.ASKED:
                assert event.trial == ledger.asked + 1
                assert event.arm == ledger.next_arm()
                assert event.block == ledger.decision.next_block(event.arm)
            if event.kind in WITH_REWARD:
                assert event.reward == draw_reward(event.trial)
                rewarded.append(event.trial)
            ledger.apply(event)
    return ledger, rewarded
