"""Ready-to-run simulators: a policy and a bandit bound to a compiled kernel, with scratch memory for each thread."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numba import njit
from numba.core.errors import NumbaError

from dbcare.engines import direct
from dbcare.engines.compile import kernel as kernel_of
from dbcare.engines.control_variate import NO_WATCH, WATCH, Watch, leader_law
from dbcare.engines.draws import Arms, Drawing, Floats, GaussianArms, Ints, drawing_of
from dbcare.engines.estimates import Control
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.rng import begun
from dbcare.engines.several_caps import bounded_simulator
from dbcare.engines.simulator import KernelBlock, Simulator
from dbcare.engines.skip import many_arms, planned_rounds, two_arms
from dbcare.engines.skip.bridge import is_concave
from dbcare.errors import EngineError, InvalidValueError
from dbcare.policies.dbcare import DBCARE
from dbcare.policies.elimination import EliminationPolicy
from dbcare.policies.policy import Policy, RoundPolicy
from dbcare.policies.rounds import RoundRule
from dbcare.policies.rule import STOP
from dbcare.policies.schedule import SchedulePolicy


def checkpoint_of(policy: Policy, arms: Arms) -> int:
    """N0 where the control variate applies (DBCARE, K > 2, Gaussian arms of equal sigma), else 0."""
    if isinstance(policy, DBCARE) and policy.arms > 2 and equal_sigmas(arms):
        return policy.epoch_limit(policy.arms)
    return 0


def equal_sigmas(arms: Arms) -> bool:
    """Whether all arms are Gaussian with the same standard deviation."""
    return isinstance(arms, GaussianArms) and bool(np.all(arms.sigma == arms.sigma[0]))


def direct_simulator(policy: Policy, arms: Arms, seed: int) -> Simulator:
    """Every pull drawn; any policy."""
    drawing = drawing_of(arms)
    if isinstance(policy, RoundPolicy):
        checkpoint = checkpoint_of(policy, arms)
        kernel = _round_kernel(policy.rule, drawing, WATCH if checkpoint else NO_WATCH)
        run = _in_rounds(kernel, policy, arms, seed, checkpoint)
        return Simulator("direct", partial(KernelBlock, policy, 4 * policy.arms, run), "every pull drawn", checkpoint)
    return _any_simulator(policy, arms, drawing, seed, np.ones(policy.arms))


def skip_simulator(policy: Policy, arms: Arms, seed: int) -> Simulator:
    """Pulls drawn in large steps; raises EngineError where that cannot be done."""
    if isinstance(policy, SchedulePolicy):
        return _sums_simulator(policy, arms, seed)
    if not isinstance(policy, EliminationPolicy):
        raise EngineError(
            f"The skip engine needs an elimination policy or one planned in advance but got {type(policy).__name__}; "
            "the direct engine takes any."
        )
    if not isinstance(arms, GaussianArms):
        return bounded_simulator(policy, arms, seed)
    module = two_arms if policy.arms == 2 else many_arms
    if not is_concave(policy.tables, policy.arms):
        raise EngineError("The skip engine needs a boundary n * e_n that is concave in n; the direct engine takes any.")
    checkpoint = checkpoint_of(policy, arms)
    run = _in_rounds(_skip_kernel(policy.rule, policy.arms == 2), policy, arms, seed, checkpoint)
    block = partial(KernelBlock, policy, module.work_size(policy.arms), run)
    exact = "the law of the discrete walk, exactly"
    guarantee = exact if policy.arms == 2 else f"each jump certified to {many_arms.EPSILON:g}"
    return Simulator("skip", block, guarantee, checkpoint)


def _in_rounds(kernel: Any, policy: RoundPolicy, arms: Arms, seed: int, checkpoint: int) -> Callable[..., None]:
    """A kernel of the signature that policies in rounds share, bound to its question."""

    def run(first: int, state: Floats, work: Floats, out: Outcomes) -> None:
        results = (out.recommended, out.pulls, out.undecided, out.leader)
        kernel(first, seed, arms, policy.tables, state, work, checkpoint, *results)

    return run


def _sums_simulator(policy: SchedulePolicy, arms: Arms, seed: int) -> Simulator:
    kernel = _sums_kernel(policy.rule, planned_rounds.sum_of(arms))

    def run(first: int, state: Floats, work: Floats, out: Outcomes) -> None:
        kernel(first, seed, arms, policy.tables, state, out.recommended, out.pulls, out.undecided)

    return Simulator("skip", partial(KernelBlock, policy, 1, run), "one draw for each arm and round, exactly")


def charging_simulator(policy: Policy, arms: Arms, seed: int, costs: tuple[float, ...]) -> Simulator:
    """Every pull drawn, and charged by its arm; any policy."""
    return replace(_any_simulator(policy, arms, drawing_of(arms), seed, np.array(costs)), charged=True)


def _any_simulator(policy: Policy, arms: Arms, drawing: Drawing, seed: int, costs: Floats) -> Simulator:
    nothing = np.empty(0, np.int64), np.empty(0)
    try:
        kernel = _any_kernel(policy, drawing, direct.pass_pull)
        block = partial(KernelBlock, policy, 2 * policy.arms, _in_turns(kernel, policy, arms, seed, costs, *nothing))
        block()(Outcomes.empty(0), 0)
    except (NumbaError, IndexError, TypeError) as failure:
        return Simulator(
            "direct",
            lambda: partial(_interpret, policy, arms, seed, costs),
            "every pull drawn",
            parallel=False,
            interpreted=str(failure).strip().splitlines()[-1],
        )
    return Simulator("direct", block, "every pull drawn")


def _in_turns(
    kernel: Any, policy: Policy, arms: Arms, seed: int, costs: Floats, pulled: Ints, rewards: Floats
) -> Callable[..., None]:
    """The kernel for any policy, bound to its question."""

    def run(first: int, state: Floats, work: Floats, out: Outcomes) -> None:
        results = (out.recommended, out.pulls, out.undecided, out.spent, pulled, rewards)
        kernel(first, seed, arms, costs, policy.tables, state, work, policy.max_pulls, *results)
        if np.any(out.recommended == direct.ILLEGAL):
            raise _illegal(policy)

    return run


def _illegal(policy: Policy) -> InvalidValueError:
    return InvalidValueError(
        f"A policy must ask for and recommend arms 0 to {policy.arms - 1}, but this one chose another."
    )


def _interpret(policy: Policy, arms: Arms, seed: int, costs: Floats, out: Outcomes, first: int) -> None:
    """The same runs, with the policy's functions as plain Python and only the rewards drawn by compiled code."""
    begin, reward_of = _reward_kernels(drawing_of(arms))
    rule, tables = policy.rule, policy.tables
    words, work = np.zeros(4, np.uint64), np.zeros(2 * policy.arms)
    legal = range(policy.arms)
    for place in range(len(out.pulls)):
        state: list[Any] = [0.0] * policy.state_size
        rule.init(state, tables, begin(seed, first + place, arms, work, words))
        made, spent = 0, 0.0
        while (arm := rule.ask(state, tables)) != STOP and made < policy.max_pulls:
            if arm not in legal:
                raise _illegal(policy)
            rule.tell(state, tables, arm, reward_of(arms, work, arm, words))
            made += 1
            spent += costs[arm]
        choice = rule.recommend(state, tables)
        if choice not in legal:
            raise _illegal(policy)
        out.recommended[place], out.pulls[place], out.undecided[place] = choice, made, arm != STOP
        if len(out.spent):
            out.spent[place] = spent


