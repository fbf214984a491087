"""The skip-ahead engine for K > 2 Gaussian arms: many epochs at once, within a certified distance of the true law.

Jump: draw the survivors' sums m epochs ahead. An arm is dropped strictly inside only if for some ordered pair (j, k)
of survivors S_j - S_k crosses the concave boundary b. Let G_a and G_b be the distances left between the largest
difference of two sums and b at the two ends; each of the k(k-1) pairs crosses with probability at most
exp(-G_a G_b / (sigma^2 m)) (`crossing_pairs`). Draw U: if it is not below k(k-1) times that, nothing was crossed.
Otherwise the same U is compared with a sharper bound, which is smaller, so the jump is judged as if by the latter
alone. For this, pairs that cross with probability below EPSILON/K^2 are ruled out; there are fewer than K^2 of them, so
the claim that none of them crosses is wrong with probability below EPSILON, whatever is learned later about the sums in
between. Whether and where another pair crosses is found without error (`first_drop`). There the rule decides, and the
next jump starts: by the strong Markov property, draws for later epochs may be forgotten. So the law of a run is that of
the walk up to a total variation distance of EPSILON times the mean number of intervals examined (under a thousand for
K = 32).

Where drops are frequent, most of a jump is thrown away. There, every pull is drawn instead, as in the direct engine,
until an arm is dropped or a jump promises more. The choice between the two depends only on the run's past, and on
counts rather than times, so it affects neither the law nor the bits across machines.
"""

import math
from collections.abc import Callable

import numpy as np
from numba import njit

from dbcare.engines.kernels.compile import OPTIONS
from dbcare.engines.simulate.direct import drawing_loop, note_epoch, note_leader
from dbcare.engines.simulate.draws import Drawing, draw_gaussian, settle_gaussian
from dbcare.engines.simulate.outcomes import tally_drops, tally_end
from dbcare.engines.simulate.rng import begun, normal, uniform
from dbcare.engines.skip.first_drop import UNKNOWN, ends_at, first_drop, work_size
from dbcare.engines.skip.two_arms import reachable
from dbcare.policies.epochs import ALIVE, EACH, EPOCH, HIGH, LIMIT, LOW, PULLS, SUMS, EpochRule, arms_offset, end_epochs

__all__ = ["EPSILON", "skip_loop", "work_size"]

EPSILON = 1e-9  # the probability that an examined interval hides a drop

# A jump lasts G_a^2 / (REACH sigma^2) epochs, and at least the fraction LEAST of the epochs so far.
REACH = 8.0
LEAST = 0.1

# A jump expected to cover this many epochs is better than drawing them.
WORTHWHILE = 10.0
# Otherwise pulls are drawn: in the first OPENING epochs, and after two drops within DENSE pulls, for up to DENSE more.
OPENING = 8.0
DENSE = 1000.0

# Work, in units of one drawn pull: per jump, and per sum in it.
JUMP = 30.0
JUMPED = 1.5


@njit(**OPTIONS)
def jump(count, boundary, variance, far, gap, length, state, work, s0, s1, s2, s3):
    """Move the sums `length` epochs ahead, or to the first epoch at which a drop is due.

    `gap` is the distance left to a drop now.
    """
    alive = int(state[ALIVE])
    epoch = int(state[EPOCH])
    end = epoch + length
    root = math.sqrt(length)
    right = work[ends_at(count) :]
    high = -np.inf
    low = np.inf
    work[-1] += JUMP + JUMPED * alive
    for slot in range(alive):
        z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
        total = state[SUMS + slot] + length * work[2 * slot] + root * work[2 * slot + 1] * z
        right[slot] = total
        high = max(high, total)
        low = min(low, total)
    ahead = boundary[end] - (high - low)
    # No pair is closer to its chord than the pair of the first and the last arm.
    bound = alive * (alive - 1) * math.exp(-gap * ahead / (variance * length)) if ahead > 0.0 else 1.0
    u = UNKNOWN
    if bound < 1.0:
        u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
    if length == 1 or u >= bound:
        for slot in range(alive):
            state[SUMS + slot] = right[slot]
    else:
        end, s0, s1, s2, s3 = first_drop(count, boundary, variance, far, end, u, state, work, s0, s1, s2, s3)
        high = -np.inf
        low = np.inf
        for slot in range(alive):
            high = max(high, state[SUMS + slot])
            low = min(low, state[SUMS + slot])
    state[HIGH] = high
    state[LOW] = low
    return end, s0, s1, s2, s3


def skip_loop(rule: EpochRule) -> Callable[..., None]:
    """Return the loop for elimination among Gaussian arms, which may differ in sigma.

    It records the arm that leads at `checkpoint` if that is above 0.
    """
    init, decide, recommend = rule.init, rule.decide, rule.recommend
    settle = settle_gaussian
    draw_epochs = drawing_loop(rule, Drawing(settle_gaussian, draw_gaussian))

    def simulate_skip_many(
        first, seed, arms, tables, state, work, checkpoint, recommended, pulls, undecided, leaders, tallies
    ):
        count = len(arms.mean)
        tallied = len(tallies.pulls) > 0
        arm_at = arms_offset(state)
        variance = 0.0
        for arm in range(count):
            variance = max(variance, arms.sigma[arm] ** 2)
        far = math.log(count * count / EPSILON)
        for place in range(len(pulls)):
            tie, s0, s1, s2, s3 = begun(seed, first + place)
            init(state, tables, tie)
            for slot in range(count):
                settle(arms, work, slot, int(state[arm_at + slot]))
            dropped_at = 0.0  # pulls when an arm was last dropped
            draw_until = OPENING * count
            while state[EACH] > 0:
                alive = int(state[ALIVE])
                epoch = int(state[EPOCH])
                boundary = tables.boundary[tables.row[alive] :]
                until = reachable(boundary, epoch, int(state[LIMIT]))
                if epoch < checkpoint:
                    until = min(until, checkpoint)
                gap = max(boundary[epoch] - (state[HIGH] - state[LOW]), 0.0) if epoch > 0 else 0.0
                safe = gap * gap / (REACH * variance)
                drawable = draw_until - state[PULLS]
                if epoch == 0 or (safe < WORTHWHILE and drawable > 0.0):
                    until = min(until, epoch + max(int(drawable / alive), 1))
                    end, s0, s1, s2, s3 = draw_epochs(arms, tables, state, work, alive, 1, epoch, until, s0, s1, s2, s3)
                    work[-1] += alive * (end - epoch)
                else:
                    length = int(min(max(safe, LEAST * epoch, 1.0), until - epoch))
                    end, s0, s1, s2, s3 = jump(count, boundary, variance, far, gap, length, state, work, s0, s1, s2, s3)
                end_epochs(state, end - epoch)
                decide(state, tables)
                note_epoch(checkpoint, state, work, alive)
                if tallied:
                    tally_drops(tallies, place, state, alive)
                if state[ALIVE] < alive:
                    made = state[PULLS]
                    draw_until = made + DENSE if made - dropped_at < DENSE else made
                    dropped_at = made
                    low = np.inf
                    for slot in range(int(state[ALIVE])):
                        settle(arms, work, slot, int(state[arm_at + slot]))
                        low = min(low, state[SUMS + slot])
                    state[LOW] = low
            recommended[place] = recommend(state, tables)
            pulls[place] = int(state[PULLS])
            undecided[place] = state[ALIVE] > 1
            if checkpoint > 0:
                note_leader(checkpoint, state, work, arms, leaders, place, s0, s1, s2, s3)
            if tallied:
                tally_end(tallies, place, state)

    return simulate_skip_many
