"""Commands that read live studies and change nothing: status, reasons, report, trials, and the list of studies."""

import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbcare.cli.output import at_terminal, print_grid, print_output
from dbcare.cli.shared import Format, Name, Shape, Storage, friendly_errors

if TYPE_CHECKING:
    from rich.console import Console

    from dbcare.studies.results.status import Pending
    from dbcare.studies.show.export import TrialRow
    from dbcare.studies.study import Study

TRIAL_COLUMNS = ("trial", "arm", "status", "reward", "asked", "answered")  # in a table
MAX_TABLE_ROWS = 1_000
TIME_LENGTH = len("2026-01-31T12:30:59")
PENDING_COLUMNS = ("trial", "arm", "worker", "age", "left", "told", "block")
STUDY_COLUMNS = ("study", "state", "asked", "rewards", "spent", "recommended", "verdict", "created", "created_by")


def status(name: Name, storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Show a study: means, pending trials, what has been spent, and its recommendation."""
    import dbcare

    with friendly_errors():
        print_status(dbcare.load_study(name, storage), shape)


def print_status(study: "Study", shape: Format) -> None:
    """Print how a study stands."""
    from dbcare.cli import views

    now, choice = study.snapshot()

    def show(console: "Console") -> None:
        from dbcare.cli import views  # which loads rich

        views.show(console, study.settings, now, choice)

    print_output(
        shape,
        views.to_plain(now, choice),
        views.arm_rows(now),
        lines=views.plain_lines(study.settings, now, choice),
        show=show,
    )


def pending(name: Name, storage: Storage, shape: Shape = Format.TABLE) -> None:
    """List the trials that have not been counted, oldest first: who has them, since when, and when leases end."""
    import dbcare
    from dbcare.base.times import format_duration

    with friendly_errors():
        trials = dbcare.load_study(name, storage).pending()

    def describe_lease(trial: "Pending") -> str:
        if trial.told:
            return "told"
        if trial.left is None:
            return "no expiry"
        return f"ends in {format_duration(trial.left)}" if trial.left > 0.0 else "ended"

    def make_cells(trial: "Pending") -> list[str]:
        whose = trial.arm, trial.block or "-", trial.worker or "-"
        return [str(trial.trial), *whose, format_duration(trial.age), describe_lease(trial)]

    cells = list(map(make_cells, trials))

    def show(console: "Console") -> None:
        if not trials:
            console.print("No trials are pending.")
            return
        print_grid(["trial", "arm", "block", "worker", "age", "lease"], cells, right=("trial", "age"))
        console.print(f"To give some up: dbcare give-up {name} --older-than 10m", markup=False)

    rows = [asdict(trial) for trial in trials]
    lines = ["\t".join(line) for line in cells]
    print_output(shape, rows, rows, columns=PENDING_COLUMNS, lines=lines, show=show)


def explain(name: Name, storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Explain every elimination and the stop, in one sentence each."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        sentences = study.explain()
        choice = None if sentences else study.recommendation()

    def show(console: "Console") -> None:
        for sentence in sentences or [f"Nothing is decided yet: {choice}"]:
            console.print(f"- {sentence}", markup=False)

    rows = [{"sentence": sentence} for sentence in sentences]
    print_output(shape, sentences, rows, columns=["sentence"], lines=sentences, show=show)


def report(
    name: Name,
    storage: Storage,
    file: Annotated[Path | None, typer.Argument(help="The HTML file. Default: the study's name with .html.")] = None,
) -> None:
    """Write the decision as one HTML page to print and file away, and print the path of the file."""
    import dbcare

    with friendly_errors():
        written = dbcare.load_study(name, storage).report(file or f"{name}.html")
    typer.echo(f"Written to {written}" if at_terminal() else written)


class ExportFormat(StrEnum):
    """How trials are printed."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


def export(
    name: Name,
    storage: Storage,
    file: Annotated[Path | None, typer.Argument(help="A .csv, .jsonl or .parquet file. Default: print.")] = None,
    shape: Annotated[
        ExportFormat | None, typer.Option("--format", help="Output format without a file. Default in a pipe: csv.")
    ] = None,
) -> None:
    """Write all trials to a file, or print them; a table has the last 1,000."""
    import dbcare
    from dbcare.errors import InvalidValueError
    from dbcare.studies.show.export import TextFormat, format_trials

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        if file is not None:
            if shape is not None:
                raise InvalidValueError(
                    f"`--format` cannot be combined with a file, whose extension decides, but got {shape}."
                )
            written = study.export(file)
            if at_terminal():
                typer.echo(f"Written to {written}")
            return
    if shape is ExportFormat.TABLE or (shape is None and at_terminal()):
        print_last_trials(study)
        return
    kind: TextFormat = "csv" if shape is None else shape.value  # type: ignore[assignment]  # not a table
    pieces = format_trials(study.trials(), kind)
    while (piece := read_next(pieces)) is not None:
        sys.stdout.write(piece)


def read_next(pieces: Iterator[str]) -> str | None:
    """Return the next piece, or None after the last; what fails on the way is reported like any error."""
    with friendly_errors():
        return next(pieces, None)


def print_last_trials(study: "Study") -> None:
    """Print the last trials as a table."""
    from dbcare.studies.show.export import TIMES

    with friendly_errors():
        rows = deque(study.trials(), maxlen=MAX_TABLE_ROWS)
    headings = [f"{column} (UTC)" if column in TIMES else column for column in TRIAL_COLUMNS]
    print_grid(headings, map(format_cells, rows), right=("trial", "reward"))
    if rows and rows[0].trial > 1:
        typer.echo(f"Trials 1 to {rows[0].trial - 1:,} are not shown; write all to a file such as t.csv.", err=True)


def format_cells(row: "TrialRow") -> list[str]:
    """Return a trial's cells for a table, with its times to the second."""
    short = {**vars(row), "asked": row.asked[:TIME_LENGTH], "answered": (row.answered or "")[:TIME_LENGTH]}
    return ["" if short[column] is None else str(short[column]) for column in TRIAL_COLUMNS]


def studies(
    storage: Storage,
    search: Annotated[str, typer.Option(help="Only studies whose name contains this.")] = "",
    shape: Shape = Format.TABLE,
) -> None:
    """List all studies, oldest first."""
    import dbcare
    from dbcare.base.numbers import Money

    with friendly_errors():
        found = dbcare.find_studies(search, storage)
        rows, cells = [], []
        for record in found:
            row = {"study": record.name, **asdict(record.standing)}
            row |= {"created": record.created, "created_by": record.created_by}
            spent = Money(record.standing.spent, record.currency)
            choice = f"{row['recommended']} ({row['verdict']})"
            cells.append([record.name, row["state"], f"{row['rewards']:,}", str(spent), choice])
            rows.append({column: row[column] for column in STUDY_COLUMNS})

    def show(console: "Console") -> None:
        if not rows:
            console.print("No studies match." if search else "No studies yet. To create one: dbcare create --help")
            return
        print_grid(["study", "state", "rewards", "spent", "recommended"], cells, right=("rewards", "spent"))

    names = [record.name for record in found]
    print_output(shape, rows, rows, columns=STUDY_COLUMNS, lines=names, show=show)
