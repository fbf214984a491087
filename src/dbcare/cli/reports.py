"""Commands that look at live studies and change nothing: status, reasons, trials, and which studies there are."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbcare.cli.output import answer, as_csv, as_json, at_terminal, grid
from dbcare.cli.shared import Format, Shape, friendly_errors
from dbcare.cli.studies import Name, Storage

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = ("trial", "arm", "status", "reward", "asked", "answered")  # of a trial, in a table
SECONDS = len("2026-01-31T12:30:59")
STUDY_COLUMNS = ("study", "state", "asked", "counted", "waiting", "held", "spent", "recommended", "verdict")


def status(name: Name, storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Where a study stands: means, what is out, what has been spent, and its recommendation."""
    import dbcare
    from dbcare.cli import study_view

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        found, choice = study.status(), study.recommendation()
    answer(
        shape,
        study_view.plain(found, choice),
        study_view.arm_rows(found),
        lines=study_view.lines(study.settings, found, choice),
        show=lambda console: study_view.show(console, study.settings, found, choice),
    )


def explain(name: Name, storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Every elimination and the stop, a sentence each."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        sentences = study.explain()
        going_on = None if sentences else study.recommendation()

    def show(console: "Console") -> None:
        for sentence in sentences or [f"Nothing is decided yet: {going_on}"]:
            console.print(f"- {sentence}", markup=False)

    rows = [{"sentence": sentence} for sentence in sentences]
    answer(shape, sentences, rows, columns=["sentence"], lines=sentences, show=show)


def export(
    name: Name,
    storage: Storage,
    file: Annotated[
        Path | None, typer.Argument(help="A .csv, .jsonl or .parquet file; printed if there is none.")
    ] = None,
    shape: Annotated[Format | None, typer.Option("--format", help="How to print; csv for a pipe if not given.")] = None,
) -> None:
    """All trials, into a file or printed."""
    import dbcare
    from dbcare.errors import InvalidValueError
    from dbcare.live.export import TrialRow

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        if file is not None:
            if shape is not None:
                raise InvalidValueError(
                    f"`--format` must not be given with a file, whose name says its form, but got {shape}."
                )
            written = study.export(file)
            if at_terminal():
                typer.echo(f"Written: {written}")
            return
        rows = [asdict(row) for row in study.trials()]
    columns = list(TrialRow.__dataclass_fields__)
    if shape is Format.JSON:
        as_json(rows)
    elif shape is Format.CSV or (shape is None and not at_terminal()):
        as_csv(rows, columns)
    else:
        grid(SHOWN, [cells(row) for row in rows], right=("trial", "reward"))


def cells(row: dict[str, Any]) -> list[str]:
    """A trial in a table, its times to the second."""
    short = {**row, "asked": row["asked"][:SECONDS], "answered": (row["answered"] or "")[:SECONDS]}
    return ["" if short[column] is None else str(short[column]) for column in SHOWN]


def studies(storage: Storage, shape: Shape = Format.TABLE) -> None:
    """All studies, the oldest first."""
    import dbcare

    with friendly_errors():
        names = dbcare.list_studies(storage)
        if shape is Format.TABLE and not at_terminal():
            for name in names:
                typer.echo(name)
            return
        from dbcare.cli import study_view

        loaded = [dbcare.load_study(name, storage) for name in names]
        rows = [study_view.record(study) for study in loaded]
        spent = [study_view.amount(study.settings, row["spent"]) for study, row in zip(loaded, rows, strict=True)]

    def show(console: "Console") -> None:
        if not rows:
            console.print("No studies yet. Begin one: dbcare create --help")
            return
        shown = [
            [row["study"], row["state"], f"{row['counted']:,}", said, f"{row['recommended']} ({row['verdict']})"]
            for row, said in zip(rows, spent, strict=True)
        ]
        grid(["study", "state", "counted", "spent", "recommended"], shown, right=("counted", "spent"))

    answer(shape, rows, rows, columns=STUDY_COLUMNS, lines=names, show=show)
