"""Policies that work in epochs: pull every survivor equally often, then decide which arms stay.

Such a policy is defined by `decide(state, tables)` alone. It is called before the first epoch and at the end of each:
it may drop survivors, and it sets EACH, the pulls per survivor in the next epoch, or 0 to stop. Within an epoch the
survivors take turns, so that a drift over time affects all of them alike.

State: a header, then the sums of rewards, then the arms. Both are ordered by slot: slots 0..ALIVE-1 hold the
survivors, the slots after them the dropped arms, latest first.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dbcare.policies.rule import STOP, Calls, Rule, State, next_tie, pick

EPOCH = 0  # completed epochs
ALIVE = 1  # number of survivors
EACH = 2  # pulls per survivor in this epoch; 0 means stopped
SLOT = 3  # slot whose turn it is
TURN = 4  # full turns completed in this epoch
COUNT = 5  # pulls in each survivor's sum at the start of this epoch
PULLS = 6  # pulls in completed epochs
TIE = 7  # state of the tie-breaking generator
HIGH = 8  # largest sum among the survivors pulled in this turn so far
LOW = 9  # smallest of these sums
LIMIT = 10  # last epoch that `decide` allows unless an arm is dropped
SUMS = 11


@dataclass(frozen=True)
class EpochRule(Rule):
    """A rule in epochs: its own `decide`, and the condition under which `decide` would change nothing.

    idle(tables, survivors, completed, limit, high, low) returns whether the same survivors and pulls continue, given
    the completed epochs, LIMIT, and the largest and smallest sums. Simulators check it to save a call of `decide`.
    """

    decide: Callable[[State, Any], None] = field(kw_only=True)
    idle: Callable[..., bool] = field(kw_only=True)

    @property
    def calls(self) -> dict[Callable[..., Any], Calls]:
        return super().calls | {self.decide: Calls.SELDOM}


def arms_offset(state: State) -> int:
    """Return the index of the first arm, right after the sums."""
    return SUMS + (len(state) - SUMS) // 2


def state_size(arms: int) -> int:
    """Return the length of a state."""
    return SUMS + 2 * arms


def drop(state: State, slot: int) -> None:
    """Drop the survivor at `slot`; the last survivor takes its place."""
    arms = arms_offset(state)
    last = int(state[ALIVE]) - 1
    dropped_sum = state[SUMS + slot]
    dropped_arm = state[arms + slot]
    state[SUMS + slot] = state[SUMS + last]
    state[arms + slot] = state[arms + last]
    state[SUMS + last] = dropped_sum
    state[arms + last] = dropped_arm
    state[ALIVE] = last


def drop_worst(state: State) -> None:
    """Drop the survivor with the smallest sum, breaking ties at random."""
    alive = int(state[ALIVE])
    worst = state[SUMS]
    ties = 0
    for slot in range(alive):
        total = state[SUMS + slot]
        if total < worst:
            worst = total
            ties = 1
        elif total == worst:
            ties += 1
    chosen = 0
    if ties > 1:
        state[TIE] = next_tie(state[TIE])
        chosen = pick(state[TIE], ties)
    for slot in range(alive):
        if state[SUMS + slot] == worst:
            if chosen == 0:
                drop(state, slot)
                break
            chosen -= 1


def end_epochs(state: State, epochs: int) -> None:
    """Count the pulls of so many epochs; call `decide` next."""
    pulls = epochs * state[EACH]
    state[EPOCH] += epochs
    state[COUNT] += pulls
    state[PULLS] += pulls * state[ALIVE]


def ask(state: State, tables: Any) -> int:
    """Return the survivor whose turn it is."""
    if state[EACH] == 0:
        return STOP
    return int(state[arms_offset(state) + int(state[SLOT])])


def upcoming(state: State) -> list[int]:
    """Return the arms to pull until the end of this epoch, in order; later epochs depend on the rewards."""
    arms = arms_offset(state)
    alive, slot = int(state[ALIVE]), int(state[SLOT])
    turns = int(state[EACH]) - int(state[TURN])
    survivors = [int(state[arms + place]) for place in range(alive)]
    return (survivors * max(0, turns))[slot:]


def recommend(state: State, tables: Any) -> int:
    """Return the survivor with the largest mean, breaking ties at random.

    Survivors without a pull are considered only if no survivor has one.
    """
    alive = int(state[ALIVE])
    best = 0.0
    ties = 0
    for slot in range(alive):
        count = state[COUNT] + state[TURN] + (1 if slot < state[SLOT] else 0)
        if count == 0:
            continue
        mean = state[SUMS + slot] / count
        if ties == 0 or mean > best:
            best = mean
            ties = 1
        elif mean == best:
            ties += 1
    arms = arms_offset(state)
    if ties == 0:
        return int(state[arms + pick(next_tie(state[TIE]), alive)])
    chosen = pick(next_tie(state[TIE]), ties)
    for slot in range(alive):
        count = state[COUNT] + state[TURN] + (1 if slot < state[SLOT] else 0)
        if count > 0 and state[SUMS + slot] / count == best:
            if chosen == 0:
                return int(state[arms + slot])
            chosen -= 1
    return STOP


def never_idle(tables: Any, survivors: int, completed: int, limit: int, high: float, low: float) -> bool:
    """Return False: the end of every epoch calls for a decision."""
    return False


def epoch_rule(decide: Callable[[State, Any], None], idle: Callable[..., bool] = never_idle) -> EpochRule:
    """Build the rule of a policy in epochs around its `decide`."""

    def init(state: State, tables: Any, tie: int) -> None:
        arms = arms_offset(state)
        for index in range(SUMS):
            state[index] = 0
        state[ALIVE] = arms - SUMS
        state[TIE] = tie
        for arm in range(arms - SUMS):
            state[SUMS + arm] = 0.0
            state[arms + arm] = arm
        decide(state, tables)

    def tell(state: State, tables: Any, arm: int, reward: float) -> None:
        slot = int(state[SLOT])
        total = state[SUMS + slot] + reward
        state[SUMS + slot] = total
        state[HIGH] = total if slot == 0 else max(state[HIGH], total)
        state[LOW] = total if slot == 0 else min(state[LOW], total)
        state[SLOT] = slot + 1
        if state[SLOT] == state[ALIVE]:
            state[SLOT] = 0
            state[TURN] += 1
            if state[TURN] == state[EACH]:
                state[TURN] = 0
                end_epochs(state, 1)
                decide(state, tables)

    return EpochRule(init=init, ask=ask, tell=tell, recommend=recommend, decide=decide, idle=idle)
