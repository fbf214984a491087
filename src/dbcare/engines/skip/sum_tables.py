"""Tabulate the sums of 2, 4, 8, ... rewards with finitely many outcomes, so that a single draw gives such a sum.

The sum of 2m rewards is that of two independent sums of m, so its law follows from theirs; equal sums are merged, and
Walker's method draws from the law in the time of a single reward. This is exact up to rounding: sums that floating
point can hardly tell apart are treated as equal, and tails below 2^-60, which no 53-bit uniform number can hit, are
cut. A sum added up in another order may differ in its last digits and so break a tie differently.
"""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dbcare.engines.draws import FiniteArms, Floats, make_finite_arms

MAX_VALUES = 1024  # per sum, so that a table fits in the processor's cache
MAX_PAIRS = 1 << 16  # pairs of values added to double a law, so that building tables takes milliseconds
MIN_TAIL_MASS = 2.0**-61  # no draw can hit a tail with less mass
TOLERANCE = 64.0 * float(np.finfo(np.float64).eps)  # relative to the largest sum; closer sums are equal

Law = tuple[Floats, Floats]  # values and their probabilities


def double_law(law: Law) -> Law | None:
    """Return the law of the sum of two independent draws from `law`, ascending; None if it takes too many values."""
    value, probability = law
    gaps = np.diff(value)
    if len(value) > 1 and np.ptp(gaps) <= TOLERANCE * float(np.abs(value).max()):
        # The values are evenly spaced, as eventually happens for all rewards on a lattice.
        total = np.linspace(2.0 * value[0], 2.0 * value[-1], 2 * len(value) - 1)
        return trim_tails((total, np.convolve(probability, probability)))
    if len(value) * (len(value) + 1) // 2 > MAX_PAIRS:
        return None
    one, two = np.triu_indices(len(value))
    total = value[one] + value[two]
    mass = probability[one] * probability[two] * np.where(one == two, 1.0, 2.0)
    order = np.argsort(total, kind="stable")
    total, mass = total[order], mass[order]
    starts = np.flatnonzero(np.diff(total, prepend=-np.inf) > TOLERANCE * float(np.abs(total).max()))
    return trim_tails((total[starts], np.add.reduceat(mass, starts)))


def trim_tails(law: Law) -> Law | None:
    """Return `law` without its tails; None if it still takes too many values."""
    value, probability = law
    below, above = np.cumsum(probability), np.cumsum(probability[::-1])[::-1]
    kept = (below > MIN_TAIL_MASS) & (above > MIN_TAIL_MASS) & (probability > 0.0)
    if np.count_nonzero(kept) > MAX_VALUES:
        return None
    return value[kept], probability[kept] / probability[kept].sum()


def add_sums(arms: FiniteArms, longest: float) -> tuple[FiniteArms, int]:
    """Return `arms` followed by their sums of 2, 4, ..., 2^levels rewards, and `levels`.

    Levels are added as long as all sums take few values, up to `longest` rewards. With K arms, the sum of 2^level
    rewards of `arm` is arm number level * K + arm.
    """
    return _add_sums(
        tuple(arms.first.tolist()), arms.value.tobytes(), arms.probability.tobytes(), int(math.log2(longest))
    )


@lru_cache(maxsize=16)  # a sweep asks for the same arms many times
def _add_sums(first: tuple[int, ...], value: bytes, probability: bytes, max_levels: int) -> tuple[FiniteArms, int]:
    values, probabilities = np.frombuffer(value), np.frombuffer(probability)
    laws: list[Law] = [(values[start:stop], probabilities[start:stop]) for start, stop in pairwise(first)]
    all_laws = list(laws)
    levels = 0
    while levels < max_levels and (sums := _double_laws(laws)) is not None:
        all_laws += sums
        laws = sums
        levels += 1
    return make_finite_arms(all_laws), levels


def _double_laws(laws: list[Law]) -> list[Law] | None:
    sum_by_law: dict[tuple[bytes, bytes], Law | None] = {}  # equal arms are doubled once
    sums: list[Law] = []
    for value, probability in laws:
        key = value.tobytes(), probability.tobytes()
        if key not in sum_by_law:
            sum_by_law[key] = double_law((value, probability))
        if (law := sum_by_law[key]) is None:
            return None
        sums.append(law)
    return sums
