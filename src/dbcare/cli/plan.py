"""The command that plans an experiment."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dbcare.cli import output
from dbcare.cli.options import with_options
from dbcare.cli.shared import Format, Shape, friendly_errors, parse_whole
from dbcare.errors import InvalidValueError
from dbcare.planner.options import LocalPlanOptions


@with_options(LocalPlanOptions)
def plan(
    arms: Annotated[
        str, typer.Option(help="Number of arms to choose from, or their names, separated by commas.", metavar="ARMS")
    ],
    options: dict[str, Any],
    plot: Annotated[Path | None, typer.Option(help="Draw the total loss into this .png, .svg or .pdf file.")] = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Plan an experiment before any data: what it would cost, whether it pays, and the most it will ever spend."""
    from rich.console import Console

    import dbcare
    from dbcare.base.files import check_figure_path
    from dbcare.planner import show

    with friendly_errors():
        if plot is not None:
            check_figure_path(plot, "plot")  # fail before the work, not after it
        names = [name.strip() for name in arms.split(",")]
        count_or_names: Any = names if len(names) > 1 else _parse_count(arms)
        plan = dbcare.plan(count_or_names, **options)
    if shape is Format.JSON:
        output.print_json(plan.to_dict())
    elif shape is Format.CSV:
        output.print_csv(plan.records())
    else:
        show.show(plan, Console())
    if plot is not None:
        with friendly_errors():
            plan.plot(plot)
            typer.echo(f"Figure written to {plot}", err=True)


def _parse_count(arms: str) -> float:
    """Return the number of arms that was typed instead of their names."""
    try:
        return parse_whole("arms", arms)
    except InvalidValueError:
        raise InvalidValueError(
            f"`arms` must be a number, or two or more names separated by commas, but got {arms!r}."
        ) from None
