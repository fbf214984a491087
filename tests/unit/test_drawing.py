"""Drawings in characters: the right dots in the right places."""

import pytest

from dbcare.cli.demo.chart import Axes, ChartLine, draw_chart
from dbcare.cli.intervals import draw_interval, find_axis

DOT = "\N{BLACK CIRCLE}"


def count_dots(row: str) -> list[int]:
    """Return the number of dots in each character of a row."""
    return [bin(ord(character) - 0x2800).count("1") if character != " " else 0 for character in row]


def test_a_flat_line_and_a_vertical_line() -> None:
    """In a chart of 4 by 1 characters (8 by 4 dots): a line along the bottom, and one from bottom to top."""
    axes = Axes(right=7.0, top=3.0, step=3.0)
    flat = draw_chart([ChartLine([(0.0, 0.0), (7.0, 0.0)], "red")], axes, 6, 1)[0].plain
    assert flat[2:] == "\N{BRAILLE PATTERN DOTS-78}" * 4
    vertical = draw_chart([ChartLine([(0.0, 0.0), (0.0, 3.0)], "red")], axes, 6, 1)[0].plain
    assert vertical[2:] == "\N{BRAILLE PATTERN DOTS-1237}   "
    assert count_dots(vertical[2:]) == [4, 0, 0, 0]


def test_points_above_the_axis_are_cut_off() -> None:
    rows = draw_chart([ChartLine([(0.0, 99.0), (1.0, 99.0)], "red")], Axes(1.0, 4.0, 1.0), 10, 5)
    assert all(set(row.plain[2:]) == {" "} for row in rows)


def test_labels_are_at_the_right_heights() -> None:
    rows = [row.plain for row in draw_chart([], Axes(1.0, 2000.0, 500.0), 20, 13)]
    assert [row[:5].strip() for row in rows] == [
        "2,000", "", "", "1,500", "", "", "1,000", "", "", "500", "", "", "0",
    ]  # fmt: skip
    few = [row.plain[:5].strip() for row in draw_chart([], Axes(1.0, 2000.0, 500.0), 20, 5)]
    assert few == ["2,000", "", "1,000", "", "0"]


@pytest.mark.parametrize(
    ("height", "top", "step"),
    [(1518.0, 2000.0, 500.0), (95.0, 100.0, 25.0), (100.0, 100.0, 25.0), (1.0, 1.0, 0.25), (840.0, 1000.0, 250.0)],
)
def test_axes_end_at_round_numbers(height: float, top: float, step: float) -> None:
    assert Axes.up_to(10.0, height) == Axes(10.0, top, step)


def test_intervals_on_an_axis() -> None:
    assert draw_interval(0.5, (0.25, 0.75), (0.0, 1.0), 9, "").plain == f"  ━━{DOT}━━  "
    assert draw_interval(0.5, (0.0, 2.0), (0.0, 1.0), 9, "").plain == f"━━━━{DOT}━━━━"
    assert draw_interval(2.0, (1.5, 2.5), (0.0, 1.0), 9, "").plain == "        ━"
    assert find_axis([(0.0, 1.0), (-1.0, 0.5)]) == (-1.0, 1.0)
    assert find_axis([(2.0, 2.0)]) == (1.0, 3.0)
    assert find_axis([]) is None
