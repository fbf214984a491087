"""Build ready-to-run simulators: a policy and a bandit bound to a compiled kernel, with scratch memory per thread."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numba import NumbaError, njit

from dbcare.engines.kernels.compile import kernel as compile_kernel
from dbcare.engines.simulate import direct
from dbcare.engines.simulate.direct import NO_WATCH, WATCH, Watch, leader_law
from dbcare.engines.simulate.draws import (
    Arms,
    BlockArms,
    Drawing,
    FiniteArms,
    Floats,
    GaussianArms,
    Ints,
    PullDrawing,
    make_drawing,
    make_pull_drawing,
    name_arms,
    scratch_size,
)
from dbcare.engines.simulate.halt import current_halt
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.rng import begun
from dbcare.engines.simulate.simulator import KernelBlock, Simulator
from dbcare.engines.skip import many_arms, planned, two_arms
from dbcare.engines.skip.finite import Reach, add_sums, capped_loop, make_reach, no_reach
from dbcare.engines.skip.two_arms import is_concave
from dbcare.engines.statistics import Control
from dbcare.errors import EngineError, InvalidValueError
from dbcare.policies.policy import Pace, Policy, ships
from dbcare.policies.rule import STOP, Rule

NO_CAPS: Ints = np.empty(0, np.int64)
MIN_LEVELS = 3  # safe jumps of up to 8 epochs; with fewer levels, drawing every pull is as fast


def find_checkpoint(policy: Policy, arms: Arms) -> int:
    """Return the policy's checkpoint if the control variate applies (Gaussian arms of equal sigma), else 0."""
    return policy.checkpoint if have_equal_sigmas(arms) else 0


def have_equal_sigmas(arms: Arms) -> bool:
    """Return whether all arms are Gaussian with the same standard deviation."""
    return isinstance(arms, GaussianArms) and bool(np.all(arms.sigma == arms.sigma[0]))


def direct_simulator(policy: Policy, arms: Arms, seed: int, *, tallied: bool = False) -> Simulator:
    """Build a simulator that draws every pull; works for any policy. `tallied` runs have no control variate."""
    # Only elimination keeps the sum of all rewards of an arm.
    in_epochs = policy.pace is Pace.ELIMINATION if tallied else policy.pace.in_epochs
    if in_epochs and not isinstance(arms, BlockArms):
        checkpoint = 0 if tallied else find_checkpoint(policy, arms)
        kernel = _epoch_kernel(policy.rule, make_drawing(arms), WATCH if checkpoint else NO_WATCH)
        run = _bind_epoch_kernel(kernel, policy, arms, seed, checkpoint)
        block = partial(KernelBlock, policy, 4 * policy.arms, run)
        return _tally(Simulator("direct", block, "every pull drawn", checkpoint), policy, tallied)
    return _tally(_any_simulator(policy, arms, seed, np.ones(policy.arms)), policy, tallied)


def _tally(simulator: Simulator, policy: Policy, tallied: bool) -> Simulator:
    return replace(simulator, tallied_arms=policy.arms) if tallied else simulator


def skip_simulator(policy: Policy, arms: Arms, seed: int, *, tallied: bool = False) -> Simulator:
    """Build a simulator that draws many pulls at once; raises EngineError if the policy or the arms do not allow it.

    `tallied` runs have no control variate, and more than two arms.
    """
    if isinstance(arms, BlockArms):
        raise EngineError("The skip engine cannot simulate arms that share blocks; use the direct engine.")
    if tallied and (policy.pace is Pace.PLANNED or policy.arms == 2):
        raise EngineError("The skip engine cannot tally the arms of these runs; use the direct engine.")
    if policy.pace is Pace.PLANNED:
        return _planned_simulator(policy, arms, seed)
    if policy.pace is not Pace.ELIMINATION:
        raise EngineError(
            f"The skip engine needs an elimination policy or one planned in advance but got {type(policy).__name__}; "
            "use the direct engine."
        )
    if not isinstance(arms, GaussianArms):
        return _tally(safe_jump_simulator(policy, arms, seed), policy, tallied)
    module = two_arms if policy.arms == 2 else many_arms
    if not is_concave(policy.tables, policy.arms):
        raise EngineError("The skip engine needs a boundary n * e_n that is concave in n; use the direct engine.")
    checkpoint = 0 if tallied else find_checkpoint(policy, arms)
    run = _bind_epoch_kernel(_skip_kernel(policy.rule, policy.arms == 2), policy, arms, seed, checkpoint)
    block = partial(KernelBlock, policy, module.work_size(policy.arms), run)
    exact = "the exact law of the discrete walk"
    guarantee = exact if policy.arms == 2 else f"each jump certified to {many_arms.EPSILON:g}"
    return _tally(Simulator("skip", block, guarantee, checkpoint), policy, tallied)


