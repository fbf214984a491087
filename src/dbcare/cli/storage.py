"""Commands for the place where studies are kept."""

from typing import Any

import typer

from dbcare.cli.command_class import OptionNamingCommand
from dbcare.cli.output import print_grid, print_output
from dbcare.cli.shared import Format, Shape, Storage, friendly_errors

commands = typer.Typer(no_args_is_help=True, help="Check stored studies.")

COLUMNS = ("study", "events", "agrees", "problem")


@commands.callback()
def group() -> None:
    """Keep `check` a command of its own, although it is the only one."""


@commands.command(cls=OptionNamingCommand)
def check(storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Replay every study from its events and compare with its stored summary. Exits 2 if one does not agree."""
    import dbcare

    with friendly_errors():
        rows = [check_study(name, storage) for name in dbcare.list_studies(storage)]
    cells = [
        [
            row["study"],
            "-" if row["events"] is None else f"{row['events']} events",
            "agrees" if row["agrees"] else f"does not agree: {row['problem']}",
        ]
        for row in rows
    ]
    print_output(
        shape,
        rows,
        rows,
        columns=COLUMNS,
        lines=["\t".join(line) for line in cells],
        show=lambda _console: print_grid(["study", "replayed", "stored summary"], cells),
    )
    if not all(row["agrees"] for row in rows):
        raise typer.Exit(2)


def check_study(name: str, storage: str) -> dict[str, Any]:
    """Return whether a study agrees with its events; one that is too damaged to be read does not."""
    import dbcare
    from dbcare.errors import DbcareError

    try:
        events = dbcare.load_study(name, storage).check()
    except (DbcareError, ArithmeticError, LookupError, TypeError, ValueError) as failure:
        problem = str(failure) if isinstance(failure, DbcareError) else f"{type(failure).__name__}: {failure}"
        return {"study": name, "events": None, "agrees": False, "problem": problem}
    return {"study": name, "events": events, "agrees": True, "problem": None}
