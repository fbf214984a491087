"""What simulated runs leave behind: choices, pulls, and sums by arm."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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


@dataclass(frozen=True)
class Outcomes:
    """The outcome of each run; arrays are indexed by run, and also by cap if several caps on pulls are followed."""

    recommended: npt.NDArray[np.int32]
    pulls: npt.NDArray[np.int64]
    undecided: npt.NDArray[np.bool_]  # whether the run stopped with more than one arm left
    leader: npt.NDArray[np.int32]  # the control variate's arm; empty without one
    spent: npt.NDArray[np.float64]  # the total cost of the pulls; empty if all arms cost the same
    tallies: Tallies  # pulls and sums by arm; empty if runs are not tallied

    @classmethod
    def empty(
        cls, runs: int, *, control: bool = False, charged: bool = False, caps: int | None = None, tallied_arms: int = 0
    ) -> "Outcomes":
        """Allocate outcomes for `runs` runs, at each of `caps` caps if given."""
        shape = runs if caps is None else (runs, caps)
        return cls(
            np.empty(shape, np.int32),
            np.empty(shape, np.int64),
            np.empty(shape, np.bool_),
            np.empty(runs if control else 0, np.int32),
            np.empty(runs if charged else 0),
            Tallies.empty(runs, tallied_arms),
        )

    def part(self, start: int, stop: int) -> "Outcomes":
        """Return the runs from `start` to `stop`; the arrays share memory."""
        return Outcomes(
            self.recommended[start:stop],
            self.pulls[start:stop],
            self.undecided[start:stop],
            self.leader[start:stop],
            self.spent[start:stop],
            self.tallies.part(start, stop),
        )

    @property
    def paid(self) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
        """What each run paid: its number of pulls, or their total cost if the arms' costs differ."""
        return self.spent if len(self.spent) else self.pulls

    @property
    def caps(self) -> int | None:
        """The number of caps followed, or None if the arrays have no cap axis."""
        return self.pulls.shape[1] if self.pulls.ndim == 2 else None

    def at_cap(self, place: int) -> "Outcomes":
        """Return the runs as they ended at the cap with index `place`."""
        return Outcomes(
            self.recommended[:, place].copy(),
            self.pulls[:, place].copy(),
            self.undecided[:, place].copy(),
            self.leader,
            self.spent,
            self.tallies,
        )

    def without_tallies(self) -> "Outcomes":
        """Return the same outcomes without their tallies."""
        return replace(self, tallies=Tallies.empty(0, 0))

    def take(self, done: "Outcomes") -> None:
        """Copy the finished runs `done` to the front."""
        for target, source in zip(self._arrays(), done._arrays(), strict=True):
            target[: len(source)] = source

    def _arrays(self) -> list[Any]:
        return [self.recommended, self.pulls, self.undecided, self.leader, self.spent, *self.tallies]
