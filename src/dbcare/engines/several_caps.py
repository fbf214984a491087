"""Build simulators of elimination that follow several caps on pulls at once, by jumps or by drawing every pull."""

from functools import cache, partial
from typing import Any

import numpy as np

from dbcare.engines.compile import kernel as compile_kernel
from dbcare.engines.draws import Arms, Drawing, FiniteArms, Floats, Ints, make_drawing
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.simulator import KernelBlock, Simulator
from dbcare.engines.skip.safe_jumps import Reach, capped_loop, make_reach, no_reach
from dbcare.engines.skip.sum_tables import add_sums
from dbcare.errors import EngineError
from dbcare.policies.elimination import EliminationPolicy
from dbcare.policies.epochs import EpochRule

NO_CAPS: Ints = np.empty(0, np.int64)
MIN_LEVELS = 3  # jumps of up to 8 epochs; with fewer levels, drawing every pull is as fast


def safe_jump_simulator(policy: EliminationPolicy, arms: Arms, seed: int, caps: Ints = NO_CAPS) -> Simulator:
    """Build a simulator that jumps over epochs in which no arm can be dropped.

    It records each run at the `caps`, which are ascending and below the policy's own cap.
    """
    if not isinstance(arms, FiniteArms):
        raise EngineError(
            "The skip engine needs rewards with finitely many outcomes to follow several caps; use the direct engine."
        )
    tables = policy.tables
    reach = make_reach(tables, arms)
    arms_and_sums, levels = add_sums(arms, max(reach.longest_jump(tables), 2.0**MIN_LEVELS))
    if levels < MIN_LEVELS:
        raise EngineError(
            "The skip engine needs rewards whose sums take few values for an elimination policy; use the direct engine."
        )
    run = _bind_kernel(policy, arms_and_sums, reach._replace(levels=levels), seed, caps)
    guarantee = "jumps in which no arm can be dropped, exact"
    return Simulator("skip", partial(KernelBlock, policy, 2 * policy.arms + 1, run), guarantee)


def capped_direct_simulator(policy: EliminationPolicy, arms: Arms, seed: int, caps: Ints) -> Simulator:
    """Build a simulator that draws every pull.

    It records each run at the `caps`, which are ascending and below the policy's own cap.
    """
    run = _bind_kernel(policy, arms, no_reach(policy.tables, policy.arms), seed, caps)
    return Simulator("direct", partial(KernelBlock, policy, 2 * policy.arms + 1, run), "every pull drawn")


def _bind_kernel(policy: EliminationPolicy, arms: Arms, reach: Reach, seed: int, caps: Ints) -> Any:
    kernel = _capped_kernel(policy.rule, make_drawing(arms))

    def run(first: int, state: Floats, work: Floats, out: Outcomes) -> None:
        results = (out.recommended, out.pulls, out.undecided)
        by_cap = [result if result.ndim == 2 else result[:, None] for result in results]
        kernel(first, seed, arms, policy.tables, reach, caps, state, work, *by_cap, out.tallies)

    return run


@cache
def _capped_kernel(rule: EpochRule, drawing: Drawing) -> Any:
    return compile_kernel(capped_loop(rule, drawing), "a simulator of elimination by safe jumps", rule.calls)
