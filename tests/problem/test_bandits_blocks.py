"""Bandits whose arms share blocks: what they state, what they refuse, and how the direct engine draws from them."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dbcare import Bandit, Bernoulli, Breakeven, BreakevenRounds, Gaussian, Policy, Risk, evaluate
from dbcare.engines.result import Evaluation
from dbcare.engines.simulate.draws import Arms, make_arms, make_pull_drawing, scratch_size
from dbcare.engines.simulate.rng import begun
from dbcare.engines.simulate.simulators import trace
from dbcare.errors import EngineError, InvalidValueError, NotCompiledWarning
from dbcare.lab.experiments.passes import Pass, Point
from dbcare.lab.experiments.results import compute
from dbcare.policies import Guess, Racing, Uniform
from dbcare.policies.build import PolicyFacts
from dbcare.policies.rule import BlockRule, Rule
from dbcare.policies.run import Run
from dbcare.problem import GaussianBlocks, ScoreTable
from tests.helpers.block_rules import (
    ENDING_BLOCKS,
    INTERPRETED_ENDING_BLOCKS,
    INTERPRETED_ROUNDS,
    POOL,
    ROUNDS,
    WITHOUT_BLOCKS,
    make_fixed_policy,
)

SEED = 5
RISK = Risk.simple_regret(1e-3)
COSTS = Risk.simple_regret([1e-3, 2e-3, 5e-3])
WAVES = GaussianBlocks.of([0.4, 0.2, 0.0], sigma=[1.0, 0.5, 2.0], correlation=0.5, drift=0.3, period=50)
TABLE = ScoreTable(np.random.default_rng(1).normal([0.3, 0.1, 0.0], 0.5, (40, 3)))


def test_what_gaussian_blocks_state() -> None:
    assert WAVES.arms == (Gaussian(0.4, 1.0), Gaussian(0.2, 0.5), Gaussian(0.0, 2.0))
    assert (WAVES.best_arms, WAVES.smallest_gap, WAVES.sigma) == ((0,), 0.2, 2.0)
    assert GaussianBlocks.of([1, 0]) == GaussianBlocks((Gaussian(1.0), Gaussian(0.0)), correlation=0, drift=0)
    assert len({GaussianBlocks.of([1, 0]), GaussianBlocks.of([1, 0]), GaussianBlocks.of([1, 0], correlation=0.1)}) == 2
    assert replace(WAVES, drift=0.0).drift == 0.0
    with pytest.raises(InvalidValueError, match="largest difference between means"):
        WAVES.require_bound(0.3)


def test_what_a_table_states() -> None:
    table = ScoreTable([[1, 0], [1, True], [0, 0], [0.5, 0]], names=("long", "short"))
    assert (table.means, table.gaps, table.blocks) == ((0.625, 0.25), (0.0, 0.375), 4)
    assert table.scores == ((1.0, 0.0), (1.0, 1.0), (0.0, 0.0), (0.5, 0.0))
    same = ScoreTable(np.array(table.scores), names=("long", "short"))
    assert table == same
    assert hash(table) == hash(same)
    assert table != ScoreTable(table.scores)
    assert replace(table, names=None) == ScoreTable(table.scores)
    assert ScoreTable(np.array([[True, False], [False, True]])).means == (0.5, 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianBlocks((Gaussian(0.0), Bernoulli(0.5))), "`arms[1]` must be a Gaussian but got Bernoulli("),
        (lambda: GaussianBlocks.of([0]), "`arms` must be at least 2"),
        (lambda: GaussianBlocks.of([0, 1], correlation=1.5), "`correlation` must lie between 0 and 1 but got 1.5"),
        (lambda: GaussianBlocks.of([0, 1], drift=-1), "`drift` must not be negative but got -1"),
        (lambda: GaussianBlocks.of([0, 1], period=0), "`period` must be positive but got 0"),
        (lambda: GaussianBlocks.of([0, 1], sigma=[1, 1, 1]), "`sigma` must be one number or one per arm (2)"),
        (lambda: ScoreTable([]), "`scores` must have at least one row but got []"),
        (lambda: ScoreTable([[1]]), "`arms` must be at least 2"),
        (lambda: ScoreTable([1, 2]), "`scores[0]` must be a row with one score per arm but got 1"),  # type: ignore[list-item]  # wrong on purpose
        (lambda: ScoreTable([[0, 1], [0, 1, 2]]), "`scores[1]` must have 2 scores, as the rows above, but got 3"),
        (lambda: ScoreTable([[0, 1], [0, math.nan]]), "`scores[1][1]` must be finite but got nan"),
        (lambda: ScoreTable([[0, 1], [None, 1]]), "`scores[1][0]` must be a real number but got None"),  # type: ignore[list-item]  # wrong on purpose
        (lambda: ScoreTable([[0, 1]], names=("A",)), "`names` must be 2 distinct names"),
        (lambda: ScoreTable([[0, 9]], bound=1), "`bound` must be at least the largest difference between means, 9"),
    ],
)
def test_bad_input_is_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        make()
    assert message in str(caught.value)


def test_policies_are_told_the_pool() -> None:
    facts = PolicyFacts.from_bandit(TABLE, RISK)
    assert (facts.pool, facts.only_these_blocks) == (40, True)
    assert facts.known().items() >= {"pool": 40, "only_these_blocks": True}.items()
    blocks = PolicyFacts.from_bandit(WAVES, RISK)
    assert (blocks.pool, blocks.spread.sigma) == (None, 2.0)
    assert not blocks.known().keys() & {"pool", "only_these_blocks"}


Pull = tuple[int, int, float]


def step_drawn(policy: Policy, truth: Arms, number: int) -> tuple[list[Pull], int]:
    """Step a run by hand, drawing its rewards one by one."""
    start, draw = make_pull_drawing(truth)
    work = np.zeros(scratch_size(truth, policy.arms))
    tie, *words = begun(SEED, number)
    words = list(start(truth, work, *(np.uint64(word) for word in words)))
    run = Run.fresh(policy, tie)
    pulls = []
    while (arm := run.ask()) is not None and run.pulls < policy.max_pulls:
        rule = policy.rule
        block = rule.block(run.state, policy.tables, arm) if isinstance(rule, BlockRule) else run.pulls
        reward, *words = draw(truth, work, arm, block, run.pulls, *(np.uint64(word) for word in words))
        run.tell(reward)
        pulls.append((arm, block, reward))
    return pulls, run.recommendation()


COMPILED: dict[str, tuple[Policy, Bandit]] = {  # each takes seconds to compile, so not every rule meets every bandit
    "rounds, blocks": (make_fixed_policy(ROUNDS, 3, 20), WAVES),
    "pool, table": (make_fixed_policy(POOL, 3, 40), TABLE),
    "without blocks, table": (make_fixed_policy(WITHOUT_BLOCKS, 3, 20), TABLE),
    "Breakeven, blocks": (Breakeven(RISK, 3, sigma=0.5), WAVES),
    "BreakevenRounds, blocks": (BreakevenRounds(RISK, 3, bound=1.0), WAVES),
    "BreakevenRounds, pool, table": (BreakevenRounds(RISK, 3, bound=1.0, pool=40), TABLE),
}


@pytest.mark.parametrize(("policy", "bandit"), COMPILED.values(), ids=COMPILED)
def test_compiled_runs_equal_runs_stepped_by_hand(policy: Policy, bandit: Bandit) -> None:
    """To the bit, and each evaluated run is the traced one."""
    truth, runs = make_arms(bandit), 6
    traces = [trace(policy, truth, SEED, number) for number in range(runs)]
    for number, compiled in enumerate(traces):
        stepped, recommended = step_drawn(policy, truth, number)
        recorded = [(arm, block, x) for (arm, x), block in zip(compiled.pulls, compiled.blocks, strict=True)]
        assert recorded == stepped
        assert compiled.recommended == recommended
    evaluation = evaluate(policy, bandit, COSTS, runs=runs, seed=SEED)
    costs = COSTS.costs(3)
    spends = [sum(costs[arm] for arm, _ in compiled.pulls) for compiled in traces]
    assert evaluation.spend.value == pytest.approx(np.mean(spends), rel=1e-12)
    regrets = [bandit.gaps[compiled.recommended] for compiled in traces]
    assert evaluation.risk == pytest.approx(np.mean(regrets) + np.mean(spends), rel=1e-12)


def test_arms_share_a_block_at_any_time() -> None:
    """With correlation 1, arms pulled long after each other differ only in mean and sigma; other blocks differ."""
    bandit = GaussianBlocks.of([0.4, 0.0], sigma=[1.0, 3.0], correlation=1.0)
    blocks = 50
    run = trace(make_fixed_policy(POOL, 2, blocks), make_arms(bandit), SEED, 0)
    assert run.blocks == [*range(blocks)] * 2
    first, second = np.array([reward for _, reward in run.pulls]).reshape(2, blocks)
    np.testing.assert_allclose(second / 3.0, first - 0.4, rtol=1e-12)
    assert len(set(first)) == blocks
    other = trace(make_fixed_policy(POOL, 2, blocks), make_arms(bandit), SEED, 1)
    assert not {reward for _, reward in other.pulls} & set(first)


def test_a_rule_without_blocks_pulls_each_time_in_a_new_one() -> None:
    run = trace(make_fixed_policy(WITHOUT_BLOCKS, 2, 30), make_arms(GaussianBlocks.of([0, 0], correlation=1)), SEED, 0)
    assert run.blocks == [*range(60)]
    assert len({reward for _, reward in run.pulls}) == 60


def fit_wave(rewards: list[float], period: float) -> tuple[float, float, float]:
    """Return amplitude and phase of a sine wave fitted by least squares, and the largest deviation from it."""
    angles = 2.0 * math.pi * np.arange(len(rewards)) / period
    design = np.column_stack([np.sin(angles), np.cos(angles)])
    (sine, cosine), *_ = np.linalg.lstsq(design, np.array(rewards), rcond=None)
    deviation = np.abs(design @ (sine, cosine) - rewards).max()
    return math.hypot(sine, cosine), math.atan2(cosine, sine) / (2.0 * math.pi) % 1.0, float(deviation)


def test_drift_is_a_sine_wave_of_all_arms() -> None:
    """With next to no noise, rewards are the wave, whatever arm and block; each run has a phase of its own."""
    bandit = GaussianBlocks.of([0.0, 0.0, 0.0], sigma=1e-12, correlation=0.5, drift=0.7, period=41.5)
    runs = [trace(make_fixed_policy(ROUNDS, 3, 100), make_arms(bandit), SEED, number) for number in range(3)]
    fits = [fit_wave([reward for _, reward in run.pulls], 41.5) for run in runs]
    for amplitude, _, deviation in fits:
        assert amplitude == pytest.approx(0.7, abs=1e-10)
        assert deviation < 1e-10
    assert len({round(phase, 6) for _, phase, _ in fits}) == 3
    assert fit_wave([reward for _, reward in runs[0].pulls], 45.0)[2] > 0.1  # another period does not fit


def test_a_table_gives_each_row_once_per_arm_in_one_order() -> None:
    scores = np.arange(120.0).reshape(40, 3)  # tells its row and column
    truth = make_arms(ScoreTable(scores))
    orders = []
    for number in range(3):
        run = trace(make_fixed_policy(POOL, 3, 40), truth, SEED, number)
        rows, columns = np.divmod([reward for _, reward in run.pulls], 3)
        assert columns.tolist() == [arm for arm, _ in run.pulls]
        by_arm = rows.reshape(3, 40)
        assert sorted(by_arm[0]) == [*range(40)]
        assert (by_arm == by_arm[0]).all()
        orders.append(tuple(by_arm[0]))
    assert len({*orders, tuple(range(40))}) == 4


def test_a_table_begins_again_after_its_last_row() -> None:
    truth = make_arms(ScoreTable(np.arange(80.0).reshape(40, 2)))
    run = trace(make_fixed_policy(WITHOUT_BLOCKS, 2, 40), truth, SEED, 0)
    rows = np.array([reward for _, reward in run.pulls]) // 2
    assert sorted(rows[:40]) == [*range(40)]
    assert rows[40:].tolist() == rows[:40].tolist()


def figures(evaluation: Evaluation) -> tuple[object, ...]:
    return evaluation.risk, evaluation.error, evaluation.pulls, evaluation.spend


@pytest.mark.parametrize(("bandit", "pool"), [(WAVES, None), (TABLE, 40)], ids=["blocks", "table"])
def test_any_number_of_threads_gives_the_same_bits(bandit: Bandit, pool: int | None) -> None:
    policy = BreakevenRounds(RISK, 3, bound=1.0, pool=pool)
    one, three = (evaluate(policy, bandit, runs=3_000, seed=SEED, threads=threads) for threads in (1, 3))
    assert figures(one) == figures(three)
    assert one.engine == "direct"
    assert 0.0 < one.error < 1.0
    assert figures(evaluate(policy, bandit, runs=3_000, seed=SEED + 1)) != figures(one)


@pytest.mark.parametrize("bandit", [WAVES, TABLE], ids=["blocks", "table"])
def test_interpreted_policies_make_the_same_runs(bandit: Bandit) -> None:
    compiled, without = (
        evaluate(make_fixed_policy(rule, 3, 4), bandit, COSTS, runs=200, seed=SEED) for rule in (ROUNDS, WITHOUT_BLOCKS)
    )
    with pytest.warns(NotCompiledWarning):
        interpreted = evaluate(make_fixed_policy(INTERPRETED_ROUNDS, 3, 4), bandit, COSTS, runs=200, seed=SEED)
    assert figures(interpreted) == figures(compiled)
    assert figures(without) != figures(compiled)


@pytest.mark.filterwarnings("ignore::dbcare.errors.NotCompiledWarning")
@pytest.mark.parametrize("rule", [ENDING_BLOCKS, INTERPRETED_ENDING_BLOCKS], ids=["compiled", "interpreted"])
def test_an_arm_without_a_block_cannot_be_pulled(rule: Rule) -> None:
    with pytest.raises(InvalidValueError, match="an arm without a block left"):
        evaluate(make_fixed_policy(rule, 3, 20), TABLE, RISK, runs=2)


def test_a_rule_with_blocks_on_arms_without_them() -> None:
    """Pulls are independent then: the same runs as without blocks."""
    bandit = Bandit.gaussian([0.2, 0.0, 0.0])
    with_blocks, without = (
        evaluate(make_fixed_policy(rule, 3, 20), bandit, RISK, runs=500) for rule in (ROUNDS, WITHOUT_BLOCKS)
    )
    assert figures(with_blocks) == figures(without)
    assert 0.0 < with_blocks.error < 1.0


PAIR = GaussianBlocks.of([0.5, 0.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluate(Racing(2, 0.1), PAIR, RISK, engine="exact"), "exact engine cannot evaluate arms that share"),
        (lambda: evaluate(Racing(2, 0.1), PAIR, RISK, engine="skip"), "skip engine cannot simulate arms that share"),
        (lambda: evaluate(Uniform(3, 5), TABLE, RISK, engine="skip"), "use the direct engine"),
    ],
)
def test_other_engines_refuse_blocks(call: Callable[[], object], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        call()


def test_all_ways_to_evaluate_agree() -> None:
    """A policy in epochs too, which has a faster loop for independent pulls; a guess needs no pulls at all."""
    for policy, bandit in ((Racing(2, 0.1, max_pulls=400), PAIR), (BreakevenRounds(RISK, 3, pool=40), TABLE)):
        alone = evaluate(policy, bandit, RISK, runs=300, seed=SEED)
        (result,) = compute(Pass((Point(policy, bandit, RISK.single_cost, 300, SEED),))).results
        assert result.risk(RISK.loss) == (alone.risk, alone.standard_error)
        assert alone.engine == "direct"
    assert evaluate(Guess(3), TABLE, RISK).risk == pytest.approx(np.mean(TABLE.gaps), rel=1e-12)
