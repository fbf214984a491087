"""The direct engine: loops that draw every pull, and the control variate for DBCARE.

Let C be the arm that leads once every arm has N0 = floor(N*(K)) + 1 pulls. Its law is a one-dimensional integral,

    P(C = k) = integral of phi(u) * product over j != k of Phi(u + (mean_k - mean_j) sqrt(N0) / sigma) du,

and DBCARE nearly always recommends that arm. So E[loss] = E[loss(C)] + E[loss - loss(C)], and only the second, small
term needs simulation (`estimates.Moments` scales loss(C) by a fitted coefficient). An arm dropped before N0 gets one
extra draw for its sum at N0, made after the run has ended, so that the run does not depend on it.

The loops are templates that take a policy's functions and a function that draws a reward. `any_loop` steps a policy
pull by pull; `epoch_loop` does the same for policies in epochs, without asking before each pull. Both consume a run's
random numbers in the same order, so they agree to the bit with each other and with a run stepped by hand.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.engines.simulate.draws import Drawing, GaussianArms, PullDrawing
from dbcare.engines.simulate.outcomes import tally_drops, tally_end
from dbcare.engines.simulate.rng import begun, normal
from dbcare.policies.epochs import (
    ALIVE,
    EACH,
    EPOCH,
    HIGH,
    LIMIT,
    LOW,
    PULLS,
    SUMS,
    EpochRule,
    arms_offset,
    end_epochs,
)
from dbcare.policies.rule import STOP, BlockRule, Rule


class Watch(NamedTuple):
    """Hooks that a loop calls after every epoch and after the run."""

    after_epoch: Callable[..., Any]
    after_run: Callable[..., Any]


def note(arm_at, state, work, start, stop):
    """Record the pulls and sums of the arms in slots `start` to `stop`."""
    count = arm_at - SUMS
    for slot in range(start, stop):
        arm = int(state[arm_at + slot])
        work[2 * count + arm] = state[EPOCH]
        work[3 * count + arm] = state[SUMS + slot]


def note_epoch(checkpoint, state, work, survivors):
    """Record the arms just dropped from `survivors`, and at the checkpoint all remaining arms."""
    if state[EPOCH] <= checkpoint:
        note(arms_offset(state), state, work, int(state[ALIVE]), survivors)
        if state[EPOCH] == checkpoint:
            note(arms_offset(state), state, work, 0, int(state[ALIVE]))


def note_leader(checkpoint, state, work, arms, leaders, place, s0, s1, s2, s3):
    """Extend every sum to `checkpoint` pulls and record the arm that leads."""
    if state[EPOCH] < checkpoint:
        note(arms_offset(state), state, work, 0, int(state[ALIVE]))
    count = len(arms.mean)
    best = -np.inf
    for arm in range(count):
        missing = checkpoint - work[2 * count + arm]
        total = work[3 * count + arm]
        if missing > 0:
            z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
            total += missing * arms.mean[arm] + math.sqrt(missing) * arms.sigma[arm] * z
        if total > best:
            best = total
            leaders[place] = arm


def pass_epoch(checkpoint, state, work, survivors):
    """Do nothing."""


def pass_run(checkpoint, state, work, arms, leaders, place, s0, s1, s2, s3):
    """Do nothing."""


WATCH = Watch(note_epoch, note_leader)
NO_WATCH = Watch(pass_epoch, pass_run)


def leader_law(arms: GaussianArms, checkpoint: int) -> npt.NDArray[np.float64]:
    """Compute P(C = k) for each arm k to about 1e-12 (for such integrands, sums over a grid converge spectrally).

    With m_k = mean_k sqrt(N0) / sigma and x = u + m_k one grid serves all arms; equal arms are computed once.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415  # only this needs scipy

    scaled = (arms.mean - arms.mean.max()) * math.sqrt(checkpoint) / arms.sigma[0]
    # An arm this far behind never leads; without the limit, it would only stretch the grid.
    kinds, kind_of_arm, counts = np.unique(np.maximum(scaled, -60.0), return_inverse=True, return_counts=True)
    step = 0.0125
    grid = np.arange(kinds[0] - 12.0, kinds[-1] + 12.0, step)
    log_below = log_ndtr(grid[:, None] - kinds[None, :])
    log_all_below = log_below @ counts
    weight = np.exp(log_all_below[:, None] - log_below - 0.5 * (grid[:, None] - kinds[None, :]) ** 2)
    law: npt.NDArray[np.float64] = (step / math.sqrt(2.0 * math.pi) * weight.sum(axis=0))[kind_of_arm]
    return law


ILLEGAL = -2  # stored as the recommendation if a policy asks for or recommends a nonexistent arm or block


def make_block_finder(rule: Rule, shares_blocks: bool) -> Callable[..., int]:
    """Return a function for the block of a pull: the rule's choice if arms share blocks, else one for each pull."""
    if not isinstance(rule, BlockRule) or not shares_blocks:
        return number_of_pull
    block = rule.block

    def block_of_rule(state, tables, arm, made):
        return block(state, tables, arm)

    return block_of_rule


