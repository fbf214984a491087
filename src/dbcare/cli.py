"""The command line: parses, calls, prints. Everything heavy is imported by the command that needs it."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Find the best of K options when every observation costs money.",
)


@app.callback()
def commands() -> None:
    """Keep `reproduce` a command of its own while it is the only one."""


@app.command()
def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for the figures and their numbers.")] = Path("out"),
) -> None:
    """Reproduce the paper's figure of bounds and its two-arm experiments."""
    from dbcare.lab.bounds import draw_bounds  # noqa: PLC0415  # brings in the plotting library
    from dbcare.lab.two_arm import draw_two_arm  # noqa: PLC0415  # brings in the engines

    for path in draw_bounds(out) + draw_two_arm(out):
        typer.echo(path)


def main() -> None:
    """Entry point of the `dbcare` command."""
    app()
