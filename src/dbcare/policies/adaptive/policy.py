"""What every policy of two parts shares: its tables, its rule, and sentences about a run."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from dbcare.base import checks
from dbcare.errors import InvalidValueError
from dbcare.policies import breakeven_state
from dbcare.policies.adaptive import budget as fixed_budget
from dbcare.policies.adaptive.parts import (
    OWN_SECTION,
    AdaptiveProblem,
    AdaptiveTables,
    SamplingPart,
    StoppingPart,
    compose,
    is_ready,
)
from dbcare.policies.adaptive.rates import PROVEN, RATES
from dbcare.policies.breakeven_state import LEADER, PULLS, SEEN, STOPPED
from dbcare.policies.policy import Policy
from dbcare.policies.racing import DEFAULT_MAX_PULLS
from dbcare.policies.rule import Rule, State
from dbcare.policies.wording import DEFAULT_WORDING, Wording
from dbcare.problem.risk import Loss, Risk, check_risk

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
        return breakeven_state.state_size(self.arms, OWN_SECTION + self.sampling_part.sections)

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
    stopping_part = fixed_budget.STOPPING

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
