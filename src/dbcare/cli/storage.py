"""Commands about the place where studies are kept."""

from typing import Any

import typer

from dbcare.cli.output import answer, grid
from dbcare.cli.shared import Format, Shape, friendly_errors
from dbcare.cli.studies import Storage

commands = typer.Typer(no_args_is_help=True, help="The place where studies are kept.")

COLUMNS = ("study", "events", "agrees", "problem")


@commands.callback()
def group() -> None:
    """Keeps `check` a command of its own, though it is the only one."""


@commands.command()
def check(storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Replay every study from its events, and compare with its stored summary. Exit code 2 if one does not agree."""
    import dbcare

    with friendly_errors():
        rows = [checked(name, storage) for name in dbcare.list_studies(storage)]
    words = [
        [
            row["study"],
            "-" if row["events"] is None else f"{row['events']} events",
            "agrees" if row["agrees"] else f"does not agree: {row['problem']}",
        ]
        for row in rows
    ]
    answer(
        shape,
        rows,
        rows,
        columns=COLUMNS,
        lines=["\t".join(line) for line in words],
        show=lambda _console: grid(["study", "replayed", "stored summary"], words),
    )
    if not all(row["agrees"] for row in rows):
        raise typer.Exit(2)


def checked(name: str, storage: str) -> dict[str, Any]:
    """Whether a study agrees with its events; what is too damaged to be read does not."""
    import dbcare
    from dbcare.errors import DbcareError

    try:
        events = dbcare.load_study(name, storage).check()
    except (DbcareError, ArithmeticError, LookupError, TypeError, ValueError) as problem:
        said = str(problem) if isinstance(problem, DbcareError) else f"{type(problem).__name__}: {problem}"
        return {"study": name, "events": None, "agrees": False, "problem": said}
    return {"study": name, "events": events, "agrees": True, "problem": None}
