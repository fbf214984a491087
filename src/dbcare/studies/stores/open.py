"""The store at an address."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from dbcare.base.checks import show
from dbcare.errors import InvalidValueError
from dbcare.studies.record.forks import renew_after_fork
from dbcare.studies.stores.base import Store
from dbcare.studies.stores.memory import MemoryStore

if TYPE_CHECKING:
    from dbcare.studies.stores.sql.store import SqlStore

STORAGE_VARIABLE = "DBCARE_STORAGE"


def open_store(storage: str | Store | None, *, create: bool = False) -> Store:
    """Return the store that `storage` means: itself, the one at an address, or without any this process's memory.

    The same address is the same store, so that all studies at an address share its connections. Without an address,
    the environment variable DBCARE_STORAGE may give one. A database that does not exist is an error unless `create`.
    """
    if isinstance(storage, Store):
        return storage
    address: Any = os.environ.get(STORAGE_VARIABLE) if storage is None else storage
    if address is not None and not isinstance(address, str):
        raise InvalidValueError(
            f"`storage` must be a Store or an address such as sqlite:///ads.db but got {show(address)}."
        )
    return _OPENED.memory if address is None else _OPENED.get(str.__str__(address), create)


class _OpenStores:
    """The stores that are open in this process."""

    def __init__(self) -> None:
        self.memory = MemoryStore()
        self._by_address: dict[str, SqlStore] = {}
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Replace the lock in a child process."""
        self._lock = threading.Lock()

    def get(self, address: str, create: bool) -> SqlStore:
        """Return the store at an address; several threads that open it share one."""
        from dbcare.studies.stores.sql.store import SqlStore  # noqa: PLC0415  # only databases need SQLAlchemy

        with self._lock:
            store = self._by_address.get(address)
            if store is None:
                store = self._by_address[address] = SqlStore(address, create=create)
            elif create:
                store.create_database()  # in case it was removed
            return store


_OPENED = _OpenStores()
