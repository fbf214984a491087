"""A command whose last argument may be a negative number, which would otherwise be taken for an option."""

import re
from typing import Any

from typer.core import TyperCommand

NEGATIVE_NUMBER = re.compile(r"-(\d|\.\d|inf|nan)", re.IGNORECASE)


class NegativeNumberCommand(TyperCommand):
    """Takes `tell ads 1 -0.5` without `--` before the number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move the only negative number to the end, behind `--`, where nothing is an option."""
        numbers = [place for place, text in enumerate(args) if NEGATIVE_NUMBER.match(text)]
        if len(numbers) == 1 and "--" not in args:
            place = numbers[0]
            args = [*args[:place], *args[place + 1 :], "--", args[place]]
        return super().parse_args(ctx, args)
