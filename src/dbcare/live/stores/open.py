"""The store at an address."""

from __future__ import annotations

import os
import threading
from typing import Any

from dbcare.errors import InvalidValueError
from dbcare.live.stores.base import Store
from dbcare.live.stores.memory import MemoryStore

STORAGE_VARIABLE = "DBCARE_STORAGE"


def open_store(storage: str | Store | None) -> Store:
    """Return the store that `storage` means: itself, the one at an address, or without any this process's memory.

    The same address is the same store, so that all studies at an address share its connections. Without an address,
    the environment variable DBCARE_STORAGE may give one.
    """
    if isinstance(storage, Store):
        return storage
    address: Any = os.environ.get(STORAGE_VARIABLE) if storage is None else storage
    if address is not None and not isinstance(address, str):
        raise InvalidValueError(
            f"`storage` must be a Store or an address such as sqlite:///ads.db but got {address!r}."
        )
    with _OPENING:
        if address not in _OPENED:
            _OPENED[address] = _open(address)
        return _OPENED[address]


_OPENED: dict[str | None, Store] = {}
_OPENING = threading.Lock()  # several threads that open an address share one store


def _open(address: str | None) -> Store:
    if address is None:
        return MemoryStore()
    from dbcare.live.stores.sql.store import SqlStore  # noqa: PLC0415  # only databases need SQLAlchemy

    return SqlStore(address)