@cache
def _round_kernel(rule: RoundRule, drawing: Drawing, watch: Watch) -> Any:
    return kernel_of(direct.round_loop(rule, drawing, watch), "a simulator of policies in rounds")


def _any_kernel(policy: Policy, drawing: Drawing, note: Callable[..., None]) -> Any:
    # A class of the main script has another identity in every process, so code that takes it is never found again.
    keep = type(policy.tables).__module__ != "__main__"
    return kernel_of(direct.any_loop(policy.rule, drawing, note), "a simulator of your policy", keep=keep)


@cache
def _sums_kernel(rule: RoundRule, draw_sum: Any) -> Any:
    return kernel_of(planned_rounds.sums_loop(rule, draw_sum), "a simulator of planned rounds")


@cache
def _skip_kernel(rule: RoundRule, is_pair: bool) -> Any:
    return kernel_of((two_arms if is_pair else many_arms).skip_loop(rule), "the skip-ahead simulator")


@lru_cache(maxsize=8)
def _reward_kernels(drawing: Drawing) -> Any:
    """The start of a run's stream, and its next reward, for callers that are not compiled."""
    settle, draw = drawing

    def begin(seed, run, arms, work, words):
        for arm in range(len(work) // 2):
            settle(arms, work, arm, arm)
        tie, words[0], words[1], words[2], words[3] = begun(seed, run)
        return tie

    def reward_of(arms, work, arm, words):
        reward, words[0], words[1], words[2], words[3] = draw(arms, work, arm, words[0], words[1], words[2], words[3])
        return reward

    return njit(error_model="numpy")(begin), njit(error_model="numpy")(reward_of)


@dataclass(frozen=True)
class Trace:
    """One compiled run: the seed of its ties, the arm and the reward of each pull, and its recommendation."""

    tie: int
    pulls: list[tuple[int, float]]
    recommended: int


def trace(policy: Policy, arms: Arms, seed: int, number: int) -> Trace:
    """Follow run `number` of the direct engine."""
    drawing = drawing_of(arms)
    pulled, rewards = np.empty(policy.max_pulls, np.int64), np.empty(policy.max_pulls)
    kernel = _any_kernel(policy, drawing, direct.note_pull)
    run = _in_turns(kernel, policy, arms, seed, np.ones(policy.arms), pulled, rewards)
    block = KernelBlock(policy, 2 * policy.arms, run)
    out = Outcomes.empty(1)
    block(out, number)
    tie = _reward_kernels(drawing)[0](seed, number, arms, block.work, np.zeros(4, np.uint64))
    made = int(out.pulls[0])
    pulls = list(zip(pulled[:made].tolist(), rewards[:made].tolist(), strict=True))
    return Trace(tie, pulls, int(out.recommended[0]))


def control_at(arms: Arms, checkpoint: int) -> Control | None:
    """The control variate at `checkpoint`, if there is one."""
    if checkpoint == 0 or not isinstance(arms, GaussianArms):
        return None
    return Control(checkpoint, leader_law(arms, checkpoint))
