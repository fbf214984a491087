"""What every policy of two parts shares: its tables, its rule, and sentences about a run."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.policies import breakeven_state
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
from dbcare.risk import Loss, Risk, check_risk

UNIT_RANGE = (0.0, 1.0)
FAMILIES = ("gaussian", "bernoulli")
DEFAULT_DELTA = 0.05


class AdaptivePolicy(Policy):
    """A policy of a sampling part and a stopping part, which takes rewards in any order."""

    @property
    @abstractmethod
    def sampling_part(self) -> SamplingPart:
        """Which arm to pull next."""

    @property
    @abstractmethod
    def stopping_part(self) -> StoppingPart:
        """When to stop."""

    @property
    @abstractmethod
    def problem(self) -> AdaptiveProblem:
        """What the parts are told."""

    @property
    def first_pulls(self) -> int:
        """Pulls of every arm before the parts are asked."""
        return self.sampling_part.first_pulls

    @property
    def aims_at_error(self) -> bool:
        """Whether the stop waits until an error is unlikely enough, whatever that costs."""
        return "delta" in self.stopping_part.needs

    @property
    def rule(self) -> Rule:  # type: ignore[override]  # the parts decide
        """The rule of the two parts."""
        return compose(self.sampling_part, self.stopping_part)

    @property
    def treats_arms_alike(self) -> bool:
        return self.risk is None or not self.risk.costs_differ

    @property
    def reward_range(self) -> tuple[float, float] | None:
        return UNIT_RANGE if self.problem.bernoulli else None

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

    def __post_init__(self) -> None:
        arms = validation.arms(self.arms)
        validation.set_fields(
            self,
            arms=arms,
            delta=check_delta(self, self.delta),
            sigma=validation.known_sigma(self.sigma),
            max_pulls=check_cap(self, self.max_pulls, arms),
        )

    @property
    def problem(self) -> AdaptiveProblem:
        return AdaptiveProblem(self.arms, sigma=self.sigma, delta=self.delta)


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

    def __post_init__(self) -> None:
        arms = validation.arms(self.arms)
        validation.one_of("family", self.family, FAMILIES)
        validation.one_of("rate", self.rate, RATES)
        validation.set_fields(
            self,
            arms=arms,
            delta=check_delta(self, self.delta),
            sigma=validation.known_sigma(self.sigma),
            max_pulls=check_cap(self, self.max_pulls, arms),
        )

    @property
    def problem(self) -> AdaptiveProblem:
        return AdaptiveProblem(
            self.arms,
            sigma=self.sigma,
            delta=self.delta,
            bernoulli=self.family == FAMILIES[1],
            rate=self.rate,
        )


@dataclass(frozen=True)
class ValueRule(AdaptivePolicy):
    """An adaptive policy that weighs what a pull costs against what it gains in simple regret, for a known sigma."""

    risk: Risk
    arms: int
    sigma: float = 1.0
    max_pulls: int = DEFAULT_MAX_PULLS

    def __post_init__(self) -> None:
        check_regret(self, self.risk)
        arms = validation.arms(self.arms)
        validation.set_fields(
            self,
            arms=arms,
            sigma=validation.known_sigma(self.sigma),
            max_pulls=check_cap(self, self.max_pulls, arms),
        )
        self.risk.costs(self.arms)

    @property
    def problem(self) -> AdaptiveProblem:
        return AdaptiveProblem(self.arms, risk=self.risk, sigma=self.sigma)


def check_delta(policy: Policy, delta: float) -> float:
    """Return the error that is aimed at, between 0 and 1."""
    return validation.open_unit(f"delta` of `{type(policy).__name__}", delta)


def check_cap(policy: Policy, max_pulls: int, at_least: int) -> int:
    """Return the cap on pulls, which must allow the first ones."""
    return validation.whole(f"max_pulls` of `{type(policy).__name__}", max_pulls, at_least=at_least)


def check_budget(policy: Policy, budget: int, at_least: int) -> int:
    """Return the budget, which must allow the first pulls."""
    return validation.whole(f"budget` of `{type(policy).__name__}", budget, at_least=at_least)


def check_regret(policy: Policy, risk: Risk) -> None:
    """Refuse a risk other than simple regret, in which the rule's gains are."""
    check_risk(risk)
    if risk.loss is not Loss.SIMPLE_REGRET:
        raise InvalidValueError(
            f"{type(policy).__name__} weighs gains in mean reward against costs, so `risk` must be a simple regret "
            f"but got {risk.loss}; Breakeven handles both."
        )
