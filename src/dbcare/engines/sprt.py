"""Find the best threshold of the known-gap SPRT with the exact engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from dbcare.base import checks
from dbcare.base.look import YELLOW, Look, PolicyKind
from dbcare.policies.elimination.elimination import EliminationPolicy, EliminationTables
from dbcare.policies.elimination.sprt import KnownGapSPRT
from dbcare.policies.literature.parts import FAMILIES
from dbcare.problem.risk import Loss, Risk, check_risk

# A walk whose steps have variance v overshoots a distant barrier by about this times sqrt(v) (Siegmund 1985,
# Section 10.4).
OVERSHOOT = 0.5826
NEAR = 0.1  # standard deviations; for gaps up to two of them, the best threshold is within 0.04 of that estimate


def best_sprt(risk: Risk, gap: float, family: str = "gaussian", sigma: float = 1.0) -> KnownGapSPRT:
    """Return the known-gap SPRT with the smallest exact risk: Gaussian means +-gap/2, or Bernoulli means 1/2 +- gap/2.

    If even that is worse than guessing, return the guess. The search starts at the optimum for Brownian motion.

    Parameters
    ----------
    risk : Risk
        What a pull costs and what a wrong choice loses.
    gap : float
        The known difference of the two means.
    family : {"gaussian", "bernoulli"}
        Distribution of the rewards.
    sigma : float
        Standard deviation of Gaussian rewards.

    Returns
    -------
    KnownGapSPRT
        The test with the best threshold; an infinite one stands for a guess.

    Raises
    ------
    InvalidValueError
        If an argument is invalid.

    Examples
    --------
    >>> from dbcare import Risk
    >>> from dbcare.engines import best_sprt
    >>> round(best_sprt(Risk.misidentification(1e-2), gap=1.0).threshold, 1)
    2.9
    """
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # only this needs scipy

    from dbcare.engines.grid import evaluate_grid  # noqa: PLC0415  # the registry lists this policy without numba

    def make_policy(threshold: float) -> KnownGapSPRT:
        return KnownGapSPRT(risk, gap, threshold, sigma)

    def exact_risk(threshold: float) -> float:
        return float(evaluate_grid(make_policy(threshold), [gap], family, sigma).risk(risk)[0])

    check_risk(risk)
    checks.one_of("family", family, FAMILIES)
    gap, sigma = checks.positive("gap", gap), checks.positive("sigma", sigma)
    start = brownian_threshold(risk, gap, sigma)
    if family == "bernoulli":
        # Differences are whole numbers, so search the integers around the start.
        best = round(start)
        while best > 0 and exact_risk(best - 1) < exact_risk(best):
            best -= 1
        while exact_risk(best + 1) < exact_risk(best):
            best += 1
        threshold = float(best)
    else:
        threshold = 0.0
        for width in (NEAR * sigma, sigma + 0.3 * start):  # nearly always, the best one is near
            low, high = max(0.0, start - width), start + width
            tolerance = 0.01 * min(width, NEAR * sigma)
            search = minimize_scalar(exact_risk, bounds=(low, high), method="bounded", options={"xatol": tolerance})
            threshold = float(search.x)
            if low + 3.0 * tolerance < threshold < high - 3.0 * tolerance:
                break
    guess = 0.5 if risk.loss is Loss.MISIDENTIFICATION else gap / 2.0
    return make_policy(threshold if exact_risk(threshold) < guess else math.inf)


def brownian_threshold(risk: Risk, gap: float, sigma: float) -> float:
    """Return the best threshold for Brownian motion, less the mean overshoot of a walk.

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
    """The SPRT of `best_sprt` as a policy that finds its threshold on first use.

    Plans and stores can thus name it without searching.
    """

    label = "known-gap SPRT"
    kind = PolicyKind.YARDSTICK
    look = Look((YELLOW,))
    live = False

    risk: Risk
    gap: float
    family: str
    sigma: float = 1.0
    arms = 2
    knows_gap = True

    def __post_init__(self) -> None:
        check_risk(self.risk)
        checks.one_of("family", self.family, FAMILIES)
        _ = KnownGapSPRT(self.risk, self.gap, 0.0, self.sigma)  # raises for arguments that it rejects

    @cached_property
    def best(self) -> KnownGapSPRT:
        """The SPRT with the best threshold."""
        return best_sprt(self.risk, self.gap, self.family, self.sigma)

    @property
    def max_pulls(self) -> int:
        return self.best.max_pulls

    @property
    def tables(self) -> EliminationTables:
        return self.best.tables
