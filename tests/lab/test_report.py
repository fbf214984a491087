"""What the report says around the numbers: variants of open choices, how uniformly good policies are, and quotes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dbcare import DBCARE, Bandit, Risk
from dbcare.errors import InvalidValueError
from dbcare.lab import paper, report, uniformity
from dbcare.lab.claims import PAPER_CLAIMS
from dbcare.lab.curves import Curve, Panel, make_panels
from dbcare.lab.experiments import definition
from dbcare.lab.experiments.experiment import Experiment, Variant
from dbcare.lab.experiments.passes import Point, plan_passes
from dbcare.lab.experiments.results import Result, ResultStore
from dbcare.lab.experiments.sweep import collect_results, make_local_workers, sweep
from dbcare.lab.figures import Plot
from dbcare.lab.guarantees import list_guarantees
from dbcare.lab.sensitivity import make_sensitivity_table
from dbcare.policies import SequentialHalving, TwoArmLikelihood
from dbcare.problem.risk import Loss

TEXT = """
title = "Mine"
runs = 300
cost = 1e-3
seed = 2
claims = ["competitors-fail-somewhere", "within-guarantees", "below-dbcare"]
[paper_figure]
columns = 2
leave_out = ["B"]
largest = { misidentification = 0.5 }
[[settings]]
title = "G"
bandit = "two-arm"
gap = { from = 0.1, to = 1.0, points = 7 }
[[settings]]
title = "Y"
bandit = "two-arm-bernoulli"
gap = { from = 0.1, to = 0.9, points = 7 }
[policies.A]
policy = "dbcare"
[policies.H]
policy = "sequential-halving"
budget = 10
[policies.B]
policy = "breakeven-racing"
[[variants]]
choice = "sigma"
ours = "1/2"
alternative = "0.02"
settings = ["Y"]
every = 4
policies = { A = { sigma = 0.02 } }
[[variants]]
choice = "budget"
ours = "10"
alternative = "20"
policies = { H = { policy = "sequential-halving", budget = 20 } }
[[variants]]
choice = "nothing"
ours = "10"
alternative = "10"
policies = { H = { budget = 10 } }
"""


def load(text: str, folder: Path, *, quick: bool = False) -> Experiment:
    path = folder / "mine.toml"
    path.write_text(text)
    return definition.load(path, quick=quick)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiment, dict[Point, Result]]:
    folder = tmp_path_factory.mktemp("choices")
    experiment = load(TEXT, folder)
    store, passes = ResultStore(folder / "results.jsonl"), plan_passes(experiment.points)
    sweep(passes, store, make_local_workers(1), lambda record: None)
    return experiment, dict(collect_results(passes, store))


def test_variants_repeat_some_points_with_other_policies(tmp_path: Path) -> None:
    experiment = load(TEXT, tmp_path)
    first, second, third = experiment.variants
    assert [setting.title for setting in first.changed.settings] == ["Y"]
    assert first.changed.settings[0].x == tuple(experiment.settings[1].x[place] for place in (0, 4, 6))
    assert list(first.base.contenders) == list(first.changed.contenders) == ["A", "H"]  # those of the paper
    changed = [point.policy for point in first.changed.curves[Loss.SIMPLE_REGRET, 0, "A"]]
    assert [policy.sigma for policy in changed if isinstance(policy, DBCARE)] == [0.02] * 3
    assert second.changed.curves[Loss.SIMPLE_REGRET, 1, "H"][3].policy == SequentialHalving(2, 20)
    own = set(replace(experiment, variants=()).points)
    assert set(first.base.points) | set(second.base.points) | set(third.changed.points) <= own
    assert len(set(experiment.points) - own) == 2 * 3 + 2 * 7  # A under both losses; H, whose points serve both
    quick = load(TEXT, tmp_path, quick=True)
    assert quick.variants[0].changed.settings[0].x == quick.settings[1].x[::2]


def test_the_sensitivity_table_is_computed(computed: tuple[Experiment, dict[Point, Result]]) -> None:
    """Its factors and flips follow from the results, and change with them."""
    experiment, results = computed
    table = make_sensitivity_table(experiment, results)
    assert [row[0] for row in table.rows] == ["sigma", "budget", "nothing"]
    assert table.rows[2][3:] == ("none", "none")
    ratios = []
    for loss in Loss:
        for old, new in zip(
            experiment.variants[0].base.curves[loss, 0, "A"],
            experiment.variants[0].changed.curves[loss, 0, "A"],
            strict=True,
        ):
            ratios.append(results[new].risk(loss)[0] / results[old].risk(loss)[0])
    assert table.rows[0][3] == f"A: {min(ratios):.3g} to {max(ratios):.3g}"
    assert min(ratios) < 0.5
    # With so small a sigma, DBCARE soon drops the better arm, and its bounds do not apply.
    flip = "DBCARE and the oracle stay within all of the paper's upper bounds: fails now"
    assert f"{flip} (Y, misidentification; Y, simple regret)" in str(table.rows[0][4])
    assert "Breakeven" not in str(table.rows)  # our own policies are not judged
    shared = {new: results[old] for variant in experiment.variants for new, old in pair_points(variant)}
    assert {row[3] for row in make_sensitivity_table(experiment, {**results, **shared}).rows} == {"none"}


def pair_points(variant: Variant) -> list[tuple[Point, Point]]:
    return [
        pair
        for place, curve in variant.changed.curves.items()
        for pair in zip(curve, variant.base.curves[place], strict=True)
    ]


def test_the_papers_figure_has_its_policies_alone(
    computed: tuple[Experiment, dict[Point, Result]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, tuple[list[Plot], int]] = {}

    def note(stem: Path, title: str, plots: list[Plot], columns: int) -> list[Path]:
        drawn[stem.name] = (plots, columns)
        return [stem, stem]

    monkeypatch.setattr(report, "draw", note)
    section, _ = report.write_experiment_section(*computed, tmp_path)
    assert set(drawn) == {"mine", "mine_with_ours", "mine_ratio"}
    plots, columns = drawn["mine"]
    assert columns == 2
    assert [[line.label for line in plot.lines] for plot in plots] == [["A", "H"]] * 4
    assert [plot.x[-1] <= 0.5 for plot in plots] == [True, True, False, False]  # by loss: misidentification first
    assert all(len(line.y) == len(plot.x) for plot in plots for line in plot.lines)
    assert [line.label for line in drawn["mine_with_ours"][0][0].lines] == ["A", "H", "B", "lower bound"]
    stored = {}
    for setting, loss, label, gap, risk, error, *_, least in section.table.rows:
        stored[f"{setting}, {str(loss).replace('_', ' ')}", label, gap] = (float(risk), float(error), float(least))
    bands = 0
    for name, (shown, _) in drawn.items():
        for plot in shown:
            for line in plot.lines[: -1 if name != "mine" else None]:
                assert line.low is not None
                assert line.high is not None
                for x, y, low, high in zip(plot.x, line.y, line.low, line.high, strict=True):
                    risk, error, least = stored[plot.title, line.label, float(x)]
                    divisor = least if name == "mine_ratio" else 1.0
                    expected = [number / divisor for number in (risk, risk - 2.0 * error, risk + 2.0 * error)]
                    assert [y, low, high] == pytest.approx(expected, rel=1e-12)
                    bands += 1
    assert bands == 2 * (2 * 5 + 2 * 7) + 2 * 4 * 3 * 7  # gaps up to 0.5 are 5 of 7 under misidentification
    assert section.figures[0][0].startswith("The paper's policies alone")
    (_, theirs), (_, all_of_them) = section.standings
    assert [row[0] for row in theirs.rows] == ["A", "H"]
    assert [row[0] for row in all_of_them.rows] == ["A", "H", "B"]


def make_curve(policy: str, risk: list[float]) -> Curve:
    nothing = np.zeros(3)
    return Curve(policy, np.array(risk), nothing, nothing, nothing, nothing, nothing)


def test_uniformity_by_hand() -> None:
    """Ratios to the smallest of A and H: A 1, 1, 3; H 2, 1, 1. The oracle knows the gap, so it does not count."""
    nothing = np.ones(3)
    curves = {
        "A": make_curve("dbcare", [1.0, 2.0, 6.0]),
        "H": make_curve("sequential-halving", [2.0, 2.0, 2.0]),
        "oracle": make_curve("known-gap-oracle", [0.1, 0.1, 0.1]),
        "B": make_curve("breakeven", [0.5, 1.0, 1.0]),
    }
    panel = Panel("G", Loss.SIMPLE_REGRET, "gap", np.array([0.1, 0.2, 0.4]), curves, nothing, (), nothing, nothing)
    assert uniformity.rank(panel, ["A", "H", "oracle"]) == {
        "A": uniformity.Uniformity(3.0, 0.4, 2, 3),
        "H": uniformity.Uniformity(2.0, 0.1, 2, 3),
    }
    with_ours = uniformity.rank(panel, list(curves))
    assert with_ours["A"] == uniformity.Uniformity(6.0, 0.4, 0, 3)
    assert with_ours["B"] == uniformity.Uniformity(1.0, 0.1, 3, 3)
    table = uniformity.make_standings_table([panel], ["A", "H"])
    assert table.columns == ("policy", "G, simple regret")
    assert table.rows[0] == ("A", "3 at 0.4, best at 2 of 3")
    assert uniformity.rank(panel, ["oracle"]) == {}


def test_every_quote_has_a_place_and_every_check_says_what_is_ours() -> None:
    """Quotes were compared with the paper's text when they were written; three claims have none, or not everywhere."""
    experiments = {name: definition.load(paper.find_definition(name)) for name in paper.NAMES}
    quoted: dict[str, list[str]] = {name: [] for name in PAPER_CLAIMS}
    for name, experiment in experiments.items():
        for claim in experiment.claims:
            if claim in PAPER_CLAIMS and PAPER_CLAIMS[claim].find_quote(name) is not None:
                quoted[claim].append(name)
    assert quoted["flat-below"] == quoted["halving-not-monotone"] == quoted["above-lower-bound"] == []
    assert quoted["never-dominated"] == ["drug"]
    assert quoted["confidence-worst-at-small-gaps"] == ["two_arm"]
    assert quoted["competitors-fail-somewhere"] == ["two_arm", "one_sparse", "linear_decay"]
    assert quoted["within-guarantees"] == list(paper.NAMES)
    for checked in PAPER_CLAIMS.values():
        assert checked.reading
        assert all(quote.text and quote.place for quote in checked.quotes)


