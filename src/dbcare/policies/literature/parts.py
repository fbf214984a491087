"""Rules made of two parts, one that samples and one that stops: what parts are, and what their policies share.

A bound at the rate beta is where n d(mean, bound) = beta, with the divergence d of the family: for sigma-sub-Gaussian
rewards, a radius of sqrt(2 sigma^2 beta / n). Every rate grows with time t, so that the bounds hold at all times.

Both read and write one state: that of Breakeven (`policies.breakeven.state`), then sections of the sampling part's own.
All arms are pulled `first_pulls` times before the parts are asked. Functions of parts are compiled with the rule:

choose(state, tables) -> arm    return the next arm, given all pulls made; only reads
note(state, tables, arm)        take note of a pull that is made, before its reward counts
prepare(state, tables)          compute what `choose` needs, after a reward that did not end the run
decide(state, tables)           set STOPPED if the run is over; called after every reward
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.errors import InvalidValueError
from dbcare.policies.breakeven import state
from dbcare.policies.breakeven.losses import BreakevenTables
from dbcare.policies.breakeven.rule import SECTIONS, observe
from dbcare.policies.breakeven.rule import init as start_with_losses
from dbcare.policies.breakeven.state import (
    LEADER,
    MEAN,
    PRIORITY,
    PULLS,
    SEEN,
    SQUARES,
    STOPPED,
    count_reward,
    follow_leader,
    least_pulled,
    recommend,
    section,
    start,
)
from dbcare.policies.breakeven.state import send as count_pending
from dbcare.policies.elimination.racing import DEFAULT_MAX_PULLS
from dbcare.policies.policy import Policy
from dbcare.policies.rule import STOP, Rule, State
from dbcare.policies.run import DEFAULT_WORDING, Wording
from dbcare.problem.risk import Loss, Risk, check_risk

PROVEN, HEURISTIC = "proven", "heuristic"
RATES = (PROVEN, HEURISTIC)


class Rate(NamedTuple):
    """beta(t) = offset + power ln t + iterated ln(1 + ln t) + mixture ln(4 + ln(t/2)).

    With `adds_own_log`, beta + ln beta instead. Time t is the number of pulls, or with `counts_rounds` of rounds.
    """

    offset: float
    power: float = 0.0
    iterated: float = 0.0
    mixture: float = 0.0
    adds_own_log: bool = False
    counts_rounds: bool = False


def rate_at(rate: Rate, time: float) -> float:
    """Return beta(t) for t >= 1."""
    log = math.log(time)
    value = rate.offset + rate.power * log
    if rate.iterated > 0.0:
        value += rate.iterated * math.log(1.0 + log)
    if rate.mixture > 0.0:
        value += rate.mixture * math.log(4.0 + math.log(max(time, 2.0) / 2.0))
    return value + math.log(value) if rate.adds_own_log else value


def current_rate(state: State, rate: Rate, first_pulls: int, round_pulls: int) -> float:
    """Return beta at this time of a run, whose rounds begin after the first pulls; the first round has t = 1."""
    if rate.counts_rounds:
        return rate_at(rate, 1.0 + (state[PULLS] - first_pulls) // round_pulls)
    return rate_at(rate, state[PULLS])


def lucb_rate(arms: int, delta: float) -> Rate:
    """Return ln(5 K t^4/(4 delta)) by rounds: Kalyanakrishnan, Tewari, Auer and Stone (2012), Theorem 1.

    One arm's bound fails at a given round and number of pulls u with a probability of at most 4 delta/(5 K t^4); over
    K arms, u <= t and all t this is (4/5) delta sum t^-3 < delta.
    """
    return Rate(math.log(1.25 * arms / delta), power=4.0, counts_rounds=True)


def ugape_rate(arms: int, delta: float) -> Rate:
    """Return ln(4 K t^3/delta) by pulls: Gabillon, Ghavamzadeh and Lazaric (2012), Equation 6 with c = 1/2."""
    return Rate(math.log(4.0 * arms / delta), power=3.0)


def kl_lucb_rate(arms: int, delta: float) -> Rate:
    """Return ln x + ln ln x with x = 405.5 K t^1.1/delta by rounds: Kaufmann and Kalyanakrishnan (2013), Theorem 1."""
    return Rate(math.log(405.5 * arms / delta), power=1.1, adds_own_log=True, counts_rounds=True)


def heuristic_rate(delta: float) -> Rate:
    """Return ln((ln t + 1)/delta) by pulls, without proof: Garivier and Kaufmann (2016), Section 6."""
    return Rate(math.log(1.0 / delta), iterated=1.0)


def bernoulli_ratio_rate(arms: int, delta: float) -> Rate:
    """Return ln(2 (K-1) t/delta), for Bernoulli arms: Garivier and Kaufmann (2016), Theorem 10."""
    return Rate(math.log(2.0 * (arms - 1) / delta), power=1.0)


def gaussian_ratio_rate(arms: int, delta: float) -> Rate:
    """Return 2 C(ln((K-1)/delta)/2) + 4 ln(4 + ln(t/2)), for Gaussian arms: Kaufmann and Koolen (2021).

    C(x) is the smallest value of (g(l) + x)/l over 1/2 < l < 1, with
    g(l) = 2l - 2l ln(4l) + ln zeta(2l) - ln(1 - l)/2.
    """
    return Rate(2.0 * _mixture_constant(0.5 * math.log((arms - 1) / delta)), mixture=4.0)


@cache
def _mixture_constant(level: float) -> float:
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # only this needs scipy
    from scipy.special import zeta  # noqa: PLC0415  # only this needs scipy

    def height(share: float) -> float:
        curve = 2.0 * share * (1.0 - math.log(4.0 * share)) + math.log(zeta(2.0 * share)) - 0.5 * math.log1p(-share)
        return (curve + level) / share

    return float(minimize_scalar(height, bounds=(0.5 + 1e-9, 1.0 - 1e-9), method="bounded").fun)


OWN_SECTION = SECTIONS  # the first section of the sampling part's own


class AdaptiveProblem(NamedTuple):
    """What the parts may be told; None where it is not known."""

    arms: int
    risk: Risk | None = None
    sigma: float | None = None
    delta: float | None = None
    budget: int | None = None
    bernoulli: bool = False
    rate: str = ""
    losses: BreakevenTables | None = None


class AdaptiveTables(NamedTuple):
    """The numbers of a rule: those of the run, and those of its parts.

    `losses` are Breakeven's tables if a part weighs losses, else ().
    """

    cost: npt.NDArray[np.float64]  # of each arm; 0 where the rule does not look at costs
    guess: bool
    first_pulls: int  # of each arm
    round_pulls: int  # pulls that the sampling part makes together
    max_pulls: int
    losses: Any
    sampling: Any
    stopping: Any


def do_nothing(state: State, tables: Any) -> None:
    """Leave the state as it is."""


def note_nothing(state: State, tables: Any, arm: int, pulls: int) -> None:
    """Leave the state as it is."""


@dataclass(frozen=True)
class SamplingPart:
    """Which arm to pull next; `numbers` turns a problem into `AdaptiveTables.sampling`.

    `needs` are the fields of the problem that it cannot do without, `sections` the numbers per arm that it remembers.
    """

    choose: Callable[[State, Any], int]
    numbers: Callable[[AdaptiveProblem], Any]
    needs: tuple[str, ...] = ()
    note: Callable[[State, Any, int, int], None] = note_nothing
    prepare: Callable[[State, Any], None] = do_nothing
    sections: int = 0
    first_pulls: int = 1
    round_pulls: int = 1
    weighs_losses: bool = False
    is_bernoulli: bool = False  # whether it takes only rewards from 0 to 1
    only_with: "StoppingPart | None" = None  # the only stop that it makes sense with, and `why`
    why: str = ""


@dataclass(frozen=True)
class StoppingPart:
    """When to stop; `numbers` turns a problem into `AdaptiveTables.stopping`.

    describe(state, tables, wording, risk) says in one clause how far a run is from its stop.
    """

    decide: Callable[[State, Any], None]
    numbers: Callable[[AdaptiveProblem], Any]
    describe: Callable[[State, Any, Wording, Risk | None], str]
    needs: tuple[str, ...] = ()
    weighs_losses: bool = False
    is_bernoulli: bool = False
    only_with: SamplingPart | None = None
    why: str = ""


def is_ready(state: State, tables: AdaptiveTables) -> bool:
    """Return whether all arms have their first rewards."""
    arms = len(tables.cost)
    return bool(state[SEEN] == arms and state[PULLS] >= arms * tables.first_pulls)


def ends_round(state: State, tables: AdaptiveTables) -> bool:
    """Return whether the pulls that are made together are complete."""
    return bool((state[PULLS] - len(tables.cost) * tables.first_pulls) % tables.round_pulls == 0)


def wins_tie(state: State, tables: AdaptiveTables, one: int, other: int) -> bool:
    """Return whether one arm comes before another in the random order of a run."""
    priority = section(tables.cost, PRIORITY)
    return bool(state[priority + one] > state[priority + other])


def count_plainly(state: State, tables: AdaptiveTables, arm: int, reward: float) -> None:
    """Count a reward and find the leader."""
    before = state[section(tables.cost, MEAN) + arm]
    state[section(tables.cost, SQUARES) + arm] += count_reward(state, tables.cost, arm, reward)
    follow_leader(state, tables.cost, arm, before)


def count_and_weigh(state: State, tables: AdaptiveTables, arm: int, reward: float) -> None:
    """Count a reward, find the leader, and update Breakeven's losses."""
    observe(state, tables.losses, arm, reward)


