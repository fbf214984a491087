"""Commands for the place where studies are kept."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dbcare.cli.command_class import OptionNamingCommand
from dbcare.cli.output import at_terminal, print_grid, print_output
from dbcare.cli.shared import Format, Shape, Storage, friendly_errors

commands = typer.Typer(no_args_is_help=True, help="Check, back up, and restore stored studies.")

COLUMNS = ("study", "events", "agrees", "problem")


@commands.command(cls=OptionNamingCommand)
def backup(
    to: Annotated[Path, typer.Argument(help="The backup, a new file.")],
    storage: Storage,
) -> None:
    """Write a backup of an SQLite database, which may be in use meanwhile."""
    from dbcare.studies.stores.sql.backup import back_up

    with friendly_errors():
        written = back_up(storage, to)
    typer.echo(f"Written to {written}" if at_terminal() else written)


@commands.command(cls=OptionNamingCommand)
def restore(
    source: Annotated[Path, typer.Argument(metavar="FROM", help="The backup.")],
    storage: Storage,
) -> None:
    """Put a backup in the place of an SQLite database, which no program may have open.

    The database that was there before is kept, and its path is printed.
    """
    from dbcare.studies.stores.sql.backup import restore

    with friendly_errors():
        kept = restore(storage, source)
    if at_terminal():
        typer.echo(f"Restored {source}. Next: dbcare storage check")
    if kept is not None:
        typer.echo(f"The database from before is in {kept}" if at_terminal() else kept)


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
