"""How a command answers: laid out for a person at a terminal, plain lines for a pipe, or JSON or CSV for a program."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from dbcare.cli.shared import Format

if TYPE_CHECKING:
    from rich.console import Console

WIDEST = 100_000  # characters of a line in a pipe, so that none is broken
Rows = Sequence[dict[str, Any]]


def at_terminal() -> bool:
    """Whether a person reads what is printed."""
    return sys.stdout.isatty()


def answer(
    shape: Format,
    plain: Any,
    rows: Rows,
    *,
    columns: Sequence[str] | None = None,
    lines: Iterable[str],
    show: "Callable[[Console], object]",
) -> None:
    """Print `plain` as JSON, `rows` as CSV, or else `lines` for a pipe and `show` for a person."""
    if shape is Format.JSON:
        as_json(plain)
    elif shape is Format.CSV:
        as_csv(rows, columns)
    elif at_terminal():
        from rich.console import Console

        show(Console(highlight=False))
    else:
        for line in lines:
            typer.echo(line)


def as_json(plain: Any) -> None:
    """One JSON document; null for numbers that JSON does not have."""
    from dbcare.engines.evaluation import finite

    typer.echo(json.dumps(finite(plain), indent=2, allow_nan=False))


def as_csv(rows: Rows, columns: Sequence[str] | None = None) -> None:
    """A header and the rows; `columns` are those of the first row if not given."""
    from dbcare.engines.evaluation import finite

    writer = csv.DictWriter(sys.stdout, columns or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(finite(row) for row in rows)


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Texts in aligned columns; for a pipe as wide as they are, for a person as wide as the terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD if at_terminal() else None, padding=(0, 1, 0, 0), pad_edge=at_terminal())
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(highlight=False, width=None if at_terminal() else WIDEST).print(table)