def start_plainly(state: State, tables: AdaptiveTables, tie: int) -> None:
    """Start a run without losses."""
    start(state, tables.cost, tables.guess, tie)


def start_weighing(state: State, tables: AdaptiveTables, tie: int) -> None:
    """Start a run with Breakeven's losses."""
    start_with_losses(state, tables.losses, tie)


@cache
def compose(sampling: SamplingPart, stopping: StoppingPart, recommend: Callable[[State, Any], int] = recommend) -> Rule:
    """Build a rule from its parts; it takes rewards in any order."""
    choose, note, prepare, decide = sampling.choose, sampling.note, sampling.prepare, stopping.decide
    weighs_losses = sampling.weighs_losses or stopping.weighs_losses
    count = count_and_weigh if weighs_losses else count_plainly
    begin = start_weighing if weighs_losses else start_plainly

    def init(state: State, tables: AdaptiveTables, tie: int) -> None:
        begin(state, tables, tie)

    def ask(state: State, tables: AdaptiveTables) -> int:
        if state[STOPPED]:
            return STOP
        if is_ready(state, tables):
            return choose(state, tables)
        return least_pulled(state, tables.cost)

    def tell(state: State, tables: AdaptiveTables, arm: int, reward: float) -> None:
        if is_ready(state, tables):
            note(state, tables, arm, 1)
        count(state, tables, arm, reward)
        if is_ready(state, tables):
            decide(state, tables)
            needed = tables.round_pulls if ends_round(state, tables) else 1
            if state[PULLS] + needed > tables.max_pulls:
                state[STOPPED] = 1
            if not state[STOPPED]:
                prepare(state, tables)

    def send(state: State, tables: AdaptiveTables, arm: int, pulls: int) -> None:
        if is_ready(state, tables):
            note(state, tables, arm, pulls)
        count_pending(state, tables, arm, pulls)

    return Rule(init, ask, tell, recommend, send, seldom=(decide,))


