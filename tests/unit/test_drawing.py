"""Drawings in characters: the right dots in the right places."""

import pytest

from dbcare.cli.demo.chart import Axes, ChartLine, chart
from dbcare.cli.intervals import axis_of, drawn

DOT = "\N{BLACK CIRCLE}"


def heights(row: str) -> list[int]:
    """For each character of a chart one row high, the dots it has."""
    return [bin(ord(each) - 0x2800).count("1") if each != " " else 0 for each in row]


def test_a_level_line_and_a_steep_one() -> None:
    """In a chart of 4 characters by 1, 8 by 4 dots: a line at the bottom, one from bottom to top."""
    axes = Axes(right=7.0, top=3.0, step=3.0)
    level = chart([ChartLine([(0.0, 0.0), (7.0, 0.0)], "red")], axes, 6, 1)[0].plain
    assert level[2:] == "\N{BRAILLE PATTERN DOTS-78}" * 4
    steep = chart([ChartLine([(0.0, 0.0), (0.0, 3.0)], "red")], axes, 6, 1)[0].plain
    assert steep[2:] == "\N{BRAILLE PATTERN DOTS-1237}   "
    assert heights(steep[2:]) == [4, 0, 0, 0]


def test_what_is_too_high_is_cut_off() -> None:
    rows = chart([ChartLine([(0.0, 99.0), (1.0, 99.0)], "red")], Axes(1.0, 4.0, 1.0), 10, 5)
    assert all(set(row.plain[2:]) == {" "} for row in rows)


def test_labels_lie_at_their_heights() -> None:
    rows = [row.plain for row in chart([], Axes(1.0, 2000.0, 500.0), 20, 13)]
    assert [row[:5].strip() for row in rows] == [
        "2,000", "", "", "1,500", "", "", "1,000", "", "", "500", "", "", "0",
    ]  # fmt: skip
    few = [row.plain[:5].strip() for row in chart([], Axes(1.0, 2000.0, 500.0), 20, 5)]
    assert few == ["2,000", "", "1,000", "", "0"]


@pytest.mark.parametrize(
    ("height", "top", "step"),
    [(1518.0, 2000.0, 500.0), (95.0, 100.0, 25.0), (100.0, 100.0, 25.0), (1.0, 1.0, 0.25), (840.0, 1000.0, 250.0)],
)
def test_axes_end_at_round_numbers(height: float, top: float, step: float) -> None:
    assert Axes.up_to(10.0, height) == Axes(10.0, top, step)


def test_intervals_on_an_axis() -> None:
    assert drawn(0.5, (0.25, 0.75), (0.0, 1.0), 9, "").plain == f"  ━━{DOT}━━  "
    assert drawn(0.5, (0.0, 2.0), (0.0, 1.0), 9, "").plain == f"━━━━{DOT}━━━━"
    assert drawn(2.0, (1.5, 2.5), (0.0, 1.0), 9, "").plain == "        ━"
    assert axis_of([(0.0, 1.0), (-1.0, 0.5)]) == (-1.0, 1.0)
    assert axis_of([(2.0, 2.0)]) == (1.0, 3.0)
    assert axis_of([]) is None
