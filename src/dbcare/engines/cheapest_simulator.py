"""Choose the cheaper simulator for an elimination policy on more than two Gaussian arms.

A short pilot of skip-ahead runs measures how many pulls a run makes and how much work skipping them takes. Both are
counts rather than times, so the choice, and with it every bit of the result, is the same on every machine.
"""

from dbcare.engines.draws import Arms
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.simulator import Simulator
from dbcare.engines.simulators import direct_simulator, skip_simulator
from dbcare.errors import EngineError
from dbcare.policies.policy import Pace, Policy

# The skip engine counts its work in units of one drawn pull (calibrated by timing, K = 3 to 100). Below 1, because in a
# near tie skip is preferable: its pilot runs need not be simulated again.
PULLS_PER_WORK_UNIT = 0.9


def choose_simulator(
    policy: Policy, arms: Arms, seed: int, runs: int, *, tallied: bool = False
) -> tuple[Simulator, Outcomes]:
    """Return the cheaper simulator, and the pilot runs it has already made."""
    try:
        skip = skip_simulator(policy, arms, seed, tallied=tallied)
    except EngineError:
        return _with_no_runs(direct_simulator(policy, arms, seed, tallied=tallied))
    if policy.pace is not Pace.ELIMINATION or policy.arms == 2:
        return _with_no_runs(skip)
    pilot = skip.allocate(min(runs, max(16, min(runs // 200, 200))))
    block = skip.block()
    block(pilot, 0)
    if pilot.pulls.sum() > PULLS_PER_WORK_UNIT * block.effort:
        return skip, pilot
    return _with_no_runs(direct_simulator(policy, arms, seed, tallied=tallied))


def _with_no_runs(simulator: Simulator) -> tuple[Simulator, Outcomes]:
    return simulator, simulator.allocate(0)
