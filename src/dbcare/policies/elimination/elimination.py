"""The rule shared by DBCARE, racing and the two-arm confidence rule; they differ only in its tables.

An epoch pulls every survivor once. At the end of epoch n, the rule drops each survivor whose sum of rewards is more
than b(n) = n*e_n below the largest (that is, whose mean is more than e_n below the best). It continues while more than
one arm survives, the last epoch allowed for that many survivors has not been reached, and one more epoch stays within
`max_pulls`.
"""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.errors import InvalidValueError
from dbcare.policies.epochs import ALIVE, EACH, EPOCH, HIGH, LIMIT, LOW, PULLS, SUMS, arms_offset, drop, epoch_rule
from dbcare.policies.policy import EpochPolicy, Pace
from dbcare.policies.rule import State
from dbcare.policies.run import DEFAULT_WORDING, Wording

# A table of 400 MB; a cost or cap that needs a longer one is surely a mistake.
MAX_TABLE_EPOCHS = 50_000_000
NO_CAP = 2**62


class EliminationTables(NamedTuple):
    """The numbers that define an elimination policy.

    boundary[row[k] + n] is b(n) while k arms survive; last_epoch[k] is the last epoch allowed for k survivors. If a
    drop lowers that limit below the current epoch, `overtime` more epochs are allowed.
    """

    boundary: npt.NDArray[np.float64]
    row: npt.NDArray[np.int64]
    last_epoch: npt.NDArray[np.int64]
    max_pulls: int
    overtime: int = 0


def idle(tables: EliminationTables, survivors: int, completed: int, limit: int, high: float, low: float) -> bool:
    """Return whether no arm is clearly behind and another epoch is allowed."""
    return bool(completed < limit and high - low <= tables.boundary[tables.row[survivors] + completed])


def decide(state: State, tables: EliminationTables) -> None:
    """End an epoch: drop arms that are clearly behind, then continue or stop."""
    epoch = int(state[EPOCH])
    alive = int(state[ALIVE])
    best = state[HIGH]
    if idle(tables, alive, epoch, int(state[LIMIT]), best, state[LOW]):
        return
    boundary = tables.boundary[tables.row[alive] + epoch]
    for slot in range(alive - 1, -1, -1):
        if best - state[SUMS + slot] > boundary:
            drop(state, slot)
    if epoch == 0 or state[ALIVE] < alive:
        set_limit(state, tables)
    state[EACH] = 1 if epoch < state[LIMIT] else 0


def set_limit(state: State, tables: EliminationTables) -> None:
    """Set the last epoch for the current survivors; the current epoch if only one arm survives."""
    epoch = int(state[EPOCH])
    alive = int(state[ALIVE])
    if alive == 1:
        state[LIMIT] = epoch
    else:
        affordable = epoch + (tables.max_pulls - int(state[PULLS])) // alive
        state[LIMIT] = min(affordable, max(int(tables.last_epoch[alive]), epoch + tables.overtime))


RULE = epoch_rule(decide, idle)


def check_length(epochs: float, cause: str) -> None:
    """Raise an error if a table would be unreasonably long, before it is built."""
    if epochs > MAX_TABLE_EPOCHS:
        raise InvalidValueError(
            f"`{cause}` must allow at most {MAX_TABLE_EPOCHS:,} epochs but got a value that allows {epochs:,.10g}."
        )


def count_max_epochs(arms: int, max_pulls: int) -> int:
    """Return the most epochs that `max_pulls` allows: those of a run that drops all but two arms after the first."""
    return max(1, (max_pulls - arms) // 2 + 1)


def hoeffding(epochs: npt.NDArray[np.int64], sigma: float, arms: int, delta: float) -> npt.NDArray[np.float64]:
    """Return n*e_n for e_n = sqrt(4 sigma^2/n * ln(K n / delta)), and 0 at epoch 0 (Algorithm 1 of the paper)."""
    return from_rate(epochs, sigma, np.log(arms * np.maximum(epochs, 1) / delta))


def from_rate(epochs: npt.NDArray[np.int64], sigma: float, rate: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return n*e_n for e_n = sqrt(4 sigma^2/n * rate)."""
    return 2.0 * sigma * np.sqrt(epochs * np.maximum(rate, 0.0))


class EliminationPolicy(EpochPolicy):
    """A policy that follows this rule, with its explanations."""

    rule = RULE
    pace = Pace.ELIMINATION

    @property
    def treats_arms_alike(self) -> bool:
        return True

    @property
    @abstractmethod
    def tables(self) -> EliminationTables:
        """The boundary, the limits on epochs and the cap on pulls."""

    def radius(self, epoch: int, survivors: int) -> float:
        """Return e_n: an arm survives `epoch` if its mean is at most this far below the best."""
        return float(self.tables.boundary[self.tables.row[survivors] + epoch]) / epoch

    def why_dropped(self, before: State, after: State, slot: int) -> str:
        epoch = int(after[EPOCH])
        behind = (after[HIGH] - after[SUMS + slot]) / epoch
        radius = self.radius(epoch, int(before[ALIVE]))
        return f"dropped at epoch {epoch}: its mean is {behind:.4g} below the best, the radius is {radius:.4g}"

    def why_stopped(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        survivors = int(state[ALIVE])
        if survivors == 1:
            return f"only {wording.arm(int(state[arms_offset(state)]))} remains"
        if state[PULLS] + survivors > self.tables.max_pulls:
            return (
                f"{survivors} arms remain and another epoch would exceed the limit of {wording.count(self.max_pulls)}"
            )
        return self.why_limited(state, survivors)

    def why_limited(self, state: State, survivors: int) -> str:
        """Explain in one clause what the limit on epochs means."""
        return f"{survivors} arms remain and epoch {int(state[EPOCH])} is the last allowed"

    def progress(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        return f"epoch {int(state[EPOCH]) + 1}, {int(state[ALIVE])} of {self.arms} arms left"