def number_of_pull(state, tables, arm, made):
    """Return the number of pulls made before."""
    return made


def any_loop(rule: Rule, drawing: PullDrawing, block_of: Callable[..., int]) -> Callable[..., None]:
    """Return the loop for any policy; it ends a run after `max_pulls` and records pulls unless `pulled` is empty."""
    init, ask, tell, recommend = rule.init, rule.ask, rule.tell, rule.recommend
    start, draw = drawing

    def simulate_any(
        first, seed, arms, costs, tables, state, work, max_pulls, halt,
        recommended, pulls, undecided, spent, tallies, pulled, blocks, rewards,
    ):  # fmt: skip
        count = len(costs)
        charged = len(spent) > 0
        recorded = len(pulled) > 0
        tallied = len(tallies.pulls) > 0
        for place in range(len(pulls)):
            if halt[0] != 0:  # set by another thread: nobody waits for these runs any more
                break
            tie, s0, s1, s2, s3 = begun(seed, first + place)
            s0, s1, s2, s3 = start(arms, work, s0, s1, s2, s3)
            init(state, tables, tie)
            made = 0
            total = 0.0
            arm = ask(state, tables)
            while made < max_pulls and 0 <= arm < count and halt[0] == 0:
                block = block_of(state, tables, arm, made)
                if block < 0:
                    arm = ILLEGAL
                    break
                reward, s0, s1, s2, s3 = draw(arms, work, arm, block, made, s0, s1, s2, s3)
                tell(state, tables, arm, reward)
                if recorded:
                    pulled[made] = arm
                    blocks[made] = block
                    rewards[made] = reward
                if tallied:
                    tallies.pulls[place, arm] += 1.0
                    tallies.sums[place, arm] += reward
                made += 1
                total += costs[arm]
                arm = ask(state, tables)
            choice = recommend(state, tables)
            legal = 0 <= choice < count and (arm == STOP or 0 <= arm < count)
            recommended[place] = choice if legal else ILLEGAL
            pulls[place] = made
            undecided[place] = arm != STOP
            if charged:
                spent[place] = total

    return simulate_any


def drawing_loop(rule: EpochRule, drawing: Drawing) -> Callable[..., Any]:
    """Return the innermost loop for policies in epochs: it draws every pull until an epoch's end needs a decision."""
    idle, draw = rule.idle, drawing.draw

    def draw_epochs(arms, tables, state, work, alive, each, completed, limit, s0, s1, s2, s3):
        turn = 0
        while True:
            high = -np.inf
            low = np.inf
            for slot in range(alive):
                reward, s0, s1, s2, s3 = draw(arms, work, slot, s0, s1, s2, s3)
                total = state[SUMS + slot] + reward
                state[SUMS + slot] = total
                high = max(high, total)
                low = min(low, total)
            turn += 1
            if turn == each:
                turn = 0
                completed += 1
                if not idle(tables, alive, completed, limit, high, low):
                    break
        state[HIGH] = high
        state[LOW] = low
        return completed, s0, s1, s2, s3

    return draw_epochs


def epoch_loop(rule: EpochRule, drawing: Drawing, watch: Watch) -> Callable[..., None]:
    """Return the loop for policies in epochs; `watch` records the control variate at `checkpoint`, if there is one."""
    init, decide, recommend = rule.init, rule.decide, rule.recommend
    settle = drawing.settle
    draw_epochs = drawing_loop(rule, drawing)
    after_epoch, after_run = watch

    def simulate_epochs(
        first, seed, arms, tables, state, work, checkpoint, recommended, pulls, undecided, leaders, tallies
    ):
        arm_at = arms_offset(state)
        tallied = len(tallies.pulls) > 0
        for place in range(len(pulls)):
            tie, s0, s1, s2, s3 = begun(seed, first + place)
            init(state, tables, tie)
            while state[EACH] > 0:
                alive = int(state[ALIVE])
                each = int(state[EACH])
                before = int(state[EPOCH])
                limit = int(state[LIMIT])
                if before < checkpoint:
                    limit = min(limit, checkpoint)
                for slot in range(alive):
                    settle(arms, work, slot, int(state[arm_at + slot]))
                completed, s0, s1, s2, s3 = draw_epochs(
                    arms, tables, state, work, alive, each, before, limit, s0, s1, s2, s3
                )
                end_epochs(state, completed - before)
                decide(state, tables)
                after_epoch(checkpoint, state, work, alive)
                if tallied:
                    tally_drops(tallies, place, state, alive)
            recommended[place] = recommend(state, tables)
            pulls[place] = int(state[PULLS])
            undecided[place] = state[ALIVE] > 1
            after_run(checkpoint, state, work, arms, leaders, place, s0, s1, s2, s3)
            if tallied:
                tally_end(tallies, place, state)

    return simulate_epochs
