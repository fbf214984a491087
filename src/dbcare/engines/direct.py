"""The direct engine: draws every pull, for any policy and any family of rewards.

The loops are templates that take a policy's functions and a function that draws a reward. `any_loop` steps a policy
pull by pull; `epoch_loop` does the same for policies in epochs, without asking before each pull. Both consume a run's
random numbers in the same order, so they agree to the bit with each other and with a run stepped by hand.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dbcare.engines.control_variate import Watch
from dbcare.engines.draws import Drawing, PullDrawing
from dbcare.engines.rng import begun
from dbcare.engines.tallies import tally_drops, tally_end
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
