"""`evaluate_grid`: the exact law of a two-arm policy over a grid of gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from dbcare import validation
from dbcare.engines.estimates import QUANTILES
from dbcare.engines.exact import FAMILIES, two_arm_curve
from dbcare.engines.exact.law import TwoArmLaw, check_gaps
from dbcare.errors import InvalidValueError
from dbcare.policies.policy import Policy


def evaluate_grid(
    policy: Policy | Callable[[float], Policy],
    gaps: npt.ArrayLike,
    family: str = "gaussian",
    sigma: float = 1.0,
) -> TwoArmLaw:
    """Compute error, regret, pulls and both risks at every gap, without Monte Carlo error.

    The arms are Gaussian with means +-gap/2 and standard deviation `sigma`, or Bernoulli with means 1/2 +- gap/2. One
    pass serves all gaps. Pass a policy that knows the gap as a function of the gap:
    `lambda gap: KnownGapOracle(risk, gap)`.

    Parameters
    ----------
    policy : Policy or callable
        A two-arm policy, or a function that returns one for a gap, for policies that know it.
    gaps : array_like
        Differences of the two means.
    family : {"gaussian", "bernoulli"}
        Distribution of the rewards.
    sigma : float
        Standard deviation of Gaussian rewards.

    Returns
    -------
    TwoArmLaw
        Error, regret and pulls as arrays over the gaps.

    Raises
    ------
    InvalidValueError
        If an argument is invalid.
    EngineError
        If the exact engine cannot answer for the policy.

    Examples
    --------
    >>> from dbcare import DBCARE, Risk, evaluate_grid
    >>> risk = Risk.misidentification(1e-3)
    >>> law = evaluate_grid(DBCARE(risk, arms=2), [0.5, 1.0, 2.0])
    >>> law.mean_pulls.round(1)
    array([318. ,  92.6,  21.5])
    """
    grid = check_gaps(gaps, np.inf if validation.one_of("family", family, FAMILIES) == "gaussian" else 1.0)
    if not isinstance(policy, Policy) and not callable(policy):
        raise InvalidValueError(
            f"`policy` must be a Policy or a function of the gap but got {validation.show(policy)}."
        )
    if isinstance(policy, Policy):
        validation.spread_within(policy.largest_spread, float(grid.max()))
        return two_arm_curve(policy, gaps, family=family, sigma=sigma, levels=QUANTILES)
    laws = [
        two_arm_curve(_call(policy, float(gap)), [gap], family=family, sigma=sigma, levels=QUANTILES) for gap in grid
    ]
    joined = {
        field.name: np.concatenate([getattr(law, field.name) for law in laws])
        for field in fields(TwoArmLaw)
        if field.name not in ("levels", "mass_defect")
    }
    return TwoArmLaw(**joined, levels=laws[0].levels, mass_defect=max(law.mass_defect for law in laws))


def _call(function: Callable[[float], Policy], gap: float) -> Policy:
    policy = function(gap)
    if not isinstance(policy, Policy):
        raise InvalidValueError(f"`policy` must return a Policy for each gap but got {validation.show(policy)}.")
    return policy
