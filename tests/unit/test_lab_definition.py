"""Experiments from TOML: what they expand to, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from dbcare import DBCARE, Bandit, KnownGapOracle, Racing, Risk, SequentialHalving
from dbcare.engines.best_sprt import BestSPRT
from dbcare.errors import InvalidValueError
from dbcare.lab import definition, paper
from dbcare.lab.experiment import Experiment
from dbcare.risk import Loss

GOOD = """
title = "Mine"
runs = 500
cost = 1e-3
[[settings]]
bandit = "one-sparse"
arms = [4, 8]
gap = { from = 0.1, to = 1.0, points = 3 }
[policies.A]
policy = "dbcare"
[policies.B]
policy = "sequential-halving"
budget_per_arm = 10
"""


def loaded(text: str, folder: Path, **options: bool) -> Experiment:
    path = folder / "mine.toml"
    path.write_text(text)
    return definition.load(path, **options)


def test_a_file_expands_to_settings_and_points(tmp_path: Path) -> None:
    found = loaded(GOOD, tmp_path)
    assert (found.name, found.title, found.axis, found.runs, found.seed) == ("mine", "Mine", "gap", 500, 0)
    assert [setting.title for setting in found.settings] == ["K = 4", "K = 8"]
    assert found.settings[0].x == pytest.approx([0.1, 10**-0.5, 1.0])
    assert found.settings[1].bandits[2] == Bandit.one_sparse(8, found.settings[1].x[2])
    assert found.settings[0].bound == pytest.approx(1.0)  # the largest gap of the setting
    curve = found.curves[Loss.SIMPLE_REGRET, 0, "A"]
    assert curve[0].policy == DBCARE(Risk.simple_regret(1e-3), 4, 1.0, found.settings[0].bound)
    assert found.curves[Loss.MISIDENTIFICATION, 1, "B"][0].policy == SequentialHalving(8, 80)
    assert len(found.points) == 2 * 2 * 2 * 3  # losses, settings, policies, gaps


def test_the_axis_is_the_cost_where_it_ranges(tmp_path: Path) -> None:
    text = 'cost = [1e-4, 1e-3]\n[[settings]]\nbandit = "drug-binary"\n[policies.R]\npolicy = "racing"\ndelta = 0.1\n'
    found = loaded(text, tmp_path)
    assert found.axis == "cost"
    assert found.settings[0].x == (1e-4, 1e-3)
    assert [point.policy for point in found.curves[Loss.MISIDENTIFICATION, 0, "R"]] == [
        Racing(5, 0.1, 0.5, 100_000),
        Racing(5, 0.1, 0.5, 10_000),
    ]


def test_quick_has_few_points_and_runs(tmp_path: Path) -> None:
    text = GOOD.replace("points = 3", "points = 30")
    assert len(loaded(text, tmp_path).settings[0].x) == 30
    quick = loaded(text, tmp_path, quick=True)
    assert len(quick.settings[0].x) == definition.QUICK_POINTS
    assert quick.runs == definition.QUICK_RUNS
    assert quick.settings[0].x[-1] == pytest.approx(1.0)


def test_gaps_are_put_in_order(tmp_path: Path) -> None:
    down = loaded(GOOD.replace("from = 0.1, to = 1.0", "from = 1.0, to = 0.1"), tmp_path)
    assert down.settings[0].x == pytest.approx(loaded(GOOD, tmp_path).settings[0].x)
    listed = loaded(GOOD.replace("{ from = 0.1, to = 1.0, points = 3 }", "[0.5, 0.1, 0.5, 0.3]"), tmp_path)
    assert listed.settings[0].x == (0.1, 0.3, 0.5)


def test_a_dear_pull_still_leaves_room_for_one_of_each(tmp_path: Path) -> None:
    text = GOOD.replace("cost = 1e-3", "cost = 5.0").replace('"dbcare"', '"racing"\ndelta = 0.1')
    assert loaded(text, tmp_path).curves[Loss.MISIDENTIFICATION, 1, "A"][0].policy == Racing(8, 0.1, max_pulls=8)


def test_a_policy_of_your_own_is_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "own_policies_of_this_test.py").write_text(
        "from dbcare import Uniform\ndef twice(arms, pulls):\n    return Uniform(arms, 2 * pulls)\n"
    )
    text = GOOD.replace('"dbcare"', '"own_policies_of_this_test:twice"\npulls = 3')
    point = loaded(text, tmp_path).curves[Loss.SIMPLE_REGRET, 0, "A"][0]
    assert repr(point.policy) == "Uniform(arms=4, pulls=6)"


def test_a_policy_may_have_fewer_runs_of_its_own(tmp_path: Path) -> None:
    text = GOOD + '\n[policies.C]\npolicy = "breakeven"\nruns = 40\n'
    for full, expected in ((False, 40), (True, 500)):
        experiment = loaded(text, tmp_path, full=full)
        assert experiment.runs_of("A") == 500
        assert {point.runs for point in experiment.curves[Loss.SIMPLE_REGRET, 0, "C"]} == {expected}
    with pytest.raises(InvalidValueError, match=r"`policies\.C\.runs` must be at most 500, .* but got 4000"):
        loaded(text.replace("runs = 40", "runs = 4_000"), tmp_path)
    with pytest.raises(InvalidValueError, match=r"`policies\.C\.runs` must be at least 2 but got 1"):
        loaded(text.replace("runs = 40", "runs = 1"), tmp_path)


def test_the_sprt_looks_for_its_threshold_only_when_it_runs(tmp_path: Path) -> None:
    text = (
        GOOD.replace('"one-sparse"', '"two-arm"').replace("arms = [4, 8]", "").replace('"dbcare"', '"known-gap-sprt"')
    )
    point = loaded(text, tmp_path).curves[Loss.SIMPLE_REGRET, 0, "A"][0]
    assert isinstance(point.policy, BestSPRT)
    assert point.gap_family == "gaussian"
    assert "best" not in vars(point.policy)


@pytest.mark.parametrize(
    ("change", "to", "says"),
    [
        ("runs = 500", "run = 500", "Keys of an experiment must be among title, .* but got 'run'"),
        ("runs = 500", "runs = 1", "`runs` must be at least 2 but got 1"),
        ("runs = 500", "runs = 'many'", "`runs` must be a real number but got 'many'"),
        ("runs = 500", "losses = ['regret']", "`losses` must be one of misidentification, simple_regret but got"),
        ("runs = 500", "claims = ['all is well']", "`claims` must be one of .*never-dominated.* but got 'all is well'"),
        ('"one-sparse"', '"two-sparse"', "`bandit` must be one of gaussian, .*one-sparse.* but got 'two-sparse'"),
        ("arms = [4, 8]", "arm = 4", "Keys of settings must be among .* but got 'arm'"),
        ("arms = [4, 8]", "", "one-sparse must be given arms but got gap"),
        ("points = 3", "point = 3", "Keys of gap must be among from, to, points but got 'point'"),
        ("from = 0.1, ", "", "`gap` must say from where it ranges"),
        ("from = 0.1", "from = -0.1", "`gap.from` must be positive but got -0.1"),
        ("cost = 1e-3", "", "`cost` must be given"),
        ("cost = 1e-3", "cost = [1e-3, 1e-4]", "One of `gap` and `cost` must be a single number"),
        ("cost = 1e-3", "cost = []", "`cost` must have at least one value"),
        ("cost = 1e-3", "cost = 1e-3\nlosses = []", "`losses` must have at least one value"),
        ("arms = [4, 8]", "arms = []", r"`arms` must be a real number but got \[\]"),
        (
            'bandit = "one-sparse"\narms = [4, 8]',
            'bandit = "gaussian"\nmeans = 0.5',
            "`means` must be a list of numbers",
        ),
        ("to = 1.0", "to = 1e200", "gaps and costs must be of a size whose squares are numbers"),
        ("from = 0.1", "from = 1e-200", "gaps and costs must be of a size whose squares are numbers"),
        ('"dbcare"', '"dbcair"', "`policy` must be one of dbcare, .* but got 'dbcair'"),
        ('"dbcare"', '"nowhere:at_all"', "`policy` must name a function that can be imported but got nowhere:at_all"),
        ('"dbcare"', '"math:pi"', "`policy` must name a function but got math:pi"),
        ("budget_per_arm = 10", "budgets = 10", "Options of sequential-halving must be among budget, .* 'budgets'"),
        ("budget_per_arm = 10", "", "sequential-halving must be given budget but got arms"),
        ("budget_per_arm = 10", "budget_per_arm = 10\nbudget = 5", "one of budget and budget_per_arm but got both"),
        ("[[settings]]", "[settings]", "`settings` must be one or more tables"),
        ('policy = "dbcare"', "delta = 0.1", "`policies.A` must be a table that names its policy"),
        ("title =", "title", "must be a TOML file"),
    ],
)
def test_mistakes_are_named(change: str, to: str, says: str, tmp_path: Path) -> None:
    assert change in GOOD
    with pytest.raises(InvalidValueError, match=rf"mine\.toml.*{says}"):
        loaded(GOOD.replace(change, to), tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"`file` must be readable but got .*nothing\.toml"):
        definition.load(tmp_path / "nothing.toml")


@pytest.mark.parametrize("name", paper.NAMES)
def test_the_papers_experiments_are_what_the_paper_says(name: str) -> None:
    """Cost, runs, arms and ranges of Section 4 and of the appendix on experiments."""
    found = definition.load(paper.file(name))
    assert set(found.losses) == set(Loss)
    assert all(len(setting.x) == 40 for setting in found.settings)
    assert found.runs == (100_000 if name == "two_arm" else 10_000)
    ranges = [(setting.x[0], setting.x[-1]) for setting in found.settings]
    if name == "drug":
        assert found.axis == "cost"
        assert np.allclose(ranges, (1e-5, 1e-3))
        means = [sorted(setting.bandits[0].means, reverse=True) for setting in found.settings]
        assert np.round(means[0], 3).tolist() == [0.537, 0.469, 0.465, 0.360, 0.340]
        assert np.round(means[1], 3).tolist() == [0.230, 0.227, 0.200, 0.196, 0.102]
        return
    assert found.axis == "gap"
    assert {cost for setting in found.settings for cost in setting.costs} == {1e-4}
    if name == "two_arm":
        assert np.allclose(ranges, [(0.05, 2.0), (0.01, 0.95)])
        oracle = found.curves[Loss.MISIDENTIFICATION, 0, "known-gap oracle"][3].policy
        assert isinstance(oracle, KnownGapOracle)
        assert oracle.gap == pytest.approx(found.settings[0].x[3])
    else:
        assert np.allclose(ranges, (0.05, 3.0))
        assert [len(setting.bandits[0].arms) for setting in found.settings] == [8, 16, 32]
        assert found.curves[Loss.SIMPLE_REGRET, 2, "Sequential Halving, T = 250K"][0].policy == SequentialHalving(
            32, 8000
        )
