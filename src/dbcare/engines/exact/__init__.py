"""The exact engine: error and pulls without Monte Carlo error.

Two arms, both Gaussian or both Bernoulli: elimination policies by `gaussian` and `bernoulli`, policies that
pull each arm a fixed number of times by closed form. Any number of arms: the guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dbcare import validation
from dbcare.bandit import Bandit
from dbcare.engines.estimates import QUANTILES
from dbcare.engines.exact.bernoulli import two_arm_bernoulli, two_arm_bernoulli_pair
from dbcare.engines.exact.closed_form import bernoulli_error, gaussian_error
from dbcare.engines.exact.gaussian import two_arm_gaussian
from dbcare.engines.exact.law import TwoArmLaw, checked_gaps, checked_levels, fixed_law, two_arm_boundary
from dbcare.errors import EngineError
from dbcare.policies.elimination import EliminationPolicy
from dbcare.policies.policy import Policy
from dbcare.policies.schedule import SchedulePolicy
from dbcare.rewards import Bernoulli, Gaussian

FAMILIES = ("gaussian", "bernoulli")
LONGEST = 100_000  # epochs that `applies` accepts: a second or so, during which nothing can interrupt


def applies(policy: Policy, bandit: Bandit) -> bool:
    """Whether the engine answers for `policy` on `bandit` exactly and fast."""
    if _obstacle(policy, bandit) is not None:
        return False
    return not isinstance(policy, EliminationPolicy) or _epochs(policy, bandit) <= LONGEST


def law_of(policy: Policy, bandit: Bandit) -> TwoArmLaw:
    """The law of `policy` on `bandit`, as arrays of one entry."""
    return two_arm_law(policy, bandit) if len(bandit.arms) == 2 else guess_law(policy, bandit)


def two_arm_law(policy: Policy, bandit: Bandit, *, levels: Iterable[float] = QUANTILES) -> TwoArmLaw:
    """The law of `policy` on a bandit of two arms, as arrays of one entry.

    Gaussian arms may differ in sigma: only the variance of the difference of two rewards matters.
    """
    _require(_obstacle(policy, bandit))
    if policy.max_pulls == 0:
        return guess_law(policy, bandit, levels=levels)
    other, best = sorted(bandit.means)
    if all(isinstance(arm, Gaussian) for arm in bandit.arms):
        sigma = math.sqrt(sum(arm.sigma**2 for arm in bandit.arms) / 2.0)
        return two_arm_curve(policy, best - other, sigma=sigma, levels=levels)
    if isinstance(policy, EliminationPolicy):
        return two_arm_bernoulli_pair(policy.tables, best, other, levels=levels)
    pulls = _pulls_each(policy)
    error = np.array([bernoulli_error(pulls, best, other)])
    return fixed_law(checked_gaps(best - other), pulls, error, checked_levels(levels))


def two_arm_curve(
    policy: Policy,
    gaps: npt.ArrayLike,
    *,
    family: str = "gaussian",
    sigma: float = 1.0,
    levels: Iterable[float] = (),
) -> TwoArmLaw:
    """The law of `policy` on two arms for every gap: Gaussian means +-gap/2 with `sigma`, or Bernoulli 1/2 +- gap/2."""
    gaussian = validation.one_of("family", family, FAMILIES) == "gaussian"
    validation.positive("sigma", sigma)
    _require(_policy_obstacle(policy))
    if isinstance(policy, EliminationPolicy):
        if gaussian:
            return two_arm_gaussian(policy.tables, gaps, sigma, levels=levels)
        return two_arm_bernoulli(policy.tables, gaps, levels=levels)
    pulls = _pulls_each(policy)
    checked = checked_gaps(gaps, np.inf if gaussian else 1.0)
    if gaussian:
        error = gaussian_error(pulls, checked, sigma)
    else:
        error = np.array([bernoulli_error(pulls, (1.0 + gap) / 2.0, (1.0 - gap) / 2.0) for gap in checked])
    return fixed_law(checked, pulls, error, checked_levels(levels))


def guess_law(policy: Policy, bandit: Bandit, *, levels: Iterable[float] = QUANTILES) -> TwoArmLaw:
    """The law of a policy that never pulls, on any number of arms: each is recommended with the same probability.

    error = share of the arms below the best, regret = mean gap; `gaps` holds the smallest gap.
    """
    _require(_obstacle(policy, bandit))
    if policy.max_pulls > 0:
        raise EngineError(f"A guess must make no pulls but got {policy!r}, which makes up to {policy.max_pulls}.")
    gaps = np.array(bandit.gaps)
    law = fixed_law(checked_gaps(bandit.smallest_gap), 0, np.zeros(1), checked_levels(levels))
    return replace(law, error=np.array([np.mean(gaps > 0.0)]), regret=np.array([np.mean(gaps)]))


def _epochs(policy: EliminationPolicy, bandit: Bandit) -> int:
    """How many epochs a run of two arms can last, but for a chance below 1e-18: until gap*n passes b(n) by 9 sigmas."""
    boundary = two_arm_boundary(policy.tables)
    n = np.arange(1, boundary.size + 1)
    spread = math.sqrt(sum(arm.sigma**2 for arm in bandit.arms))
    running = boundary + 9.0 * spread * np.sqrt(n) >= bandit.smallest_gap * n
    return int(np.max(n[running], initial=0))


def _pulls_each(policy: Policy) -> int:
    return policy.max_pulls // 2


def _require(obstacle: str | None) -> None:
    if obstacle is not None:
        raise EngineError(f"{obstacle}; the direct engine takes any.")


def _obstacle(policy: Policy, bandit: Bandit) -> str | None:
    """Why the engine cannot answer, if it cannot."""
    if policy.arms != len(bandit.arms):
        return f"`policy` and `bandit` must have the same number of arms but got {policy.arms} and {len(bandit.arms)}"
    if isinstance(policy, SchedulePolicy) and policy.max_pulls == 0:
        return None
    for family in (Gaussian, Bernoulli):
        if all(isinstance(arm, family) for arm in bandit.arms):
            return _policy_obstacle(policy)
    kinds = ", ".join(sorted({type(arm).__name__ for arm in bandit.arms}))
    return f"The exact engine needs arms that are all Gaussian or all Bernoulli but got {kinds}"


def _policy_obstacle(policy: Policy) -> str | None:
    if policy.arms != 2:
        return f"The exact engine needs two arms, except for a guess, but got {policy.arms}"
    rounds = len(policy.schedule) if isinstance(policy, SchedulePolicy) else 0
    if rounds <= 1 and isinstance(policy, EliminationPolicy | SchedulePolicy):
        return None
    return f"The exact engine needs an elimination policy or one round of pulls but got {policy!r}"
