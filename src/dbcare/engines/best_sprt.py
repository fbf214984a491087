"""The best threshold of the known-gap SPRT, found with the exact engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from dbcare import validation
from dbcare.engines.evaluate_grid import evaluate_grid
from dbcare.engines.exact import FAMILIES
from dbcare.policies.elimination import EliminationPolicy, EliminationTables
from dbcare.policies.known_gap_sprt import KnownGapSPRT
from dbcare.risk import Loss, Risk, required

# A walk whose steps have variance v oversteps a far barrier by about this times sqrt(v) (Siegmund 1985, Section 10.4).
OVERSHOOT = 0.5826


def best_sprt(risk: Risk, gap: float, family: str = "gaussian", sigma: float = 1.0) -> KnownGapSPRT:
    """The known-gap SPRT of least exact risk: Gaussian means +-gap/2, or Bernoulli means 1/2 +- gap/2.

    Where even that is worse than a guess, the guess. The search starts at the optimum for Brownian motion.
    """
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # only this needs scipy

    def made(threshold: float) -> KnownGapSPRT:
        return KnownGapSPRT(risk, gap, threshold, sigma)

    def exact(threshold: float) -> float:
        return float(evaluate_grid(made(threshold), [gap], family, sigma).risk(risk)[0])

    gap = validation.positive("gap", gap)
    start = brownian_threshold(risk, gap, sigma)
    if family == "bernoulli":
        # Differences are whole numbers: go down the integers from the start.
        best = round(start)
        while best > 0 and exact(best - 1) < exact(best):
            best -= 1
        while exact(best + 1) < exact(best):
            best += 1
        threshold = float(best)
    else:
        width = sigma + 0.3 * start
        found = minimize_scalar(
            exact, bounds=(max(0.0, start - width), start + width), method="bounded", options={"xatol": 1e-3 * sigma}
        )
        threshold = float(found.x)
    guess = 0.5 if risk.loss is Loss.MISIDENTIFICATION else gap / 2.0
    return made(threshold if exact(threshold) < guess else math.inf)


def brownian_threshold(risk: Risk, gap: float, sigma: float) -> float:
    """The best threshold for Brownian motion, less the mean overshoot of a walk.

    With x = gap * threshold / sigma^2 the error is 1/(1 + e^x), and the mean number of epochs is
    sigma^2/gap^2 * x tanh(x/2).
    """
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # only this needs scipy

    weight = 1.0 if risk.loss is Loss.MISIDENTIFICATION else gap
    price = 2.0 * risk.single_cost * sigma**2 / gap**2
    x = minimize_scalar(
        lambda x: weight / (1.0 + math.exp(x)) + price * x * math.tanh(x / 2.0), bounds=(0.0, 100.0), method="bounded"
    ).x
    return max(0.0, float(x) * sigma**2 / gap - OVERSHOOT * math.sqrt(2.0) * sigma)


@dataclass(frozen=True)
class BestSPRT(EliminationPolicy):
    """The same as a policy that looks for its threshold when it is first needed: a name, for plans and for stores."""

    risk: Risk
    gap: float
    family: str
    sigma: float = 1.0
    arms = 2

    def __post_init__(self) -> None:
        required(self.risk)
        validation.one_of("family", self.family, FAMILIES)
        _ = KnownGapSPRT(self.risk, self.gap, 0.0, self.sigma)  # refuses what that refuses

    @cached_property
    def best(self) -> KnownGapSPRT:
        """What it stands for."""
        return best_sprt(self.risk, self.gap, self.family, self.sigma)

    @property
    def max_pulls(self) -> int:
        return self.best.max_pulls

    @property
    def tables(self) -> EliminationTables:
        return self.best.tables
