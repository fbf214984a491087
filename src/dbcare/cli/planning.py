"""Commands for experimenters: what experimenting would cost, before any data."""

from pathlib import Path
from typing import Annotated

import typer

from dbcare.cli import output
from dbcare.cli.shared import Format, RiskName, Shape, Threads, friendly_errors, numbers_of, one_or_each


def plan(
    arms: Annotated[int, typer.Option(help="How many arms there are to choose from.")],
    price: Annotated[
        str | None, typer.Option(help="Price of an observation, such as 0.40; or one for each arm, such as 0.4,0.4,2.")
    ] = None,
    value: Annotated[
        float | None,
        typer.Option(help="Money that a unit of reward is worth, or with --risk error a wrong choice costs."),
    ] = None,
    cost: Annotated[str | None, typer.Option(help="price / value, instead of both.")] = None,
    sigma: Annotated[float | None, typer.Option(help="Standard deviation of a reward.")] = None,
    baseline: Annotated[
        float | None, typer.Option(help="For rewards 0 or 1: the usual rate, instead of sigma.")
    ] = None,
    risk: Annotated[
        RiskName, typer.Option(help="regret: a wrong choice loses its gap; error: all wrong choices lose the same.")
    ] = RiskName.REGRET,
    bound: Annotated[float | None, typer.Option(help="The largest possible difference of two means.")] = None,
    gaps: Annotated[str | None, typer.Option(help="Gaps of the best arm to the others, such as 0.01,0.1.")] = None,
    policies: Annotated[str | None, typer.Option(help="Some of the policies only, such as breakeven,dbcare.")] = None,
    runs: Annotated[
        float | None, typer.Option(help="Runs for each figure; if not given, what a second allows.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the runs.")] = 0,
    threads: Threads = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the total loss into this .png, .svg or .pdf file.")] = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Before any data: what experimenting would cost, whether it pays, and the most that it will ever spend."""
    from rich.console import Console

    import dbcare
    from dbcare import validation
    from dbcare.planner import presentation
    from dbcare.planner.plan import figure_file

    with friendly_errors():
        if plot is not None:
            figure_file(plot)  # before the work, not after it
        found = dbcare.plan(
            arms,
            None if price is None else one_or_each("price", price),
            value,
            cost=None if cost is None else one_or_each("cost", cost),
            sigma=sigma,
            baseline=baseline,
            risk="simple_regret" if risk is RiskName.REGRET else "misidentification",
            bound=bound,
            gaps=None if gaps is None else numbers_of("gaps", gaps),
            policies=None if policies is None else [each.strip() for each in policies.split(",")],
            runs=None if runs is None else validation.whole("runs", runs, at_least=2),
            seed=seed,
            threads=threads,
        )
    if shape is Format.JSON:
        output.as_json(found.to_dict())
    elif shape is Format.CSV:
        output.as_csv(found.records())
    else:
        presentation.show(found, Console())
    if plot is not None:
        with friendly_errors():
            typer.echo(f"Drawn: {found.plot(plot)}", err=True)
