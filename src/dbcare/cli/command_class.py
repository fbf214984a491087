"""The class of all commands: refused calls end in one line that names the command's own options."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand

from dbcare.base.options import translate_names
from dbcare.cli.shared import RefusedError

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
