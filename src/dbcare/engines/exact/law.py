"""The result of the exact engine: the law of a two-arm run, for every gap of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.engines.exact.accumulator import CAPPED, EPOCHS, MASS, SQUARES, WRONG, Accumulator, Floats
from dbcare.errors import EngineError, InvalidValueError
from dbcare.policies.elimination.elimination import EliminationTables
from dbcare.problem.risk import Loss, Risk

# A gap whose total mass is farther than this from 1 gets another pass, with a reference nearer to it.
MAX_MASS_DEFECT = 1e-11


@dataclass(frozen=True)
class TwoArmLaw:
    """Error and pulls of a two-arm policy, without Monte Carlo error, as arrays over `gaps`.

    error        P(the worse arm is recommended); 0 where the gap is 0, since a tie with the best is not an error
    regret       E[best mean - recommended mean]
    mean_pulls   E[total pulls of both arms]; `deviation_pulls` is their standard deviation
    capped       P(stopped at the last epoch with both arms left)
    quantiles    [gap, level]: the least number of pulls not exceeded with probability at least levels[level]
    mass_defect  distance from 1 of the total probability of all outcomes, at the worst gap

    Parameters
    ----------
    gaps, error, regret, mean_pulls, deviation_pulls, capped, levels, quantiles : array
        As above.
    mass_defect : float
        As above.

    Examples
    --------
    >>> from dbcare import Uniform, evaluate_grid
    >>> evaluate_grid(Uniform(arms=2, pulls=10), [0.5, 1.0]).mean_pulls
    array([20., 20.])
    """

    gaps: Floats
    error: Floats
    regret: Floats
    mean_pulls: Floats
    deviation_pulls: Floats
    capped: Floats
    levels: Floats
    quantiles: Floats
    mass_defect: float

    def risk(self, risk: Risk) -> Floats:
        """Return R_MI or R_SR (Section 1.1 of the paper); both arms are pulled equally often."""
        loss = self.error if risk.loss is Loss.MISIDENTIFICATION else self.regret
        return loss + self.mean_pulls * (sum(risk.costs(2)) / 2.0)


def fixed_law(gaps: Floats, pulls_each: npt.ArrayLike, error: Floats, levels: Floats) -> TwoArmLaw:
    """Return the law of a policy that pulls each arm a fixed number of times."""
    pulls = np.broadcast_to(2.0 * np.asarray(pulls_each, dtype=np.float64), gaps.shape).copy()
    wrong = np.where(gaps > 0.0, error, 0.0)
    return TwoArmLaw(
        gaps=gaps,
        error=wrong,
        regret=gaps * wrong,
        mean_pulls=pulls,
        deviation_pulls=np.zeros_like(pulls),
        capped=np.zeros_like(pulls),
        levels=levels,
        quantiles=np.repeat(pulls[:, None], levels.size, axis=1),
        mass_defect=0.0,
    )


def assemble_law(gaps: Floats, levels: Floats, run: Callable[[Floats], Accumulator]) -> TwoArmLaw:
    """Assemble the law over `gaps` from as few passes as possible.

    `run(ascending gaps)` follows the walk under the first gap and reweights it for the others, or for as many of them
    as it can. Far from the reference, the relevant mass may lie so deep in the tail that it underflows. Such a gap
    shows a mass defect and waits for a later pass, whose reference is the smallest gap still waiting.
    """
    distinct, places = np.unique(gaps, return_inverse=True)
    sums = np.zeros((distinct.size, 5))
    epochs = np.zeros((distinct.size, levels.size))
    waiting = np.arange(distinct.size)
    while waiting.size:
        accumulator = run(distinct[waiting])
        good = np.abs(accumulator.sums[:, MASS] - 1.0) <= MAX_MASS_DEFECT
        good[0] = True
        finished = waiting[: good.size][good]
        sums[finished] = accumulator.sums[good]
        epochs[finished] = accumulator.quantiles[good]
        waiting = np.setdiff1d(waiting, finished)
    # The weights of cuts oscillate slightly, so a vanishing mass may come out as -1e-30.
    error = np.where(distinct > 0.0, np.maximum(sums[:, WRONG], 0.0), 0.0)
    mean = 2.0 * sums[:, EPOCHS]
    return TwoArmLaw(
        gaps=gaps,
        error=error[places],
        regret=(distinct * error)[places],
        mean_pulls=mean[places],
        deviation_pulls=np.sqrt(np.maximum(4.0 * sums[:, SQUARES] - mean**2, 0.0))[places],
        capped=np.maximum(sums[:, CAPPED], 0.0)[places],
        levels=levels,
        quantiles=2.0 * epochs[places],
        mass_defect=float(np.max(np.abs(sums[:, MASS] - 1.0))),
    )


def two_arm_boundary(tables: EliminationTables) -> Floats:
    """Return b(1), b(2), ... up to the last epoch that two arms can reach; empty if no epoch is allowed."""
    if len(tables.last_epoch) != 3:
        raise EngineError(
            f"The exact engine needs tables for two arms but got tables for {len(tables.last_epoch) - 1}."
        )
    last = max(0, min(int(tables.last_epoch[2]), tables.max_pulls // 2))
    start = int(tables.row[2]) + 1
    return np.ascontiguousarray(tables.boundary[start : start + last], dtype=np.float64)


def check_gaps(gaps: npt.ArrayLike, at_most: float = np.inf) -> Floats:
    """Return gaps as a flat array; each must be finite and between 0 and `at_most`."""
    try:
        array = np.array(gaps, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError, OverflowError):  # not numbers, or not floating-point ones
        array = np.empty(0)
    if array.ndim != 1 or not array.size:
        raise InvalidValueError(f"`gaps` must be one number or a flat list of numbers but got {checks.show(gaps)}.")
    for gap in array[~(np.isfinite(array) & (array >= 0.0) & (array <= at_most))]:
        raise InvalidValueError(f"`gaps` must lie between 0 and {at_most:g} and be finite but got {gap}.")
    return array


def check_levels(levels: Iterable[float]) -> Floats:
    """Return quantile levels as an array; they must be in ascending order."""
    array = np.array([checks.open_unit("levels", level) for level in levels], dtype=np.float64)
    if np.any(np.diff(array) < 0.0):
        raise InvalidValueError(f"`levels` must be in ascending order but got {array.tolist()}.")
    return array
