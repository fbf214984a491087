"""End simulations that nobody waits for: a switch that compiled loops read before every pull."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from dbcare.errors import WorkCancelledError


class Halt:
    """A switch; once it is set, simulations that began within `applied` raise WorkCancelledError.

    Examples
    --------
    >>> from dbcare import plan
    >>> from dbcare.engines.simulate.halt import Halt
    >>> halt = Halt()
    >>> halt.set()  # usually from another thread, while the plan is made
    >>> with halt.applied():
    ...     plan(arms=2, cost=1e-3, sigma=1.0)
    Traceback (most recent call last):
    ...
    dbcare.errors.WorkCancelledError: The work was cancelled.
    """

    def __init__(self) -> None:
        self.flag = np.zeros(1, np.int64)  # what compiled loops read

    def set(self) -> None:
        """End the simulations, from any thread."""
        self.flag[0] = 1

    def is_set(self) -> bool:
        """Return whether simulations are to end."""
        return bool(self.flag[0])

    def check(self) -> None:
        """Raise WorkCancelledError if simulations are to end."""
        if self.is_set():
            raise WorkCancelledError("The work was cancelled.")

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Make this the switch of all simulations within the block."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)


_CURRENT: ContextVar[Halt] = ContextVar("halt", default=Halt())  # noqa: B039  # the default is never set


def current_halt() -> Halt:
    """Return the switch that applies here."""
    return _CURRENT.get()
