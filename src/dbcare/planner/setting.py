"""What is planned: arms, costs, how rewards vary, and the ways to decide that are compared.

At gap D one arm is better than all others by D. Rewards of 0 or 1 have the rates p + D and p with the baseline p, or
(1 + D)/2 and (1 - D)/2 if the rate is unknown, where they vary the most. All other rewards are Gaussian with the means
D and 0 and the stated standard deviation, or half the width of the range.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.base.look import BLACK, DASHES, ORANGE, RED, Look
from dbcare.base.numbers import Money
from dbcare.engines.exact.equal_size import OneBest
from dbcare.errors import GuessingIsBestWarning, InvalidValueError
from dbcare.policies.build import PolicyFacts
from dbcare.policies.planned import Guess, Keep, Uniform
from dbcare.policies.policy import Policy
from dbcare.policies.registry import POLICIES
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Loss, Risk, check_risk
from dbcare.problem.spread import Spread

LEVEL, POWER = 0.05, 0.80  # of the fixed-size test: two-sided level, power at its gap
Z_LEVEL, Z_POWER = NormalDist().inv_cdf(1.0 - LEVEL / 2.0), NormalDist().inv_cdf(POWER)
MAX_TEST_PULLS = 10**10  # of each arm
MAX_TRIALS = 2**53  # are counted in floating point
EASY_GAP = 2.0  # in standard deviations: a handful of pulls shows it
BASELINE_GAP = 1.25  # of the baseline: 0.05 is about the size of 0.04
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
    control_is_best : bool
        Whether what is in use today is the best arm, instead of another one.

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
    control_is_best: bool = False

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            arms=checks.arms(self.arms),
            per_day=None if self.per_day is None else checks.positive("per_day", self.per_day),
            not_before=checks.whole("not_before", self.not_before, at_least=0, at_most=MAX_TRIALS),
        )
        if self.currency is not None:
            checks.text("currency", self.currency)
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
        if self.control_is_best:  # whose rate is the one that is known
            return self.spread.baseline, max(0.0, self.spread.baseline - gap)
        return min(1.0, self.spread.baseline + gap), self.spread.baseline

    @property
    def largest_gap(self) -> float:
        """What no gap exceeds: the distance of the baseline to 1, or the width of the rewards' range."""
        if self.spread.baseline is not None:
            return 1.0 - self.spread.baseline
        return math.inf if self.spread.width is None else self.spread.width

    @property
    def default_gaps(self) -> tuple[float, ...]:
        """1, 2 and 5 times powers of ten: for a baseline, from a twentieth of it up to about its size.

        For all other rewards, from a hundredth of the standard deviation up to two of them, if the range allows that;
        for a high baseline, from a hundredth, too.
        """
        baseline = self.spread.baseline
        limit = EASY_GAP * self.deviation if baseline is None else BASELINE_GAP * baseline
        largest = min(self.largest_gap, limit)
        smallest = min(self.deviation, largest / EASY_GAP) / 100.0
        if baseline is not None:
            smallest = min(self.deviation / 100.0, min(baseline, 1.0 - baseline) / 20.0)
        powers = range(math.floor(math.log10(smallest)), math.ceil(math.log10(largest)) + 1)
        series = [float(f"{step}e{power}") for power in powers for step in GAP_STEPS]
        return tuple(gap for gap in series if smallest * (1 - 1e-9) <= gap <= largest * (1 + 1e-9))

    def check_gap(self, name: str, gap: Any) -> float:
        """Return a gap, if it is within the range."""
        number = checks.positive(name, gap)
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
        means[self._place_best()] = best
        return Bandit.bernoulli(means) if self.spread.takes_binary else Bandit.gaussian(means, self.deviation)

    @property
    def flipped(self) -> PlanSetting | None:
        """The same with the control as the best arm; None where an experiment's figures are the same."""
        makes_difference = self.spread.baseline is not None or self.risk.costs_differ
        return replace(self, control_is_best=True) if self.control is not None and makes_difference else None

    def list_possible(self, gaps: Iterable[float]) -> list[float]:
        """Return the gaps by which the control can be the best: no rate is below 0."""
        return [gap for gap in gaps if self.spread.baseline is None or gap < self.spread.baseline]

    def _place_best(self) -> int:
        """Return the place of the best arm: that in use today, or another one."""
        if self.control is None:
            return 0
        return self.control.place if self.control_is_best else int(self.control.place == 0)

    def one_best(self, gap: float) -> OneBest:
        """Return the same arms for `engines.exact.equal_size`."""
        if self.spread.takes_binary:
            return OneBest(self.arms, *self.rates(gap))
        return OneBest(self.arms, gap, 0.0, self.deviation)

    def best_size(self, gap: float) -> int:
        """Return the pulls of each arm that minimize the expected total loss of such a test, told the gap."""
        loss = 1.0 if self.risk.loss is Loss.MISIDENTIFICATION else gap
        least = math.ceil(self.not_before / self.arms)
        return self.one_best(gap).best_size(loss, self.equal_shares.single_cost, least)

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


