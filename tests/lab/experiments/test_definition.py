"""Experiments from TOML files: what they expand to, and which mistakes are refused."""

from pathlib import Path

import numpy as np
import pytest

from dbcare import DBCARE, Bandit, Risk
from dbcare.engines.sprt import BestSPRT
from dbcare.errors import InvalidValueError
from dbcare.lab import paper
from dbcare.lab.experiments import definition
from dbcare.lab.experiments.experiment import Experiment
from dbcare.policies import KnownGapOracle, Racing, SequentialHalving
from dbcare.problem.risk import Loss

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


def load(text: str, folder: Path, **options: bool) -> Experiment:
    path = folder / "mine.toml"
    path.write_text(text)
    return definition.load(path, **options)


def test_a_file_expands_to_settings_and_points(tmp_path: Path) -> None:
    experiment = load(GOOD, tmp_path)
    basics = (experiment.name, experiment.title, experiment.axis, experiment.runs, experiment.seed)
    assert basics == ("mine", "Mine", "gap", 500, 0)
    first, second = experiment.settings
    assert [first.title, second.title] == ["K = 4", "K = 8"]
    assert first.x == pytest.approx([0.1, 10**-0.5, 1.0])
    assert second.bandits[2] == Bandit.one_sparse(8, second.x[2])
    assert first.bound == pytest.approx(1.0)  # the largest gap of the setting
    curve = experiment.curves[Loss.SIMPLE_REGRET, 0, "A"]
    assert curve[0].policy == DBCARE(Risk.simple_regret(1e-3), 4, 1.0, first.bound)
    assert experiment.curves[Loss.MISIDENTIFICATION, 1, "B"][0].policy == SequentialHalving(8, 80)
    assert len(experiment.points) == 2 * 2 * 2 * 3  # losses, settings, policies, gaps


def test_bandits_may_be_written_like_experiments(tmp_path: Path) -> None:
    """With an underscore, as in `dbcare reproduce one_sparse`."""
    (tmp_path / "other").mkdir()
    written = load(GOOD.replace('"one-sparse"', '"one_sparse"'), tmp_path / "other")
    assert written.settings == load(GOOD, tmp_path).settings


def test_the_axis_is_the_cost_if_it_is_a_range(tmp_path: Path) -> None:
    text = 'cost = [1e-4, 1e-3]\n[[settings]]\nbandit = "drug-binary"\n[policies.R]\npolicy = "racing"\ndelta = 0.1\n'
    experiment = load(text, tmp_path)
    assert experiment.axis == "cost"
    assert experiment.settings[0].x == (1e-4, 1e-3)
    assert [point.policy for point in experiment.curves[Loss.MISIDENTIFICATION, 0, "R"]] == [
        Racing(5, 0.1, 0.5, 100_000),
        Racing(5, 0.1, 0.5, 10_000),
    ]


def test_quick_has_few_points_and_runs(tmp_path: Path) -> None:
    text = GOOD.replace("points = 3", "points = 30")
    assert len(load(text, tmp_path).settings[0].x) == 30
    quick = load(text, tmp_path, quick=True)
    assert len(quick.settings[0].x) == definition.QUICK_POINTS
    assert quick.runs == 50  # a tenth
    assert load(text.replace("runs = 500", "runs = 100_000"), tmp_path, quick=True).runs == definition.QUICK_RUNS
    assert load(text.replace("runs = 500", "runs = 30"), tmp_path, quick=True).runs == 20
    assert quick.settings[0].x[-1] == pytest.approx(1.0)


def test_gaps_are_sorted(tmp_path: Path) -> None:
    descending = load(GOOD.replace("from = 0.1, to = 1.0", "from = 1.0, to = 0.1"), tmp_path)
    assert descending.settings[0].x == pytest.approx(load(GOOD, tmp_path).settings[0].x)
    listed = load(GOOD.replace("{ from = 0.1, to = 1.0, points = 3 }", "[0.5, 0.1, 0.5, 0.3]"), tmp_path)
    assert listed.settings[0].x == (0.1, 0.3, 0.5)


def test_a_high_cost_still_allows_one_pull_of_each_arm(tmp_path: Path) -> None:
    text = GOOD.replace("cost = 1e-3", "cost = 5.0").replace('"dbcare"', '"racing"\ndelta = 0.1')
    assert load(text, tmp_path).curves[Loss.MISIDENTIFICATION, 1, "A"][0].policy == Racing(8, 0.1, max_pulls=8)


def test_a_custom_policy_is_found_next_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "own_policies_of_this_test.py").write_text(
        "from dbcare.policies import Uniform\ndef twice(arms, pulls):\n    return Uniform(arms, 2 * pulls)\n"
    )
    text = GOOD.replace('"dbcare"', '"own_policies_of_this_test:twice"\npulls = 3')
    point = load(text, tmp_path).curves[Loss.SIMPLE_REGRET, 0, "A"][0]
    assert repr(point.policy) == "Uniform(arms=4, pulls=6)"


