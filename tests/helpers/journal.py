"""What callers of a study were told, kept outside of what is killed, and compared with what is stored."""

import threading
from collections import Counter
from pathlib import Path

from dbcare import Study
from dbcare.studies.record.events import EventKind
from dbcare.studies.stores.open import open_store
from tests.helpers.worker_main import draw_reward
from tests.helpers.worker_processes import list_rewarded_after, replay_study


class Journal:
    """The lines "asking KEY", "asked KEY NUMBER" and "told NUMBER" of all callers, in files or written here."""

    def __init__(self) -> None:
        self.asking: list[str] = []
        self.asked: dict[str, int] = {}
        self.told: list[int] = []
        self._files: dict[Path, int] = {}  # and how far each has been read
        self._lock = threading.Lock()
        self._position = 0
        self._stored: set[int] = set()

    def follow(self, file: Path) -> None:
        """Have `read` include a file, which others write."""
        self._files[file] = 0

    def write(self, line: str) -> None:
        """Add a line, from any thread."""
        kind, subject, *number = line.split()
        with self._lock:
            if kind == "asking":
                self.asking.append(subject)
            elif kind == "asked":
                self.asked[subject] = int(number[0])
            else:
                assert kind in ("told", "outage"), line
                if kind == "told":
                    self.told.append(int(subject))

    def read(self) -> None:
        """Add the complete lines that others have written since."""
        for file, position in self._files.items():
            with file.open("rb") as stream:
                stream.seek(position)
                text = stream.read()
            complete = text[: text.rfind(b"\n") + 1]
            self._files[file] += len(complete)
            for line in complete.decode().splitlines():
                self.write(line)

    def find_lost(self, study: Study, address: str) -> set[int]:
        """Return the trials that were acknowledged before this call and are not stored."""
        self.read()
        with self._lock:
            acknowledged = set(self.told)
        self._position, added = list_rewarded_after(self._position, study, address)
        self._stored |= added
        return acknowledged - self._stored

    def settle(self, study: Study) -> None:
        """Send again whatever was not acknowledged, and some of what was: the same keys bring the same trials."""
        self.read()
        for key in [key for key in self.asking if key not in self.asked]:
            trial, again = (study.ask(lease=None, key=key) for _ in range(2))
            assert trial is not None
            assert trial == again
            self.asked[key] = trial.id
        for key, number in list(self.asked.items())[-50:]:
            trial = study.ask(lease=None, key=key)
            assert trial is not None
            assert trial.id == number
        assert len(set(self.told)) == len(self.told)
        missing = sorted(set(self.asked.values()) - set(self.told))
        for number in [*missing, *self.told[-50:]]:
            study.tell(number, draw_reward(number))
        self.told += missing

    def check(self, study: Study, address: str) -> None:
        """Check, after `settle`, that everything is stored once and unchanged, and nothing else is."""
        ledger, rewarded = replay_study(study, address)
        assert Counter(rewarded).most_common(1)[0][1] == 1
        assert set(rewarded) == set(self.told)
        assert ledger.counted == ledger.asked == len(rewarded)
        with open_store(address).session(study.name, write=False) as session:
            keys = [event.note for _, event in session.events_after(0) if event.kind is EventKind.ASKED]
        assert len(set(keys)) == len(keys)
        study.check()
