"""Figures of studies, evaluations and plans: they draw the numbers, and notebooks can show them."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

import dbcare
from dbcare.base.extras import say_how_to_install
from dbcare.errors import InvalidValueError


def make_study(**options: Any) -> dbcare.Study:
    study = dbcare.create_study(f"figure {options}", ["$A_1$", "B", "C"], price=0.5, value=1e9, sigma=0.5, **options)
    study.add([("$A_1$", 1.0), ("B", 0.0), ("C", 0.5), ("$A_1$", 1.5), ("B", 0.5), ("C", 1.0)] * 8)
    return study


def test_a_study_is_drawn_as_it_is() -> None:
    study = make_study(control="C")
    figure = study.plot()
    assert isinstance(figure, Figure)
    arms, curves = figure.axes
    assert [label.get_text() for label in arms.get_yticklabels()] == ["$A_1$", "C (control)", "B"]
    drawn = [np.asarray(line.get_xdata()).tolist() for line in arms.lines]
    for arm in study.status().arms:
        assert arm.interval is not None
        assert list(arm.interval) in drawn
        assert [arm.estimate] in drawn
        assert [arm.mean] in drawn
    history = study.history()
    spent = next(line for line in curves.lines if line.get_label() == "spent")
    assert np.asarray(spent.get_xydata()).tolist() == [[point.rewards, point.spent] for point in history]
    assert curves.get_ylabel() == "USD"


def test_less_is_better_comes_first_too() -> None:
    figure = make_study(direction="minimize").plot()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["B", "C", "$A_1$"]


def test_a_study_without_rewards_says_so() -> None:
    figure = dbcare.create_study("empty figure", ["A", "B"], cost=0.1, sigma=1.0).plot()
    assert [axes.texts[0].get_text() for axes in figure.axes] == [
        "no rewards yet",
        "the curves begin with two rewards",
    ]


def test_an_evaluation_is_drawn_as_it_is() -> None:
    risk = dbcare.Risk.misidentification(1e-3)
    evaluation = dbcare.evaluate(dbcare.policies.Uniform(arms=2, pulls=10), dbcare.Bandit.two_arm(0.5), risk)
    bars, pulls = evaluation.plot().axes
    widths = [bar.get_width() for bar in bars.patches]  # type: ignore[attr-defined]  # rectangles
    assert widths == pytest.approx([evaluation.error, evaluation.simple_regret, 0.02, 0.02])
    ends = [bar.get_x() + bar.get_width() for bar in bars.patches[2:]]  # type: ignore[attr-defined]  # rectangles
    assert ends == pytest.approx([estimate.value for estimate in sorted_risks(evaluation)])
    assert np.asarray(pulls.lines[0].get_xdata()).tolist() == [20.0] * 5


def sorted_risks(evaluation: dbcare.engines.Evaluation) -> list[dbcare.engines.Estimate]:
    """Return both risks, that of the loss that was asked for first."""
    first = evaluation.risks[evaluation.loss]
    return [first, *(risk for loss, risk in evaluation.risks.items() if loss is not evaluation.loss)]


def test_notebooks_and_files_show_the_same(tmp_path: Path) -> None:
    study = make_study(seed=3)
    figure = study.plot(tmp_path / "new" / "study.png")
    assert imread(tmp_path / "new" / "study.png").shape[1] == 1500
    picture = imread(io.BytesIO(figure._repr_png_()))  # type: ignore[attr-defined]  # what notebooks call
    assert picture.shape[1] == 1000
    assert picture[..., :3].std() > 0.05  # something is drawn
    for kind in ("svg", "pdf"):
        first, second = (tmp_path / f"{name}.{kind}" for name in "ab")
        study.plot(first)
        study.plot(str(second))
        assert first.read_bytes() == second.read_bytes()
    with pytest.raises(InvalidValueError, match=r"`path` must be one of \.png, \.svg, \.pdf but got '\.gif'"):
        study.plot(tmp_path / "study.gif")


def test_without_matplotlib_the_extra_is_named(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
import dbcare
study = dbcare.create_study("s", ["A", "B"], cost=0.1, sigma=1.0)
study._repr_html_()
study.report("page.html")
try:
    study.plot()
except ModuleNotFoundError as missing:
    print(missing)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout == f"Figures require an extra: {say_how_to_install('lab')}.\n"
