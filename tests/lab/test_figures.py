"""Figures of experiments: bands are risk +- 2 standard errors, as captions say, and end at the axis."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from dbcare.lab.curves import Curve, Panel
from dbcare.lab.figures import THEORY, Plot, PlotLine, draw, make_ratio_plot, make_risk_plot
from dbcare.problem.risk import Loss

GAPS = np.array([0.1, 0.2, 0.4, 0.8])
LOWER = np.array([0.04, 0.03, 0.01, 0.002])
RISKS = {
    "DBCARE": (np.array([0.3, 0.2, 0.08, 0.01]), np.array([0.01, 0.005, 0.001, 0.0])),
    "noisy": (np.array([0.4, 0.3, 0.05, 0.02]), np.array([0.02, 0.14, 0.03, 0.009])),  # below 0 at one gap
}


def make_curve(policy: str, risk: npt.NDArray[np.float64], error: npt.NDArray[np.float64]) -> Curve:
    """Return a curve of which most of the risk is spent: bands may go below what was."""
    return Curve(policy, risk, error, np.full(4, 10_000.0), 0.1 * risk, 9_000.0 * risk, 0.9 * risk)


@pytest.fixture
def panel() -> Panel:
    policies = dict(zip(RISKS, ("dbcare", "racing"), strict=True))
    curves = {label: make_curve(policies[label], *numbers) for label, numbers in RISKS.items()}
    return Panel("Noise", Loss.SIMPLE_REGRET, "gap", GAPS, curves, LOWER, (), LOWER, LOWER)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """All figures that are written, as matplotlib has them; the files are written, too."""
    figures: list[Figure] = []
    save = Figure.savefig

    def note(figure: Figure, *arguments: Any, **options: Any) -> None:
        figures.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", note)
    return figures


@pytest.mark.parametrize("divided", [False, True])
def test_bands_are_the_stored_numbers(panel: Panel, drawn: list[Figure], tmp_path: Path, divided: bool) -> None:
    plot = make_ratio_plot(panel, "gap") if divided else make_risk_plot(panel, "gap")
    divisor = LOWER if divided else np.ones(4)
    for line in plot.lines[:2]:
        risk, error = RISKS[line.label]
        assert line.low == pytest.approx((risk - 2.0 * error) / divisor, rel=1e-12)
        assert line.high == pytest.approx((risk + 2.0 * error) / divisor, rel=1e-12)
    draw(tmp_path / "noise", "Noise", [plot], columns=1)
    axes = drawn[0].axes[0]
    bands = [each for each in axes.collections if isinstance(each, PolyCollection)]
    assert len(bands) == 2
    bottom = axes.get_ylim()[0]
    cut = 0
    for band, (risk, error) in zip(bands, RISKS.values(), strict=True):
        corners = {(x, y) for x, y in np.asarray(band.get_paths()[0].vertices).tolist()}
        for x, low, high in zip(GAPS, (risk - 2.0 * error) / divisor, (risk + 2.0 * error) / divisor, strict=True):
            ends = sorted(y for at, y in corners if at == x)
            assert ends[-1] == pytest.approx(high, rel=1e-12)
            assert ends[0] == pytest.approx(max(low, bottom), rel=1e-12)
            cut += low < bottom
    assert cut == 1  # the axis ends above the one that is negative
    assert bottom < min(float(line.y.min()) for line in plot.lines)


def test_a_plot_without_positive_numbers_is_drawn(drawn: list[Figure], tmp_path: Path) -> None:
    line = PlotLine("lower bound", THEORY, np.array([np.nan, 0.0, np.nan, 0.0]))
    with pytest.warns(UserWarning, match="Data has no positive values"):
        draw(tmp_path / "nothing", "Nothing", [Plot("Nothing", GAPS, "x", "y", (line,))], columns=1)
    assert len(drawn) == 2
