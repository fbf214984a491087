"""Which simulator is cheaper, for an elimination policy on more than two Gaussian arms.

A short pilot of skip-ahead runs tells how many pulls a run has and how much work skipping them is. Both are counts, so
that the choice, and with it every bit of the result, is the same on every machine.
"""

from dbcare.engines.draws import Arms
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.simulator import Simulator
from dbcare.engines.simulators import direct_simulator, skip_simulator
from dbcare.errors import EngineError
from dbcare.policies.elimination import EliminationPolicy
from dbcare.policies.policy import Policy

# Skip counts its work in pulls that cost as much to draw (measured, K = 3 to 100). Where both cost about the same it is
# kept, as its pilot need not be made again.
PULLS_A_UNIT = 0.9


def chosen_simulator(policy: Policy, arms: Arms, seed: int, runs: int) -> tuple[Simulator, Outcomes]:
    """The simulator to use, and the runs that finding out has already made with it."""
    try:
        skip = skip_simulator(policy, arms, seed)
    except EngineError:
        return _unused(direct_simulator(policy, arms, seed))
    if not isinstance(policy, EliminationPolicy) or policy.arms == 2:
        return _unused(skip)
    pilot = Outcomes.empty(min(runs, max(16, min(runs // 200, 200))), control=skip.checkpoint > 0)
    block = skip.block()
    block(pilot, 0)
    if pilot.pulls.sum() > PULLS_A_UNIT * block.effort:
        return skip, pilot
    return _unused(direct_simulator(policy, arms, seed))


def _unused(simulator: Simulator) -> tuple[Simulator, Outcomes]:
    return simulator, Outcomes.empty(0, control=simulator.checkpoint > 0)