def safe_jump_simulator(policy: Policy, arms: Arms, seed: int, caps: Ints = NO_CAPS) -> Simulator:
    """Build a simulator of elimination that jumps over epochs in which no arm can be dropped.

    It records each run at the `caps`, which are ascending and below the policy's own cap.
    """
    if not isinstance(arms, FiniteArms):
        raise EngineError(
            "The skip engine needs rewards with finitely many outcomes to follow several caps; use the direct engine."
        )
    reach = make_reach(policy.tables, arms)
    arms_and_sums, levels = add_sums(arms, max(reach.longest_jump(policy.tables), 2.0**MIN_LEVELS))
    if levels < MIN_LEVELS:
        raise EngineError(
            "The skip engine needs rewards whose sums take few values for an elimination policy; use the direct engine."
        )
    run = _bind_capped_kernel(policy, arms_and_sums, reach._replace(levels=levels), seed, caps)
    guarantee = "jumps in which no arm can be dropped, exact"
    return Simulator("skip", partial(KernelBlock, policy, 2 * policy.arms + 1, run), guarantee)


def capped_direct_simulator(policy: Policy, arms: Arms, seed: int, caps: Ints) -> Simulator:
    """Build a simulator of elimination that draws every pull, and records each run at the `caps`, as above."""
    run = _bind_capped_kernel(policy, arms, no_reach(policy.tables, policy.arms), seed, caps)
    return Simulator("direct", partial(KernelBlock, policy, 2 * policy.arms + 1, run), "every pull drawn")


def _bind_capped_kernel(policy: Policy, arms: Arms, reach: Reach, seed: int, caps: Ints) -> Callable[..., None]:
    kernel = _capped_kernel(policy.rule, make_drawing(arms))

    def run(first: int, state: Floats, work: Floats, out: Outcomes) -> None:
        results = (out.recommended, out.pulls, out.undecided)
        by_cap = [result if result.ndim == 2 else result[:, None] for result in results]
        kernel(first, seed, arms, policy.tables, reach, caps, state, work, *by_cap, out.tallies)

    return run


def _bind_epoch_kernel(kernel: Any, policy: Policy, arms: Arms, seed: int, checkpoint: int) -> Callable[..., None]:
    """Bind a kernel with the signature shared by all policies in epochs."""

    def run(first: int, state: Floats, work: Floats, out: Outcomes) -> None:
        results = (out.recommended, out.pulls, out.undecided, out.leader, out.tallies)
        kernel(first, seed, arms, policy.tables, state, work, checkpoint, *results)

    return run


def _planned_simulator(policy: Policy, arms: Arms, seed: int) -> Simulator:
    kernel = _sums_kernel(policy.rule, planned.choose_sum(arms))

    def run(first: int, state: Floats, work: Floats, out: Outcomes) -> None:
        kernel(first, seed, arms, policy.tables, state, out.recommended, out.pulls, out.undecided)

    return Simulator("skip", partial(KernelBlock, policy, 1, run), "one draw per arm and round, exact")


def charging_simulator(policy: Policy, arms: Arms, seed: int, costs: tuple[float, ...]) -> Simulator:
    """Build a simulator that draws every pull and charges its arm's cost; works for any policy."""
    return replace(_any_simulator(policy, arms, seed, np.array(costs)), charged=True)


def _any_simulator(policy: Policy, arms: Arms, seed: int, costs: Floats) -> Simulator:
    try:
        run = _bind_any_kernel(_any_kernel(policy, arms), policy, arms, seed, costs, PullRecord.empty(0))
        block = partial(KernelBlock, policy, scratch_size(arms, policy.arms), run)
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


class PullRecord(NamedTuple):
    """The arm, block and reward of each pull of a run."""

    arms: Ints
    blocks: Ints
    rewards: Floats

    @classmethod
    def empty(cls, pulls: int) -> "PullRecord":
        """Allocate a record of `pulls` pulls; with 0, runs are not recorded."""
        return cls(np.empty(pulls, np.int64), np.empty(pulls, np.int64), np.empty(pulls))


def _bind_any_kernel(
    kernel: Any, policy: Policy, arms: Arms, seed: int, costs: Floats, record: PullRecord
) -> Callable[..., None]:
    """Bind the kernel for any policy, and the switch that ends its runs."""
    halt = current_halt()

    def run(first: int, state: Floats, work: Floats, out: Outcomes) -> None:
        results = (out.recommended, out.pulls, out.undecided, out.spent, out.tallies, *record)
        kernel(first, seed, arms, costs, policy.tables, state, work, policy.max_pulls, halt.flag, *results)
        halt.check()
        if np.any(out.recommended == direct.ILLEGAL):
            raise _illegal_arm_error(policy)

    return run


def _illegal_arm_error(policy: Policy) -> InvalidValueError:
    return InvalidValueError(
        f"A policy must ask for and recommend arms 0 to {policy.arms - 1} but this one chose another, "
        "or an arm without a block left."
    )


