"""A rule from two parts: one chooses the next arm, the other decides when to stop; the leader is recommended.

Both read and write one state: that of Breakeven (`policies.breakeven_state`), then sections of the sampling part's own.
All arms are pulled `first_pulls` times before the parts are asked. Functions of parts are compiled with the rule:

choose(state, tables) -> arm    return the next arm, given all pulls made; only reads
note(state, tables, arm)        take note of a pull that is made, before its reward counts
prepare(state, tables)          compute what `choose` needs, after a reward that did not end the run
decide(state, tables)           set STOPPED if the run is over; called after every reward
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.policies.breakeven_rule import SECTIONS, observe
from dbcare.policies.breakeven_rule import init as start_with_losses
from dbcare.policies.breakeven_spread import BreakevenTables
from dbcare.policies.breakeven_state import (
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
from dbcare.policies.breakeven_state import send as count_pending
from dbcare.policies.rule import STOP, Rule, State
from dbcare.policies.wording import Wording
from dbcare.problem.risk import Risk

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
