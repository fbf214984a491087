"""Roughly how long passes take, for progress and for starting the longest ones first.

Simulated passes take time per run and arm: a constant, and so much per pull of a long run. Pooled runs serve several
bandits at once. Constants were fitted to the paper's experiments on one core; progress corrects them for the machine at
hand, so only their ratios matter much.
"""

from __future__ import annotations

from dbcare.lab.experiments.passes import Pass, Point
from dbcare.policies.elimination.racing import ConfidencePolicy
from dbcare.policies.literature.adaptive import Adaptive
from dbcare.policies.literature.parts import AdaptivePolicy
from dbcare.policies.literature.track_and_stop import TrackAndStop
from dbcare.policies.planned import SchedulePolicy
from dbcare.policies.policy import EpochPolicy, Pace, Policy
from dbcare.problem.rewards import Gaussian

OVERHEAD = 3e-4  # seconds of any pass
SPRT_SEARCH = 0.03  # seconds to find the best threshold of an SPRT
EXACT_PULL = 1.5e-6  # seconds per pull of the longest run
BANDITS_SERVED = 8.0  # by a pooled run

LONG_RUN = 0.25  # what the pulls of a long run cost, in units of the loss; few runs are worth more
ERROR_RUN = 40.0  # about how many pulls per arm a rule makes that aims at an error, in units of (sigma/gap)^2
SMALLEST_GAP = 1e-9  # gaps below it count as this

# Nanoseconds of a run per arm, and per arm and pull; the first class that fits counts. Policies that work in epochs
# skip most of their pulls. All others draw each of them, after a look at all arms.
NANOSECONDS: tuple[tuple[type[Policy], float, float], ...] = (
    (SchedulePolicy, 60.0, 0.0),
    (ConfidencePolicy, 2_800.0, 0.0),
    (EpochPolicy, 800.0, 0.0),
    (TrackAndStop, 500.0, 60.0),
    (Adaptive, 500.0, 40.0),
    (AdaptivePolicy, 500.0, 8.0),
    (Policy, 500.0, 0.7),
)


def estimate_seconds(work: Pass) -> float:
    """Estimate how long one thread takes for a pass."""
    first = work.points[0]
    policy = first.policy
    if first.gap_family is not None:
        # An SPRT without a threshold would search for it to tell its largest number of pulls.
        return OVERHEAD + (SPRT_SEARCH if policy.knows_gap else EXACT_PULL * policy.max_pulls)
    per_arm, per_pull = next((arm, pull) for kind, arm, pull in NANOSECONDS if isinstance(policy, kind))
    bandits = len({repr(point.bandit) for point in work.points})
    groups = bandits if first.pool is None else max(1.0, bandits / BANDITS_SERVED)
    pulls = max(_guess_pulls(point) for point in work.points)  # runs at several costs share theirs
    return OVERHEAD + 1e-9 * groups * first.runs * policy.arms * (per_arm + per_pull * pulls)


def _guess_pulls(point: Point) -> float:
    """Guess the pulls of a long run."""
    policy, bandit = point.policy, point.bandit
    if policy.pace is Pace.PULLS and not policy.pools:  # it aims at an error
        hardness = (bandit.sigma / max(bandit.smallest_gap, SMALLEST_GAP)) ** 2
        return min(policy.max_pulls, ERROR_RUN * policy.arms * hardness)
    return min(policy.max_pulls, LONG_RUN / point.cost)


def name_kernel(work: Pass) -> str:
    """Name the kernels of a pass: the first pass that needs them loads or compiles them, and so takes longer."""
    first = work.points[0]
    family = "Gaussian" if isinstance(first.bandit.arms[0], Gaussian) else "finite"
    if first.gap_family is not None:
        return f"exact {family}"
    policy = first.policy
    names = [getattr(policy, part) for part in ("sampling", "stopping") if hasattr(policy, part)]
    rule = policy.pace.name.lower() if policy.pace.in_epochs else " ".join([type(policy).__name__, *names])
    return f"{rule} {family}{' at several costs' if work.shares_costs else ''}"
