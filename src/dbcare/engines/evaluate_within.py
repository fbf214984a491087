"""`evaluate_within`: what `evaluate` returns, to the bit, if it fits into a budget of work.

Runs are made in stages of 2, 4, 8, ... runs. After each, the work still to do is projected from the work so far, so a
hopeless evaluation ends after two runs. A single run ends at RUN_WORK, since a kernel cannot be interrupted within it.
"""

from __future__ import annotations

import math
import time

import numpy as np

from dbcare.bandit import Bandit
from dbcare.engines import exact
from dbcare.engines.block_draws import BlockArms
from dbcare.engines.build_evaluation import build_from_law, build_from_runs
from dbcare.engines.draws import make_arms
from dbcare.engines.estimates import Moments
from dbcare.engines.evaluate import check_settings, choose_risk
from dbcare.engines.evaluation import Evaluation
from dbcare.engines.plain_runs import extend_runs, make_simulator, warn_if_interpreted
from dbcare.engines.simulators import make_control
from dbcare.engines.work_budget import TooMuchWorkError, WorkBudget
from dbcare.policies.elimination import EliminationPolicy, count_max_epochs
from dbcare.policies.policy import CustomPolicy, EpochPolicy, Policy
from dbcare.policies.schedule import SchedulePolicy
from dbcare.risk import Risk

FIRST_RUNS = 2
RUN_WORK = 1e7  # of one run under a budget: half a second
MAX_TABLE_EPOCHS = 10_000_000  # of an elimination policy under a budget: 80 MB, and several times that to build

# Work in units of the budget, by timing.
PULL_ARM = 0.75  # per pull and arm of a rule that weighs all arms, such as Breakeven
INTERPRETED = 300.0  # times that of a compiled run
EPOCH_PULL, EPOCHS_RUN = 0.125, 5_000.0  # elimination: per pull, and at most, since many pulls are drawn at once
RANKED_ARM = 0.01  # per arm and other arm of a planned round
CONTROLLED_PAIR = 15.0  # per pair of arms, to evaluate runs with a control variate
TABLE_EPOCH = 0.5
EXACT_EPOCH = 250.0  # in one thread, so twice the work


def evaluate_within(
    budget: WorkBudget, policy: Policy, bandit: Bandit, risk: Risk, runs: int, seed: int, threads: int | None = None
) -> Evaluation:
    """Evaluate a policy as `evaluate` does, and take the work from the budget.

    Raises TooMuchWorkError if it does not fit, and WorkCancelledError.
    """
    check_settings(runs, seed, "auto", threads)
    known = compute_within(budget, policy, bandit, risk, seed)
    if known is not None:
        return known
    counted = CountedRuns(budget, policy, bandit, risk, runs, seed, threads)
    while counted.made < runs:
        counted.extend()
        counted.require_rest()
    return counted.evaluate()


def compute_within(
    budget: WorkBudget, policy: Policy, bandit: Bandit, risk: Risk, seed: int, most_work: float = math.inf
) -> Evaluation | None:
    """Evaluate a policy by the exact engine; None if that does not apply, or would take more than `most_work`."""
    began = time.perf_counter()
    choose_risk(policy, bandit, risk)
    budget.check()
    _charge_tables(budget, policy)
    if risk.costs_differ or not exact.applies(policy, bandit):
        return None
    if isinstance(policy, EliminationPolicy):
        epochs = exact.count_epochs(policy, bandit)
        if EXACT_EPOCH * epochs > most_work:
            return None
        budget.charge(EXACT_EPOCH * epochs, f"the exact computation takes {epochs:,} epochs")
    return build_from_law(exact.compute_law(policy, bandit), policy, risk, seed, began)


def _charge_tables(budget: WorkBudget, policy: Policy) -> None:
    """Charge for the tables of an elimination policy, whose length depends on the cost, before they are built."""
    if isinstance(policy, EliminationPolicy) and budget.is_limited:
        epochs = count_max_epochs(policy.arms, policy.max_pulls)
        work = TABLE_EPOCH * epochs if epochs <= MAX_TABLE_EPOCHS else math.inf
        budget.charge(work, f"its tables have up to {epochs:,} epochs")