class BudgetNumbers(NamedTuple):
    """The number of pulls."""

    budget: int


def decide(state: State, tables: AdaptiveTables) -> None:
    """Stop once the budget is used up."""
    if state[PULLS] >= tables.stopping.budget:
        state[STOPPED] = 1


def describe(state: State, tables: AdaptiveTables, wording: Wording, risk: Risk | None) -> str:
    """Explain in one clause how much of the budget is used."""
    return f"{int(state[PULLS])} of {wording.count(tables.stopping.budget)} are made"


def numbers(problem: AdaptiveProblem) -> BudgetNumbers:
    """Return the budget."""
    assert problem.budget is not None
    return BudgetNumbers(problem.budget)


STOPPING = StoppingPart(decide, numbers, describe, needs=("budget",))


THEN = OWN_SECTION  # the first number of this section: 1 + the other arm of a round that is under way, else 0


def sample_pairs(
    challenger: Callable[[State, Any], int],
    numbers: Callable[[AdaptiveProblem], Any],
    *,
    needs: tuple[str, ...],
    is_bernoulli: bool = False,
) -> SamplingPart:
    """Return the part that pulls the leader and its challenger in turn."""

    def choose(state: State, tables: AdaptiveTables) -> int:
        then = int(state[section(tables.cost, THEN)])
        return then - 1 if then > 0 else int(state[LEADER])

    def note(state: State, tables: AdaptiveTables, arm: int, pulls: int) -> None:
        then = section(tables.cost, THEN)
        for _ in range(min(pulls, 2)):  # more of the same arm change nothing
            if state[then] == 0:
                leader, other = int(state[LEADER]), challenger(state, tables)
                if arm == leader:
                    state[then] = 1 + other
                elif arm == other:  # rewards of a live study may arrive in any order
                    state[then] = 1 + leader
            elif arm == state[then] - 1:
                state[then] = 0

    return SamplingPart(choose, numbers, needs, note=note, sections=1, round_pulls=2, is_bernoulli=is_bernoulli)


