"""What all commands share: errors in one line, completion, and how arguments are read."""

import contextlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from dbcare.base.options import translate_names


def complete_study(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of stored studies that begin like this; none if they cannot be read."""
    storage = context.params.get("storage") or os.environ.get("DBCARE_STORAGE")
    if storage is None:
        return []
    import dbcare
    from dbcare.errors import DbcareError

    with contextlib.suppress(DbcareError):
        return [name for name in dbcare.list_studies(storage) if name.startswith(incomplete)]
    return []


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


EXIT_REFUSED = 2
SERVER_MODULES = ("fastapi", "httptools", "httpx2", "jinja2", "plotly", "prometheus_client", "starlette", "uvicorn")
EXTRAS = {"matplotlib": "lab"} | dict.fromkeys(SERVER_MODULES, "server")  # by the module that may be missing
NEGATIVE_NUMBER = re.compile(r"-(\d|\.\d|inf|nan)", re.IGNORECASE)


@contextmanager
def named_extras() -> Iterator[None]:
    """Refuse a command that needs an extra which is not installed, wherever it imports it, and name the extra."""
    try:
        yield
    except ModuleNotFoundError as missing:
        extra = EXTRAS.get((missing.name or "").partition(".")[0])
        if extra is None:
            raise
        from dbcare.base.extras import say_how_to_install

        raise RefusedError(f"this command requires an extra: {say_how_to_install(extra)}.") from None


class OptionNamingCommand(TyperCommand):
    """Says `--sigma-pulls` where the library says `sigma_pulls`."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; print why it is refused, if it is, and exit with code 2."""
        try:
            with named_extras():
                return super().invoke(ctx)
        except RefusedError as refused:
            names = {
                str(option.name): max(option.opts, key=len)
                for option in self.params
                if option.param_type_name == "option"
            }
            typer.echo(f"Error: {translate_names(str(refused), names)}", err=True)
            raise typer.Exit(EXIT_REFUSED) from None


class NegativeNumberCommand(OptionNamingCommand):
    """Takes `tell ads 1 -0.5` without `--` before the number, which would otherwise be taken for an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move the only negative number to the end, after `--`, where nothing is an option."""
        numbers = [place for place, text in enumerate(args) if NEGATIVE_NUMBER.match(text)]
        if len(numbers) == 1 and "--" not in args:
            place = numbers[0]
            args = [*args[:place], *args[place + 1 :], "--", args[place]]
        return super().parse_args(ctx, args)
