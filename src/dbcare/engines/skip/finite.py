"""Skip ahead where rewards take few values: jumps within which nothing can happen.

The sum of 2m rewards is that of two independent sums of m, so its law follows from theirs; equal sums are merged, and
Walker's method draws from the law in the time of a single reward. This is exact up to rounding: sums that floating
point can hardly tell apart are treated as equal, and tails below 2^-60, which no 53-bit uniform number can hit, are
cut. A sum added up in another order may differ in its last digits and so break a tie differently.

Let `range` be the largest reward of a survivor minus the smallest. In an epoch, the difference of two survivors' sums
changes by at most `range`, so if

    (high - low) + m * range <= min over j > n of b(j),

then no arm is dropped in the m epochs after epoch n, whatever the rewards: the survivors' sums m epochs later are drawn
at once. Jumps last 1, 2, 4, ... epochs, for which `sum_tables` tabulates the laws of the sums; near the boundary they
are single epochs, drawn as in the direct engine. The boundary may have any shape. The law is that of drawing every
pull: no drop can be hidden, and a margin covers rounding.

A run under a smaller cap is the same run until another epoch would exceed that cap. So the loop also records what the
rule recommends there and continues to the largest cap; no jump passes a cap. Without tables of sums, it equals the
direct engine to the bit.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dbcare.engines.simulate.draws import Drawing, FiniteArms, Floats, make_finite_arms
from dbcare.engines.simulate.outcomes import tally_drops, tally_end
from dbcare.engines.simulate.rng import begun
from dbcare.policies.elimination.elimination import EliminationTables
from dbcare.policies.epochs import ALIVE, EACH, EPOCH, HIGH, LIMIT, LOW, PULLS, SUMS, EpochRule, arms_offset, end_epochs

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


class Reach(NamedTuple):
    """How far a jump may go.

    floor[row[k] + n] is the smallest b(j) with j >= n while k arms survive; `low` and `high` bound each arm's rewards;
    `margin` allows for rounding, per epoch; jumps last up to 2^`levels` epochs.
    """

    floor: Floats
    low: Floats
    high: Floats
    margin: float
    levels: int

    def longest_jump(self, tables: EliminationTables) -> float:
        """Return the most epochs that a jump could last if all arms survived."""
        last = tables.last_epoch[2:]
        widest = float(self.high.max() - self.low.min()) + self.margin
        return float(min(np.max(self.floor[tables.row[2:] + last]) / widest, np.max(last)))


def make_reach(tables: EliminationTables, arms: FiniteArms) -> Reach:
    """Compute the bounds on jumps among `arms`, without tables of sums."""
    floor = np.full(len(tables.boundary), np.inf)
    rows, last_epoch = tables.row[2:], tables.last_epoch[2:]
    for row in np.unique(rows).tolist():
        line = slice(row, row + int(last_epoch[rows == row].max()) + 1)
        floor[line] = np.minimum(floor[line], np.minimum.accumulate(tables.boundary[line][::-1])[::-1])
    # A sum of n rewards is at most n * largest, and each addition is off by at most half a unit in the last place.
    largest, longest = float(np.abs(arms.value).max()), int(last_epoch.max())
    margin = max(8.0 * float(np.finfo(np.float64).eps) * largest * longest, float(np.finfo(np.float64).tiny))
    low, high = np.minimum.reduceat(arms.value, arms.first[:-1]), np.maximum.reduceat(arms.value, arms.first[:-1])
    return Reach(floor, low, high, margin, 0)


def no_reach(tables: EliminationTables, count: int) -> Reach:
    """Return bounds that allow no jumps, so that every pull is drawn."""
    return Reach(tables.boundary, np.zeros(count), np.zeros(count), 1.0, 0)


def capped_loop(rule: EpochRule, drawing: Drawing) -> Callable[..., None]:
    """Return the loop for elimination; results are by run and by cap: the ascending `caps`, then the policy's own.

    The sum of 2^level rewards of an arm is drawn as arm number level * K + arm.
    """
    init, decide, idle, recommend = rule.init, rule.decide, rule.idle, rule.recommend
    settle, draw = drawing

    def simulate_capped(first, seed, arms, tables, reach, caps, state, work, recommended, pulls, undecided, tallies):
        arm_at = arms_offset(state)
        count = arm_at - SUMS
        tallied = len(tallies.pulls) > 0
        for place in range(len(pulls)):
            tie, s0, s1, s2, s3 = begun(seed, first + place)
            init(state, tables, tie)
            passed = 0
            while state[EACH] > 0:
                alive = int(state[ALIVE])
                epoch = int(state[EPOCH])
                made = int(state[PULLS])
                while passed < len(caps) and made + alive > caps[passed]:
                    recommended[place, passed] = recommend(state, tables)
                    pulls[place, passed] = made
                    undecided[place, passed] = True
                    passed += 1
                limit = int(state[LIMIT])
                if passed < len(caps):
                    limit = min(limit, epoch + (caps[passed] - made) // alive)
                highest = -np.inf
                lowest = np.inf
                for slot in range(alive):
                    arm = int(state[arm_at + slot])
                    highest = max(highest, reach.high[arm])
                    lowest = min(lowest, reach.low[arm])
                    settle(arms, work, slot, arm)
                rate = 1.0 / (highest - lowest + reach.margin)
                floor = reach.floor[tables.row[alive] :]
                # After a drop LOW is too low, which only shortens the jump.
                high = state[HIGH]
                low = state[LOW]
                completed = epoch
                level = 0
                settled = 0
                while True:
                    if reach.levels > 0:
                        safe = min(rate * (floor[completed + 1] - (high - low)), limit - completed)
                        if safe < 2.0:
                            level = 0
                        else:
                            while level < reach.levels and 2 << level <= safe:
                                level += 1
                            while 1 << level > safe:
                                level -= 1
                        if level != settled:
                            settled = level
                            for slot in range(alive):
                                settle(arms, work, slot, level * count + int(state[arm_at + slot]))
                    high = -np.inf
                    low = np.inf
                    for slot in range(alive):
                        gained, s0, s1, s2, s3 = draw(arms, work, slot, s0, s1, s2, s3)
                        total = state[SUMS + slot] + gained
                        state[SUMS + slot] = total
                        high = max(high, total)
                        low = min(low, total)
                    completed += 1 << level
                    if not idle(tables, alive, completed, limit, high, low):
                        break
                state[HIGH] = high
                state[LOW] = low
                end_epochs(state, completed - epoch)
                decide(state, tables)
                if tallied:
                    tally_drops(tallies, place, state, alive)
            if tallied:
                tally_end(tallies, place, state)
            chosen = recommend(state, tables)
            for cap in range(passed, len(caps) + 1):
                recommended[place, cap] = chosen
                pulls[place, cap] = int(state[PULLS])
                undecided[place, cap] = state[ALIVE] > 1

    return simulate_capped
