"""One pass of runs for eliminations that differ only in their cap on pulls.

A run under a smaller cap is the same run, stopped earlier: at the end of the last epoch that fits. So runs are made
once, under the largest cap, and recorded at every smaller one. With every pull drawn, they are those of each policy
alone to the bit; with jumps, which stop at every cap, they have the same law. The results are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dbcare.engines.simulate.draws import Arms, make_arms
from dbcare.engines.simulate.runs import PlainRuns, extend_runs
from dbcare.engines.simulate.simulator import Simulator
from dbcare.engines.simulate.simulators import capped_direct_simulator, safe_jump_simulator
from dbcare.errors import EngineError
from dbcare.policies.policy import Policy
from dbcare.problem.bandits import Bandit


def share_caps(
    policies: Sequence[Policy], bandit: Bandit, runs: int, seed: int, threads: int, *, direct: bool = False
) -> list[PlainRuns]:
    """Return the runs of policies that differ in `max_pulls`; their arms share no blocks. `direct` draws every pull."""
    arms = make_arms(bandit)
    caps = sorted({policy.max_pulls for policy in policies})
    longest = next(policy for policy in policies if policy.max_pulls == caps[-1])
    simulator = _make_simulator(longest, arms, seed, caps, direct)
    outcomes = extend_runs(simulator.allocate(0, len(caps)), simulator, runs, threads)
    at_cap = {cap: outcomes.at_cap(place) for place, cap in enumerate(caps)}
    return [PlainRuns(policy, bandit, seed, threads, simulator, at_cap[policy.max_pulls]) for policy in policies]


def _make_simulator(policy: Policy, arms: Arms, seed: int, caps: list[int], direct: bool) -> Simulator:
    smaller_caps = np.array(caps[:-1], np.int64)
    if not direct:
        try:
            return safe_jump_simulator(policy, arms, seed, smaller_caps)
        except EngineError:
            pass
    return capped_direct_simulator(policy, arms, seed, smaller_caps)
