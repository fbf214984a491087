"""Draw runs until the pooled estimate of every bandit is precise enough."""

from collections.abc import Sequence

from dbcare.engines.pooling.pooled_runs import PooledRuns
from dbcare.engines.pooling.refinement import Pooled, Refinement, Target
from dbcare.policies.policy import Policy
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Loss


def evaluate_pooled(
    policy: Policy,
    bandits: Sequence[Bandit],
    risks: Sequence[tuple[Loss, float]],
    target: Target,
    seed: int,
    threads: int,
) -> Pooled:
    """Evaluate a policy on several bandits by pooled runs, until all `risks`, a loss and a cost each, meet the target.

    Where a bandit's estimate is not precise enough, more runs are made on that bandit. The bandits must be of a family
    that `find_family` knows, unless there is only one.
    """
    refinement = Refinement(policy, bandits, risks, target)
    source = PooledRuns(policy, [*bandits, *refinement.decoys], seed, threads)
    while True:
        source.extend(refinement.wanted)
        if (pooled := refinement.look(source)) is not None:
            return pooled
