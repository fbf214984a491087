"""What commands share: kinds of options, numbers typed by the user, and errors in one line."""

import contextlib
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """How a command prints its output."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


# Packages that commands need, and the extra that has them.
EXTRAS = {"matplotlib": "lab"} | dict.fromkeys(("fastapi", "uvicorn", "jinja2", "prometheus_client"), "server")

Shape = Annotated[Format, typer.Option("--format", help="Output format.")]
Threads = Annotated[int | None, typer.Option(help="Number of threads. Default: all CPUs.")]
Storage = Annotated[
    str, typer.Option(envvar="DBCARE_STORAGE", help="Where studies are kept, such as sqlite:///ads.db.")
]
Name = Annotated[str, typer.Argument(help="Name of the study.")]
RISK_HELP = "What a wrong choice loses: simple_regret (its gap in means) or misidentification (1 if it is wrong)."


def parse_numbers(name: str, text: str) -> list[float]:
    """Parse numbers separated by commas."""
    from dbcare.errors import InvalidValueError

    numbers = []
    for part in text.split(","):
        try:
            numbers.append(float(part))
        except ValueError:
            raise InvalidValueError(f"`{name}` must be a number but got {part!r}.") from None
    return numbers


def parse_per_arm(name: str, text: str) -> float | list[float]:
    """Parse one number for all arms, or one per arm."""
    numbers = parse_numbers(name, text)
    return numbers[0] if len(numbers) == 1 else numbers


def parse_whole(name: str, text: str) -> float:
    """Parse a number that the library will want to be whole, such as 20000 or 2e4."""
    return int(text) if text.strip().isdigit() else parse_numbers(name, text)[0]


def announce_new_database(storage: str) -> None:
    """Say that a command has created the database, which may not be the one that was meant."""
    from dbcare.live.stores.open import open_store
    from dbcare.live.stores.sql.store import SqlStore

    store = open_store(storage)
    if isinstance(store, SqlStore) and store.is_new:
        typer.echo(f"Created the database {store.address}.", err=True)


@contextlib.contextmanager
def friendly_errors() -> Iterator[None]:
    """Print errors of the library in one line, and exit with code 2."""
    from dbcare.errors import DbcareError

    try:
        yield
    except DbcareError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    except OSError as error:
        typer.echo(f"Error: cannot write {error.filename or 'a file'}: {error.strerror or error}.", err=True)
        raise typer.Exit(2) from None
    except ModuleNotFoundError as missing:
        extra = EXTRAS.get(missing.name or "")
        if extra is None:
            raise
        typer.echo(f"Error: this command requires an extra: pip install 'dbcare[{extra}]'.", err=True)
        raise typer.Exit(2) from None