Build = Callable[[PlanSetting, float], tuple[Policy, Risk]]  # from a setting and the gap


@dataclass(frozen=True)
class Strategy:
    """A way to decide: what tables call it, how it looks in figures, and how it is built for a gap."""

    name: str
    label: str
    look: Look
    dashes: str
    build: Build


def _test(setting: PlanSetting, gap: float) -> tuple[Policy, Risk]:
    least = math.ceil(setting.not_before / setting.arms)
    return Uniform(setting.arms, max(setting.test_pulls(gap), least)), setting.equal_shares


def _best_size(setting: PlanSetting, gap: float) -> tuple[Policy, Risk]:
    size = setting.best_size(gap)
    return (Uniform(setting.arms, size), setting.equal_shares) if size else _guess(setting, gap)


def _guess(setting: PlanSetting, _gap: float) -> tuple[Policy, Risk]:
    policy = Guess(setting.arms) if setting.control is None else Keep(setting.arms, setting.control.place)
    return policy, setting.equal_shares


FIXED_SIZE_TEST = Strategy("fixed-size-test", "fixed-size test", Look((RED,), "^"), "-.", _test)
BEST_SIZE = Strategy("best-fixed-size", "best fixed size", Look((ORANGE,), "v"), "-.", _best_size)
DECIDE_NOW = Strategy("decide-now", "decide now", Look((BLACK,), "x"), ":", _guess)
OWN = {strategy.name: strategy for strategy in (FIXED_SIZE_TEST, BEST_SIZE, DECIDE_NOW)}


def strategy_names() -> list[str]:
    """Return the names of all strategies: policies that run live first, then the planner's own."""
    return [*POLICIES.live, *OWN]


def default_names() -> list[str]:
    """Return the names of the strategies that every plan compares, in the order of its table."""
    return [*POLICIES.planned, *OWN]


def find_strategy(name: object) -> Strategy:
    """Return a strategy by name; an unknown name is an error that lists all."""
    if isinstance(name, str) and name in OWN:
        return OWN[name]
    entry = POLICIES[checks.one_of("policies", name, strategy_names())]

    def build(setting: PlanSetting, _gap: float) -> tuple[Policy, Risk]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GuessingIsBestWarning)  # the plan itself will say so
            return entry.build(setting.facts), setting.risk

    return Strategy(entry.name, entry.label, entry.look, DASHES.get(entry.kind, "-"), build)


def find_label(name: str, setting: PlanSetting) -> str:
    """Return what a plan calls a strategy: with a control arm, deciding now is to keep it."""
    if name == DECIDE_NOW.name and setting.control is not None:
        return f"keep {setting.control.name}"
    return find_strategy(name).label


def find_obstacle(strategy: Strategy, setting: PlanSetting) -> str | None:
    """Return why a registered policy cannot take part, if it cannot."""
    if strategy.name in OWN:
        return None
    if setting.not_before > 0 and "not_before" not in POLICIES[strategy.name].options:
        return "it cannot be told not to stop before a number of observations"
    refusal = _find_refusal(strategy, setting)
    if refusal is None or not setting.risk.costs_differ:
        return refusal
    at_equal_prices = _find_refusal(strategy, replace(setting, risk=setting.equal_shares))
    return "it needs the same price for all arms" if at_equal_prices is None else refusal


def find_largest_gap(strategy: Strategy, setting: PlanSetting) -> float:
    """Return the largest gap that a strategy is made for."""
    return math.inf if strategy.name in OWN else strategy.build(setting, 1.0)[0].largest_spread * (1.0 + 1e-12)


def _find_refusal(strategy: Strategy, setting: PlanSetting) -> str | None:
    try:
        strategy.build(setting, 1.0)
    except Exception as refused:  # a stranger's policy may raise anything
        return str(refused).rstrip(".")
    return None
