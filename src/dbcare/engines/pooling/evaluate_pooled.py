"""Draw runs until the pooled estimate of every bandit, or of every cost, is precise enough."""

from collections.abc import Sequence

from dbcare.bandit import Bandit
from dbcare.engines.draws import make_arms
from dbcare.engines.pooling.pooled_runs import PooledRuns, round_to_folds
from dbcare.engines.pooling.refinement import Pooled, Refinement, Target
from dbcare.engines.pooling.seeds import derive_seed
from dbcare.engines.several_costs import CostRuns
from dbcare.policies.breakeven import Breakeven
from dbcare.policies.policy import Policy
from dbcare.risk import Loss


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


def evaluate_costs(
    policies: Sequence[Breakeven], bandit: Bandit, target: Target, seed: int
) -> tuple[list[Pooled], int]:
    """Evaluate policies that differ only in their cost, the largest first, on one bandit; also return the pulls made.

    Each policy's estimates are those of `evaluate_pooled`, but all share their runs (`engines.several_costs`).
    """
    runs = CostRuns(policies, make_arms(bandit), derive_seed(seed, 0))
    sources = [PooledRuns(policy, [bandit], seed, threads=1) for policy in policies]
    refinements = [
        Refinement(policy, [bandit], [(policy.risk.loss, policy.risk.single_cost)], target) for policy in policies
    ]
    found: list[Pooled | None] = [None] * len(policies)
    while unfinished := [place for place, pooled in enumerate(found) if pooled is None]:
        runs.extend({place: int(round_to_folds(refinements[place].wanted)[0]) for place in unfinished})
        for place in unfinished:
            sources[place].outcomes = [runs.outcomes[place]]
            found[place] = refinements[place].look(sources[place])
    return [pooled for pooled in found if pooled is not None], runs.pulls_simulated
