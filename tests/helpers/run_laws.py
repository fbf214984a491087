"""Outcomes of many runs, and tests of whether two samples of runs have the same law."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import fisher_exact

ALPHA = 4e-9  # probability, over the choice of seeds, that one comparison fails for runs of the same law


@dataclass(frozen=True)
class Runs:
    """The outcome of each of many runs."""

    recommended: npt.NDArray[np.int32]
    pulls: npt.NDArray[np.int64]
    undecided: npt.NDArray[np.bool_]
    leader: npt.NDArray[np.int32]

    @classmethod
    def empty(cls, runs: int) -> "Runs":
        """Allocate the outcomes of `runs` runs."""
        return cls(
            np.empty(runs, np.int32), np.empty(runs, np.int64), np.empty(runs, np.bool_), np.empty(runs, np.int32)
        )


def list_discrepancies(one: Runs, two: Runs, max_pulls: int) -> list[str]:
    """List the failed comparisons between two samples of equal size; no run has more than `max_pulls` pulls.

    - Shares: Fisher's exact test.
    - Distribution functions: Dvoretzky-Kiefer-Wolfowitz, 2 exp(-N t^2) for N >= 458 runs each (Wei and Dudley 2012).
    - Means of pulls: Bernstein's inequality in its empirical form, sqrt(2 V ln(3/a) / N) + 3 M ln(3/a) / N on both
      sides, each exceeded with probability a (Audibert, Munos and Szepesvari 2009), where M is the largest number of
      pulls and V the sample variance.
    """
    count = len(one.pulls)

    def same_share(a: npt.NDArray[np.bool_], b: npt.NDArray[np.bool_]) -> bool:
        table = np.array([[a.sum(), (~a).sum()], [b.sum(), (~b).sum()]])
        return bool(fisher_exact(table).pvalue > ALPHA)

    def margin(pulls: npt.NDArray[np.int64]) -> float:
        level = math.log(3.0 / (ALPHA / 2.0))
        return math.sqrt(2.0 * float(np.var(pulls)) * level / count) + 3.0 * max_pulls * level / count

    top = int(max(one.pulls.max(), two.pulls.max())) + 1
    functions = [np.cumsum(np.bincount(runs.pulls, minlength=top)) / count for runs in (one, two)]
    checks = {
        "error": same_share(one.recommended != 0, two.recommended != 0),
        "undecided": same_share(one.undecided, two.undecided),
        "mean": abs(float(np.mean(one.pulls) - np.mean(two.pulls))) < margin(one.pulls) + margin(two.pulls),
        "distribution": float(np.max(np.abs(functions[0] - functions[1]))) < math.sqrt(math.log(2.0 / ALPHA) / count),
    }
    return [name for name, passed in checks.items() if not passed]
