"""What commands print: tables, JSON or CSV, and intervals in them."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from dbcare.cli.shared import Format

if TYPE_CHECKING:
    from rich.console import Console


Span = tuple[float, float]
MEAN, LINE = "\N{BLACK CIRCLE}", "\N{BOX DRAWINGS HEAVY HORIZONTAL}"


def find_axis(spans: Iterable[Span]) -> Span | None:
    """Return the smallest axis that has room for all spans; None if there are none."""
    ends = list(spans)
    if not ends:
        return None
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return (low, high) if low < high else (low - 1.0, high + 1.0)


def draw_interval(mean: float, span: Span, axis: Span, width: int, style: str) -> Text:
    """Draw a line across the span with a dot at the mean; what is beyond the axis is cut off."""
    first, dot, last = (_place(value, axis, width) for value in (span[0], mean, span[1]))
    cells = [LINE if first <= place <= last else " " for place in range(width)]
    if axis[0] <= mean <= axis[1]:
        cells[dot] = MEAN
    text = Text("".join(cells), style=style, no_wrap=True)
    text.stylize("bold", dot, dot + 1)
    return text


def _place(number: float, axis: Span, width: int) -> int:
    share = (number - axis[0]) / (axis[1] - axis[0])
    return round(min(max(share, 0.0), 1.0) * (width - 1))


PIPE_WIDTH = 100_000  # characters, so that no line is broken in a pipe
Rows = Sequence[dict[str, Any]]


def at_terminal() -> bool:
    """Return whether a person reads the output."""
    return sys.stdout.isatty()


def print_output(
    shape: Format,
    plain: Any,
    rows: Rows,
    *,
    columns: Sequence[str] | None = None,
    lines: Iterable[str],
    show: "Callable[[Console], object]",
    defused: bool = True,
) -> None:
    """Print `plain` as JSON, `rows` as CSV, or else `lines` to a pipe and `show` to a terminal.

    Formulas in CSV are defused unless only programs read it.
    """
    if shape is Format.JSON:
        print_json(plain)
    elif shape is Format.CSV:
        print_csv(rows, columns, defused)
    elif at_terminal():
        from rich.console import Console

        show(Console(highlight=False))
    else:
        for line in lines:
            typer.echo(line)


def print_json(plain: Any) -> None:
    """Print one JSON document, with null for numbers that JSON does not have."""
    from dbcare.base.files import replace_non_finite

    typer.echo(json.dumps(replace_non_finite(plain), indent=2, allow_nan=False))


def print_csv(rows: Rows, columns: Sequence[str] | None = None, defused: bool = True) -> None:
    """Print a header and the rows; `columns` defaults to those of the first row."""
    from dbcare.base.files import defuse_formula, replace_non_finite

    def make_cell(value: Any) -> Any:
        return defuse_formula(value) if defused and isinstance(value, str) else replace_non_finite(value)

    writer = csv.DictWriter(sys.stdout, columns or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: make_cell(value) for name, value in row.items()} for row in rows)


def print_grid(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print texts in aligned columns, as wide as the terminal, or in a pipe as wide as they are."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD if at_terminal() else None, padding=(0, 1, 0, 0), pad_edge=at_terminal())
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(highlight=False, width=None if at_terminal() else PIPE_WIDTH).print(table)
