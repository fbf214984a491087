"""Locks and connections after a fork: the child has copies, and no thread that would ever release the locks."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """Something with locks or connections that must not be used in a child process."""

    def renew(self) -> None:
        """Replace them. Called in the child, before anything else runs there."""


_RENEWABLE: WeakSet[Renewable] = WeakSet()


def renew_after_fork(item: Renewable) -> None:
    """Have `item.renew()` called in every child process that is forked from this one."""
    _RENEWABLE.add(item)


def _renew_all() -> None:
    for item in list(_RENEWABLE):
        item.renew()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_renew_all)
