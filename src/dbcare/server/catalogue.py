"""Studies that are open in this process: opening one reads it, using it again only what is new."""

from __future__ import annotations

import threading
from collections import OrderedDict

from dbcare.live.create import checked_name
from dbcare.live.store import Store
from dbcare.live.study import Study

MOST_OPEN = 1000


class Catalogue:
    """Studies by name; one that was deleted and made anew is another one."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._open: OrderedDict[str, tuple[int, Study]] = OrderedDict()

    def study(self, name: str) -> Study:
        """The study of that name."""
        identity = self.store.identity(checked_name(name))
        with self._lock:
            found = self._open.pop(name, None)
            if found is None or found[0] != identity:
                found = identity, Study(self.store, name)
            self._open[name] = found
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        return found[1]

    def all(self) -> list[Study]:
        """Every study, the oldest first."""
        return [self.study(name) for name in self.store.names()]
