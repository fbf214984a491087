"""One pass of runs for policies that differ only in their cap on pulls, or in their cost per pull.

A run under a smaller cap is the same run, stopped earlier: at the end of the last epoch that fits. So runs are made
once, under the largest cap, and recorded at every smaller one. With every pull drawn, they are those of each policy
alone to the bit; with jumps, which stop at every cap, they have the same law. The results are not independent.

If all arms cost the same, that cost divides all scores alike, so it does not affect which arm Breakeven pulls. It only
affects when Breakeven stops: the more a pull costs, the sooner. So a run at the smallest cost contains the runs at all
larger ones. Up to rounding, they make the same pulls, and each ends where its own spend reaches the largest loss.

There is one exception: before it stops, the rule computes all losses anew, and with these it may go on. A run at a
larger cost that goes on, about one in thirty, is simulated again on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from dbcare.engines.kernels.compile import kernel as compile_kernel
from dbcare.engines.pooling.evaluate import Pooled, Refinement, Target
from dbcare.engines.pooling.runs import PooledRuns, derive_seed, round_to_folds
from dbcare.engines.simulate.draws import (
    Arms,
    BlockArms,
    PullDrawing,
    make_arms,
    make_pull_drawing,
    name_arms,
    scratch_size,
)
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.rng import begun
from dbcare.engines.simulate.runs import PlainRuns, extend_runs
from dbcare.engines.simulate.simulator import Simulator
from dbcare.engines.simulate.simulators import capped_direct_simulator, safe_jump_simulator
from dbcare.errors import EngineError
from dbcare.policies.breakeven import rule
from dbcare.policies.breakeven.policy import Breakeven
from dbcare.policies.breakeven.state import COUNT, SPENT, STOPPED, SUM, section
from dbcare.policies.policy import Policy
from dbcare.policies.rule import Calls
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Risk


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


BLOCK = 64  # runs between chances to be interrupted


def without_cost(policy: Policy) -> Breakeven | None:
    """Return what is equal for policies whose runs differ only in when they stop; None for any other policy."""
    if type(policy) is not Breakeven or policy.risk.costs_differ or policy.guesses or policy.not_before > 0:
        return None
    return replace(policy, risk=Risk(policy.risk.loss, 1.0))


def evaluate_costs(
    policies: Sequence[Breakeven], bandit: Bandit, target: Target, seed: int
) -> tuple[list[Pooled], int]:
    """Evaluate policies that differ only in their cost, the largest first, on one bandit; also return the pulls made.

    Each policy's estimates are those of `evaluate_pooled`, but all share their runs.
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


