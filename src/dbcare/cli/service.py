"""Commands of the service: run it, and the keys that let people and programs in."""

from dataclasses import asdict
from typing import Annotated

import typer

from dbcare.cli.output import answer, at_terminal, grid
from dbcare.cli.shared import Format, Shape, friendly_errors
from dbcare.cli.studies import Storage
from dbcare.server.access.roles import Role

keys = typer.Typer(no_args_is_help=True, help="Keys for the service.")


def serve(
    storage: Storage,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at.", min=0, max=65535)] = 8080,
) -> None:
    """Serve studies over HTTP, with a dashboard; without any key to this machine only."""
    with friendly_errors():
        from dbcare.server.serve import serve as run

        run(storage, host, port, _said)


def _said(address: str, protected: bool) -> None:
    typer.echo(f"Serving at {address}")
    if not protected:
        typer.echo("There is no key yet: everybody on this machine, and nobody else, is let in. Make one:")
        typer.echo("  dbcare keys create --role admin --name me")


@keys.command()
def create(
    storage: Storage,
    name: Annotated[str, typer.Option(help="Whose it is.")],
    role: Annotated[
        Role, typer.Option(help="viewer looks; worker asks and tells too; admin creates, stops, deletes too.")
    ],
    shape: Shape = Format.TABLE,
) -> None:
    """Make a key. It is shown this once, and kept as a hash only."""
    with friendly_errors():
        key, text = _keys(storage).create(name, role)
    row = {**asdict(key), "key": text}
    answer(
        shape,
        row,
        [row],
        lines=[text],
        show=lambda console: console.print(f"{text}\n\nKeep it: it is not shown again.", soft_wrap=True),
    )


@keys.command(name="list")
def listed(storage: Storage, shape: Shape = Format.TABLE) -> None:
    """All keys, the oldest first, without what makes them keys."""
    with friendly_errors():
        rows = [asdict(key) for key in _keys(storage).listed()]
    columns = ("id", "name", "role", "created", "revoked")
    words = [[row[column] or "-" for column in columns] for row in rows]
    answer(
        shape,
        rows,
        rows,
        columns=columns,
        lines=["\t".join(line) for line in words],
        show=lambda _console: grid(columns, words),
    )


@keys.command()
def revoke(key: Annotated[str, typer.Argument(help="Its id, as listed.")], storage: Storage) -> None:
    """End a key for good, and the sessions opened with it."""
    with friendly_errors():
        _keys(storage).revoke(key)
    if at_terminal():
        typer.echo(f"Revoked {key}.")


def _keys(storage: str):  # type: ignore[no-untyped-def]  # its type is imported when it is needed
    from dbcare.live.stores.sql.store import SqlStore
    from dbcare.server.access.keys import Keys

    return Keys(SqlStore(storage))
