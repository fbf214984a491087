"""The exact engine: error and pulls without Monte Carlo error.

For two arms, both Gaussian or both Bernoulli, it covers elimination policies and policies that pull each arm a fixed
number of times. For any number of arms, it covers the guess, and keeping an arm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.engines.exact.bernoulli import two_arm_bernoulli, two_arm_bernoulli_pair
from dbcare.engines.exact.gaussian import two_arm_gaussian
from dbcare.engines.exact.law import (
    TwoArmLaw,
    bernoulli_error,
    check_gaps,
    check_levels,
    fixed_law,
    gaussian_error,
    two_arm_boundary,
)
from dbcare.engines.statistics import QUANTILES
from dbcare.errors import EngineError
from dbcare.policies.policy import Pace, Policy
from dbcare.problem.bandits import Bandit, BlockBandit
from dbcare.problem.rewards import Bernoulli, Gaussian

FAMILIES = ("gaussian", "bernoulli")
MAX_EXACT_EPOCHS = 100_000  # the most that `applies` accepts: about a second, which cannot be interrupted


def applies(policy: Policy, bandit: Bandit) -> bool:
    """Return whether the engine can evaluate `policy` on `bandit`, and fast."""
    if find_obstacle(policy, bandit) is not None:
        return False
    return policy.pace is not Pace.ELIMINATION or count_epochs(policy, bandit) <= MAX_EXACT_EPOCHS


def is_covered(policy: Policy) -> bool:
    """Return whether the engine can evaluate `policy` on two Gaussian or Bernoulli arms."""
    return _policy_obstacle(policy) is None


def compute_law(policy: Policy, bandit: Bandit) -> TwoArmLaw:
    """Compute the law of `policy` on `bandit`, as arrays of one entry."""
    is_guess = policy.odds is not None or len(bandit.arms) != 2
    return guess_law(policy, bandit) if is_guess else two_arm_law(policy, bandit)


def two_arm_law(policy: Policy, bandit: Bandit, *, levels: Iterable[float] = QUANTILES) -> TwoArmLaw:
    """Compute the law of `policy` on a two-arm bandit, as arrays of one entry.

    Gaussian arms may differ in sigma: only the variance of the difference of two rewards matters.
    """
    _require(find_obstacle(policy, bandit))
    if policy.odds is not None:
        return guess_law(policy, bandit, levels=levels)
    other, best = sorted(bandit.means)
    if all(isinstance(arm, Gaussian) for arm in bandit.arms):
        sigma = math.sqrt(sum(arm.sigma**2 for arm in bandit.arms) / 2.0)
        return two_arm_curve(policy, best - other, sigma=sigma, levels=levels)
    if (pulls := policy.pulls_each) is None:
        return two_arm_bernoulli_pair(policy.tables, best, other, levels=levels)
    error = np.array([bernoulli_error(pulls, best, other)])
    return fixed_law(check_gaps(best - other), pulls, error, check_levels(levels))


def two_arm_curve(
    policy: Policy,
    gaps: npt.ArrayLike,
    *,
    family: str = "gaussian",
    sigma: float = 1.0,
    levels: Iterable[float] = (),
) -> TwoArmLaw:
    """Compute the law of `policy` on two arms for every gap.

    The means are +-gap/2 (Gaussian, with standard deviation `sigma`) or 1/2 +- gap/2 (Bernoulli).
    """
    gaussian = checks.one_of("family", family, FAMILIES) == "gaussian"
    checks.positive("sigma", sigma)
    _require(_policy_obstacle(policy), otherwise="pass a `shape` to `evaluate_grid` to simulate instead")
    if (pulls := policy.pulls_each) is None:
        if gaussian:
            return two_arm_gaussian(policy.tables, gaps, sigma, levels=levels)
        return two_arm_bernoulli(policy.tables, gaps, levels=levels)
    grid = check_gaps(gaps, np.inf if gaussian else 1.0)
    if gaussian:
        error = gaussian_error(pulls, grid, sigma)
    else:
        error = np.array([bernoulli_error(pulls, (1.0 + gap) / 2.0, (1.0 - gap) / 2.0) for gap in grid])
    return fixed_law(grid, pulls, error, check_levels(levels))


def guess_law(policy: Policy, bandit: Bandit, *, levels: Iterable[float] = QUANTILES) -> TwoArmLaw:
    """Compute the law of a policy that never pulls, on any number of arms.

    error = chance of an arm worse than the best, regret = mean gap; `gaps` holds the smallest gap.
    """
    _require(find_obstacle(policy, bandit))
    if policy.odds is None:
        raise EngineError(
            f"A guess makes no pulls but got {checks.show(policy)}, which makes up to {policy.max_pulls}."
        )
    gaps = np.array(bandit.gaps)
    law = fixed_law(check_gaps(bandit.smallest_gap), 0, np.zeros(1), check_levels(levels))
    error, regret = (np.array([np.average(losses, weights=policy.odds)]) for losses in (gaps > 0.0, gaps))
    return replace(law, error=error, regret=regret)


def count_epochs(policy: Policy, bandit: Bandit) -> int:
    """Count the epochs that a two-arm run can last: until gap*n exceeds b(n) by 9 sigmas (longer has P < 1e-18)."""
    boundary = two_arm_boundary(policy.tables)
    n = np.arange(1, boundary.size + 1)
    spread = math.sqrt(sum(arm.sigma**2 for arm in bandit.arms))
    running = boundary + 9.0 * spread * np.sqrt(n) >= bandit.smallest_gap * n
    return int(np.max(n[running], initial=0))


def _require(obstacle: str | None, otherwise: str = "use the direct engine") -> None:
    if obstacle is not None:
        raise EngineError(f"{obstacle}; {otherwise}.")


def find_obstacle(policy: Policy, bandit: Bandit) -> str | None:
    """Explain why the engine does not apply, or return None if it does."""
    if policy.arms != len(bandit.arms):
        return f"`policy` and `bandit` must have the same number of arms but got {policy.arms} and {len(bandit.arms)}"
    obstacle = _bandit_obstacle(bandit) or _policy_obstacle(policy)
    return None if obstacle is None or policy.odds is not None else obstacle


def _bandit_obstacle(bandit: Bandit) -> str | None:
    if isinstance(bandit, BlockBandit):
        return "The exact engine cannot evaluate arms that share blocks"
    kinds = ", ".join(sorted({type(arm).__name__ for arm in bandit.arms}))
    if kinds in (Gaussian.__name__, Bernoulli.__name__):
        return None
    return f"The exact engine needs arms that are all Gaussian or all Bernoulli but got {kinds}"


def _policy_obstacle(policy: Policy) -> str | None:
    if policy.arms != 2:
        return f"The exact engine needs two arms, except for a guess, but got {policy.arms}"
    if policy.pace is Pace.ELIMINATION or policy.pulls_each is not None:
        return None
    return f"The exact engine needs an elimination policy or one round of pulls but got {checks.show(policy)}"
