"""Studies that are open in this process: opening one reads it, using it again only what is new."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from dbcare.errors import StudyNotFoundError
from dbcare.live.stored_study import Study
from dbcare.live.stores.sql.store import SqlStore
from dbcare.live.studies import checked_name

MOST_OPEN = 1000
WRITERS = 8  # threads for asks and tells, where the database takes several at a time
FRESH = 0.25  # seconds for which a study that was seen under its name is not looked up again

Seen = TypeVar("Seen")


@dataclass
class OpenedStudy:
    """A study, and when it was last seen under its name."""

    identity: int
    study: Study
    looked_at: float


class OpenStudies:
    """Studies by name; one that was deleted and made anew is another one.

    That is looked up now and then; in between a `Study` notices by itself, refuses to go on, and is forgotten.
    """

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        # SQLite has one writer at a time anyway: more threads would only get in each other's way.
        self.writers = ThreadPoolExecutor(1 if store.url.get_backend_name() == "sqlite" else WRITERS, "writer")
        self._lock = threading.Lock()
        self._open: OrderedDict[str, OpenedStudy] = OrderedDict()

    def opened(self, name: str) -> Study | None:
        """The study of that name, if it was seen just now; never waits."""
        opened = self._open.get(name)
        return opened.study if opened is not None and time.monotonic() - opened.looked_at < FRESH else None

    def study(self, name: str) -> Study:
        """The study of that name."""
        if (seen := self.opened(name)) is not None:
            return seen
        now = time.monotonic()
        identity = self.store.identity(checked_name(name))
        with self._lock:
            opened = self._open.pop(name, None)
        if opened is None or opened.identity != identity:
            opened = OpenedStudy(identity, Study(self.store, name), now)
        opened.looked_at = now
        with self._lock:
            self._open[name] = opened
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        return opened.study

    def forget(self, name: str) -> None:
        """Look the study up when it is next asked for."""
        with self._lock:
            self._open.pop(name, None)

    def each(self, look: Callable[[Study], Seen]) -> list[Seen]:
        """What `look` makes of every study, the oldest first; those that vanish meanwhile are left out."""
        found = []
        for name in self.store.names():
            try:
                found.append(look(self.study(name)))
            except StudyNotFoundError:
                self.forget(name)
        return found
