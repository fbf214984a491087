"""Points share passes where they can, and equal points are computed once."""

from collections.abc import Generator, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

from dbcare import DBCARE, Bandit, Breakeven, Policy, Risk, evaluate
from dbcare.errors import EngineError
from dbcare.lab import paper
from dbcare.lab.experiments import definition
from dbcare.lab.experiments.passes import Point, fingerprint, plan_passes
from dbcare.lab.experiments.results import Record, ResultStore, compute
from dbcare.lab.experiments.sweep import LocalWorkers, collect_results, list_missing, make_local_workers, sweep
from dbcare.lab.reproduce import _compute_digest
from dbcare.policies import (
    EBTCI,
    KN,
    LUCB,
    OCBA,
    Adaptive,
    CustomPolicy,
    Racing,
    Rule,
    SequentialHalving,
    TwoArmConfidence,
    Uniform,
)
from dbcare.policies.planned import RULE
from dbcare.problem.risk import Loss


def test_equal_points_are_computed_once() -> None:
    bandit = Bandit.one_sparse(4, 0.5)
    twice = [
        Point(Racing(4, 0.1), bandit, 1e-4, 100, 1),
        Point(Racing(4, 0.1), Bandit.one_sparse(4, 0.5), 1e-4, 100, 1),
    ]
    assert len(plan_passes(twice)) == 1
    assert len(plan_passes(twice)[0].points) == 1
    others = [
        Point(Racing(4, 0.1, max_pulls=50), bandit, 1e-4, 100, 1),
        Point(Racing(4, 0.1), bandit, 1e-4, 101, 1),
        Point(Racing(4, 0.1), bandit, 1e-4, 100, 2),
    ]
    assert len(plan_passes([*twice, *others])) == 4


@pytest.mark.parametrize(
    ("name", "points", "passes"),
    [
        # 40 gaps and two families. The 4 competitors need one pass for both losses; DBCARE, BreakevenRacing and
        # Breakeven, whose runs are pooled, one per loss. The oracle and the SPRT know the gap: one per gap and loss.
        ("two_arm", 2 * (4 + 5 * 2) * 40, 2 * (4 + 3 * 2 + 2 * 2 * 40)),
        # K = 8, 16, 32. One pass of pooled runs covers all gaps: one per racing policy for both losses, one per loss
        # for DBCARE and our policies. The 2 Halving policies have plain runs at each gap, for both losses.
        ("one_sparse", 3 * (4 + 3 * 2) * 40, 3 * (2 + 3 * 2 + 2 * 40)),
        # Racing and Halving need one pass for all costs and losses, Breakeven one per loss; the others depend on both.
        ("drug", 2 * (4 + 3 * 2) * 40, 2 * (4 + 2 + 2 * 2 * 40)),
    ],
)
def test_the_papers_points_share_passes(name: str, points: int, passes: int) -> None:
    experiment = definition.load(paper.find_definition(name))
    planned = plan_passes(replace(experiment, variants=()).points)
    assert sum(len(work.points) for work in planned) == points
    assert len(planned) == passes


def test_one_pass_gives_the_results_of_separate_evaluations() -> None:
    """An exact pass over gaps and a simulated pass over costs give the same numbers as separate evaluations."""
    gaps = [0.1, 0.4, 1.6]
    points = [Point(TwoArmConfidence(0.1), Bandit.two_arm(gap), 1e-4, 100, 1) for gap in gaps]
    points += [Point(SequentialHalving(5, 100), Bandit.drug_binary(), cost, 500, 3) for cost in (1e-3, 1e-4)]
    passes = plan_passes(points)
    assert len(passes) == 2
    for work in passes:
        record = compute(work)
        for point, result in zip(work.points, record.results, strict=True):
            alone = evaluate(
                point.policy, point.bandit, Risk.misidentification(point.cost), point.runs, point.seed, threads=1
            )
            for loss in Loss:
                value, error = result.risk(loss)
                assert value == pytest.approx(alone.risks[loss].value, rel=1e-9)
                assert error == pytest.approx(alone.risks[loss].standard_error, rel=1e-9)
            assert result.pulls == pytest.approx(alone.pulls.mean, rel=1e-9)
            assert result.error == pytest.approx(alone.error, rel=1e-9)


