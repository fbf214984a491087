"""Compile the kernels of policies in advance, by using every engine once on small problems.

Which kernels there are follows from the registry of policies, from the engines, and from the kinds of arms.
"""

from __future__ import annotations

import io
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import as_completed
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, replace
from typing import Any

from dbcare.engines.evaluate import check_rewards, evaluate
from dbcare.engines.kernels.compile import list_used
from dbcare.engines.pooling.evaluate import Target, evaluate_pooled
from dbcare.engines.simulate.draws import make_arms
from dbcare.engines.simulate.simulators import direct_simulator, skip_simulator
from dbcare.engines.workers import available_threads, start_processes
from dbcare.errors import EngineError, InvalidValueError
from dbcare.lab.experiments.shared_runs import evaluate_costs, share_caps, without_cost
from dbcare.policies.policy import Pace, Policy
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES, build_policy
from dbcare.policies.rule import BlockRule
from dbcare.problem.bandits import Bandit, BlockBandit, GaussianBlocks, ScoreTable
from dbcare.problem.risk import Risk

RISK = Risk.misidentification(1e-3)
REGRET = Risk.simple_regret(1e-3)  # for policies that take no other
# For policies that cannot do without.
OPTIONS = {
    "delta": 0.1,
    "budget": 16,
    "pulls": 2,
    "indifference": 0.5,
    "sampling": DEFAULT_POLICY,
    "stopping": DEFAULT_POLICY,
}

# Simulators of two arms and of more can differ.
BANDITS: dict[str, tuple[Bandit, ...]] = {
    "Gaussian arms": (Bandit.gaussian([0.5, 0.0]), Bandit.gaussian([0.5, 0.0, 0.0])),
    "Bernoulli arms": (Bandit.bernoulli([0.75, 0.25]), Bandit.bernoulli([0.75, 0.25, 0.25])),
    "Gaussian blocks": (GaussianBlocks.of([0.5, 0.0, 0.0]),),
    "a score table": (ScoreTable([[1, 0, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]]),),
}


def _draw_every_pull(policy: Policy, bandit: Bandit) -> None:
    evaluate(policy, bandit, RISK, runs=1, engine="direct", threads=1)


def _skip(policy: Policy, bandit: Bandit) -> None:
    evaluate(policy, bandit, RISK, runs=1, engine="skip", threads=1)


def _compute_exactly(policy: Policy, bandit: Bandit) -> None:
    evaluate(policy, bandit, RISK, engine="exact")


def _charge_by_arm(policy: Policy, bandit: Bandit) -> None:
    costs = Risk(RISK.loss, tuple(1e-3 * (1 + arm) for arm in range(policy.arms)))
    evaluate(policy, bandit, costs, runs=1, threads=1)


def _pool(policy: Policy, bandit: Bandit) -> None:
    """Make tallied runs by both simulators, of which pooling chooses one, and pool some."""
    if isinstance(bandit, BlockBandit) or policy.pace is Pace.PLANNED:
        return
    arms = make_arms(bandit)
    for build in (direct_simulator, skip_simulator):
        with suppress(EngineError):
            simulator = build(policy, arms, 0, tallied=True)
            simulator.block()(simulator.allocate(1), 0)
    evaluate_pooled(policy, [bandit], [(RISK.loss, 1e-3)], Target(runs=1), seed=0, threads=1)


def _share_runs(policy: Policy, bandit: Bandit) -> None:
    if isinstance(bandit, BlockBandit):
        return
    if policy.shares_caps:
        capped: Any = policy  # a dataclass, which its type does not tell
        for direct in (False, True):
            share_caps([policy, replace(capped, max_pulls=policy.max_pulls // 2)], bandit, 1, 0, 1, direct=direct)
    elif (shared := without_cost(policy)) is not None:
        at_costs = [replace(shared, risk=Risk(shared.risk.loss, cost)) for cost in (2e-3, 1e-3)]
        evaluate_costs(at_costs, bandit, Target(runs=1), seed=0)


USES: dict[str, Callable[[Policy, Bandit], None]] = {
    "every pull drawn": _draw_every_pull,
    "skipping ahead": _skip,
    "exactly": _compute_exactly,
    "costs by arm": _charge_by_arm,
    "pooled runs": _pool,
    "several caps or costs": _share_runs,
}


@dataclass(frozen=True)
class Task:
    """One use of an engine for the policies that share a rule, and so most kernels, on one kind of arms."""

    policies: tuple[str, ...]
    arms: str
    use: str

    @property
    def label(self) -> str:
        """What is compiled, in words."""
        return f"{', '.join(self.policies)}: {self.arms}, {self.use}"

    def run(self) -> None:
        """Use the engine, where it applies to the policy and the arms."""
        for bandit in BANDITS[self.arms]:
            for name in self.policies:
                policy = _build(name, bandit)
                if policy is not None:
                    with suppress(EngineError, InvalidValueError):
                        check_rewards(policy, bandit)
                        USES[self.use](policy, bandit)


@dataclass(frozen=True)
class Done:
    """A finished task: the kernels that it compiled, those that it found on disk, and the seconds that it took."""

    task: Task
    compiled: frozenset[str]
    found: frozenset[str]
    seconds: float


def _build(name: str, bandit: Bandit) -> Policy | None:
    """Build a policy by name; None if it is not for so many arms."""
    options = {option: OPTIONS[option] for option in POLICIES.entry(name).options if option in OPTIONS}
    for risk in (RISK, REGRET):
        with suppress(InvalidValueError):
            policy = build_policy(name, bandit, risk, **options)
            return policy if policy.arms == len(bandit.arms) else None
    return None


def list_shipped() -> list[str]:
    """List the policies that ship with dbcare."""
    return list(POLICIES.shipped)


def plan_tasks(names: Iterable[str]) -> list[Task]:
    """List the tasks for some policies. Those that may need the same kernel are far apart, so as not to wait for it."""
    tasks = []
    for use in USES:
        for arms, bandits in BANDITS.items():
            groups: dict[int, list[str]] = {}
            for name in names:
                built = [policy for bandit in bandits if (policy := _build(name, bandit)) is not None]
                in_blocks = isinstance(bandits[0], BlockBandit)
                if built and (not in_blocks or isinstance(built[0].rule, BlockRule)):
                    groups.setdefault(id(built[0].rule), []).append(name)
            tasks += [Task(tuple(group), arms, use) for group in groups.values()]
    return tasks


def run_tasks(tasks: Iterable[Task], processes: int | None = None) -> Iterator[Done]:
    """Run tasks in processes of their own, one per CPU by default; yield each as it is finished."""
    # Workers end at Ctrl-C without a traceback each. They are started afresh: threads do not survive a fork.
    with start_processes(processes or available_threads(), signal.SIG_DFL) as workers:
        yield from (each.result() for each in as_completed([workers.submit(_run_task, task) for task in tasks]))


def _run_task(task: Task) -> Done:
    began = time.perf_counter()
    compiled_before, found_before = list_used()
    with redirect_stderr(io.StringIO()):  # the notices of compilation
        task.run()
    compiled, found = list_used()
    seconds = time.perf_counter() - began
    return Done(task, frozenset(compiled - compiled_before), frozenset(found - found_before), seconds)
