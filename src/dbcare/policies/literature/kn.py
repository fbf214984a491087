"""KN: elimination with an indifference zone, by the variances of differences in a first stage.

State: a header; by slot, the arms, survivors first; by arm, the sum of rewards, the latest reward, and the priority in
ties; then, for each pair of arms, the sum of squared deviations of the difference of their rewards in the first stage.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from dbcare.base import checks
from dbcare.base.look import YELLOW, Look, PolicyKind
from dbcare.errors import InvalidValueError
from dbcare.policies.elimination.racing import DEFAULT_MAX_PULLS
from dbcare.policies.literature.parts import DEFAULT_DELTA, check_cap, check_delta
from dbcare.policies.policy import Policy
from dbcare.policies.rule import STOP, Rule, State, next_tie
from dbcare.policies.run import DEFAULT_WORDING, RunEvent, Wording

ROUND = 0  # rounds completed
SLOT = 1  # slot whose turn it is
ALIVE = 2  # survivors
PULLS = 3
STOPPED = 4
HEADER = 5
ARM, SUM, LATEST, PRIORITY = range(4)  # sections of one number per arm
SECTIONS = 4
DEFAULT_FIRST_PULLS = 10
MAX_ARMS = 5_000  # a run keeps a number for every pair of arms


class KNTables(NamedTuple):
    """The numbers of KN."""

    arms: int
    first_pulls: int
    reach: float  # h^2/(2 zone (n0 - 1)): times a sum of squares, where the boundary starts
    slope: float  # zone/2: by how much the boundary falls per round
    max_pulls: int


def section(tables: KNTables, which: int) -> int:
    """Return the index at which a section starts."""
    return HEADER + which * tables.arms


def pair(tables: KNTables, one: int, other: int) -> int:
    """Return the index of a pair of arms."""
    low, high = min(one, other), max(one, other)
    return HEADER + SECTIONS * tables.arms + high * (high - 1) // 2 + low


def init(state: State, tables: KNTables, tie: int) -> None:
    """Start a run with all arms, and a random order of them."""
    for index in range(len(state)):
        state[index] = 0.0
    drawn = float(tie)
    for arm in range(tables.arms):
        drawn = next_tie(drawn)
        state[section(tables, ARM) + arm] = arm
        state[section(tables, PRIORITY) + arm] = drawn
    state[ALIVE] = tables.arms


def ask(state: State, tables: KNTables) -> int:
    """Return the survivor whose turn it is."""
    if state[STOPPED]:
        return STOP
    return int(state[section(tables, ARM) + int(state[SLOT])])


def tell(state: State, tables: KNTables, arm: int, reward: float) -> None:
    """Count a reward; after the last one of a round, decide."""
    state[section(tables, SUM) + arm] += reward
    state[section(tables, LATEST) + arm] = reward
    state[PULLS] += 1
    state[SLOT] += 1
    if state[SLOT] == state[ALIVE]:
        state[SLOT] = 0
        state[ROUND] += 1
        decide(state, tables)


def decide(state: State, tables: KNTables) -> None:
    """Estimate variances in the first stage; from its end on, drop arms and stop."""
    if state[ROUND] <= tables.first_pulls:
        add_squares(state, tables)
    if state[ROUND] < tables.first_pulls:
        return
    is_open = screen(state, tables)
    if state[ALIVE] == 1 or not is_open or state[PULLS] + state[ALIVE] > tables.max_pulls:
        state[STOPPED] = 1


def add_squares(state: State, tables: KNTables) -> None:
    """Add the latest differences to the sums of squares of all pairs."""
    total, latest, completed = section(tables, SUM), section(tables, LATEST), state[ROUND]
    if completed < 2:
        return
    for one in range(tables.arms):
        for other in range(one):
            difference = state[latest + one] - state[latest + other]
            sums = state[total + one] - state[total + other]
            before = (sums - difference) / (completed - 1)
            state[pair(tables, one, other)] += (difference - before) * (difference - sums / completed)


def margin(state: State, tables: KNTables, one: int, other: int) -> float:
    """Return by how much the sums of two arms may differ before one is dropped: max(0, h^2 S^2/(2z) - z r/2)."""
    return float(max(0.0, tables.reach * state[pair(tables, one, other)] - tables.slope * state[ROUND]))


def screen(state: State, tables: KNTables) -> bool:
    """Drop every survivor that is too far behind another; return whether any margin between survivors is left."""
    arms, total = section(tables, ARM), section(tables, SUM)
    alive = int(state[ALIVE])
    kept = alive
    slot = 0
    # Those dropped move behind the kept ones, and still count as rivals.
    while slot < kept:
        arm = int(state[arms + slot])
        is_behind = False
        for place in range(alive):
            rival = int(state[arms + place])
            if rival != arm and state[total + rival] - state[total + arm] > margin(state, tables, arm, rival):
                is_behind = True
                break
        if is_behind:
            kept -= 1
            state[arms + slot] = state[arms + kept]
            state[arms + kept] = arm
        else:
            slot += 1
    state[ALIVE] = kept
    for one in range(kept):
        for other in range(one):
            if margin(state, tables, int(state[arms + one]), int(state[arms + other])) > 0.0:
                return True
    return False


def recommend(state: State, tables: KNTables) -> int:
    """Return the survivor with the largest mean; those without a reward are considered only if none has one."""
    arms, total, priority = section(tables, ARM), section(tables, SUM), section(tables, PRIORITY)
    best = -1
    highest = 0.0
    for slot in range(int(state[ALIVE])):
        arm = int(state[arms + slot])
        count = state[ROUND] + (1 if slot < state[SLOT] else 0)
        if count == 0 and state[SLOT] > 0:
            continue
        mean = state[total + arm] / max(count, 1)
        if best < 0 or mean > highest or (mean == highest and state[priority + arm] > state[priority + best]):
            best = arm
            highest = mean
    return best


RULE = Rule(init, ask, tell, recommend, seldom=(decide,))


@dataclass(frozen=True)
class KN(Policy):
    """KN for K arms: Kim and Nelson (2001), *A Fully Sequential Procedure for Indifference-Zone Selection*.

    Pull every arm n0 = `first_pulls` times, and let S_ij^2 be the variance of the differences of their rewards. With
    z = `indifference`, eta = ((2 delta/(K-1))^(-2/(n0-1)) - 1)/2 and h^2 = 2 eta (n0 - 1), drop after round r every
    arm i whose mean is more than max(0, z/(2r) (h^2 S_ij^2/z^2 - r)) below that of a survivor j; pull the others once
    more. Stop when one arm is left. For Gaussian rewards with unknown variances, the error is at most `delta` if the
    best arm is at least z better than all others (their Theorem 1, c = 1), unless `max_pulls` ends a run first.
    Sampling and stop are one and the same elimination, so KN has no parts for `Adaptive`.

    Parameters
    ----------
    arms : int
        Number of arms.
    indifference : float
        The smallest difference of means that matters.
    delta : float
        The error that is allowed, below 1 - 1/K.
    first_pulls : int
        First pulls of every arm, at least 2.
    max_pulls : int
        Cap on the pulls; a round that would exceed it is not started.

    Examples
    --------
    >>> from dbcare.policies import KN
    >>> run = KN(arms=3, indifference=0.3).start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.9, 0.4, 0.1][arm])
    >>> run.recommendation(), run.pulls
    (0, 30)
    """

    label = "KN"
    kind = PolicyKind.FIXED_CONFIDENCE
    look = Look((YELLOW,), "d", hollow=True)
    live = False

    arms: int
    indifference: float
    delta: float = DEFAULT_DELTA
    first_pulls: int = DEFAULT_FIRST_PULLS
    max_pulls: int = DEFAULT_MAX_PULLS
    rule = RULE
    risk = None

    def __post_init__(self) -> None:
        arms = checks.whole("arms` of `KN", self.arms, at_least=2, at_most=MAX_ARMS)
        first = checks.whole("first_pulls` of `KN", self.first_pulls, at_least=2)
        delta = check_delta(self, self.delta)
        if delta >= 1.0 - 1.0 / arms:
            raise InvalidValueError(
                f"`delta` of `KN` must be below {1.0 - 1.0 / arms:.4g}, the error of a guess among {arms} arms, "
                f"but got {delta}."
            )
        checks.set_fields(
            self,
            arms=arms,
            indifference=checks.positive("indifference` of `KN", self.indifference),
            delta=delta,
            first_pulls=first,
            max_pulls=check_cap(self, self.max_pulls, arms * first),
        )

    @property
    def treats_arms_alike(self) -> bool:
        return True

    @property
    def state_size(self) -> int:
        return HEADER + SECTIONS * self.arms + self.arms * (self.arms - 1) // 2

    @cached_property
    def tables(self) -> KNTables:
        freedom = self.first_pulls - 1
        eta = 0.5 * (math.pow(2.0 * self.delta / (self.arms - 1), -2.0 / freedom) - 1.0)
        # h^2 S^2/(2 zone) with S^2 the sum of squares over n0 - 1: the two factors n0 - 1 cancel.
        return KNTables(self.arms, self.first_pulls, eta / self.indifference, 0.5 * self.indifference, self.max_pulls)

    def upcoming(self, state: State) -> list[int]:
        """Return the rest of the round, or of the first stage; nobody knows what comes after it."""
        if state[STOPPED]:
            return []
        arms = section(self.tables, ARM)
        turns = max(1, self.first_pulls - int(state[ROUND]))
        survivors = [int(state[arms + slot]) for slot in range(int(state[ALIVE]))]
        return (survivors * turns)[int(state[SLOT]) :]

    def events(self, before: State, after: State) -> list[RunEvent]:
        arms = section(self.tables, ARM)
        dropped = range(int(after[ALIVE]), int(before[ALIVE]))
        why = f"dropped after round {int(after[ROUND])}: it is outside the margin of a better arm"
        return [RunEvent(int(after[arms + slot]), why) for slot in dropped]

    def why_stopped(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        survivors = int(state[ALIVE])
        if survivors == 1:
            return f"only {wording.arm(recommend(state, self.tables))} remains"
        if state[PULLS] + survivors > self.max_pulls:
            return (
                f"{survivors} arms remain and another round would exceed the limit of {wording.count(self.max_pulls)}"
            )
        return f"{survivors} arms remain, which are equally good so far"

    def progress(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        return f"round {int(state[ROUND]) + 1}, {int(state[ALIVE])} of {self.arms} arms left"
