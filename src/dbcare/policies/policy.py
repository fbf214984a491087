"""What every policy is: a value object that carries a rule, its tables and a bound on its pulls."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.base.look import PLAIN, Look, PolicyKind
from dbcare.errors import InvalidValueError
from dbcare.policies import epochs
from dbcare.policies.epochs import ALIVE, EPOCH, EpochRule
from dbcare.policies.rule import TIE_MODULUS, Rule, State
from dbcare.policies.run import DEFAULT_WORDING, Comparisons, Run, RunEvent, Wording
from dbcare.problem.risk import Risk

MAX_STATE_SIZE = 100_000_000  # numbers; more than any policy for the most arms needs


class Pace(Enum):
    """In which steps a rule pulls arms; engines that take several pulls at once need one in epochs.

    Examples
    --------
    >>> from dbcare import Breakeven
    >>> from dbcare.policies import Uniform
    >>> Breakeven.pace.in_epochs, Uniform.pace.in_epochs
    (False, True)
    """

    PULLS = "one pull at a time"
    EPOCHS = "all survivors equally often, epoch by epoch"
    ELIMINATION = "in epochs, dropping arms whose sums differ by more than a boundary"
    PLANNED = "in rounds planned in advance"

    @property
    def in_epochs(self) -> bool:
        """Whether all survivors are pulled equally often."""
        return self is not Pace.PULLS


class Policy(ABC):
    """A decision rule with its tables, and what people want to know of a run.

    The policies that ship are values: equal fields make equal policies. A policy of your own defines `rule`, `tables`,
    `state_size` and `max_pulls`; live studies work better if it also defines the hooks that it can (`expected_losses`,
    `upcoming`, `reopen`) and sentences of its own (`why_stopped`, `progress`, `events`).

    Attributes
    ----------
    arms : int
        Number of arms.
    rule : Rule
        The functions that decide.
    risk : Risk or None
        The risk that the policy was made for, if it was made for one.
    breaks_even : bool
        Whether the rule stops once the largest expected loss is no more than the spend, or `patience` times that.
    knows_gap : bool
        Whether the rule was made for arms with a known gap, as oracles are.
    pace : Pace
        In which steps the rule pulls arms.
    pools : bool
        Whether its runs tell enough about other means than their own to be pooled in experiments.
    shares_caps : bool
        Whether a run with a smaller `max_pulls` is the beginning of the same run with a larger one.
    checkpoint : int
        Pulls of each arm after which the leader nearly always is the choice, as a control variate needs it; else 0.
    pulls_each : int or None
        Pulls of each arm, if there is one round of them; None for other rules.
    odds : sequence of float or None
        What chances of the arms to be chosen are proportional to, if there are no pulls; None for other rules.
    depends_on_unit : bool
        Whether the rule for simple regret depends on the unit of the rewards, beyond what is stated in that unit.
    stop_rule : str
        When a run stops, in sentences for the report of a study; may be empty.
    label, kind, look, live, planned
        What a registered class states about itself (`PolicyEntry`); subclasses do not inherit it.

    Examples
    --------
    >>> from dbcare import Breakeven, Risk
    >>> policy = Breakeven(Risk.simple_regret(0.01), arms=2, sigma=0.5)
    >>> run = policy.start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.9, 0.1][arm])
    >>> run.recommendation()
    0
    """

    arms: int
    rule: Rule
    risk: Risk | None
    breaks_even: ClassVar[bool] = False
    knows_gap: ClassVar[bool] = False
    pace: ClassVar[Pace] = Pace.PULLS
    shares_caps: ClassVar[bool] = False
    depends_on_unit: ClassVar[bool] = False
    stop_rule: ClassVar[str] = ""
    label: ClassVar[str] = ""
    kind: ClassVar[PolicyKind] = PolicyKind.OTHER
    look: ClassVar[Look] = PLAIN
    live: ClassVar[bool] = True
    planned: ClassVar[bool] = False

    def __repr__(self) -> str:
        # Without an address in it: stored runs and results are found again by it.
        return f"{type(self).__qualname__}(arms={self.arms}, max_pulls={self.max_pulls})"

    @property
    def treats_arms_alike(self) -> bool:
        """Whether the law of a run is the same after the arms are relabeled; if so, evaluations average over labels.

        Ties must be broken at random, and no arm may cost more or come first in a way that matters.
        """
        return False

    @property
    def pools(self) -> bool:
        return True

    @property
    def checkpoint(self) -> int:
        return 0

    @property
    def pulls_each(self) -> int | None:
        return None

    @property
    def odds(self) -> Sequence[float] | None:
        return None

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The range that rewards must be in; None if any will do."""
        return None

    @property
    def learns_spread(self) -> bool:
        """Whether the rule corrects a sigma that the rewards contradict."""
        return False

    @property
    def patience(self) -> float:
        """The share of the spend at which the largest loss is small enough, for a rule that breaks even."""
        return 1.0

    @property
    def believed_sigma(self) -> float:
        """The largest standard deviation that a rule which learns the spread believes; infinite without a limit."""
        return math.inf

    @property
    def identity(self) -> str:
        """The text by which a stored run finds its policy again."""
        return repr(self)

    @property
    @abstractmethod
    def tables(self) -> Any:
        """The numbers that the rule reads."""

    @property
    @abstractmethod
    def state_size(self) -> int:
        """How many numbers a state holds."""

    @property
    @abstractmethod
    def max_pulls(self) -> int:
        """The most pulls that a run can make."""

    @property
    def max_spend(self) -> float:
        """Upper bound on a run's spend, in units of the loss; infinite without a risk."""
        return math.inf if self.risk is None else self.max_pulls * max(self.risk.costs(self.arms))

    @property
    def pull_work(self) -> float:
        """About how many nanoseconds a simulated pull takes, which plans count instead of timing it."""
        return 70.0 + 12.0 * self.arms

    @property
    def largest_spread(self) -> float:
        """The largest difference of two means that the policy was made for."""
        return math.inf

    def start(self, seed: int = 0) -> Run:
        """Start a run that is stepped by hand; `seed` breaks ties."""
        generator = np.random.default_rng(checks.whole("seed", seed, at_least=0))
        return Run.fresh(self, int(generator.integers(1, TIE_MODULUS)))

    def resume(self, snapshot: dict[str, Any]) -> Run:
        """Return the run that `Run.snapshot` described."""
        return Run.restored(self, snapshot)

    def expected_losses(self, state: State) -> Sequence[float] | None:
        """Return what choosing the leader is expected to lose to each arm, 0 for the leader itself.

        In units of the loss; None where the policy has no such figures, or not yet.
        """
        return None

    def comparisons(self, state: State) -> Comparisons | None:
        """Return how the leader compares with each arm on shared blocks; None without blocks, or too early."""
        return None

    def upcoming(self, state: State) -> list[int] | None:
        """Return the arms that will be pulled next whatever their rewards, in order; None where one is asked at a time.

        A live study hands these out together. A rule with `send` needs no list: it is asked again after each.
        """
        return None

    def has_broken_even(self, state: State) -> bool:
        """Return whether a run that has stopped did so because its largest loss was no more than its spend."""
        return self.breaks_even

    def reopen(self, state: State) -> None:
        """Let a run that has stopped count more rewards, and decide anew after each.

        Called for rules with `send` when a study replays its rewards without an arm that was retired: the others may
        have more rewards than they would have asked for alone. A rule that keeps no mark of its stop needs nothing.
        """
        return

    def events(self, before: State, after: State) -> list[RunEvent]:
        """Return what one reward changed that a person would want to know, such as an arm being dropped."""
        return []

    def why_stopped(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        """Explain in one clause why the run stopped."""
        return f"the policy asks for no more {wording.noun}s"

    def progress(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        """Explain in one clause how far a run has come."""
        return "running"


class EpochPolicy(Policy):
    """A policy that pulls all survivors equally often, epoch by epoch."""

    rule: EpochRule
    pace = Pace.EPOCHS

    @property
    def pull_work(self) -> float:
        return 3.0

    @property
    def state_size(self) -> int:
        return epochs.state_size(self.arms)

    @property
    def odds(self) -> Sequence[float] | None:
        return None if self.max_pulls else (1.0,) * self.arms

    def upcoming(self, state: State) -> list[int]:
        """Return the rest of the epoch; nobody knows what comes after it."""
        return epochs.upcoming(state)

    def progress(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        return f"round {int(state[EPOCH]) + 1}, {int(state[ALIVE])} of {self.arms} arms left"

    def events(self, before: State, after: State) -> list[RunEvent]:
        arms = epochs.arms_offset(after)
        survivors = int(before[ALIVE])
        return [
            RunEvent(int(after[arms + slot]), self.why_dropped(before, after, slot))
            for slot in range(int(after[ALIVE]), survivors)
        ]

    @abstractmethod
    def why_dropped(self, before: State, after: State, slot: int) -> str:
        """Explain in one clause, with its numbers, why the arm now at `slot` was dropped."""


class CustomPolicy(Policy):
    """A policy of your own: a rule of four functions, and what they read.

    The functions must be plain Python that uses indexing and arithmetic (see `dbcare.policies.rule`); the simulator
    compiles them where it can.

    Parameters
    ----------
    arms : int
        Number of arms.
    rule : Rule
        The functions that decide.
    tables : object
        The numbers that the rule reads: a named tuple, a tuple or an array.
    state_size : int
        How many numbers a state holds.
    max_pulls : int
        The most pulls that a run can make; the simulator cuts runs there.
    risk : Risk, optional
        The risk that the policy was made for.
    name : str
        What descriptions call it.

    Examples
    --------
    >>> from dbcare import Bandit, Risk, evaluate
    >>> from dbcare.policies import CustomPolicy, Rule
    >>> def init(state, tables, tie):
    ...     state[0] = 0.0
    >>> def ask(state, tables):
    ...     return int(state[0]) % 2 if state[0] < 6 else -1
    >>> def tell(state, tables, arm, reward):
    ...     state[0] += 1.0
    ...     state[1] += reward if arm == 0 else -reward
    >>> def recommend(state, tables):
    ...     return 0 if state[1] > 0.0 else 1
    >>> policy = CustomPolicy(2, Rule(init, ask, tell, recommend), tables=(), state_size=2, max_pulls=6)
    >>> run = policy.start()
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.9, 0.1][arm])
    >>> run.recommendation(), run.pulls
    (0, 6)
    """

    def __init__(
        self,
        arms: int,
        rule: Rule,
        *,
        tables: Any,
        state_size: int,
        max_pulls: int,
        risk: Risk | None = None,
        name: str = "custom",
    ) -> None:
        for what, value, kind in (("rule", rule, Rule), ("risk", risk, Risk | None)):
            if not isinstance(value, kind):
                raise InvalidValueError(f"`{what}` must be a {what.capitalize()} but got {show(value)}.")
        self.name = checks.text("name", name)
        self.arms = checks.arms(arms)
        self.rule = rule
        self.risk = risk
        self._tables = tables
        self._state_size = checks.whole("state_size", state_size, at_least=1, at_most=MAX_STATE_SIZE)
        self._max_pulls = checks.whole("max_pulls", max_pulls, at_least=0)

    def __repr__(self) -> str:
        return f"CustomPolicy({self.name!r}, arms={self.arms}, max_pulls={self.max_pulls})"

    @property
    def tables(self) -> Any:
        return self._tables

    @property
    def state_size(self) -> int:
        return self._state_size

    @property
    def max_pulls(self) -> int:
        return self._max_pulls


def ships(policy: Policy) -> bool:
    """Return whether a policy ships with dbcare, so that its repr says what it does."""
    return type(policy).__module__.startswith("dbcare.") and not isinstance(policy, CustomPolicy)
