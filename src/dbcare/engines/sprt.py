"""The best threshold of the known-gap SPRT, found with the exact engine."""

from __future__ import annotations

import math

from dbcare import validation
from dbcare.engines.grid import evaluate_grid
from dbcare.policies.sprt import KnownGapSPRT
from dbcare.risk import Loss, Risk

# A walk whose steps have variance v oversteps a far barrier by about this times sqrt(v) (Siegmund 1985, Section 10.4).
OVERSHOOT = 0.5826


def best_sprt(risk: Risk, gap: float, family: str = "gaussian", sigma: float = 1.0) -> KnownGapSPRT:
    """The known-gap SPRT of least exact risk: Gaussian means +-gap/2, or Bernoulli means 1/2 +- gap/2.

    Where even that is worse than a guess, the guess. The search starts at the optimum for Brownian motion, where with
    x = gap * threshold / sigma^2 the error is 1/(1 + e^x) and the mean number of epochs sigma^2/gap^2 * x tanh(x/2).
    """
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # only this needs scipy

    gap = validation.positive("gap", gap)
    weight = 1.0 if risk.loss is Loss.MISIDENTIFICATION else gap
    price = 2.0 * risk.single_cost * sigma**2 / gap**2
    x = minimize_scalar(
        lambda x: weight / (1.0 + math.exp(x)) + price * x * math.tanh(x / 2.0), bounds=(0.0, 100.0), method="bounded"
    ).x

    def made(threshold: float) -> KnownGapSPRT:
        return KnownGapSPRT(risk, gap, threshold, sigma)

    def exact(threshold: float) -> float:
        return float(evaluate_grid(made(threshold), [gap], family, sigma).risk(risk)[0])

    start = max(0.0, float(x) * sigma**2 / gap - OVERSHOOT * math.sqrt(2.0) * sigma)
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
    return made(threshold if exact(threshold) < weight / 2.0 else math.inf)