def test_a_policy_may_have_fewer_runs_than_the_experiment(tmp_path: Path) -> None:
    text = GOOD + '\n[policies.C]\npolicy = "breakeven"\nruns = 40\n'
    experiment = load(text, tmp_path)
    assert experiment.count_runs("A") == 500
    assert {point.runs for point in experiment.curves[Loss.SIMPLE_REGRET, 0, "C"]} == {40}
    with pytest.raises(InvalidValueError, match=r"`policies\.C\.runs` must be at most 500, .* but got 4000"):
        load(text.replace("runs = 40", "runs = 4_000"), tmp_path)
    with pytest.raises(InvalidValueError, match=r"`policies\.C\.runs` must be at least 2 but got 1"):
        load(text.replace("runs = 40", "runs = 1"), tmp_path)


def test_a_policy_may_take_part_only_in_some_panels(tmp_path: Path) -> None:
    text = (
        GOOD.replace("[[settings]]", "baselines = ['A']\n[[settings]]", 1)
        + """
[policies.C]
policy = "lucb"
group = "for an error"
only = { max_arms = 4 }
[policies.D]
policy = "kg-star"
only = { losses = ["simple_regret"], rewards = "gaussian" }
"""
    )
    experiment = load(text, tmp_path)
    present = {label: {place[:2] for place in experiment.curves if place[2] == label} for label in "ABCD"}
    both = {(loss, number) for loss in Loss for number in (0, 1)}
    assert present["A"] == present["B"] == both
    assert present["C"] == {(loss, 0) for loss in Loss}
    assert present["D"] == {(Loss.SIMPLE_REGRET, number) for number in (0, 1)}
    assert experiment.groups == ["for an error"]
    assert experiment.list_labels("for an error") == ["A", "B", "C", "D"]
    assert experiment.baselines == ("A",)
    assert load(GOOD, tmp_path).groups == [""]


def test_rewards_decide_who_takes_part(tmp_path: Path) -> None:
    text = (
        GOOD
        + """
[[settings]]
bandit = "two-arm-bernoulli"
gap = [0.1, 0.2, 0.4]
[policies.C]
policy = "kl-lucb"
only = { rewards = "binary" }
[policies.D]
policy = "lucb"
only = { rewards = "gaussian" }
"""
    )
    experiment = load(text.replace("[policies.A]", "[policies.Z]", 1), tmp_path)
    assert {number for _, number, label in experiment.curves if label == "C"} == {2}
    assert {number for _, number, label in experiment.curves if label == "D"} == {0, 1}


ONLY_MISTAKES = [
    ("only = 8", r"`policies\.A\.only` must be a table, such as \{ max_arms = 8 \}, but got 8"),
    ("only = { arms = 8 }", r"Keys of policies\.A\.only must be among max_arms, rewards, losses but got 'arms'"),
    ("only = { max_arms = 1 }", r"`policies\.A\.only\.max_arms` must be at least 2 but got 1"),
    ("only = { max_arms = 2 }", r"`policies\.A\.only` leaves no setting and loss of the experiment; relax it"),
    ("only = { rewards = 'coins' }", r"`policies\.A\.only\.rewards` must be one of gaussian, binary but got 'coins'"),
    ("only = { losses = ['money'] }", r"`policies\.A\.only\.losses` must be one of misidentification, .* 'money'"),
    ("group = 5", r"`policies\.A\.group` must be a text but got 5"),
]


@pytest.mark.parametrize(("line", "message"), ONLY_MISTAKES)
def test_mistakes_about_who_takes_part_are_named(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=rf"mine\.toml: {message}"):
        load(GOOD.replace('policy = "dbcare"', f'policy = "dbcare"\n{line}'), tmp_path)


def test_baselines_and_panels_must_be_complete(tmp_path: Path) -> None:
    few = GOOD.replace("budget_per_arm = 10", "budget_per_arm = 10\nonly = { max_arms = 4 }")
    with pytest.raises(InvalidValueError, match=r"`baselines` must be one of A, B but got 'C'"):
        load("baselines = ['C']\n" + GOOD, tmp_path)
    with pytest.raises(InvalidValueError, match=r"`baselines` must take part everywhere but 'B' has `only`"):
        load("baselines = ['B']\n" + few, tmp_path)
    alone = few.replace('policy = "dbcare"', 'policy = "dbcare"\nonly = { max_arms = 4 }')
    with pytest.raises(InvalidValueError, match=r"No policy takes part in 'K = 8' under misidentification; add one"):
        load(alone, tmp_path)


