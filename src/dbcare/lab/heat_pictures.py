"""Heat tables as HTML, which scrolls on narrow screens and follows dark mode, and as figures for papers and pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from textwrap import fill

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dbcare.base.look import BLUE, RED
from dbcare.lab.heat import HOTTEST, HeatCell, HeatTable

STRONGEST = 0.75  # opacity of the full color, on which text of either mode is still readable
KEY = (
    f"Blue is better than the baseline, orange is worse; full color from a factor of {HOTTEST:g}. The best of each "
    "column is bold. Empty: the policy does not take part."
)
EXPLANATION = (
    "Each number is a geometric mean over the points of a setting (errors: a plain mean), “all” one over all points of "
    f"the policy, and “worst” the largest ratio at any point. {KEY}"
)
ROW, CELL, LABEL = 0.25, 0.62, 2.5  # inches: height of a row, width of a column and of the labels
LETTERS = 9  # that fit into the head of a column


def format_heat_table(table: HeatTable) -> str:
    """Return a heat table as HTML; colors are in the report's style sheet."""
    columns = [escape(column).replace(" = ", "&#160;=&#160;") for column in table.columns]  # "K = 8" stays together
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    parts = [f'<thead><tr><th scope="col">policy</th>{head}</tr></thead>']
    for group, rows in groupby(table.rows, key=lambda row: row.group):
        lines = []
        if group:
            lines.append(f'<tr class="group"><th colspan="{len(table.columns) + 1}">{escape(group)}</th></tr>')
        for row in rows:
            cells = "".join(map(_format_cell, row.cells))
            lines.append(f'<tr><th scope="row">{escape(row.label)}</th>{cells}</tr>')
        parts.append(f"<tbody>{''.join(lines)}</tbody>")
    return f'<div class="scroll"><table class="heat">{"".join(parts)}</table></div>'


def _format_cell(cell: HeatCell | None) -> str:
    if cell is None:
        return "<td></td>"
    side = "worse" if cell.heat > 0.0 else "better"
    text = f"<b>{cell.text}</b>" if cell.best else cell.text
    return f'<td class="{side}" style="--heat: {STRONGEST * abs(cell.heat):.3f}">{text}</td>'


def draw_heat_tables(stem: Path, title: str, tables: Sequence[HeatTable]) -> list[Path]:
    """Write tables below each other as `stem`.svg and .png; return both paths."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    written = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    width = LABEL + CELL * max(len(table.columns) for table in tables) + 0.1
    heights = [(_count_lines(table) + 3.4) * ROW for table in tables]
    height = sum(heights) + 0.9
    with mpl.rc_context({"svg.hashsalt": "dbcare", "font.size": 9}):
        figure = Figure(figsize=(width, height))
        figure.suptitle(title, x=0.1 / width, y=1.0 - 0.1 / height, ha="left", va="top", fontsize=11, parse_math=False)
        top = height - 0.4
        for table, own in zip(tables, heights, strict=True):
            axes = figure.add_axes((0.0, (top - own) / height, 1.0, own / height))
            axes.set_xlim(0.0, width)
            axes.set_ylim(own, 0.0)
            axes.axis("off")
            _draw_table(axes, table)
            top -= own
        figure.text(0.1 / width, 0.1 / height, KEY, fontsize=8, color="#5c6570", wrap=True)
        figure.savefig(written[0], metadata={"Date": None})
        figure.savefig(written[1], dpi=110)
    return written


def _count_lines(table: HeatTable) -> int:
    return len(table.rows) + len({row.group for row in table.rows if row.group})


def _draw_table(axes: Axes, table: HeatTable) -> None:
    """Draw a table, in inches from the top left corner."""
    y = 0.9 * ROW
    axes.text(0.1, y, table.title, weight="bold", va="center", parse_math=False)
    y += 2.1 * ROW
    for place, column in enumerate(table.columns):
        lines = fill(column.replace(" = ", "="), LETTERS)
        axes.text(LABEL + CELL * (place + 0.5), y, lines, ha="center", va="bottom", fontsize=7.5, parse_math=False)
    y += 0.15 * ROW
    for group, rows in groupby(table.rows, key=lambda row: row.group):
        if group:
            axes.text(0.1, y + 0.55 * ROW, group, va="center", fontsize=8, style="italic", color="#5c6570")
            y += ROW
        for row in rows:
            axes.text(0.2, y + 0.5 * ROW, row.label, va="center", parse_math=False)
            for place, cell in enumerate(row.cells):
                if cell is None:
                    continue
                x = LABEL + CELL * place
                color = (*to_rgb(RED if cell.heat > 0.0 else BLUE), STRONGEST * abs(cell.heat))
                axes.add_patch(Rectangle((x, y), CELL, ROW, facecolor=color, edgecolor="white", linewidth=1.0))
                weight = "bold" if cell.best else "normal"
                axes.text(x + 0.5 * CELL, y + 0.5 * ROW, cell.text, ha="center", va="center", weight=weight)
            y += ROW
