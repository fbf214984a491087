"""Import this to have typer's runner build the command line once: building it takes longer than most calls."""

from functools import cache

import typer.testing

typer.testing._get_command = cache(typer.main.get_command)  # type: ignore[attr-defined]  # private
