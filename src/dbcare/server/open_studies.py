"""Studies that are open in this process: opening one reads all of it, using it again only what is new."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from dbcare.errors import StudyNotFoundError
from dbcare.live.stored_study import StoredStudy
from dbcare.live.stores.base import Store
from dbcare.live.studies import check_name
from dbcare.live.study import Study

MAX_OPEN_STUDIES = 1000
FRESH_SECONDS = 0.25  # for which a study that was seen under its name is not looked up again

Viewed = TypeVar("Viewed")


@dataclass
class OpenedStudy:
    """A study, and when it was last seen under its name."""

    identity: int
    study: Study
    seen: float


class OpenStudies:
    """Studies by name; one that was deleted and re-created is another one.

    That is looked up now and then; in between, a `StoredStudy` notices by itself, refuses to go on, and is forgotten.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.writers = ThreadPoolExecutor(store.max_writers, "writer")
        self._lock = threading.Lock()
        self._open: OrderedDict[str, OpenedStudy] = OrderedDict()

    def find(self, name: str) -> Study | None:
        """Return the study of that name if it was seen just now; never waits."""
        opened = self._open.get(name)
        return opened.study if opened is not None and time.monotonic() - opened.seen < FRESH_SECONDS else None

    def get(self, name: str) -> Study:
        """Return the study of that name."""
        if (recent := self.find(name)) is not None:
            return recent
        now = time.monotonic()
        identity = self.store.identity(check_name(name))
        with self._lock:
            opened = self._open.pop(name, None)
        if opened is None or opened.identity != identity:
            opened = OpenedStudy(identity, StoredStudy(self.store, name), now)
        opened.seen = now
        with self._lock:
            self._open[name] = opened
            while len(self._open) > MAX_OPEN_STUDIES:
                self._open.popitem(last=False)
        return opened.study

    def forget(self, name: str) -> None:
        """Look the study up when it is next asked for."""
        with self._lock:
            self._open.pop(name, None)

    def view_all(self, view: Callable[[Study], Viewed]) -> list[Viewed]:
        """Return a view of every study, oldest first; those that vanish meanwhile are left out."""
        views = []
        for name in self.store.names():
            try:
                views.append(view(self.get(name)))
            except StudyNotFoundError:
                self.forget(name)
        return views
