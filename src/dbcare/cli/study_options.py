"""Options that say what a decision costs and what rewards look like, and what they mean for the library."""

from typing import Annotated, Any

import typer

from dbcare.cli.shared import RiskName, numbers_of, one_or_each

Price = Annotated[str | None, typer.Option(help="Price of a trial; or one for each arm, such as 0.4,0.4,2.")]
Value = Annotated[float | None, typer.Option(help="Money that a unit of reward is worth.")]
Cost = Annotated[str | None, typer.Option(help="price / value, instead of both.")]
Sigma = Annotated[float | None, typer.Option(help="Standard deviation of a reward.")]
Bounds = Annotated[str | None, typer.Option(help="What rewards stay within, such as 0,5.")]
Binary = Annotated[bool, typer.Option("--binary", help="Rewards are 0 or 1.")]
Risk = Annotated[
    RiskName, typer.Option(help="regret: a wrong choice loses its gap; error: all wrong choices lose the same.")
]
Policy = Annotated[str, typer.Option(help="breakeven, breakeven-racing or dbcare.")]
Minimize = Annotated[bool, typer.Option("--minimize", help="Less is better.")]
Unit = Annotated[str, typer.Option(help="The currency.")]
Seed = Annotated[int, typer.Option(help="Seed of the breaking of ties.")]


def terms_of(
    *,
    price: str | None,
    value: float | None,
    cost: str | None,
    sigma: float | None,
    bounds: str | None,
    binary: bool,
    risk: RiskName,
    policy: str,
    minimize: bool,
    unit: str,
    seed: int,
) -> dict[str, Any]:
    """The same by the names that the library uses."""
    return {
        "price": None if price is None else one_or_each("price", price),
        "value": value,
        "cost": None if cost is None else one_or_each("cost", cost),
        "sigma": sigma,
        "bounds": None if bounds is None else tuple(numbers_of("bounds", bounds)),
        "binary": binary,
        "risk": "simple_regret" if risk is RiskName.REGRET else "misidentification",
        "policy": policy,
        "direction": "minimize" if minimize else "maximize",
        "unit": unit,
        "seed": seed,
    }
