"""Import this to have typer's runner build the command line once: it takes longer than most of the calls do."""

from functools import cache

import typer.testing

typer.testing._get_command = cache(typer.main.get_command)  # type: ignore[attr-defined]  # its own name for it
