"""The command line: parses, calls, prints. Everything heavy is imported by the command that needs it."""

import typer

from dbcare.cli import planning, research

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Find the best of K options when every observation costs money.",
)
for command in (planning.plan, research.simulate, research.reproduce, research.sweep, research.bounds):
    app.command()(command)


def main() -> None:
    """Entry point of the `dbcare` command."""
    app()
