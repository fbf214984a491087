"""The command `run`: measure the trials of a study with a command, until the study stops."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Annotated

import typer

from dbcare.cli.shared import Format, Name, Shape, Storage, friendly_errors

EXIT_INTERRUPTED = 130


def run(
    name: Name,
    command: Annotated[
        list[str],
        typer.Argument(
            help="After --, the command that measures a trial: {arm} stands for the arm's name, {block} for its "
            "block, and {trial} for its number. Its last line of output is the reward.",
        ),
    ],
    storage: Storage,
    workers: Annotated[int, typer.Option(help="Commands at the same time.")] = 1,
    lease: Annotated[str, typer.Option(help="How long a command may take: 90s, 30m, 2h, 1d, 2w.")] = "30m",
    max_failures: Annotated[int, typer.Option(help="How often an arm may fail in a row before the run ends.")] = 5,
    shape: Shape = Format.TABLE,
) -> None:
    """Run a study with one command per trial, such as `dbcare run ads -- ./measure {arm}`.

    A command that exits with an error, or whose last line isn't a number, is a failed trial. Ctrl-C ends the commands
    and gives their trials back at no cost; the same command resumes.
    """
    import dbcare
    from dbcare.base.times import parse_lease
    from dbcare.cli.reports import print_status
    from dbcare.cli.trial_command import TrialCommand

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        measure = TrialCommand(command, study.settings, parse_lease(lease))
        try:
            with exiting_on_signals():
                study.run(measure, workers=workers, lease=lease, max_failures=max_failures)
        except KeyboardInterrupt:
            typer.echo("Interrupted. Trials under way were given back; the same command resumes.", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None
        finally:
            measure.end()
        print_status(study, shape)


@contextlib.contextmanager
def exiting_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C does, with their own exit codes."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    previous = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
