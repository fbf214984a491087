"""Commands of the service: run it, and manage the keys that give people and programs access."""

from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from dbcare.base.times import format_minute
from dbcare.cli.options import with_limits
from dbcare.cli.output import at_terminal, print_grid, print_output
from dbcare.cli.shared import Format, OptionNamingCommand, Shape, Storage, announce_new_database, friendly_errors
from dbcare.server.access.roles import Role
from dbcare.server.service_limits import ServiceLimits

if TYPE_CHECKING:
    from dbcare.server.access.keys import Keys

keys = typer.Typer(no_args_is_help=True, help="Manage API keys for the service.")
KEY_COLUMNS = ("id", "name", "role", "created", "expires", "revoked", "used")


@with_limits
def serve(
    storage: Storage,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8080,
    webhook: Annotated[
        str | None,
        typer.Option(
            envvar="DBCARE_WEBHOOK",
            help="URL to notify when a study stops. Requires the environment variable DBCARE_WEBHOOK_SECRET.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Don't log requests, only errors.")] = False,
    trusted_proxies: Annotated[
        str | None,
        typer.Option(
            envvar="DBCARE_TRUSTED_PROXIES",
            help="Addresses or networks of proxies, such as 10.0.0.5,192.168.0.0/16: their X-Forwarded headers are "
            "believed, and they may have any number of connections.",
        ),
    ] = None,
    *,
    limits: ServiceLimits,
) -> None:
    """Serve studies over HTTP, with a dashboard. Until an API key exists, only this machine has access."""
    with friendly_errors():
        from dbcare.server.app import serve as run
        from dbcare.server.request_log import log_to_stderr

        log_to_stderr(requests=not quiet)
        run(
            storage,
            host,
            port,
            partial(announce, storage, trusted_proxies is not None),
            webhook=webhook,
            limits=limits,
            trusted_proxies=trusted_proxies,
        )


def announce(storage: str, has_proxy: bool, address: str, protected: bool) -> None:
    """Print where the service listens, whether anyone can use it, and whether keys are sent unencrypted."""
    from dbcare.server.access.gate import is_loopback

    announce_new_database(storage)
    typer.echo(f"Serving at {address}")
    if not has_proxy and not is_loopback(urlsplit(address).hostname or ""):
        typer.echo(
            "Warning: this is HTTP without encryption, so whoever can listen on the network can read the keys. Put a "
            "proxy with HTTPS in front, and name it with --trusted-proxies.",
            err=True,
        )
    if not protected:
        typer.echo("No API key yet: anyone on this machine has access; no one else does. To create one:")
        typer.echo("  dbcare keys create --role admin --name me")


@keys.command(cls=OptionNamingCommand)
def create(
    storage: Storage,
    name: Annotated[str, typer.Option(help="Name of the key's owner.")],
    role: Annotated[Role, typer.Option(help="viewer: read; worker: also ask, tell; admin: also create, stop, delete.")],
    expires: Annotated[
        str | None, typer.Option(help="How long the key is valid, such as 90d. Default: forever.")
    ] = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Create a key. It is shown only once; only its hash is stored."""
    with friendly_errors():
        key, text = open_keys(storage, create_storage=True).create(name, role, expires)
        announce_new_database(storage)
    row = {**asdict(key), "key": text}
    print_output(
        shape,
        row,
        [row],
        lines=[text],
        show=lambda console: console.print(f"{text}\n\nSave it now: it won't be shown again.", soft_wrap=True),
    )


@keys.command(name="list", cls=OptionNamingCommand)
def list_keys(storage: Storage, shape: Shape = Format.TABLE) -> None:
    """List all keys, oldest first, without secrets."""
    with friendly_errors():
        rows = [asdict(key) for key in open_keys(storage).list_all()]
    cells = [[row[column] or "-" for column in KEY_COLUMNS] for row in rows]
    print_output(
        shape,
        rows,
        rows,
        columns=KEY_COLUMNS,
        lines=["\t".join(line) for line in cells],
        show=lambda _console: print_grid(KEY_COLUMNS, [[*line[:3], *map(show_minute, line[3:])] for line in cells]),
    )


def show_minute(time: str) -> str:
    """Return a time as short as people need it; "-" if there is none."""
    return time if time == "-" else format_minute(datetime.fromisoformat(time).timestamp())


@keys.command(cls=OptionNamingCommand)
def revoke(key: Annotated[str, typer.Argument(help="The key's id, as listed.")], storage: Storage) -> None:
    """Revoke a key for good, and end the sessions opened with it."""
    with friendly_errors():
        open_keys(storage).revoke(key)
    if at_terminal():
        typer.echo(f"Revoked {key}.")


def open_keys(storage: str, *, create_storage: bool = False) -> "Keys":
    """Return the keys in a database, which must exist unless it is to be created."""
    from dbcare.server.access.keys import Keys
    from dbcare.server.access.records import open_records
    from dbcare.studies.stores.open import open_store

    return Keys(open_records(open_store(storage, create=create_storage)))