def test_the_sprt_searches_for_its_threshold_only_when_it_runs(tmp_path: Path) -> None:
    text = (
        GOOD.replace('"one-sparse"', '"two-arm"').replace("arms = [4, 8]", "").replace('"dbcare"', '"known-gap-sprt"')
    )
    point = load(text, tmp_path).curves[Loss.SIMPLE_REGRET, 0, "A"][0]
    assert isinstance(point.policy, BestSPRT)
    assert point.gap_family == "gaussian"
    assert "best" not in vars(point.policy)


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        ("runs = 500", "run = 500", "Keys of an experiment must be among title, .* but got 'run'"),
        ("runs = 500", "runs = 1", "`runs` must be at least 2 but got 1"),
        ("runs = 500", "runs = 'many'", "`runs` must be a real number but got 'many'"),
        ("runs = 500", "losses = ['regret']", "`losses` must be one of misidentification, simple_regret but got"),
        ("runs = 500", "claims = ['all is well']", "`claims` must be one of .*never-dominated.* but got 'all is well'"),
        ('"one-sparse"', '"two-sparse"', "`bandit` must be one of gaussian, .*one-sparse.* but got 'two-sparse'"),
        ("arms = [4, 8]", "arm = 4", "Keys of settings must be among .* but got 'arm'"),
        ("arms = [4, 8]", "", "one-sparse requires arms"),
        ("points = 3", "point = 3", "Keys of gap must be among from, to, points but got 'point'"),
        ("from = 0.1, ", "", "`gap` is a range without `from`"),
        ("from = 0.1", "from = -0.1", "`gap.from` must be positive but got -0.1"),
        ("cost = 1e-3", "", "`cost` is required"),
        ("cost = 1e-3", "cost = [1e-3, 1e-4]", "`gap` or `cost` must be a single number but both have several values"),
        ("cost = 1e-3", "cost = []", "`cost` must have at least one value"),
        ("cost = 1e-3", "cost = 1e-3\nlosses = []", "`losses` must have at least one value"),
        ("arms = [4, 8]", "arms = []", r"`arms` must be a real number but got \[\]"),
        (
            'bandit = "one-sparse"\narms = [4, 8]',
            'bandit = "gaussian"\nmeans = 0.5',
            "`means` must be a list of numbers",
        ),
        ("to = 1.0", "to = 1e200", r"`gap.to` must be at most 1e\+50 in absolute value but got 1e\+200"),
        ("from = 0.1", "from = 1e-200", "`gap.from` must be at least 1e-50 but got 1e-200"),
        ('"dbcare"', '"dbcair"', "`policy` must be one of breakeven, .*dbcare, .* but got 'dbcair'"),
        ('"dbcare"', '"nowhere:at_all"', "Cannot import the policy nowhere:at_all"),
        ('"dbcare"', '"math:pi"', "`policy` must name a function but got math:pi"),
        ("budget_per_arm = 10", "budgets = 10", "Options of sequential-halving must be among budget, .* 'budgets'"),
        ("budget_per_arm = 10", "", "sequential-halving requires budget"),
        (
            "budget_per_arm = 10",
            "budget_per_arm = 10\nbudget = 5",
            "Pass sequential-halving either `budget` or `budget_per_arm`, not both",
        ),
        ("[[settings]]", "[settings]", "`settings` must be one or more tables"),
        ('policy = "dbcare"', "delta = 0.1", "`policies.A` must be a table that names its policy"),
        ("title =", "title", "is not a valid TOML file"),
        ("title =", f"title = {'[' * 100_000}", "is not a valid TOML file: maximum recursion depth"),
    ],
)
def test_mistakes_are_named(change: str, to: str, message: str, tmp_path: Path) -> None:
    assert change in GOOD
    with pytest.raises(InvalidValueError, match=rf"mine\.toml.*{message}"):
        load(GOOD.replace(change, to), tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"Cannot read .*nothing\.toml: No such file or directory\."):
        definition.load(tmp_path / "nothing.toml")


@pytest.mark.parametrize("name", paper.NAMES)
def test_the_papers_experiments_match_the_paper(name: str) -> None:
    """Cost, runs, arms and ranges of Section 4 and of the appendix on experiments."""
    experiment = definition.load(paper.find_definition(name))
    assert set(experiment.losses) == set(Loss)
    assert all(len(setting.x) == 40 for setting in experiment.settings)
    assert experiment.runs == (100_000 if name == "two_arm" else 10_000)
    ranges = [(setting.x[0], setting.x[-1]) for setting in experiment.settings]
    if name == "drug":
        assert experiment.axis == "cost"
        assert np.allclose(ranges, (1e-5, 1e-3))
        means = [sorted(setting.bandits[0].means, reverse=True) for setting in experiment.settings]
        assert np.round(means[0], 3).tolist() == [0.537, 0.469, 0.465, 0.360, 0.340]
        assert np.round(means[1], 3).tolist() == [0.230, 0.227, 0.200, 0.196, 0.102]
        return
    assert experiment.axis == "gap"
    assert {cost for setting in experiment.settings for cost in setting.costs} == {1e-4}
    if name == "two_arm":
        assert np.allclose(ranges, [(0.05, 2.0), (0.01, 0.95)])
        oracle = experiment.curves[Loss.MISIDENTIFICATION, 0, "known-gap oracle"][3].policy
        assert isinstance(oracle, KnownGapOracle)
        assert oracle.gap == pytest.approx(experiment.settings[0].x[3])
    else:
        assert np.allclose(ranges, (0.05, 3.0))
        assert [len(setting.bandits[0].arms) for setting in experiment.settings] == [8, 16, 32]
        assert experiment.curves[Loss.SIMPLE_REGRET, 2, "Sequential Halving, T = 250K"][0].policy == SequentialHalving(
            32, 8000
        )
