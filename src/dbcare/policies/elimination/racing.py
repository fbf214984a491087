"""Fixed confidence: elimination without a budget for K arms, and a sharper rule for two."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.base.look import GREEN, SKY, Look, PolicyKind
from dbcare.errors import InvalidValueError
from dbcare.policies.elimination.elimination import (
    EliminationPolicy,
    EliminationTables,
    check_length,
    count_max_epochs,
    from_rate,
    hoeffding,
)

# 10/c pulls in all at c = 1e-4: the safeguard of the paper's experiments.
DEFAULT_MAX_PULLS = 100_000


class ConfidencePolicy(EliminationPolicy):
    """Elimination until one arm remains or `max_pulls` is reached."""

    risk = None
    shares_caps = True

    @abstractmethod
    def _boundary(self, epochs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return b(n) at each epoch; it must not depend on `max_pulls`, as one set of runs serves several caps."""

    @cached_property
    def tables(self) -> EliminationTables:
        epochs = count_max_epochs(self.arms, self.max_pulls)
        return EliminationTables(
            boundary=self._boundary(np.arange(epochs + 1)),
            row=np.zeros(self.arms + 1, dtype=np.int64),
            last_epoch=np.full(self.arms + 1, epochs, dtype=np.int64),
            max_pulls=self.max_pulls,
        )


@dataclass(frozen=True)
class Racing(ConfidencePolicy):
    """Racing for K arms: DBCARE's loop without N* (the paper's appendix on experiments).

    The radius is e_n = sqrt(4 sigma^2/n * ln(K n / delta)). An epoch that would exceed `max_pulls` is not started. The
    error is at most of the order of `delta`; a plain union bound over all n does not give delta itself, as the sum of
    1/n diverges.

    Parameters
    ----------
    arms : int
        Number of arms.
    delta : float
        The error that is aimed at.
    sigma : float
        Sub-Gaussian parameter of the rewards.
    max_pulls : int
        Cap on the pulls.

    Examples
    --------
    >>> from dbcare.policies import Racing
    >>> round(Racing(arms=3, delta=0.1).radius(epoch=10, survivors=3), 3)
    1.51
    """

    kind = PolicyKind.FIXED_CONFIDENCE
    look = Look((SKY, GREEN))
    live = False

    arms: int
    delta: float
    sigma: float = 1.0
    max_pulls: int = DEFAULT_MAX_PULLS

    def __post_init__(self) -> None:
        arms = checks.arms(self.arms)
        checks.set_fields(
            self,
            arms=arms,
            delta=checks.open_unit("delta", self.delta),
            sigma=checks.known_sigma(self.sigma),
            max_pulls=checks.whole("max_pulls", self.max_pulls, at_least=arms),
        )
        check_length(count_max_epochs(self.arms, self.max_pulls), "max_pulls")

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
    """Fixed confidence for two arms: stop when the means differ by more than sqrt(4 sigma^2/n * rate).

    Rates of Kaufmann, Cappe and Garivier (2016), Section 3.3:
    "kaufmann"   ln(1/delta) + 3 ln ln(1/delta) + 1.5 ln(1 + ln n); error at most delta, proven for delta <= 0.1
    "heuristic"  ln((ln(2n) + 1)/delta); their choice in practice, without proof
    "union"      ln(2n/delta) + 2 ln ln(12n/delta); a plain union bound over n

    These are for sub-Gaussian rewards; for Bernoulli arms, `TwoArmLikelihood` has a likelihood ratio test.

    Parameters
    ----------
    delta : float
        The error that is aimed at.
    sigma : float
        Sub-Gaussian parameter of the rewards.
    rate : {"kaufmann", "heuristic", "union"}
        The rate, as above.
    max_pulls : int
        Cap on the pulls.

    Examples
    --------
    >>> from dbcare.policies import TwoArmConfidence
    >>> TwoArmConfidence(delta=0.1).arms
    2
    """

    label = "two-arm confidence"
    kind = PolicyKind.FIXED_CONFIDENCE
    look = Look((SKY, GREEN))
    live = False

    delta: float
    sigma: float = 1.0
    rate: str = "kaufmann"
    max_pulls: int = DEFAULT_MAX_PULLS
    arms = 2

    def __post_init__(self) -> None:
        checks.one_of("rate", self.rate, RATES)
        checks.set_fields(
            self,
            delta=checks.open_unit("delta", self.delta),
            sigma=checks.known_sigma(self.sigma),
            max_pulls=checks.whole("max_pulls", self.max_pulls, at_least=2),
        )
        check_length(count_max_epochs(2, self.max_pulls), "max_pulls")
        if self.rate == "kaufmann" and self.delta > 0.1:
            raise InvalidValueError(
                f"`delta` must be at most 0.1 with rate 'kaufmann', which is proven only there, but got {self.delta}."
            )

    def _boundary(self, epochs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return from_rate(epochs, self.sigma, RATES[self.rate](np.maximum(epochs, 1.0), self.delta))
