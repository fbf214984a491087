"""The command that compiles all kernels in advance."""

import errno
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbcare.cli.shared import friendly_errors

if TYPE_CHECKING:
    from dbcare.lab.warm_up import Done, Task


def warm_up(
    policies: Annotated[list[str] | None, typer.Argument(help="Names of policies. Default: all that ship.")] = None,
    processes: Annotated[int | None, typer.Option(help="Number of processes. Default: all CPUs.")] = None,
) -> None:
    """Compile the simulators of all policies now, so that no later command waits. Takes a minute or two, once."""
    from dbcare.base import checks
    from dbcare.engines.kernels.cache import cache_folder
    from dbcare.lab.warm_up import list_shipped, plan_tasks
    from dbcare.policies.registry import POLICIES

    with friendly_errors():
        names = [POLICIES.entry(name, "policies").name for name in policies or list_shipped()]
        width = None if processes is None else checks.whole("processes", processes, at_least=1)
        require_writable(folder := cache_folder())
    began = time.monotonic()
    try:
        compiled, found = show_progress(plan_tasks(names), width)
    except KeyboardInterrupt:
        typer.echo(f"Stopped. Finished kernels are in {folder}; the same command resumes from there.", err=True)
        raise typer.Exit(130) from None
    seconds = time.monotonic() - began
    there = f"{found} {'was' if found == 1 else 'were'} already there"
    typer.echo(f"Compiled {format_kernels(compiled)} in {seconds:.0f} s; {there}. All are in {folder}.")


def require_writable(folder: Path) -> None:
    """Create the folder if needed; raise PermissionError if nothing can be written there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def show_progress(tasks: "list[Task]", processes: int | None) -> tuple[int, int]:
    """Run tasks with a bar on a terminal, plain lines elsewhere; return how many kernels were compiled and found."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from dbcare.lab.warm_up import run_tasks

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    compiled: set[str] = set()
    found: set[str] = set()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("starting", total=len(tasks))
        for done in run_tasks(tasks, processes):
            compiled |= done.compiled
            found |= done.found
            progress.update(bar, advance=1, description=done.task.label)
            if done.compiled and not console.is_terminal:
                console.print(format_done(done))
    return len(compiled), len(found - compiled)


def format_done(done: "Done") -> str:
    """Format a finished task as a line."""
    return f"{format_kernels(len(done.compiled))} for {done.task.label} ({done.seconds:.0f} s)"


def format_kernels(count: int) -> str:
    """Format a number of kernels."""
    return f"{count} kernel{'' if count == 1 else 's'}"
