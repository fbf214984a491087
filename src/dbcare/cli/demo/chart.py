"""Line charts in braille characters, each of which has 2 by 4 dots; the vertical axis is logarithmic."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

BRAILLE = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a character
MIN_ROWS_FOR_ALL_LABELS = 12  # a lower chart labels every other tick


@dataclass(frozen=True)
class ChartLine:
    """Points from left to right, with positive heights."""

    points: Sequence[tuple[float, float]]
    style: str


@dataclass(frozen=True)
class Axes:
    """Axes from 0 to `right`, and from 1 up to a power of ten; whatever is lower or higher is cut off."""

    right: float
    decades: int  # the power

    @classmethod
    def up_to(cls, right: float, height: float) -> "Axes":
        """Create axes that end at or above `height`."""
        return cls(right, max(1, math.ceil(math.log10(height))))


def draw_chart(lines: Sequence[ChartLine], axes: Axes, width: int, height: int) -> list[Text]:
    """Return rows of text, with labels on the left; where lines meet, the last one is on top."""
    labels = {
        height - 1 - round(power / axes.decades * (height - 1)): f"{10**power:,}"
        for power in range(0, axes.decades + 1, 1 if height >= MIN_ROWS_FOR_ALL_LABELS else 2)
    }
    margin = max(map(len, labels.values()))
    columns = max(1, width - margin - 1)
    cells = [[0] * columns for _ in range(height)]
    styles = [[""] * columns for _ in range(height)]
    for line in lines:
        for across, down in _find_dots(line, axes, 2 * columns, 4 * height):
            row, column = down // 4, across // 2
            cells[row][column] |= DOTS[down % 4][across % 2]
            styles[row][column] = line.style
    rows = []
    for row in range(height):
        text = Text(no_wrap=True)
        edge = "\N{BOX DRAWINGS LIGHT VERTICAL AND LEFT}" if row in labels else "\N{BOX DRAWINGS LIGHT VERTICAL}"
        text.append(f"{labels.get(row, ''):>{margin}}{edge}", style="dim")
        for cell, style in zip(cells[row], styles[row], strict=True):
            text.append(chr(BRAILLE + cell) if cell else " ", style=style)
        rows.append(text)
    return rows


def _find_dots(line: ChartLine, axes: Axes, columns: int, rows: int) -> set[tuple[int, int]]:
    """Return the dots of a line, as (across, down): its points and those in between."""
    places = [
        (round(right / axes.right * (columns - 1)), rows - 1 - round(math.log10(up) / axes.decades * (rows - 1)))
        for right, up in line.points
    ]
    dots = set(places)
    for before, after in pairwise(places):
        steps = max(abs(after[0] - before[0]), abs(after[1] - before[1]))
        dots |= {
            (_interpolate(before[0], after[0], step / steps), _interpolate(before[1], after[1], step / steps))
            for step in range(1, steps)
        }
    return {(across, down) for across, down in dots if 0 <= across < columns and 0 <= down < rows}


def _interpolate(before: int, after: int, share: float) -> int:
    return round(before + (after - before) * share)
