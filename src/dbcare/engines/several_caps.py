"""Simulators of elimination at several caps on the pulls at once, by jumps or with every pull drawn."""

from functools import cache, partial
from typing import Any

import numpy as np

from dbcare.engines.compile import kernel as kernel_of
from dbcare.engines.draws import Arms, Drawing, FiniteArms, Floats, Ints, drawing_of
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.simulator import KernelBlock, Simulator
from dbcare.engines.skip.safe_jumps import Reach, capped_loop, no_reach, reach_of
from dbcare.engines.skip.sum_tables import with_sums
from dbcare.errors import EngineError
from dbcare.policies.elimination import EliminationPolicy
from dbcare.policies.rounds import RoundRule

NO_CAPS: Ints = np.empty(0, np.int64)
FEWEST_LEVELS = 3  # jumps of up to 8 epochs; with less, drawing every pull is as fast


def bounded_simulator(policy: EliminationPolicy, arms: Arms, seed: int, caps: Ints = NO_CAPS) -> Simulator:
    """Jumps within which nothing can happen; notes each run at the `caps`, ascending and below the policy's own."""
    if not isinstance(arms, FiniteArms):
        raise EngineError(
            "The skip engine needs rewards with finitely many outcomes to follow several caps; "
            "the direct engine takes any."
        )
    tables = policy.tables
    reach = reach_of(tables, arms)
    with_blocks, levels = with_sums(arms, max(reach.longest_jump(tables), 2.0**FEWEST_LEVELS))
    if levels < FEWEST_LEVELS:
        raise EngineError(
            "The skip engine needs rewards whose sums take few values for an elimination policy; "
            "the direct engine takes any."
        )
    run = _bound(policy, with_blocks, reach._replace(levels=levels), seed, caps)
    guarantee = "jumps within which nothing can happen, exactly"
    return Simulator("skip", partial(KernelBlock, policy, 2 * policy.arms + 1, run), guarantee)


def capped_direct_simulator(policy: EliminationPolicy, arms: Arms, seed: int, caps: Ints) -> Simulator:
    """Every pull drawn; notes each run at the `caps`, ascending and below the policy's own."""
    run = _bound(policy, arms, no_reach(policy.tables, policy.arms), seed, caps)
    return Simulator("direct", partial(KernelBlock, policy, 2 * policy.arms + 1, run), "every pull drawn")


def _bound(policy: EliminationPolicy, arms: Arms, reach: Reach, seed: int, caps: Ints) -> Any:
    kernel = _capped_kernel(policy.rule, drawing_of(arms))

    def run(first: int, state: Floats, work: Floats, out: Outcomes) -> None:
        results = (out.recommended, out.pulls, out.undecided)
        by_cap = [each if each.ndim == 2 else each[:, None] for each in results]
        kernel(first, seed, arms, policy.tables, reach, caps, state, work, *by_cap)

    return run


@cache
def _capped_kernel(rule: RoundRule, drawing: Drawing) -> Any:
    return kernel_of(capped_loop(rule, drawing), "a simulator of elimination by safe jumps")