def _interpret(policy: Policy, arms: Arms, seed: int, costs: Floats, out: Outcomes, first: int) -> None:
    """Simulate the same runs with the policy's functions in plain Python; only the rewards come from compiled code."""
    begin, reward_of = _reward_kernels(make_pull_drawing(arms))
    rule, tables = policy.rule, policy.tables
    block_of = direct.make_block_finder(rule, isinstance(arms, BlockArms))
    words, work = np.zeros(4, np.uint64), np.zeros(scratch_size(arms, policy.arms))
    legal = range(policy.arms)
    for place in range(len(out.pulls)):
        state: list[Any] = [0.0] * policy.state_size
        rule.init(state, tables, begin(seed, first + place, arms, work, words))
        pulls, spent = 0, 0.0
        while (arm := rule.ask(state, tables)) != STOP and pulls < policy.max_pulls:
            if arm not in legal or (block := block_of(state, tables, arm, pulls)) < 0:
                raise _illegal_arm_error(policy)
            reward = reward_of(arms, work, arm, block, pulls, words)
            rule.tell(state, tables, arm, reward)
            if out.tallies.arms:
                out.tallies.pulls[place, arm] += 1.0
                out.tallies.sums[place, arm] += reward
            pulls += 1
            spent += costs[arm]
        choice = rule.recommend(state, tables)
        if choice not in legal:
            raise _illegal_arm_error(policy)
        out.recommended[place], out.pulls[place], out.undecided[place] = choice, pulls, arm != STOP
        if len(out.spent):
            out.spent[place] = spent


@cache
def _epoch_kernel(rule: Any, drawing: Drawing, watch: Watch) -> Any:
    return compile_kernel(direct.epoch_loop(rule, drawing, watch), "a simulator of policies in epochs", rule.calls)


def _any_kernel(policy: Policy, arms: Arms) -> Any:
    # A class defined in the main script has a new identity in every process, so a cached kernel would never be found.
    keep = type(policy.tables).__module__ != "__main__"
    drawing, shares_blocks = make_pull_drawing(arms), isinstance(arms, BlockArms)
    if ships(policy):
        return _shipped_kernel(type(policy).__name__, policy.rule, drawing, shares_blocks, keep)
    return _loop_kernel(f"your policy {type(policy).__name__}", policy.rule, drawing, shares_blocks, keep)


def _loop_kernel(name: str, rule: Rule, drawing: PullDrawing, shares_blocks: bool, keep: bool) -> Any:
    loop = direct.any_loop(rule, drawing, direct.make_block_finder(rule, shares_blocks))
    return compile_kernel(loop, "a simulator", rule.calls, of=f"{name} on {name_arms(drawing)}", keep=keep)


# Finding a kernel by its code takes milliseconds. The code of a policy of your own may change, say in a notebook.
_shipped_kernel = lru_cache(maxsize=64)(_loop_kernel)


@cache
def _sums_kernel(rule: Any, draw_sum: Any) -> Any:
    return compile_kernel(planned.sums_loop(rule, draw_sum), "a simulator of planned rounds", rule.calls)


@cache
def _capped_kernel(rule: Any, drawing: Drawing) -> Any:
    return compile_kernel(capped_loop(rule, drawing), "a simulator of elimination by safe jumps", rule.calls)


@cache
def _skip_kernel(rule: Any, is_pair: bool) -> Any:
    loop = (two_arms if is_pair else many_arms).skip_loop(rule)
    return compile_kernel(loop, "the skip-ahead simulator", rule.calls)


@lru_cache(maxsize=8)
def _reward_kernels(drawing: PullDrawing) -> Any:
    """Compile functions that start a run's stream and draw its next reward, for interpreted callers."""
    start, draw = drawing

    def begin(seed, run, arms, work, words):
        tie, s0, s1, s2, s3 = begun(seed, run)
        words[0], words[1], words[2], words[3] = start(arms, work, s0, s1, s2, s3)
        return tie

    def reward_of(arms, work, arm, block, made, words):
        reward, words[0], words[1], words[2], words[3] = draw(
            arms, work, arm, block, made, words[0], words[1], words[2], words[3]
        )
        return reward

    return njit(error_model="numpy")(begin), njit(error_model="numpy")(reward_of)


@dataclass(frozen=True)
class Trace:
    """One compiled run: its tie-breaking seed, the arm and reward of each pull, its recommendation, and the blocks."""

    tie: int
    pulls: list[tuple[int, float]]
    recommended: int
    blocks: list[int]


def trace(policy: Policy, arms: Arms, seed: int, number: int) -> Trace:
    """Record run `number` of the direct engine."""
    record = PullRecord.empty(policy.max_pulls)
    run = _bind_any_kernel(_any_kernel(policy, arms), policy, arms, seed, np.ones(policy.arms), record)
    block = KernelBlock(policy, scratch_size(arms, policy.arms), run)
    out = Outcomes.empty(1)
    block(out, number)
    tie = _reward_kernels(make_pull_drawing(arms))[0](seed, number, arms, block.work, np.zeros(4, np.uint64))
    pulled, blocks, rewards = (column[: int(out.pulls[0])].tolist() for column in record)
    return Trace(tie, list(zip(pulled, rewards, strict=True)), int(out.recommended[0]), blocks)


def make_control(arms: Arms, checkpoint: int) -> Control | None:
    """Return the control variate at `checkpoint`, or None if there is none."""
    if checkpoint == 0 or not isinstance(arms, GaussianArms):
        return None
    return Control(checkpoint, leader_law(arms, checkpoint))
