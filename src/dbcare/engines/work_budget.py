"""A budget of work: how much an evaluation may simulate, and whether anybody still waits for it.

Work is counted rather than timed, so what fits into a budget is the same on every machine and for any number of
threads. One unit takes about 45 ns on one CPU: a pull that `any_loop` draws takes 1 + 3K/4 of them with K arms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dbcare.errors import DbcareError, InvalidValueError
from dbcare.validation import show


class WorkCancelledError(DbcareError):
    """The work was cancelled, since nobody waits for its result any more."""


class TooMuchWorkError(Exception):
    """The work does not fit into the budget; the message is a clause that says how much it is."""


def _never() -> bool:
    return False


@dataclass
class WorkBudget:
    """How much work there may be, and whether to go on; evaluations take their work from it.

    A unit of work is about 45 ns of one CPU. It is counted, so what fits does not depend on the machine.

    Parameters
    ----------
    left : float
        Units of work that are left. Default: no limit.
    is_cancelled : callable
        Returns whether to cancel the work; called from several threads, many times per second. Default: never.

    Examples
    --------
    >>> from dbcare import plan
    >>> from dbcare.engines.work_budget import WorkBudget
    >>> budget = WorkBudget(1e7)
    >>> planned = plan(arms=2, cost=1e-12, sigma=1.0, gaps=1e-4, policies="breakeven", runs=100, budget=budget)
    >>> planned.outlooks, planned.omissions[0].gap
    ((), 0.0001)
    """

    left: float = math.inf
    is_cancelled: Callable[[], bool] = _never

    def __post_init__(self) -> None:
        if not isinstance(self.left, int | float) or not self.left > 0.0:
            raise InvalidValueError(f"`left` must be positive but got {show(self.left)}.")

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return math.isfinite(self.left)

    def check(self) -> None:
        """Raise WorkCancelledError if the work has been cancelled."""
        if self.is_cancelled():
            raise WorkCancelledError("The work was cancelled.")

    def take(self, work: float) -> None:
        """Count work that was done."""
        self.left -= work

    def require(self, work: float, clause: str) -> None:
        """Raise TooMuchWorkError with this clause if so much work is not left."""
        if work > self.left:
            raise TooMuchWorkError(clause)

    def charge(self, work: float, clause: str) -> None:
        """Take work that is known before it is done, or raise TooMuchWorkError with this clause."""
        self.require(work, clause)
        self.take(work)
