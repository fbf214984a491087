"""Heat tables: their numbers by hand, who is in them, and how they look."""

import csv
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from dbcare.lab.curves import Curve, Panel
from dbcare.lab.experiments.experiment import Contender, Experiment, Only
from dbcare.lab.heat import (
    HeatCell,
    HeatTable,
    draw_heat_tables,
    format_heat_table,
    make_heat_tables,
    make_summary_table,
    summarize,
)
from dbcare.problem.risk import Loss

REGRET = Loss.SIMPLE_REGRET


def make_curve(risk: list[float], standard_error: float, error: list[float], pulls: list[float]) -> Curve:
    nothing = np.zeros(2)
    return Curve(
        "breakeven", np.array(risk), np.full(2, standard_error), nothing, np.array(error), np.array(pulls), nothing
    )


def make_panel(title: str, curves: dict[str, Curve]) -> Panel:
    nothing = np.ones(2)
    return Panel(title, REGRET, "gap", np.array([0.1, 1.0]), curves, nothing, (), nothing, nothing)


BASE = make_curve([1.0, 4.0], 0.0, [0.5, 0.1], [10.0, 1_000.0])
RIVAL = make_curve([2.0, 2.0], 0.2, [0.0, 0.0], [100.0, 400.0])
NARROW = make_curve([8.0, 0.5], 0.0, [0.2, 0.2], [1.0, 4.0])
PANELS = [make_panel("few", {"base": BASE, "a <rival>": RIVAL, "narrow": NARROW}),
          make_panel("many", {"base": BASE, "a <rival>": BASE})]  # fmt: skip
EXPERIMENT = Experiment(
    name="mine", title="Mine", axis="gap", settings=(), losses=(REGRET,), runs=2, seed=0, baselines=("base",),
    contenders={
        "base": Contender("breakeven", {}),
        "a <rival>": Contender("breakeven", {}, group="others"),
        "narrow": Contender("breakeven", {}, group="others", only=Only(max_arms=2)),
        "absent": Contender("breakeven", {}, only=Only(losses=(Loss.MISIDENTIFICATION,))),
    },
)  # fmt: skip


def read_texts(table: HeatTable) -> dict[str, list[str]]:
    return {row.label: ["" if cell is None else cell.text for cell in row.cells] for row in table.rows}


def test_ratios_are_geometric_means_over_the_points() -> None:
    """Ratios 2 and 1/2 have the geometric mean 1; 8 and 1/8 too; the rival is level in the second panel."""
    ratio, error, pulls = make_heat_tables(EXPERIMENT, PANELS)
    assert ratio.title == "Risk over base's, simple regret"
    assert ratio.columns == ("few", "many", "all", "worst")
    assert read_texts(ratio) == {
        "base": ["1.00", "1.00", "1.00", "1.00"],
        "a <rival>": ["1.00", "1.00", "1.00", "2.00"],
        "narrow": ["1.00", "", "1.00", "8.00"],
    }
    assert read_texts(error) == {"base": ["30.0%", "30.0%"], "a <rival>": ["0.0%", "30.0%"], "narrow": ["20.0%", ""]}
    assert read_texts(pulls) == {"base": ["100", "100"], "a <rival>": ["200", "100"], "narrow": ["2", ""]}
    assert [row.group for row in ratio.rows] == ["", "others", "others"]


def test_the_error_of_a_ratio_is_that_of_its_logarithm() -> None:
    """Relative errors of 0.1 at both points: the mean of two logarithms has sqrt(0.02)/2."""
    summary = summarize(PANELS[:1], "a <rival>", "base")
    assert summary is not None
    assert summary.ratio == pytest.approx(1.0, rel=1e-12)
    assert summary.ratio_error == pytest.approx(math.sqrt(0.02) / 2.0, rel=1e-12)
    assert summary.risk == pytest.approx(2.0, rel=1e-12)
    assert summarize(PANELS[1:], "narrow", "base") is None


def test_colors_grow_with_the_logarithm() -> None:
    assert [HeatCell("", ratio, False).heat for ratio in (1.0, 10.0, 1_000.0, math.inf, 0.0, 0.01)] == [
        0.0, 1.0, 1.0, 1.0, -1.0, -1.0,
    ]  # fmt: skip
    assert HeatCell("", math.sqrt(10.0), False).heat == pytest.approx(0.5)
    assert HeatCell("", math.sqrt(0.1), False).heat == pytest.approx(-0.5)


def test_html_has_every_number_and_marks_the_best() -> None:
    _, _, pulls = make_heat_tables(EXPERIMENT, PANELS)
    html = format_heat_table(pulls)
    page = ElementTree.fromstring(html)
    rows = {row.findtext("th"): row.findall("td") for row in page.iter("tr") if row.find("td") is not None}
    assert list(rows) == ["base", "a <rival>", "narrow"]
    assert [cell.get("class") for cell in rows["a <rival>"]] == ["worse", "better"]  # as many pulls: no color
    assert [cell.get("style") for cell in rows["a <rival>"]] == [
        f"--heat: {0.75 * math.log10(2.0):.3f}",
        "--heat: 0.000",
    ]
    assert rows["narrow"][0].findtext("b") == "2"
    assert rows["narrow"][1].attrib == {}
    assert [row.findtext("th") for row in page.iter("tr") if row.get("class") == "group"] == ["others"]


def test_figures_and_numbers_are_written(tmp_path: Path) -> None:
    tables = make_heat_tables(EXPERIMENT, PANELS)[:1]
    svg, png = draw_heat_tables(tmp_path / "heat", "Is $5_$ a price?", tables)
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    image = imread(png)[..., :3]
    assert np.ptp(image) > 0.5
    colored = np.ptp(image, axis=2) > 0.2
    assert 0.005 < colored.mean() < 0.2  # the cells of 2.00 and 8.00, and nothing else
    again, _ = draw_heat_tables(tmp_path / "again", "Is $5_$ a price?", tables)
    assert again.read_bytes() == svg.read_bytes()
    with make_summary_table(EXPERIMENT, PANELS).write(tmp_path / "heat.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["setting"], row["policy"], row["group"]) for row in rows] == [
        ("few", "base", ""), ("few", "a <rival>", "others"), ("few", "narrow", "others"),
        ("many", "base", ""), ("many", "a <rival>", "others"),
    ]  # fmt: skip
    assert [float(row["worst over base's"]) for row in rows] == [1.0, 2.0, 8.0, 1.0, 1.0]
    assert float(rows[1]["standard error, over base's"]) == pytest.approx(math.sqrt(0.02) / 2.0)
