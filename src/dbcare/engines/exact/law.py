"""The law of a run on two arms: errors and pulls, in closed form or collected epoch by epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

from dbcare.base import checks
from dbcare.errors import EngineError, InvalidValueError
from dbcare.policies.elimination.elimination import EliminationTables
from dbcare.problem.risk import Loss, Risk

Floats = npt.NDArray[np.float64]

# Columns of `sums`.
WRONG, MASS, EPOCHS, SQUARES, CAPPED = range(5)

NEGLIGIBLE = 1e-15  # a gap with less mass still running is not followed further

Function = TypeVar("Function", bound=Callable[..., Any])


def inner(fastmath: bool | set[str] = False) -> Callable[[Function], Function]:
    """Compile a function that only compiled code calls; leave out the wrappers that Python would need."""
    options: Any = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Callable[[Function], Function], njit(error_model="numpy", fastmath=fastmath, **options))


class Accumulator(NamedTuple):
    """Sums and quantiles; rows are gaps in ascending order.

    `found` holds the mass that the kernel weighed last: right choices and wrong choices.
    """

    sums: Floats
    levels: Floats
    quantiles: Floats
    reached: npt.NDArray[np.int64]
    found: Floats


def make_accumulator(gaps: int, levels: Floats) -> Accumulator:
    """Allocate an empty accumulator."""
    return Accumulator(
        sums=np.zeros((gaps, 5)),
        levels=levels,
        quantiles=np.zeros((gaps, levels.size)),
        reached=np.zeros(gaps, dtype=np.int64),
        found=np.zeros((gaps, 2)),
    )


@inner()
def book(tally: Accumulator, active: int, epoch: int) -> None:
    """Add the mass found to stop at `epoch`; record the epoch for each quantile level that is reached."""
    for gap in range(active):
        mass = tally.found[gap, 0] + tally.found[gap, 1]
        tally.sums[gap, WRONG] += tally.found[gap, 1]
        tally.sums[gap, MASS] += mass
        tally.sums[gap, EPOCHS] += epoch * mass
        tally.sums[gap, SQUARES] += float(epoch) * epoch * mass
        while tally.reached[gap] < len(tally.levels) and tally.sums[gap, MASS] >= tally.levels[tally.reached[gap]]:
            tally.quantiles[gap, tally.reached[gap]] = epoch
            tally.reached[gap] += 1


@inner()
def followed(tally: Accumulator, active: int, epoch: int, least: float) -> int:
    """Return how many gaps, from the smallest, to follow further: those with at least `least` mass still running.

    `found` must hold the running mass.
    """
    while active > 0 and not tally.found[active - 1, 0] + tally.found[active - 1, 1] >= least:
        active -= 1
        for level in range(tally.reached[active], len(tally.levels)):
            tally.quantiles[active, level] = epoch
    return active


@inner()
def decide(tally: Accumulator, active: int) -> None:
    """Record the mass found to stop at the last epoch with one arm left; call `finish` next."""
    for gap in range(active):
        tally.sums[gap, CAPPED] = -(tally.found[gap, 0] + tally.found[gap, 1])


@inner()
def finish(tally: Accumulator, active: int, epoch: int) -> None:
    """Add all mass still running at the last epoch."""
    book(tally, active, epoch)
    for gap in range(active):
        tally.sums[gap, CAPPED] += tally.found[gap, 0] + tally.found[gap, 1]
    followed(tally, active, epoch, np.inf)


def gaussian_error(pulls: npt.ArrayLike, gaps: npt.ArrayLike, sigma: float) -> Floats:
    """P(the worse of two Gaussian arms has the larger mean after `pulls` of each) = Q(gap sqrt(pulls / (2 sigma^2))).

    Q is the upper tail of the standard normal law, so 0 pulls give 1/2. `pulls` is one number or one per gap.
    """
    separations = np.atleast_1d(np.asarray(gaps, dtype=np.float64) * np.sqrt(np.asarray(pulls, dtype=np.float64)))
    return np.array([0.5 * math.erfc(separation / (2.0 * sigma)) for separation in separations])


def bernoulli_error(pulls: int, best: float, other: float) -> float:
    """P(the worse of two Bernoulli arms has more successes in `pulls` of each), counting half of the ties.

    The sum over k of P(best = k) (P(other > k) + P(other = k)/2), both binomial.
    """
    first = min(window(pulls, best)[0], window(pulls, other)[0])
    last = max(window(pulls, best)[1], window(pulls, other)[1])
    if window(pulls, other)[1] < window(pulls, best)[0]:
        return 0.0
    best_law, other_law = binomial(pulls, best, first, last), binomial(pulls, other, first, last)
    above = np.cumsum(other_law[::-1])[::-1] - other_law
    return float(best_law @ (above + 0.5 * other_law))


def window(trials: int, chance: float) -> tuple[int, int]:
    """Return the range of successes that matter: within 40 standard deviations plus 1,000 of the mean."""
    mean, reach = trials * chance, 40.0 * math.sqrt(trials * chance * (1.0 - chance)) + 1_000.0
    return max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))


def binomial(trials: int, chance: float, first: int, last: int) -> Floats:
    """Return the binomial law from `first` to `last`, a range that contains its mode.

    It multiplies ratios of neighbors from the mode outward, so every term is accurate.
    """
    law = np.zeros(last - first + 1)
    mode = min(int((trials + 1) * chance), trials) - first
    law[mode] = 1.0
    if 0.0 < chance < 1.0:
        k = np.arange(first + 1, last + 1)
        ratios = (trials - k + 1) / k * (chance / (1.0 - chance))
        law[mode + 1 :] = np.cumprod(ratios[mode:])
        law[:mode] = np.cumprod(1.0 / ratios[:mode][::-1])[::-1]
    return np.asarray(law / law.sum())


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
    >>> from dbcare import evaluate_grid
    >>> from dbcare.policies import Uniform
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
