"""Pulls and sums of rewards of each arm at the end of each run: what averaging over labels and gaps needs of a run."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.policies.epochs import ALIVE, EPOCH, SUMS, arms_offset


class Tallies(NamedTuple):
    """Pulls and sum of rewards, by run and arm; both are empty where runs are not tallied."""

    pulls: npt.NDArray[np.float64]
    sums: npt.NDArray[np.float64]

    @classmethod
    def empty(cls, runs: int, arms: int) -> "Tallies":
        """Allocate tallies for `runs` runs; with 0 arms, runs are not tallied."""
        shape = (runs, arms) if arms else (0, 0)
        return cls(np.zeros(shape), np.zeros(shape))

    @property
    def arms(self) -> int:
        """The number of arms, or 0 if runs are not tallied."""
        return int(self.pulls.shape[1])

    def part(self, start: int, stop: int) -> "Tallies":
        """Return the runs from `start` to `stop`; the arrays share memory."""
        return Tallies(self.pulls[start:stop], self.sums[start:stop])


def tally_drops(tallies, place, state, survivors):
    """Record the pulls of the arms just dropped from `survivors`."""
    arm_at = arms_offset(state)
    for slot in range(int(state[ALIVE]), survivors):
        tallies.pulls[place, int(state[arm_at + slot])] = state[EPOCH]


def tally_end(tallies, place, state):
    """Record the pulls of the survivors and the sums of all arms; each epoch pulls a survivor once."""
    arm_at = arms_offset(state)
    alive = int(state[ALIVE])
    for slot in range(arm_at - SUMS):
        arm = int(state[arm_at + slot])
        tallies.sums[place, arm] = state[SUMS + slot]
        if slot < alive:
            tallies.pulls[place, arm] = state[EPOCH]
