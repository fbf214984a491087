"""What is planned: how many arms, what a pull costs, and how rewards vary.

At gap D one arm is better than all others by D: means D and 0 for Gaussian rewards of standard deviation sigma, rates
p + D and p for rewards of 0 or 1 with the baseline p.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from dbcare import validation
from dbcare.bandit import Bandit
from dbcare.errors import InvalidValueError
from dbcare.money import Money
from dbcare.policies.facts import PolicyFacts
from dbcare.policies.policy import Policy
from dbcare.policies.registry import PolicyEntry
from dbcare.risk import Risk, check_risk

LEVEL, POWER = 0.05, 0.80  # of the fixed-size test: two-sided level, power at its gap
Z_LEVEL, Z_POWER = NormalDist().inv_cdf(1.0 - LEVEL / 2.0), NormalDist().inv_cdf(POWER)
MAX_TEST_PULLS = 10**10  # of each arm
EASY_GAP = 2.0  # in standard deviations: a handful of pulls shows it
GAP_STEPS = (1, 2, 5)  # of the default gaps within a power of ten
BINARY_SIGMA = 0.5  # the sub-Gaussian sigma of rewards of 0 or 1


@dataclass(frozen=True)
class PlanSetting:
    """A problem to plan for; exactly one of `sigma` (Gaussian rewards) and `baseline` (rewards of 0 or 1) is given.

    `bound` is the largest possible difference of two means, 1 for rewards of 0 or 1.

    Parameters
    ----------
    arms : int
        Number of arms.
    risk : Risk
        What an observation costs and what a wrong choice loses.
    sigma, baseline, bound : float, optional
        As in `plan`.

    Examples
    --------
    >>> import dbcare
    >>> dbcare.plan(arms=2, cost=0.01, sigma=1.0, gaps=0.5, policies="decide-now").setting.test_pulls(0.5)
    63
    """

    arms: int
    risk: Risk
    sigma: float | None = None
    baseline: float | None = None
    bound: float | None = None

    def __post_init__(self) -> None:
        if (self.sigma is None) == (self.baseline is None):
            raise InvalidValueError(
                f"Pass exactly one of `sigma` and `baseline` but got sigma={self.sigma}, baseline={self.baseline}."
            )
        bound = self.bound if self.baseline is None or self.bound is not None else 1.0
        validation.set_fields(
            self,
            arms=validation.whole("arms", self.arms, at_least=2),
            sigma=None if self.sigma is None else validation.positive("sigma", self.sigma),
            baseline=None if self.baseline is None else validation.open_unit("baseline", self.baseline),
            bound=None if bound is None else validation.positive("bound", bound),
        )
        check_risk(self.risk).costs(self.arms)

    @property
    def unit(self) -> float:
        """What one unit of loss is worth: the `value` in money, or 1 where there is none."""
        return 1.0 if self.risk.value is None else self.risk.value

    def money(self, amount: float) -> Money:
        """Return an amount of a plan, which is in money where there is a value, as people read it."""
        return Money(amount, None if self.risk.value is None else "")

    @property
    def deviation(self) -> float:
        """Standard deviation of the rewards of all arms but the best."""
        return _deviation(self.baseline) if self.sigma is None else self.sigma

    @property
    def likely_sigma(self) -> float:
        """The sigma for policies that correct it: the stated one, or for rewards of 0 or 1 that of a tripled rate.

        The bound 1/2 is never too small, but makes Breakeven spend up to 3 times too much where rates are low; the
        baseline's own deviation is too small where the best arm is far better. With sqrt(q (1 - q)) at
        q = min(1/2, 3p), or p if that is higher, the total loss was 0.64 times that with 1/2 in the geometric mean, at
        worst 2.2 times; with the baseline's own deviation 0.69 times, at worst 13 (simple regret; p = 0.01 and 0.05,
        gaps p/5 to 10p, 2 to 20 arms, costs 1e-6 to 1e-4).
        """
        if self.baseline is None:
            return self.deviation
        return _deviation(max(self.baseline, min(0.5, 3.0 * self.baseline)))

    @property
    def subgaussian_sigma(self) -> float:
        """The sigma for policies that rely on it: the stated one, or 1/2 for rewards of 0 or 1."""
        return self.deviation if self.baseline is None else BINARY_SIGMA

    @property
    def largest_gap(self) -> float:
        """What no gap exceeds: the `bound`, and the distance of the baseline to 1."""
        bound = math.inf if self.bound is None else self.bound
        return bound if self.baseline is None else min(bound, 1.0 - self.baseline)

    @property
    def default_gaps(self) -> tuple[float, ...]:
        """1, 2 and 5 times powers of ten, starting at a hundredth of the standard deviation.

        Up to the largest gap for rewards of 0 or 1; for Gaussian rewards up to two standard deviations, or the `bound`.
        """
        largest = self.largest_gap if self.sigma is None else min(self.largest_gap, EASY_GAP * self.sigma)
        smallest = min(self.deviation, largest / EASY_GAP) / 100.0
        powers = range(math.floor(math.log10(smallest)), math.ceil(math.log10(largest)) + 1)
        series = [float(f"{step}e{power}") for power in powers for step in GAP_STEPS]
        return tuple(gap for gap in series if smallest * (1 - 1e-9) <= gap <= largest * (1 + 1e-9))

    def check_gap(self, name: str, gap: Any) -> float:
        """Return a gap, if it is within the range."""
        number = validation.positive(name, gap)
        if number > self.largest_gap * (1.0 + 1e-12):
            limit = f"`bound` is {self.bound:g}"
            if self.baseline is not None and 1.0 - self.baseline <= (self.bound or 1.0):
                limit = f"`baseline` is {self.baseline:g} and no rate exceeds 1"
            raise InvalidValueError(f"`{name}` must be at most {self.largest_gap:g}, as {limit}, but got {number:g}.")
        return number

    def bandit(self, gap: float) -> Bandit:
        """Return a bandit one of whose arms is better than all others by `gap`."""
        if self.baseline is None:
            return Bandit.one_sparse(self.arms, gap, self.deviation)
        return Bandit.bernoulli([min(1.0, self.baseline + gap)] + [self.baseline] * (self.arms - 1))

    def test_pulls(self, gap: float) -> int:
        """Return the pulls of each arm that give a two-sided 5% test of two arms `gap` apart a power of 80%.

        Gaussian: 2 sigma^2 (z_.975 + z_.80)^2 / gap^2. Rates p and q = p + gap, with their mean r:
        (z_.975 sqrt(2 r (1-r)) + z_.80 sqrt(p (1-p) + q (1-q)))^2 / gap^2 (Fleiss, Levin and Paik 2003, section 4.2,
        without correction for continuity). Rounded up.
        """
        if self.baseline is None:
            spread = math.sqrt(2.0) * self.deviation * (Z_LEVEL + Z_POWER)
        else:
            best = min(1.0, self.baseline + gap)
            difference = math.hypot(_deviation(self.baseline), _deviation(best))
            spread = Z_LEVEL * math.sqrt(2.0) * _deviation((self.baseline + best) / 2.0) + Z_POWER * difference
        pulls = (spread / gap) ** 2
        if pulls > MAX_TEST_PULLS:
            raise InvalidValueError(
                f"`gaps` must allow a fixed-size test of at most {MAX_TEST_PULLS:.0e} observations per arm "
                f"but got {gap:g}, which needs {pulls:.1e}; `policies` can leave the test out."
            )
        return max(1, math.ceil(pulls))

    def build_policy(self, entry: PolicyEntry, largest: float) -> Policy:
        """Build a policy for this setting, with the likely sigma if it corrects a wrong one."""
        policy = entry.build(self._facts(entry, largest, self.subgaussian_sigma))
        return entry.build(self._facts(entry, largest, self.likely_sigma)) if policy.learns_spread else policy

    def _facts(self, entry: PolicyEntry, largest: float, sigma: float) -> PolicyFacts:
        """Return what a policy is told; a `bound` that has a default other than None must cover the `largest` gap."""
        bound = self.bound
        parameter = inspect.signature(entry.factory).parameters.get("bound")
        if bound is None and parameter is not None and parameter.default is not None:
            bound = max(1.0, largest)
        return PolicyFacts(self.risk, self.arms, sigma, bound)

    @property
    def equal_shares(self) -> Risk:
        """The same risk at the mean cost of a pull: no difference to policies that pull all arms equally often."""
        return replace(self.risk, cost=math.fsum(self.risk.costs(self.arms)) / self.arms)


def _deviation(rate: float | None) -> float:
    assert rate is not None
    return math.sqrt(rate * (1.0 - rate))
