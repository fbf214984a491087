"""The sums of 2, 4, 8, ... rewards with finitely many outcomes, tabulated so that one draw gives each.

The sum of 2m rewards is that of two independent sums of m, so its law follows from theirs; equal sums are merged, and
Walker's method draws from it in the time of a single reward. Exact but for rounding: sums that floating point can
hardly tell apart are taken for equal, and tails below 2^-60, which no uniform number of 53 bits can hit, are cut. A sum
added up in another order may differ in its last digits, and so break a tie otherwise.
"""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dbcare.engines.draws import FiniteArms, Floats, tables_of

MOST_VALUES = 1024  # of a sum; so a table stays within the fast part of the memory
MOST_PAIRS = 1 << 16  # of values to add when a law is doubled; so tables take milliseconds to make
CUT = 2.0**-61  # the mass of each tail that no draw can hit
ALIKE = 64.0 * float(np.finfo(np.float64).eps)  # sums that differ by less than this part of the largest are equal

Law = tuple[Floats, Floats]  # values and their probabilities


def doubled(law: Law) -> Law | None:
    """The law of the sum of two independent numbers of `law`, ascending; None where it takes too many values."""
    value, probability = law
    gaps = np.diff(value)
    if len(value) > 1 and np.ptp(gaps) <= ALIKE * float(np.abs(value).max()):
        # Evenly spaced values, as all sums have sooner or later where the rewards lie on a lattice.
        total = np.linspace(2.0 * value[0], 2.0 * value[-1], 2 * len(value) - 1)
        return trimmed((total, np.convolve(probability, probability)))
    if len(value) * (len(value) + 1) // 2 > MOST_PAIRS:
        return None
    one, two = np.triu_indices(len(value))
    total = value[one] + value[two]
    mass = probability[one] * probability[two] * np.where(one == two, 1.0, 2.0)
    order = np.argsort(total, kind="stable")
    total, mass = total[order], mass[order]
    starts = np.flatnonzero(np.diff(total, prepend=-np.inf) > ALIKE * float(np.abs(total).max()))
    return trimmed((total[starts], np.add.reduceat(mass, starts)))


def trimmed(law: Law) -> Law | None:
    """`law` without its tails; None where it takes too many values even so."""
    value, probability = law
    kept = (np.cumsum(probability) > CUT) & (np.cumsum(probability[::-1])[::-1] > CUT) & (probability > 0.0)
    if np.count_nonzero(kept) > MOST_VALUES:
        return None
    return value[kept], probability[kept] / probability[kept].sum()


def with_sums(arms: FiniteArms, longest: float) -> tuple[FiniteArms, int]:
    """`arms` followed by their sums of 2 rewards, of 4, and so on to 2^levels, and `levels`.

    They go on while all sums of that many take few values, and to `longest` rewards at most. With K arms, the sum of
    2^level rewards of `arm` is arm number level * K + arm.
    """
    return _with_sums(
        tuple(arms.first.tolist()), arms.value.tobytes(), arms.probability.tobytes(), int(math.log2(longest))
    )


@lru_cache(maxsize=16)  # a sweep asks for the same arms again and again
def _with_sums(first: tuple[int, ...], value: bytes, probability: bytes, most_levels: int) -> tuple[FiniteArms, int]:
    values, probabilities = np.frombuffer(value), np.frombuffer(probability)
    level: list[Law] = [(values[start:stop], probabilities[start:stop]) for start, stop in pairwise(first)]
    every = list(level)
    levels = 0
    while levels < most_levels and (sums := _all_doubled(level)) is not None:
        every += sums
        level = sums
        levels += 1
    return tables_of(every), levels


def _all_doubled(laws: list[Law]) -> list[Law] | None:
    known: dict[tuple[bytes, bytes], Law | None] = {}  # equal arms are done once
    found: list[Law] = []
    for value, probability in laws:
        key = value.tobytes(), probability.tobytes()
        law = known[key] if key in known else known.setdefault(key, doubled((value, probability)))
        if law is None:
            return None
        found.append(law)
    return found