UNIT_RANGE = (0.0, 1.0)
FAMILIES = ("gaussian", "bernoulli")
DEFAULT_DELTA = 0.05


class AdaptivePolicy(Policy):
    """A policy of a sampling part and a stopping part, which takes rewards in any order.

    A subclass is a dataclass whose fields are `arms` and those of `CHECKS` that its parts need.
    """

    @property
    @abstractmethod
    def sampling_part(self) -> SamplingPart:
        """Which arm to pull next."""

    @property
    @abstractmethod
    def stopping_part(self) -> StoppingPart:
        """When to stop."""

    def __post_init__(self) -> None:
        checks.set_fields(self, arms=checks.arms(self.arms))
        for field in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            value = getattr(self, field.name)
            if field.name in CHECKS and not (value is None and field.default is None):
                checks.set_fields(self, **{field.name: CHECKS[field.name](self, value)})

    @property
    def is_bernoulli(self) -> bool:
        """Whether rewards must be from 0 to 1."""
        return self.sampling_part.is_bernoulli or getattr(self, "family", None) == FAMILIES[1]

    @property
    def problem(self) -> AdaptiveProblem:
        """What the parts are told: the fields that the policy has."""
        sigma, delta, budget = (getattr(self, name, None) for name in ("sigma", "delta", "budget"))
        rate = getattr(self, "rate", "")
        return AdaptiveProblem(self.arms, self.risk, sigma, delta, budget, self.is_bernoulli, rate)

    @property
    def first_pulls(self) -> int:
        """Pulls of every arm before the parts are asked."""
        return self.sampling_part.first_pulls

    @property
    def aims_at_error(self) -> bool:
        """Whether the stop waits until an error is unlikely enough, whatever that costs."""
        return "delta" in self.stopping_part.needs

    @property
    def pools(self) -> bool:
        """Whether to pool: rules that aim at an error make long runs, of which many reach the cap at small gaps."""
        return not self.aims_at_error

    @property
    def rule(self) -> Rule:  # type: ignore[override]  # the parts decide
        """The rule of the two parts."""
        return compose(self.sampling_part, self.stopping_part)

    @property
    def treats_arms_alike(self) -> bool:
        return self.risk is None or not self.risk.costs_differ

    @property
    def reward_range(self) -> tuple[float, float] | None:
        return UNIT_RANGE if self.is_bernoulli else None

    @property
    def state_size(self) -> int:
        return state.state_size(self.arms, OWN_SECTION + self.sampling_part.sections)

    @cached_property
    def tables(self) -> AdaptiveTables:
        problem = self.problem
        return AdaptiveTables(
            cost=np.array(self.risk.costs(self.arms)) if self.risk is not None else np.ones(self.arms),
            guess=False if problem.losses is None else problem.losses.guess,
            first_pulls=self.first_pulls,
            round_pulls=self.sampling_part.round_pulls,
            max_pulls=self.max_pulls,
            losses=() if problem.losses is None else problem.losses,
            sampling=self.sampling_part.numbers(problem),
            stopping=self.stopping_part.numbers(problem),
        )

    def reopen(self, state: State) -> None:
        state[STOPPED] = 0.0

    def why_stopped(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if not is_ready(state, self.tables):
            return f"it chooses without a {wording.noun}"
        balance = self.stopping_part.describe(state, self.tables, wording, self.risk)
        if state[PULLS] + self.tables.round_pulls > self.max_pulls and "budget" not in self.stopping_part.needs:
            return f"the limit of {wording.count(self.max_pulls)} is reached; {balance}"
        return balance

    def progress(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if state[SEEN] < self.arms:
            return f"{int(state[SEEN])} of {self.arms} arms tried"
        if not is_ready(state, self.tables):
            return f"every arm is tried {self.first_pulls} times at first"
        balance = self.stopping_part.describe(state, self.tables, wording, self.risk)
        return f"{wording.arm(int(state[LEADER]))} leads; {balance}"


@dataclass(frozen=True)
class ConfidenceRule(AdaptivePolicy):
    """An adaptive policy for a given error, of sub-Gaussian rewards; subclasses name their parts."""

    arms: int
    delta: float = DEFAULT_DELTA
    sigma: float = 1.0
    max_pulls: int = DEFAULT_MAX_PULLS
    risk = None


@dataclass(frozen=True)
class FamilyRule(AdaptivePolicy):
    """An adaptive policy for a given error, of Gaussian or Bernoulli arms; subclasses name their parts."""

    arms: int
    delta: float = DEFAULT_DELTA
    sigma: float = 1.0
    family: str = FAMILIES[0]
    rate: str = PROVEN
    max_pulls: int = DEFAULT_MAX_PULLS
    risk = None


@dataclass(frozen=True)
class BudgetRule(AdaptivePolicy):
    """An adaptive policy that makes a given number of pulls; subclasses name how it samples."""

    arms: int
    budget: int
    risk = None
    stopping_part = STOPPING

    @property
    def max_pulls(self) -> int:
        return self.budget


@dataclass(frozen=True)
class ValueRule(AdaptivePolicy):
    """An adaptive policy that weighs what a pull costs against what it gains in simple regret, for a known sigma."""

    risk: Risk
    arms: int
    sigma: float = 1.0
    max_pulls: int = DEFAULT_MAX_PULLS

    def __post_init__(self) -> None:
        check_regret(self, self.risk)
        super().__post_init__()


def check_delta(policy: Policy, delta: float) -> float:
    """Return the error that is aimed at, between 0 and 1."""
    return checks.open_unit(f"delta` of `{type(policy).__name__}", delta)


def check_cap(policy: Policy, max_pulls: int, at_least: int) -> int:
    """Return the cap on pulls, which must allow the first ones."""
    return checks.whole(f"max_pulls` of `{type(policy).__name__}", max_pulls, at_least=at_least)


def check_regret(policy: Policy, risk: Risk) -> None:
    """Refuse a risk other than simple regret, in which the rule's gains are."""
    check_risk(risk)
    if risk.loss is not Loss.SIMPLE_REGRET:
        raise InvalidValueError(
            f"{type(policy).__name__} weighs gains in mean reward against costs, so `risk` must be a simple regret "
            f"but got {risk.loss}; Breakeven handles both."
        )


def _check_risk(policy: AdaptivePolicy, risk: Risk) -> Risk:
    check_risk(risk).costs(policy.arms)
    return risk


def _check_budget(policy: AdaptivePolicy, budget: int) -> int:
    least = policy.arms * policy.first_pulls
    return checks.whole(f"budget` of `{type(policy).__name__}", budget, at_least=least)


# How fields are checked, given the policy and a value, once its arms are known.
CHECKS: dict[str, Callable[[Any, Any], Any]] = {
    "risk": _check_risk,
    "delta": check_delta,
    "sigma": lambda _, sigma: checks.known_sigma(sigma),
    "family": lambda _, family: checks.one_of("family", family, FAMILIES),
    "rate": lambda _, rate: checks.one_of("rate", rate, RATES),
    "budget": _check_budget,
    "max_pulls": lambda policy, cap: check_cap(policy, cap, policy.arms * policy.first_pulls),
}
