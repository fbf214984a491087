"""The studies that are open in this process: opening one reads all its events, using it again only new ones."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from dbcare.errors import StudyNotFoundError, UnknownPolicyError
from dbcare.live.stored_study import StoredStudy
from dbcare.live.stores.base import Store
from dbcare.live.studies import check_name
from dbcare.live.study import Study
from dbcare.server.problems import LOG

MAX_OPEN_STUDIES = 1000
FRESH_SECONDS = 0.25  # during which a study is not looked up again

Viewed = TypeVar("Viewed")


@dataclass
class OpenedStudy:
    """A study, and when it was last looked up by its name."""

    identity: int
    study: Study
    seen: float


class OpenStudies:
    """Studies by name; a study that was deleted and re-created is a different one.

    The name is looked up again after a moment. Until then a `StoredStudy` notices by itself, and raises
    StudyNotFoundError, upon which the service forgets it.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.writers = ThreadPoolExecutor(store.max_writers, "writer")
        self._lock = threading.Lock()
        self._open: OrderedDict[str, OpenedStudy] = OrderedDict()

    def find(self, name: str) -> Study | None:
        """Return the study of that name if it was looked up just now; never waits."""
        opened = self._open.get(name)
        return opened.study if opened is not None and time.monotonic() - opened.seen < FRESH_SECONDS else None

    def get(self, name: str) -> Study:
        """Return the study of that name."""
        if (study := self.find(name)) is not None:
            return study
        now = time.monotonic()
        identity = self.store.record(check_name(name)).identity
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
        """Drop the study, so that it is looked up when it is next needed."""
        with self._lock:
            self._open.pop(name, None)

    def view_all(self, view: Callable[[Study], Viewed]) -> list[Viewed]:
        """Return a view of every study, oldest first, without those deleted meanwhile or unusable here."""
        views = []
        for name in self.store.names():
            try:
                views.append(view(self.get(name)))
            except StudyNotFoundError:
                self.forget(name)
            except UnknownPolicyError as unusable:
                LOG.warning("%s", unusable)
        return views
