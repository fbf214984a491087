"""What commands share: kinds of options, numbers typed by the user, and errors in one line."""

import contextlib
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer

from dbcare.cli.completion import complete_study


class Format(StrEnum):
    """How a command prints its output."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


COMMA_IN_NUMBER = re.compile(r"0,\d+|\d+,0\d+")
Shape = Annotated[Format, typer.Option("--format", help="Output format.")]
Threads = Annotated[int | None, typer.Option(help="Number of threads. Default: all CPUs.")]
Storage = Annotated[
    str, typer.Option(envvar="DBCARE_STORAGE", help="Where studies are kept, such as sqlite:///ads.db.")
]
Name = Annotated[str, typer.Argument(help="Name of the study.", autocompletion=complete_study)]
RISK_HELP = "What a wrong choice loses: simple_regret (its gap in means) or misidentification (1 if it is wrong)."


def parse_numbers(name: str, text: str) -> list[float]:
    """Parse numbers separated by commas."""
    from dbcare.base.options import parse_number

    return [parse_number(name, part) for part in text.split(",")]


def parse_amounts(name: str, text: str) -> float | list[float] | dict[str, float]:
    """Parse one number, or one per arm: in the order of the arms, or by their names.

    `0,05` and `60,000` are a number that is written with a comma, since no list of amounts has a 0, or begins one by 0.
    """
    from dbcare.base.options import parse_number, parse_per_arm

    if COMMA_IN_NUMBER.fullmatch(text.strip()):
        return parse_number(name, text)
    return parse_per_arm(name, text, text.split(","))


def parse_whole(name: str, text: str) -> float:
    """Parse a number that the library will want to be whole, such as 20000 or 2e4."""
    from dbcare.base.options import parse_number

    return int(text) if text.strip().isdigit() else parse_number(name, text)


def announce_new_database(storage: str) -> None:
    """Say that a command has created the database, which may not be the one that was meant."""
    from dbcare.studies.stores.open import open_store
    from dbcare.studies.stores.sql.store import SqlStore

    store = open_store(storage)
    if isinstance(store, SqlStore) and store.is_new:
        typer.echo(f"Created the database {store.address}.", err=True)


class RefusedError(Exception):
    """A call that is refused, with the reason as the library words it."""


@contextlib.contextmanager
def friendly_errors() -> Iterator[None]:
    """Turn errors of the library into one line, which the command prints before it exits with code 2."""
    from dbcare.errors import DbcareError

    try:
        yield
    except DbcareError as error:
        raise RefusedError(str(error)) from None
    except BrokenPipeError:  # a reader such as `head` has had enough; typer ends quietly
        raise
    except OSError as error:
        raise RefusedError(f"cannot write {error.filename or 'a file'}: {error.strerror or error}.") from None