def test_the_papers_variants_change_what_they_say() -> None:
    two_arm = definition.load(paper.find_definition("two_arm"))
    test = two_arm.variants[-1].changed.curves[Loss.SIMPLE_REGRET, 0, "fixed confidence 0.1"]
    assert {type(point.policy) for point in test} == {TwoArmLikelihood}
    drug = definition.load(paper.find_definition("drug"))
    tables = [variant.changed.settings[0].bandits[0] for variant in drug.variants if "ACR50" in variant.choice]
    assert len({repr(bandit) for bandit in tables}) == 3
    assert repr(drug.settings[1].bandits[0]) not in {repr(bandit) for bandit in tables}
    for name in paper.NAMES:
        experiment = definition.load(paper.find_definition(name))
        assert experiment.variants
        for variant in experiment.variants:
            assert set(variant.changed.points) - set(variant.base.points), (name, variant.choice)


@pytest.mark.parametrize(("confidence", "proven"), [("paper", "corollary of Theorem 4"), ("theorem", "Theorem 4")])
def test_two_arms_are_held_to_what_is_proven_for_their_delta(confidence: str, proven: str) -> None:
    policy = DBCARE(Risk.simple_regret(1e-4), 2, confidence=confidence)
    bounds = list_guarantees(Loss.SIMPLE_REGRET, [Bandit.two_arm(0.3)], np.array([1e-4]), [policy], None)
    assert bounds[0].statement == proven
    assert ("its proof" in [bound.statement for bound in bounds]) == (confidence == "paper")
    assert all(np.isfinite(bound.values).all() for bound in bounds)


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        ("columns = 2", "column = 2", "`paper_figure` must be a table with `columns`"),
        ("columns = 2", "columns = 2\nrows = 1", "Keys of paper_figure must be among columns, .* but got 'rows'"),
        ('leave_out = ["B"]', 'leave_out = ["C"]', "`paper_figure.leave_out` must be one of A, H, B but got 'C'"),
        ("largest = { mis", "largest = { Mis", "Keys of paper_figure.largest must be among misidentification, "),
        ('choice = "sigma"', 'choices = "sigma"', "Keys of variants must be among choice, .* but got 'choices'"),
        ('choice = "sigma"\n', "", "`variants.choice` must be a text but got None"),
        ('settings = ["Y"]', 'settings = ["X"]', "`variants.settings` must be one of G, Y but got 'X'"),
        ("every = 4", "every = 0", "`variants.every` must be at least 1 but got 0"),
        ("{ A = { sigma", "{ C = { sigma", "`variants.policies` must be one of A, H, B but got 'C'"),
        ("sigma = 0.02", "sigma = -2.0", "`sigma` must be positive but got -2.0"),
    ],
)
def test_mistakes_are_named(change: str, to: str, message: str, tmp_path: Path) -> None:
    assert change in TEXT
    with pytest.raises(InvalidValueError, match=rf"mine\.toml: {message}"):
        load(TEXT.replace(change, to), tmp_path)


def test_panels_may_end_early(computed: tuple[Experiment, dict[Point, Result]]) -> None:
    experiment, results = computed
    panel = make_panels(experiment, results)[0]
    cut = panel.up_to(0.5)
    assert 0 < len(cut.x) < len(panel.x)
    assert cut.x.tolist() == panel.x[: len(cut.x)].tolist()
    assert cut.curves["A"].risk.tolist() == panel.curves["A"].risk[: len(cut.x)].tolist()
    assert all(len(each.values) == len(cut.x) for each in cut.guarantees)
