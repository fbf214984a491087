"""Drawings in characters: the right dots in the right places."""

import pytest

from dbcare.cli.demo.scene import Axes, ChartLine, draw_chart
from dbcare.cli.output import draw_interval, find_axis

DOT = "\N{BLACK CIRCLE}"


def count_dots(row: str) -> list[int]:
    """Return the number of dots in each character of a row."""
    return [bin(ord(character) - 0x2800).count("1") if character != " " else 0 for character in row]


def test_a_flat_line_and_a_vertical_line() -> None:
    """In a chart of 4 by 1 characters (8 by 4 dots): a line along the bottom, and one from bottom to top."""
    axes = Axes(right=7.0, decades=3)
    flat = draw_chart([ChartLine([(0.0, 1.0), (7.0, 1.0)], "red")], axes, 8, 1)[0].plain
    assert flat[4:] == "\N{BRAILLE PATTERN DOTS-78}" * 4
    vertical = draw_chart([ChartLine([(0.0, 1.0), (0.0, 1000.0)], "red")], axes, 8, 1)[0].plain
    assert vertical[4:] == "\N{BRAILLE PATTERN DOTS-1237}   "
    assert count_dots(vertical[4:]) == [4, 0, 0, 0]


def test_heights_are_logarithms() -> None:
    """Each factor of ten is one dot: 4 rows of dots for 1, 10, 100, and 1,000."""
    line = ChartLine([(0.0, 1.0), (1.0, 10.0), (2.0, 100.0), (3.0, 1000.0)], "red")
    (row,) = draw_chart([line], Axes(right=3.0, decades=3), 6, 1)
    assert row.plain[4:] == "\N{BRAILLE PATTERN DOTS-67}\N{BRAILLE PATTERN DOTS-24}"


@pytest.mark.parametrize("height", [0.01, 1e6])
def test_points_beyond_the_axis_are_cut_off(height: float) -> None:
    rows = draw_chart([ChartLine([(0.0, height), (1.0, height)], "red")], Axes(1.0, 2), 10, 5)
    assert all(set(row.plain[4:]) == {" "} for row in rows)


def test_labels_are_at_the_right_heights() -> None:
    rows = [row.plain for row in draw_chart([], Axes(1.0, 4), 20, 13)]
    assert [row[:6].strip() for row in rows] == [
        "10,000", "", "", "1,000", "", "", "100", "", "", "10", "", "", "1",
    ]  # fmt: skip
    few = [row.plain[:6].strip() for row in draw_chart([], Axes(1.0, 4), 20, 5)]
    assert few == ["10,000", "", "100", "", "1"]


@pytest.mark.parametrize(("height", "decades"), [(1518.0, 4), (95.0, 2), (100.0, 2), (1.0, 1), (0.3, 1)])
def test_axes_end_at_powers_of_ten(height: float, decades: int) -> None:
    assert Axes.up_to(10.0, height) == Axes(10.0, decades)


def test_intervals_on_an_axis() -> None:
    assert draw_interval(0.5, (0.25, 0.75), (0.0, 1.0), 9, "").plain == f"  ━━{DOT}━━  "
    assert draw_interval(0.5, (0.0, 2.0), (0.0, 1.0), 9, "").plain == f"━━━━{DOT}━━━━"
    assert draw_interval(2.0, (1.5, 2.5), (0.0, 1.0), 9, "").plain == "        ━"
    assert find_axis([(0.0, 1.0), (-1.0, 0.5)]) == (-1.0, 1.0)
    assert find_axis([(2.0, 2.0)]) == (1.0, 3.0)
    assert find_axis([]) is None
