"""Fixed confidence: elimination without a budget, for K arms, and the sharper rule for two."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.policies.elimination import (
    EliminationPolicy,
    EliminationTables,
    check_length,
    from_rate,
    hoeffding,
    most_epochs,
)

# 10/c total samples at c = 1e-4: the safeguard of the paper's experiments.
DEFAULT_CAP = 100_000


class ConfidencePolicy(EliminationPolicy):
    """Elimination until one arm is left, or `max_pulls` are made."""

    risk = None

    @abstractmethod
    def _boundary(self, epochs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return b(n) at each epoch; it must not depend on `max_pulls`, as runs at several caps are made at once."""

    @cached_property
    def tables(self) -> EliminationTables:
        epochs = most_epochs(self.arms, self.max_pulls)
        return EliminationTables(
            boundary=self._boundary(np.arange(epochs + 1)),
            row=np.zeros(self.arms + 1, dtype=np.int64),
            last_epoch=np.full(self.arms + 1, epochs, dtype=np.int64),
            max_pulls=self.max_pulls,
        )


@dataclass(frozen=True)
class Racing(ConfidencePolicy):
    """Racing for K arms: DBCARE's loop without N* (appendix on experiments of the paper).

    Radius e_n = sqrt(4 sigma^2/n * ln(K n / delta)). An epoch that would exceed `max_pulls` is not begun. The error is
    at most of the order of `delta`; no plain union bound over all n gives delta itself (the sum of 1/n diverges).
    """

    arms: int
    delta: float
    sigma: float = 1.0
    max_pulls: int = DEFAULT_CAP

    def __post_init__(self) -> None:
        arms = validation.whole("arms", self.arms, at_least=2)
        validation.set_fields(
            self,
            arms=arms,
            delta=validation.open_unit("delta", self.delta),
            sigma=validation.known_sigma(self.sigma),
            max_pulls=validation.whole("max_pulls", self.max_pulls, at_least=arms),
        )
        check_length(most_epochs(self.arms, self.max_pulls), "max_pulls")

    def _boundary(self, epochs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return hoeffding(epochs, self.sigma, self.arms, self.delta)


def _kaufmann(n: npt.NDArray[np.float64], delta: float) -> npt.NDArray[np.float64]:
    level = math.log(1.0 / delta)
    return level + 3.0 * math.log(level) + 1.5 * np.log(1.0 + np.log(n))


def _heuristic(n: npt.NDArray[np.float64], delta: float) -> npt.NDArray[np.float64]:
    return np.log((np.log(2.0 * n) + 1.0) / delta)


def _union(n: npt.NDArray[np.float64], delta: float) -> npt.NDArray[np.float64]:
    return np.log(2.0 * n / delta) + 2.0 * np.log(np.log(12.0 * n / delta))


RATES = {"kaufmann": _kaufmann, "heuristic": _heuristic, "union": _union}


@dataclass(frozen=True)
class TwoArmConfidence(ConfidencePolicy):
    """Two arms, fixed confidence: stop when the means differ by more than sqrt(4 sigma^2/n * rate).

    Rates of Kaufmann, Cappe and Garivier (2016), Section 3.3:
    "kaufmann"   ln(1/delta) + 3 ln ln(1/delta) + 1.5 ln(1 + ln n); error at most delta, proven for delta <= 0.1
    "heuristic"  ln((ln(2n) + 1)/delta); their choice in practice, no proof
    "union"      ln(2n/delta) + 2 ln ln(12n/delta); a plain union bound over n
    """

    delta: float
    sigma: float = 1.0
    rate: str = "kaufmann"
    max_pulls: int = DEFAULT_CAP
    arms = 2

    def __post_init__(self) -> None:
        validation.one_of("rate", self.rate, RATES)
        validation.set_fields(
            self,
            delta=validation.open_unit("delta", self.delta),
            sigma=validation.known_sigma(self.sigma),
            max_pulls=validation.whole("max_pulls", self.max_pulls, at_least=2),
        )
        check_length(most_epochs(2, self.max_pulls), "max_pulls")
        if self.rate == "kaufmann" and self.delta > 0.1:
            raise InvalidValueError(
                f"`delta` must be at most 0.1 for the rate kaufmann, which is proven there, but got {self.delta}."
            )

    def _boundary(self, epochs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return from_rate(epochs, self.sigma, RATES[self.rate](np.maximum(epochs, 1.0), self.delta))
