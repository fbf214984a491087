"""What commands share: kinds of options, numbers typed by the user, and errors in one line."""

import contextlib
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class RiskName(StrEnum):
    """Losses by their short names."""

    REGRET = "regret"
    ERROR = "error"


# Packages that commands need, and the extra that has them.
EXTRAS = {"matplotlib": "lab"} | dict.fromkeys(("fastapi", "uvicorn", "jinja2", "prometheus_client"), "server")

Shape = Annotated[Format, typer.Option("--format", help="How to print.")]
Threads = Annotated[int | None, typer.Option(help="Threads; all processors if not given.")]


def numbers_of(name: str, text: str) -> list[float]:
    """Numbers typed by the user, with commas between them."""
    from dbcare.errors import InvalidValueError

    found = []
    for each in text.split(","):
        try:
            found.append(float(each))
        except ValueError:
            raise InvalidValueError(f"`{name}` must be a number but got {each!r}.") from None
    return found


def one_or_each(name: str, text: str) -> float | list[float]:
    """One number for all arms, or one for each."""
    found = numbers_of(name, text)
    return found[0] if len(found) == 1 else found


@contextlib.contextmanager
def friendly_errors() -> Iterator[None]:
    """Errors of the library in one line, and exit code 2."""
    from dbcare.errors import DbcareError

    try:
        yield
    except DbcareError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    except OSError as error:
        typer.echo(f"Error: {error.filename or 'a file'} must be writable: {error.strerror or error}.", err=True)
        raise typer.Exit(2) from None
    except ModuleNotFoundError as missing:
        wanted = EXTRAS.get(missing.name or "")
        if wanted is None:
            raise
        typer.echo(f"Error: this needs the extra: pip install 'dbcare[{wanted}]'.", err=True)
        raise typer.Exit(2) from None