class CostRuns:
    """Tallied runs of policies that differ only in their cost, the largest cost first."""

    def __init__(self, policies: Sequence[Breakeven], arms: Arms, seed: int) -> None:
        assert not isinstance(arms, BlockArms)
        self.policies, self.arms, self.seed = policies, arms, seed
        self.kernel = _make_kernel(make_pull_drawing(arms))
        self.state, self.renewed = np.zeros((2, policies[0].state_size))
        self.work = np.zeros(scratch_size(arms, policies[0].arms))
        self.outcomes = [Outcomes.empty(0, tallied_arms=policies[0].arms) for _ in policies]
        self.pulls_simulated = 0

    def extend(self, wanted: dict[int, int]) -> None:
        """Continue to `wanted[place]` runs of the policy at each place."""
        known = {place: len(self.outcomes[place].pulls) for place in wanted}
        for place, runs in wanted.items():
            done = self.outcomes[place]
            self.outcomes[place] = Outcomes.empty(runs, tallied_arms=self.policies[place].arms)
            self.outcomes[place].take(done)
        for start, stop in pairwise(sorted({*known.values(), *wanted.values()})):
            places = [place for place in sorted(wanted) if known[place] <= start and stop <= wanted[place]]
            for first in range(start, stop if places else start, BLOCK):
                self._simulate(first, min(first + BLOCK, stop), places)

    def _simulate(self, first: int, stop: int, places: list[int]) -> None:
        """Simulate the runs from number `first` on, before `stop`, at some of the costs."""
        last = self.policies[places[-1]]
        costs = np.array([self.policies[place].risk.single_cost for place in places])
        caps = np.array([self.policies[place].max_pulls for place in places])
        shape = len(places), stop - first
        recommended, pulls = np.empty(shape, np.int32), np.empty(shape, np.int64)
        undecided, goes_on = np.empty(shape, np.bool_), np.empty(shape, np.bool_)
        arm_pulls, arm_sums = np.empty((2, *shape, last.arms))
        results = recommended, pulls, undecided, goes_on, arm_pulls, arm_sums
        scratch = self.state, self.renewed, self.work, np.empty(len(places))
        self.kernel(first, self.seed, self.arms, last.tables, costs, caps, *scratch, *results)
        self.pulls_simulated += int(pulls[-1].sum())
        for row, place in enumerate(places):
            part = self.outcomes[place].part(first, stop)
            part.recommended[:], part.pulls[:], part.undecided[:] = recommended[row], pulls[row], undecided[row]
            part.tallies.pulls[:], part.tallies.sums[:] = arm_pulls[row], arm_sums[row]
            for run in np.flatnonzero(goes_on[row]).tolist():
                self._simulate(first + run, first + run + 1, [place])


@cache
def _make_kernel(drawing: PullDrawing) -> Any:
    name = f"Breakeven at several costs on {name_arms(drawing)}"
    calls = rule.RULE.calls | {rule.observe: Calls.EACH_PULL}
    return compile_kernel(costs_loop(drawing), "a simulator", calls, of=name)


def costs_loop(drawing: PullDrawing) -> Callable[..., None]:
    """Return the loop for several costs; `tables` are those of the last one, the smallest."""
    init, ask, recommend = rule.RULE.init, rule.RULE.ask, rule.RULE.recommend
    tell, decide = rule.observe, rule.decide  # the two halves of the rule's `tell`
    start, draw = drawing

    def simulate_costs(
        first, seed, arms, tables, costs, caps, state, renewed, work, spent,
        recommended, pulls, undecided, goes_on, arm_pulls, arm_sums,
    ):  # fmt: skip
        last = len(costs) - 1
        for place in range(recommended.shape[1]):
            tie, s0, s1, s2, s3 = begun(seed, first + place)
            s0, s1, s2, s3 = start(arms, work, s0, s1, s2, s3)
            init(state, tables, tie)
            for row in range(len(costs)):
                spent[row] = 0.0
            made = 0
            row = 0  # the largest cost at which the run goes on
            while row <= last:
                arm = ask(state, tables)
                reward, s0, s1, s2, s3 = draw(arms, work, arm, made, made, s0, s1, s2, s3)
                loss = tell(state, tables, arm, reward)
                made += 1
                for other in range(row, len(costs)):
                    spent[other] += costs[other]
                while row <= last and (loss <= spent[row] or made == caps[row]):
                    deciding = state
                    if row < last:
                        deciding = renewed
                        for index in range(len(state)):
                            renewed[index] = state[index]
                        renewed[SPENT] = spent[row]
                    if loss <= spent[row]:
                        decide(deciding, tables)
                    unstopped = deciding[STOPPED] == 0.0
                    if unstopped and row == last and made < caps[row]:
                        break
                    undecided[row, place] = unstopped
                    goes_on[row, place] = unstopped and made < caps[row]
                    recommended[row, place] = recommend(deciding, tables)
                    pulls[row, place] = made
                    for each in range(arm_pulls.shape[2]):
                        arm_pulls[row, place, each] = state[section(tables.cost, COUNT) + each]
                        arm_sums[row, place, each] = state[section(tables.cost, SUM) + each]
                    row += 1

    return simulate_costs