def test_pooled_points_are_as_precise_as_the_runs_asked_for() -> None:
    """At every gap, the standard error is at most that of `runs` plain runs, and the risk agrees with theirs."""
    points = [Point(Racing(4, 0.1), Bandit.one_sparse(4, gap), 1e-3, 1_000, 3) for gap in (0.4, 0.6, 0.9)]
    (work,) = plan_passes(points)
    record = compute(work)
    assert record.engine == "pooled"
    for point, result in zip(work.points, record.results, strict=True):
        assert min(count for count in result.plain_runs if count is not None) >= point.runs
        plain = evaluate(point.policy, point.bandit, Risk.misidentification(point.cost), 20_000, 4, threads=1)
        for loss in Loss:
            value, error = result.risk(loss)
            # Six such comparisons are all within 6 standard errors, but for one case in a hundred million.
            assert abs(value - plain.risks[loss].value) < 6.0 * np.hypot(error, plain.risks[loss].standard_error)


def test_a_control_variate_serves_where_it_is_precise_and_pooled_runs_elsewhere() -> None:
    """At the small gap, a quarter of the runs suffice with the control; at the large ones, hardly any run errs."""
    policy = DBCARE(Risk.misidentification(1e-3), 4, bound=2.0)
    points = [Point(policy, Bandit.one_sparse(4, gap), 1e-3, 4_000, 3) for gap in (0.1, 1.8, 2.0)]
    (work,) = plan_passes(points)
    record = compute(work)
    assert [result.engine for result in record.results] == ["skip", "pooled", "pooled"]
    for point, result in zip(points, record.results, strict=True):
        worth = result.plain_runs[0]
        assert worth is not None
        assert worth >= point.runs
        plain = evaluate(point.policy, point.bandit, runs=20_000, seed=4, threads=1)
        value, error = result.risk(Loss.MISIDENTIFICATION)
        # Three differences are all within 6 standard errors, but for one case in a hundred million.
        alone = plain.risks[Loss.MISIDENTIFICATION]
        assert abs(value - alone.value) < 6.0 * np.hypot(error, alone.standard_error)


def test_costs_that_share_their_runs_give_the_results_of_separate_passes() -> None:
    """To the bit, for two losses and two bandits; a guess has a pass of its own."""
    costs = (3e-2, 1e-3, 4e-3)
    for bandit in (Bandit.drug_binary(), Bandit.one_sparse(5, 0.4, sigma=0.5)):
        for loss in Loss:
            policies = [Breakeven(Risk(loss, cost), 5, sigma=0.5, bound=1.0) for cost in costs]
            points = [Point(policy, bandit, policy.risk.single_cost, 400, 3) for policy in policies]
            guess = Breakeven(Risk(loss, 0.9), 5, sigma=0.5, bound=1.0)
            shared, alone = plan_passes([*points, Point(guess, bandit, 0.9, 400, 3)])
            assert [len(work.points) for work in (shared, alone)] == [3, 1]
            record = compute(shared)
            separate = [compute(plan_passes([point])[0]) for point in points]
            assert record.results == tuple(each.results[0] for each in separate)
            assert record.pulls_simulated < sum(each.pulls_simulated for each in separate)


def test_rules_that_aim_at_an_error_have_runs_of_their_own_at_every_gap() -> None:
    """All others pool; both losses share the runs."""
    risk = Risk.simple_regret(1e-3)
    policies: tuple[tuple[Policy, bool], ...] = (
        (EBTCI(4), False),
        (Adaptive(4, "breakeven", "likelihood-ratio", risk=risk, sigma=1.0), False),
        (Adaptive(4, "eb-tci", "breakeven", risk=risk, sigma=1.0), True),
        (OCBA(4, 40), True),
        (KN(4, 0.3), True),
    )
    for policy, pooled in policies:
        points = [Point(policy, Bandit.one_sparse(4, gap), 1e-3, 50, 3) for gap in (0.4, 0.6)]
        assert len(plan_passes([*points, *points])) == (1 if pooled else 2)


