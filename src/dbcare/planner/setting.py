"""What is planned: how many arms, what a pull costs, and how rewards vary.

At gap D one arm is better than all others by D. Rewards of 0 or 1 have the rates p + D and p with the baseline p, or
(1 + D)/2 and (1 - D)/2 if the rate is unknown, where they vary the most. All other rewards are Gaussian with the means
D and 0 and the stated standard deviation, or half the width of the range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

from dbcare import validation
from dbcare.bandit import Bandit
from dbcare.errors import InvalidValueError
from dbcare.money import Money
from dbcare.policies.facts import PolicyFacts
from dbcare.risk import Risk, check_risk
from dbcare.spread import Spread
from dbcare.validation import show

LEVEL, POWER = 0.05, 0.80  # of the fixed-size test: two-sided level, power at its gap
Z_LEVEL, Z_POWER = NormalDist().inv_cdf(1.0 - LEVEL / 2.0), NormalDist().inv_cdf(POWER)
MAX_TEST_PULLS = 10**10  # of each arm
MAX_TRIALS = 2**53  # are counted in floating point
EASY_GAP = 2.0  # in standard deviations: a handful of pulls shows it
GAP_STEPS = (1, 2, 5)  # of the default gaps within a power of ten


class ControlArm(NamedTuple):
    """What is in use today: its place among the arms, and its name."""

    place: int
    name: str


@dataclass(frozen=True)
class PlanSetting:
    """A problem to plan for.

    Parameters
    ----------
    arms : int
        Number of arms.
    risk : Risk
        What an observation costs and what a wrong choice loses.
    spread : Spread
        How much rewards vary, which must be stated.
    per_day : float, optional
        Observations per day, if that is known.
    not_before : int
        Observations before which a run does not stop.
    control : ControlArm, optional
        What is in use today, if it is one of the arms; the best arm is then another one.
    currency : str, optional
        Currency of all amounts, if it is known.

    Examples
    --------
    >>> import dbcare
    >>> dbcare.plan(arms=2, cost=0.01, sigma=1.0, gaps=0.5, policies="decide-now").setting.test_pulls(0.5)
    63
    """

    arms: int
    risk: Risk
    spread: Spread
    per_day: float | None = None
    not_before: int = 0
    control: ControlArm | None = None
    currency: str | None = None

    def __post_init__(self) -> None:
        validation.set_fields(
            self,
            arms=validation.arms(self.arms),
            per_day=None if self.per_day is None else validation.positive("per_day", self.per_day),
            not_before=validation.whole("not_before", self.not_before, at_least=0, at_most=MAX_TRIALS),
        )
        if self.currency is not None:
            validation.text("currency", self.currency)
        check_risk(self.risk).costs(self.arms)
        if not isinstance(self.spread, Spread):
            raise InvalidValueError(f"`spread` must be a Spread but got {show(self.spread)}.")
        if not self.spread.is_stated:
            raise InvalidValueError(
                "A plan needs to know how much rewards vary: pass `sigma`, such as a quarter of the range that most "
                "rewards lie in, or `baseline`, `bounds` or `binary`; only a study can learn it."
            )

    @property
    def loss_value(self) -> float:
        """What one unit of loss is worth: the `value` in money, or 1 where there is none."""
        return 1.0 if self.risk.value is None else self.risk.value

    def money(self, amount: float) -> Money:
        """Return an amount of a plan, which is in money where there is a value, as people read it."""
        return Money(amount, (self.currency or "") if self.is_in_money else None)

    @property
    def is_in_money(self) -> bool:
        """Whether amounts are in money, rather than in units of the loss."""
        return self.risk.value is not None

    @property
    def facts(self) -> PolicyFacts:
        """What a policy is told, which is what a study tells it."""
        return PolicyFacts(self.risk, self.arms, self.spread, not_before=self.not_before or None)

    @property
    def deviation(self) -> float:
        """Standard deviation of the rewards; for rewards of 0 or 1, at the baseline or at the rate 1/2."""
        assert self.spread.guess is not None
        return self.spread.guess

    def rates(self, gap: float) -> tuple[float, float]:
        """Return the rates of the best and of any other arm, for rewards of 0 or 1."""
        if self.spread.baseline is None:
            return (1.0 + gap) / 2.0, (1.0 - gap) / 2.0
        return min(1.0, self.spread.baseline + gap), self.spread.baseline

    @property
    def largest_gap(self) -> float:
        """What no gap exceeds: the distance of the baseline to 1, or the width of the rewards' range."""
        if self.spread.baseline is not None:
            return 1.0 - self.spread.baseline
        return math.inf if self.spread.width is None else self.spread.width

    @property
    def default_gaps(self) -> tuple[float, ...]:
        """1, 2 and 5 times powers of ten, starting at a hundredth of the standard deviation.

        Up to the largest gap for rewards of 0 or 1; for Gaussian rewards up to two standard deviations, if the range
        allows that.
        """
        limit = math.inf if self.spread.takes_binary else EASY_GAP * self.deviation
        largest = min(self.largest_gap, limit)
        smallest = min(self.deviation, largest / EASY_GAP) / 100.0
        powers = range(math.floor(math.log10(smallest)), math.ceil(math.log10(largest)) + 1)
        series = [float(f"{step}e{power}") for power in powers for step in GAP_STEPS]
        return tuple(gap for gap in series if smallest * (1 - 1e-9) <= gap <= largest * (1 + 1e-9))

    def check_gap(self, name: str, gap: Any) -> float:
        """Return a gap, if it is within the range."""
        number = validation.positive(name, gap)
        if number > self.largest_gap * (1.0 + 1e-12):
            raise InvalidValueError(
                f"`{name}` must be at most {self.largest_gap:g}, as {self._why_limited()}, but got {number:g}."
            )
        return number

    def _why_limited(self) -> str:
        if self.spread.baseline is not None:
            return f"`baseline` is {self.spread.baseline:g} and no rate exceeds 1"
        low, high = self.spread.range or (-math.inf, math.inf)
        return f"rewards lie between {low:g} and {high:g}"

    def bandit(self, gap: float) -> Bandit:
        """Return a bandit one of whose arms is better than all others by `gap`."""
        best, other = self.rates(gap) if self.spread.takes_binary else (gap, 0.0)
        means = [other] * self.arms
        means[1 if self.control is not None and self.control.place == 0 else 0] = best
        return Bandit.bernoulli(means) if self.spread.takes_binary else Bandit.gaussian(means, self.deviation)

    def test_pulls(self, gap: float) -> int:
        """Return the pulls of each arm that give a two-sided 5% test of two arms `gap` apart a power of 80%.

        Gaussian: 2 sigma^2 (z_.975 + z_.80)^2 / gap^2. Rates p and q = p + gap, with their mean r:
        (z_.975 sqrt(2 r (1-r)) + z_.80 sqrt(p (1-p) + q (1-q)))^2 / gap^2 (Fleiss, Levin and Paik 2003, section 4.2,
        without correction for continuity). Rounded up.
        """
        if self.spread.takes_binary:
            best, other = self.rates(gap)
            difference = math.hypot(_deviation(other), _deviation(best))
            spread = Z_LEVEL * math.sqrt(2.0) * _deviation((other + best) / 2.0) + Z_POWER * difference
        else:
            spread = math.sqrt(2.0) * self.deviation * (Z_LEVEL + Z_POWER)
        pulls = (spread / gap) ** 2
        if pulls > MAX_TEST_PULLS:
            raise InvalidValueError(
                f"`gaps` must allow a fixed-size test of at most {MAX_TEST_PULLS:.0e} observations per arm "
                f"but got {gap:g}, which needs {pulls:.1e}; `policies` can leave the test out."
            )
        return max(1, math.ceil(pulls))

    @property
    def equal_shares(self) -> Risk:
        """The same risk at the mean cost of a pull: no difference to policies that pull all arms equally often."""
        return replace(self.risk, cost=math.fsum(self.risk.costs(self.arms)) / self.arms)


def _deviation(rate: float) -> float:
    return math.sqrt(rate * (1.0 - rate))