class CountedRuns:
    """Runs of a policy, made in stages whose work is taken from a budget; under one, a run ends at `run_work`."""

    def __init__(
        self,
        budget: WorkBudget,
        policy: Policy,
        bandit: Bandit,
        risk: Risk,
        runs: int,
        seed: int,
        threads: int | None,
        run_work: float = RUN_WORK,
    ) -> None:
        self.began = time.perf_counter()
        self.budget, self.bandit = budget, bandit
        self.policy = policy
        self.runs, self.seed, self.threads = check_settings(runs, seed, "auto", threads)
        self.risk = risk
        self.arms = make_arms(bandit)
        in_epochs = isinstance(policy, EpochPolicy) and not isinstance(self.arms, BlockArms)
        self.draws_every_pull = risk.costs_differ or not in_epochs
        self.longest_run = run_work
        self.pull_work, self.run_work = 1.0 + PULL_ARM * policy.arms, math.inf
        if not self.draws_every_pull:
            self.pull_work, self.run_work = EPOCH_PULL, EPOCHS_RUN
            if isinstance(policy, SchedulePolicy):  # one draw per arm and round, and the arms are ranked
                self.run_work = policy.arms * (1.0 + RANKED_ARM * policy.arms) * len(policy.schedule)
        self._make_simulator()
        if self.simulator.interpreted and budget.is_limited:
            self.pull_work *= INTERPRETED
            self._make_simulator()  # with a lower cap
        warn_if_interpreted(self.simulator)
        self.control = make_control(self.arms, self.simulator.checkpoint)
        self.work = 0.0
        self._count(0)

    def _make_simulator(self) -> None:
        """Make a simulator; under a budget, one that draws every pull cuts long runs."""
        self.cap, simulated = self.policy.max_pulls, self.policy
        if self.budget.is_limited and self.draws_every_pull:
            if self.budget.left <= 0.0:
                raise TooMuchWorkError("the work is used up before it")
            self.cap = min(self.cap, math.ceil(min(self.longest_run, self.budget.left) / self.pull_work))
            simulated = _with_cap(self.policy, self.cap)
        self.simulator, self.outcomes = make_simulator(simulated, self.arms, self.seed, "auto", self.runs, self.risk)

    @property
    def made(self) -> int:
        """The number of runs made so far."""
        return len(self.outcomes.pulls)

    @property
    def pulls(self) -> int:
        """The pulls of all runs so far."""
        return int(self.outcomes.pulls.sum())

    @property
    def was_cut(self) -> bool:
        """Whether a run was cut."""
        outcomes = self.outcomes
        return self.cap < self.policy.max_pulls and bool(np.any(outcomes.undecided & (outcomes.pulls >= self.cap)))

    def extend(self) -> None:
        """Make as many runs again, or all that are left if there is no limit."""
        self.extend_to(min(self.runs, max(FIRST_RUNS, 2 * self.made)) if self.budget.is_limited else self.runs)

    def extend_to(self, total: int) -> None:
        """Make so many runs in all."""
        made = self.made
        self.outcomes = extend_runs(self.outcomes, self.simulator, total, self.threads, self.budget.check)
        self._count(made)

    def require_rest(self, runs: int | None = None) -> None:
        """Raise TooMuchWorkError if the other ones of so many runs, all by default, do not fit into the budget."""
        wanted = self.runs if runs is None else runs
        if self.was_cut:
            raise TooMuchWorkError(self.describe(wanted))
        self.budget.require((wanted / self.made - 1.0) * self.work, self.describe(wanted))

    def describe(self, runs: int) -> str:
        """Say in a clause how many observations so many runs make."""
        pulls = float(f"{runs / self.made * self.pulls:.2g}")
        return f"{runs:,} runs make {'more than' if self.was_cut else 'about'} {pulls:,.0f} observations"

    def evaluate(self) -> Evaluation:
        """Return what the runs so far show."""
        if self.control is not None:
            self.budget.take(CONTROLLED_PAIR * self.policy.arms**2)
        moments = Moments(self.outcomes, np.array(self.bandit.gaps), self.control)
        return build_from_runs(self.outcomes, moments, self.simulator, self.policy, self.risk, self.seed, self.began)

    def _count(self, first: int) -> None:
        """Take the work of the runs from number `first` on from the budget."""
        work = float(np.minimum(self.pull_work * self.outcomes.pulls[first:], self.run_work).sum())
        self.work += work
        self.budget.take(work)


def _with_cap(policy: Policy, cap: int) -> Policy:
    """Return the same rule with a cap on its pulls; it has the same kernel."""
    return CustomPolicy(
        policy.arms,
        policy.rule,
        tables=policy.tables,
        state_size=policy.state_size,
        max_pulls=cap,
        risk=policy.risk,
    )
