"""What is planned: how many arms, what a pull costs, how rewards vary, and which policies there are to choose from.

At gap D one arm is better than all others by D: means D and 0 for Gaussian rewards of standard deviation sigma, rates
p + D and p for rewards 0 or 1 with the baseline p.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from dbcare import validation
from dbcare.bandit import Bandit
from dbcare.errors import GuessingIsBestWarning, InvalidValueError
from dbcare.policies.breakeven import Breakeven
from dbcare.policies.dbcare import DBCARE
from dbcare.policies.fixed import Guess, Uniform
from dbcare.policies.policy import Policy
from dbcare.risk import Risk

LEVEL, POWER = 0.05, 0.80  # of the fixed-size test: two-sided level, power at its gap
Z_LEVEL, Z_POWER = NormalDist().inv_cdf(1.0 - LEVEL / 2.0), NormalDist().inv_cdf(POWER)
LONGEST_TEST = 10**10  # pulls of an arm
EASY = 2.0  # standard deviations: a gap that a handful of pulls shows
STEPS = (1, 2, 5)  # of the default gaps in a power of ten


@dataclass(frozen=True)
class PlanSetting:
    """Exactly one of `sigma` (Gaussian rewards) and `baseline` (rewards 0 or 1) is given.

    `bound` is the largest possible difference of two means, 1 for rewards 0 or 1.
    """

    arms: int
    risk: Risk
    sigma: float | None = None
    baseline: float | None = None
    bound: float | None = None

    def __post_init__(self) -> None:
        if (self.sigma is None) == (self.baseline is None):
            raise InvalidValueError(
                "Exactly one of `sigma` and `baseline` must be given "
                f"but got sigma={self.sigma}, baseline={self.baseline}."
            )
        bound = self.bound if self.baseline is None or self.bound is not None else 1.0
        validation.settle(
            self,
            arms=validation.whole("arms", self.arms, at_least=2),
            sigma=None if self.sigma is None else validation.positive("sigma", self.sigma),
            baseline=None if self.baseline is None else validation.open_unit("baseline", self.baseline),
            bound=None if bound is None else validation.positive("bound", bound),
        )
        self.risk.costs(self.arms)

    @property
    def unit(self) -> float:
        """What one unit of loss is worth: the `value` in money, or 1 where there is none."""
        return 1.0 if self.risk.value is None else self.risk.value

    @property
    def deviation(self) -> float:
        """Standard deviation of the rewards of all arms but the best."""
        return _deviation(self.baseline) if self.sigma is None else self.sigma

    @property
    def sigma_of_breakeven(self) -> float:
        """The sigma that Breakeven is given: the stated one, or for rewards 0 or 1 that of a rate three times as high.

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
    def largest_gap(self) -> float:
        """What no gap exceeds: the `bound`, and the distance of the baseline to 1."""
        bound = math.inf if self.bound is None else self.bound
        return bound if self.baseline is None else min(bound, 1.0 - self.baseline)

    @property
    def default_gaps(self) -> tuple[float, ...]:
        """1, 2 and 5 times powers of ten, from a hundredth of the standard deviation on.

        Up to the largest gap for rewards 0 or 1; Gaussian rewards end at two standard deviations if no `bound` does it.
        """
        largest = self.largest_gap if self.sigma is None else min(self.largest_gap, EASY * self.sigma)
        smallest = min(self.deviation, largest / EASY) / 100.0
        powers = range(math.floor(math.log10(smallest)), math.ceil(math.log10(largest)) + 1)
        series = [float(f"{step}e{power}") for power in powers for step in STEPS]
        return tuple(gap for gap in series if smallest * (1 - 1e-9) <= gap <= largest * (1 + 1e-9))

    def checked_gap(self, name: str, gap: Any) -> float:
        """A gap within the range."""
        number = validation.positive(name, gap)
        if number > self.largest_gap * (1.0 + 1e-12):
            limit = f"`bound` is {self.bound:g}"
            if self.baseline is not None and 1.0 - self.baseline <= (self.bound or 1.0):
                limit = f"`baseline` is {self.baseline:g} and no rate exceeds 1"
            raise InvalidValueError(f"`{name}` must be at most {self.largest_gap:g}, as {limit}, but got {number:g}.")
        return number

    def bandit(self, gap: float) -> Bandit:
        """One arm better than all others by `gap`."""
        if self.baseline is None:
            return Bandit.one_sparse(self.arms, gap, self.deviation)
        return Bandit.bernoulli([min(1.0, self.baseline + gap)] + [self.baseline] * (self.arms - 1))

    def test_pulls(self, gap: float) -> int:
        """Pulls of each arm with which a two-sided 5% test of two arms that differ by `gap` has 80% power.

        Gaussian: 2 sigma^2 (z_.975 + z_.80)^2 / gap^2. Rates p and q = p + gap, with their mean r:
        (z_.975 sqrt(2 r (1-r)) + z_.80 sqrt(p (1-p) + q (1-q)))^2 / gap^2 (Fleiss, Levin and Paik 2003, section 4.2,
        without correction for continuity). Rounded up.
        """
        if self.baseline is None:
            spread = math.sqrt(2.0) * self.deviation * (Z_LEVEL + Z_POWER)
        else:
            best = min(1.0, self.baseline + gap)
            apart = math.hypot(_deviation(self.baseline), _deviation(best))
            spread = Z_LEVEL * math.sqrt(2.0) * _deviation((self.baseline + best) / 2.0) + Z_POWER * apart
        pulls = (spread / gap) ** 2
        if pulls > LONGEST_TEST:
            raise InvalidValueError(
                f"`gaps` must allow a fixed-size test of at most {LONGEST_TEST:.0e} observations an arm "
                f"but got {gap:g}, which needs {pulls:.1e}; `policies` can leave the test out."
            )
        return max(1, math.ceil(pulls))

    def breakeven(self) -> Breakeven:
        """With its guard against a wrong sigma."""
        return Breakeven(self.risk, self.arms, self.sigma_of_breakeven, bound=self.bound)

    def dbcare(self, largest: float) -> DBCARE:
        """With a sub-Gaussian sigma, 1/2 for rewards 0 or 1; its `bound`, if not stated, covers the `largest` gap."""
        sigma = self.deviation if self.baseline is None else 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GuessingIsBestWarning)  # what the plan itself will say
            return DBCARE(self.risk, self.arms, sigma, bound=max(1.0, largest) if self.bound is None else self.bound)

    @property
    def equal_shares(self) -> Risk:
        """The same risk at the mean cost of a pull: the same to policies that pull all arms equally often."""
        return replace(self.risk, cost=math.fsum(self.risk.costs(self.arms)) / self.arms)


Maker = Callable[[PlanSetting, float, float], tuple[Policy, Risk]]

POLICIES: dict[str, Maker] = {  # from a setting, the gap and the largest gap of the table
    "breakeven": lambda setting, _gap, _largest: (setting.breakeven(), setting.risk),
    "dbcare": lambda setting, _gap, largest: (setting.dbcare(largest), setting.risk),
    "fixed-size-test": lambda setting, gap, _largest: (
        Uniform(setting.arms, setting.test_pulls(gap)),
        setting.equal_shares,
    ),
    "decide-now": lambda setting, _gap, _largest: (Guess(setting.arms), setting.equal_shares),
}


def _deviation(rate: float | None) -> float:
    assert rate is not None
    return math.sqrt(rate * (1.0 - rate))
