"""The rule of all policies that plan their pulls in advance: halving, rejects, uniform, oracle, guess.

Round r pulls every survivor each[r] times and then keeps the best keep[r], breaking ties uniformly. The ranking uses
all of an arm's rewards so far, or only those of the round.
"""

from abc import abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.policies.epochs import ALIVE, COUNT, EACH, EPOCH, SUMS, drop_worst, epoch_rule
from dbcare.policies.policy import EpochPolicy, Pace
from dbcare.policies.rule import State
from dbcare.policies.wording import DEFAULT_WORDING, Wording


class ScheduleTables(NamedTuple):
    """Pulls per survivor, and survivors kept, by round; `fresh`: rank by the rewards of the round only."""

    each: npt.NDArray[np.int64]
    keep: npt.NDArray[np.int64]
    fresh: bool


def decide(state: State, tables: ScheduleTables) -> None:
    """End a round: keep the best, then start the next round that has pulls, or stop."""
    done = int(state[EPOCH])
    if done > 0:
        while state[ALIVE] > tables.keep[done - 1]:
            drop_worst(state)
    while done < len(tables.each) and tables.each[done] == 0:
        while state[ALIVE] > tables.keep[done]:
            drop_worst(state)
        done += 1
    state[EPOCH] = done
    state[EACH] = 0
    if done < len(tables.each):
        state[EACH] = int(tables.each[done])
        if tables.fresh:
            state[COUNT] = 0
            for slot in range(int(state[ALIVE])):
                state[SUMS + slot] = 0.0


RULE = epoch_rule(decide)


class SchedulePolicy(EpochPolicy):
    """A policy that follows a schedule, round by round."""

    rule = RULE
    pace = Pace.PLANNED

    @property
    def treats_arms_alike(self) -> bool:
        return True

    @property
    def pools(self) -> bool:
        """Whether to pool: simulating these runs costs next to nothing."""
        return False

    @property
    def pulls_each(self) -> int | None:
        return self.max_pulls // self.arms if len(self.schedule) <= 1 else None

    @property
    def fresh(self) -> bool:
        """Whether a round ranks arms by its own rewards only."""
        return False

    @property
    @abstractmethod
    def schedule(self) -> list[tuple[int, int]]:
        """For each round, the pulls per survivor and the number of arms that it keeps."""

    @cached_property
    def tables(self) -> ScheduleTables:
        steps = np.asarray(self.schedule, dtype=np.int64).reshape(-1, 2)
        return ScheduleTables(each=steps[:, 0].copy(), keep=steps[:, 1].copy(), fresh=self.fresh)

    @property
    def max_pulls(self) -> int:
        """The number of pulls in the schedule, which every run makes."""
        total = 0
        survivors = self.arms
        for pulls, keep in self.schedule:
            total += pulls * survivors
            survivors = keep
        return total

    def why_dropped(self, before: State, after: State, slot: int) -> str:
        ended, kept = int(before[EPOCH]) + 1, int(after[ALIVE])
        return f"dropped at the end of round {ended}: it is not among the best {kept} of {int(before[ALIVE])}"

    def why_stopped(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if not self.max_pulls:
            return f"it chooses without a {wording.noun}"
        return f"all {wording.noun}s planned in advance have been made"
