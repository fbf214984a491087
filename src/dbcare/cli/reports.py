"""Commands that read live studies and change nothing: status, reasons, trials, and the list of studies."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbcare.cli.output import at_terminal, print_csv, print_grid, print_json, print_output
from dbcare.cli.shared import Format, Name, Shape, Storage, friendly_errors

if TYPE_CHECKING:
    from rich.console import Console

    from dbcare.live.study import Study

TRIAL_COLUMNS = ("trial", "arm", "status", "reward", "asked", "answered")  # in a table
TIME_LENGTH = len("2026-01-31T12:30:59")
STUDY_COLUMNS = ("study", "state", "asked", "counted", "waiting", "held", "spent", "recommended", "verdict")


def status(name: Name, storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Show a study: means, pending trials, what has been spent, and its recommendation."""
    import dbcare
    from dbcare.cli import study_view

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        now, choice = study.status(), study.recommendation()
    print_output(
        shape,
        study_view.to_plain(now, choice),
        study_view.arm_rows(now),
        lines=study_view.plain_lines(study.settings, now, choice),
        show=lambda console: study_view.show(console, study.settings, now, choice),
    )


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


def export(
    name: Name,
    storage: Storage,
    file: Annotated[Path | None, typer.Argument(help="A .csv, .jsonl or .parquet file. Default: print.")] = None,
    shape: Annotated[
        Format | None, typer.Option("--format", help="Output format without a file. Default in a pipe: csv.")
    ] = None,
) -> None:
    """Write all trials to a file, or print them."""
    import dbcare
    from dbcare.errors import InvalidValueError
    from dbcare.live.export import TrialRow

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
        rows = [asdict(row) for row in study.trials()]
    columns = list(TrialRow.__dataclass_fields__)
    if shape is Format.JSON:
        print_json(rows)
    elif shape is Format.CSV or (shape is None and not at_terminal()):
        print_csv(rows, columns)
    else:
        print_grid(TRIAL_COLUMNS, [format_cells(row) for row in rows], right=("trial", "reward"))


def format_cells(row: dict[str, Any]) -> list[str]:
    """Return a trial's cells for a table, with its times to the second."""
    short = {**row, "asked": row["asked"][:TIME_LENGTH], "answered": (row["answered"] or "")[:TIME_LENGTH]}
    return ["" if short[column] is None else str(short[column]) for column in TRIAL_COLUMNS]


def load_if_usable(name: str, storage: str) -> "Study | None":
    """Load a study; one whose policy is not installed here is reported and left out."""
    import dbcare
    from dbcare.errors import UnknownPolicyError

    try:
        return dbcare.load_study(name, storage)
    except UnknownPolicyError as unusable:
        typer.echo(f"Note: {unusable}", err=True)
        return None


def studies(storage: Storage, shape: Shape = Format.TABLE) -> None:
    """List all studies, oldest first."""
    import dbcare

    with friendly_errors():
        names = dbcare.list_studies(storage)
        if shape is Format.TABLE and not at_terminal():
            for name in names:
                typer.echo(name)
            return
        from dbcare.cli import study_view
        from dbcare.money import Money

        loaded = [study for name in names if (study := load_if_usable(name, storage)) is not None]
        rows = [study_view.make_record(study) for study in loaded]
        spent = [str(Money(row["spent"], study.settings.currency)) for study, row in zip(loaded, rows, strict=True)]

    def show(console: "Console") -> None:
        if not rows:
            console.print("No studies yet. To create one: dbcare create --help")
            return
        cells = [
            [row["study"], row["state"], f"{row['counted']:,}", amount, f"{row['recommended']} ({row['verdict']})"]
            for row, amount in zip(rows, spent, strict=True)
        ]
        print_grid(["study", "state", "counted", "spent", "recommended"], cells, right=("counted", "spent"))

    print_output(shape, rows, rows, columns=STUDY_COLUMNS, lines=names, show=show)
