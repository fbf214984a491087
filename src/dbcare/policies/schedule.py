"""The rule of all policies whose pulls are planned in advance: halving, rejects, uniform, oracle, guess.

Round r pulls every survivor each[r] times and then keeps the keep[r] best, ties broken uniformly. The ranking uses
either all rewards of an arm so far or only those of the round.
"""

from abc import abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.policies.policy import RoundPolicy
from dbcare.policies.rounds import ALIVE, COUNT, EACH, ROUND, SUMS, drop_worst, round_rule
from dbcare.policies.rule import State
from dbcare.policies.wording import DEFAULT_WORDING, Wording


class ScheduleTables(NamedTuple):
    """Pulls of each survivor, and survivors kept, round by round; `fresh`: each round ranks its own rewards."""

    each: npt.NDArray[np.int64]
    keep: npt.NDArray[np.int64]
    fresh: bool


def decide(state: State, tables: ScheduleTables) -> None:
    """End a round: keep the best, then start the next round with pulls in it, or stop."""
    done = int(state[ROUND])
    if done > 0:
        while state[ALIVE] > tables.keep[done - 1]:
            drop_worst(state)
    while done < len(tables.each) and tables.each[done] == 0:
        while state[ALIVE] > tables.keep[done]:
            drop_worst(state)
        done += 1
    state[ROUND] = done
    state[EACH] = 0
    if done < len(tables.each):
        state[EACH] = int(tables.each[done])
        if tables.fresh:
            state[COUNT] = 0
            for slot in range(int(state[ALIVE])):
                state[SUMS + slot] = 0.0


RULE = round_rule(decide)


class SchedulePolicy(RoundPolicy):
    """A policy of this rule: its schedule, round by round."""

    rule = RULE

    @property
    def fresh(self) -> bool:
        """Whether a round ranks its own rewards only."""
        return False

    @property
    @abstractmethod
    def schedule(self) -> list[tuple[int, int]]:
        """For each round: pulls of every survivor, and how many survive it."""

    @cached_property
    def tables(self) -> ScheduleTables:
        steps = np.asarray(self.schedule, dtype=np.int64).reshape(-1, 2)
        return ScheduleTables(each=steps[:, 0].copy(), keep=steps[:, 1].copy(), fresh=self.fresh)

    @property
    def max_pulls(self) -> int:
        """The pulls that the schedule makes, always."""
        made = 0
        survivors = self.arms
        for each, keep in self.schedule:
            made += each * survivors
            survivors = keep
        return made

    def why_dropped(self, before: State, after: State, slot: int) -> str:
        ended, kept = int(before[ROUND]) + 1, int(after[ALIVE])
        return f"dropped at the end of round {ended}: it is not among the {kept} best of {int(before[ALIVE])}"

    def why_stopped(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if not self.max_pulls:
            return f"it chooses without a {wording.noun}"
        return f"all {wording.noun}s planned in advance have been made"
