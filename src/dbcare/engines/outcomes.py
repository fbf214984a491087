"""What each simulated run came to."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Outcomes:
    """What each run came to; by run and by cap where several caps on the pulls were followed."""

    recommended: npt.NDArray[np.int32]
    pulls: npt.NDArray[np.int64]
    undecided: npt.NDArray[np.bool_]  # stopped with more than one arm left
    leader: npt.NDArray[np.int32]  # the control variate's arm, where there is one
    spent: npt.NDArray[np.float64]  # the cost of all pulls, where arms differ in it

    @classmethod
    def empty(cls, runs: int, *, control: bool = False, charged: bool = False, caps: int | None = None) -> "Outcomes":
        """Places for the results of `runs` runs, at each of so many `caps` if that is given."""
        shape = runs if caps is None else (runs, caps)
        return cls(
            np.empty(shape, np.int32),
            np.empty(shape, np.int64),
            np.empty(shape, np.bool_),
            np.empty(runs if control else 0, np.int32),
            np.empty(runs if charged else 0),
        )

    def part(self, start: int, stop: int) -> "Outcomes":
        """The runs from `start` to `stop`, sharing memory."""
        return Outcomes(
            self.recommended[start:stop],
            self.pulls[start:stop],
            self.undecided[start:stop],
            self.leader[start:stop],
            self.spent[start:stop],
        )

    @property
    def paid(self) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
        """What each run cost: pulls, or money where arms differ."""
        return self.spent if len(self.spent) else self.pulls

    @property
    def caps(self) -> int | None:
        """How many caps were followed, if several could have been."""
        return self.pulls.shape[1] if self.pulls.ndim == 2 else None

    def at_cap(self, place: int) -> "Outcomes":
        """The runs as they ended at one of the caps."""
        return Outcomes(
            self.recommended[:, place].copy(),
            self.pulls[:, place].copy(),
            self.undecided[:, place].copy(),
            self.leader,
            self.spent,
        )

    def take(self, done: "Outcomes") -> None:
        """Copy finished runs to the front."""
        for mine, theirs in zip(vars(self).values(), vars(done).values(), strict=True):
            mine[: len(theirs)] = theirs