@pytest.mark.parametrize(
    ("policy", "bandit"),
    [
        (LUCB(3, max_pulls=800), Bandit.one_sparse(3, 0.8)),  # averaged over labels
        (EBTCI(3, family="bernoulli", max_pulls=300), Bandit.bernoulli([0.2, 0.7, 0.4])),  # the same
        (LUCB(2, max_pulls=600), Bandit.gaussian([0.0, 0.8], [1.0, 0.5])),  # labels cannot be exchanged
        (SequentialHalving(4, 60), Bandit.one_sparse(4, 0.5)),
        (Racing(4, 0.1, max_pulls=900), Bandit.bernoulli([0.2, 0.7, 0.4, 0.5])),
        (Uniform(2, 20), Bandit.two_arm(0.4)),
        (DBCARE(Risk.misidentification(1e-2), 2), Bandit.two_arm(0.4)),
    ],
)
def test_a_point_of_its_own_gives_the_estimate_of_evaluate(policy: Policy, bandit: Bandit) -> None:
    """To the bit for the same seed and number of runs, except for rounding in exact passes over gaps; others differ."""
    (result,) = compute(plan_passes([Point(policy, bandit, 1e-2, 500, 7)])[0]).results
    for loss in Loss:
        alone, other = (evaluate(policy, bandit, Risk(loss, 1e-2), runs=500, seed=seed, threads=1) for seed in (7, 8))
        rounding = 1e-12 if alone.engine == "exact" else 0.0
        assert result.risk(loss) == pytest.approx((alone.risk, alone.standard_error), rel=rounding, abs=0.0)
        assert result.engine == alone.engine
        assert other.engine == "exact" or result.risk(loss)[0] != other.risk


def test_averaging_over_labels_is_said() -> None:
    """In a field and in print; every pull counted as it is says the opposite."""
    averaged, counted = (
        evaluate(LUCB(3, max_pulls=300), Bandit.one_sparse(3, 0.8), Risk.misidentification(1e-3), 500, engine=engine)
        for engine in ("auto", "direct")
    )
    assert averaged.averages_labels
    assert "losses averaged over labels" in str(averaged)
    assert not counted.averages_labels
    assert "averaged" not in str(counted)
    assert averaged.to_dict()["averages_labels"] is True


def make_custom(pulls: int) -> CustomPolicy:
    tables = SequentialHalving(2, 2 * pulls).tables
    rule = Rule(RULE.init, RULE.ask, RULE.tell, RULE.recommend)
    size = SequentialHalving(2, 2).state_size
    return CustomPolicy(2, rule, tables=tables, state_size=size, max_pulls=2 * pulls, name="mine")


def test_a_custom_policy_is_identified_by_its_code_and_tables() -> None:
    assert make_custom(5) != make_custom(5)  # the class compares by identity
    assert fingerprint(make_custom(5)) == fingerprint(make_custom(5))
    assert fingerprint(make_custom(5)) != fingerprint(make_custom(6))
    changed = make_custom(5)
    changed.rule = Rule(RULE.init, RULE.ask, RULE.tell, lambda state, tables: 0)
    assert fingerprint(changed) != fingerprint(make_custom(5))
    points = [Point(make_custom(5), Bandit.two_arm(0.5), cost, 200, 1) for cost in (1e-3, 1e-4)]
    assert [len(work.points) for work in plan_passes(points)] == [2]
    results = compute(plan_passes(points)[0]).results
    assert results[0].error == results[1].error
    assert results[0].pulls == results[1].pulls == 10.0


class Nameless(Uniform):
    """A user's policy without a repr of its own."""

    __repr__ = object.__repr__


def test_a_policy_without_a_repr_is_identified_too() -> None:
    assert repr(Nameless(2, 5)) != repr(Nameless(2, 5))
    assert fingerprint(Nameless(2, 5)) == fingerprint(Nameless(2, 5))
    assert fingerprint(Nameless(2, 5)) != fingerprint(Nameless(2, 6))


def test_a_truncated_line_is_computed_again_and_the_rest_is_kept(tmp_path: Path) -> None:
    passes = plan_passes(
        [Point(SequentialHalving(4, 40), Bandit.one_sparse(4, gap), 1e-3, 50, 1) for gap in (0.5, 1.0, 1.5)]
    )
    seen: list[Record] = []
    store = ResultStore(tmp_path / "new" / "results.jsonl")
    sweep(list_missing(passes, store), store, make_local_workers(1), seen.append)
    assert len(seen) == 3
    lines = store.path.read_bytes().splitlines(keepends=True)
    store.path.write_bytes(b"".join(lines[:2]) + lines[2][:100])
    again = ResultStore(store.path)
    missing = list_missing(passes, again)
    assert len(missing) == 1
    seen.clear()
    sweep(missing, again, make_local_workers(2), seen.append)
    assert len(seen) == 1
    assert collect_results(passes, again) == collect_results(passes, store)
    final = ResultStore(store.path)
    assert list_missing(passes, final) == []
    assert final.records == again.records


