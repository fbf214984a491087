"""The command line: parses, calls, prints. Everything heavy is imported by the command that needs it."""

import errno
import os
import sys
import warnings
from typing import Annotated

import typer

from dbcare.cli import demo, plan, replay, reports, research, run, service, studies
from dbcare.cli.shared import EXIT_REFUSED, NegativeNumberCommand, OptionNamingCommand

OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # of a disk

app = typer.Typer(
    no_args_is_help=True,
    help="Find the best of K options when every observation costs money.",
)
for panel, commands in {
    "Decide": (
        demo.demo,
        plan.plan,
        replay.compare,
        studies.create,
        studies.ask,
        studies.tell,
        run.run,
        reports.status,
        reports.pending,
        reports.explain,
        reports.report,
        reports.export,
        reports.studies,
        studies.describe,
        studies.max_ahead,
        studies.give_up,
        studies.pause,
        studies.resume,
        studies.retire,
        studies.stop,
        studies.delete,
    ),
    "Serve": (service.serve,),
    "Research": (research.simulate, research.reproduce, research.sweep, research.bounds, research.warm_up),
}.items():
    for command in commands:
        kind = NegativeNumberCommand if command is studies.tell else OptionNamingCommand
        app.command(rich_help_panel=panel, cls=kind)(command)
app.command(name="import", rich_help_panel="Decide", cls=OptionNamingCommand)(replay.import_log)
app.add_typer(studies.commands, name="storage", rich_help_panel="Decide")
app.add_typer(service.keys, name="keys", rich_help_panel="Serve")


def print_version(wanted: bool) -> None:
    """Print the version and exit, if that is wanted."""
    if wanted:
        import dbcare

        typer.echo(f"dbcare {dbcare.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main() -> None:
    """Entry point of the `dbcare` command."""
    warnings.formatwarning = lambda message, *_, **__: f"Note: {message}\n"  # in a line, without our code
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except OSError as failure:
        if failure.errno not in OUTPUT_ERRORS:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes at the end
        typer.echo(f"Error: cannot write the output: {failure.strerror}.", err=True)
        sys.exit(EXIT_REFUSED)