@pytest.mark.parametrize("damage", ["a digit", "a name", "nested", "a list"])
def test_a_damaged_line_is_computed_again(damage: str, tmp_path: Path) -> None:
    """The first digit of a risk, its key, or JSON that is none of ours."""
    passes = plan_passes([Point(SequentialHalving(4, 40), Bandit.one_sparse(4, 0.5), 1e-3, 50, 1)])
    store = ResultStore(tmp_path / "results.jsonl")
    store.add(compute(passes[0]))
    text = store.path.read_text()
    risk = str(next(iter(store.records.values())).results[0].simple_regret[0])
    changed = {
        "a digit": text.replace(risk, "9" + risk[1:]),
        "a name": text.replace("SequentialHalving", "SuccessiveRejects"),
        "nested": "[" * 100_000,
        "a list": "[1]\n",
    }[damage]
    assert changed != text
    assert list_missing(passes, ResultStore(store.path)) == []
    store.path.write_text(changed)
    assert list_missing(passes, ResultStore(store.path)) == passes


def test_processes_give_the_same_results_as_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = plan_passes(
        [Point(policy, Bandit.one_sparse(4, 0.5), 1e-3, 50, 1) for policy in (SequentialHalving(4, 40), Racing(4, 0.1))]
    )
    by_threads = {record.key: record.results for record in make_local_workers(2)(passes)}
    monkeypatch.setattr("dbcare.lab.experiments.sweep.MIN_SECONDS_FOR_PROCESSES", 0.0)
    with LocalWorkers(2).start(passes) as pool:
        assert isinstance(pool, ProcessPoolExecutor)
    assert {record.key: record.results for record in LocalWorkers(2)(passes)} == by_threads


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Generator[Record], list[BaseProcess]]]:
    """Two processes with a short pass, which is done, and one of hours; also the processes."""
    monkeypatch.setattr("dbcare.lab.experiments.sweep.MIN_SECONDS_FOR_PROCESSES", 0.0)
    short = Point(Racing(4, 0.1), Bandit.one_sparse(4, 0.5), 1e-3, 50, 1)
    endless = Point(LUCB(3, max_pulls=10**12), Bandit.gaussian([0.0, 0.0, 0.0]), 1e-3, 1, 1)  # level: it never decides
    passes = plan_passes([short, endless])
    others = active_children()
    records = LocalWorkers(2)(passes)
    assert next(records).key == passes[0].key
    processes = [process for process in active_children() if process not in others]
    assert len(processes) == 2
    yield records, processes
    records.close()


def test_stopping_ends_processes_at_once(busy: tuple[Generator[Record], list[BaseProcess]]) -> None:
    records, processes = busy
    records.close()
    assert [process.is_alive() for process in processes] == [False, False]


def test_a_killed_process_is_an_error_that_says_what_to_do(
    busy: tuple[Generator[Record], list[BaseProcess]],
) -> None:
    records, processes = busy
    processes[0].kill()
    with pytest.raises(EngineError, match=r"A worker process was killed.*Run the same command again"):
        next(records)


def test_policies_of_your_own_run_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbcare.lab.experiments.sweep.MIN_SECONDS_FOR_PROCESSES", 0.0)
    passes = plan_passes([Point(Nameless(4, 8), Bandit.one_sparse(4, 0.5), 1e-3, 50, 1)])
    with LocalWorkers(2).start(passes) as pool:
        assert isinstance(pool, ThreadPoolExecutor)


def test_stored_results_are_identical_to_the_bit(tmp_path: Path) -> None:
    work = plan_passes([Point(Racing(3, 0.1), Bandit.gaussian([0.9, 0.3, 0.1]), 1e-3, 77, 5)])[0]
    record = compute(work)
    store = ResultStore(tmp_path / "results.jsonl")
    store.add(record)
    assert ResultStore(store.path).records == {work.key: record}
    assert set(record.versions) == {"dbcare", "numpy", "numba"}
    assert record.seed == 5
    assert record.engine == "pooled"
    assert np.isfinite(record.results[0].misidentification).all()


@pytest.mark.parametrize("name", ["figures.py", "look.py", "registry.py"])
def test_figures_are_drawn_again_if_their_code_changes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colors and labels of policies come from `policies`, on which results do not depend."""
    before = _compute_digest([], [], "title", bounds=True)
    assert _compute_digest([], [], "title", bounds=True) == before
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * (path.name == name))
    assert _compute_digest([], [], "title", bounds=True) != before
