"""Commands for live studies: create one, ask, tell, and look at it; fit for scripts.

Exit codes: 0 done, 2 refused, 3 nothing to hand out for now (ask again later), 4 the study has stopped.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dbcare.cli.shared import Format, RiskName, friendly_errors, numbers_of, one_or_each

WAIT, STOPPED = 3, 4


Storage = Annotated[
    str, typer.Option(envvar="DBCARE_STORAGE", help="Where studies are kept, such as sqlite:///ads.db.")
]
Name = Annotated[str, typer.Argument(help="The study's name.")]
Shape = Annotated[Format, typer.Option("--format", help="How to print.")]


def create(
    name: Name,
    arms: Annotated[str, typer.Option(help="Names of the arms, with commas between them.")],
    storage: Storage,
    price: Annotated[str | None, typer.Option(help="Price of a trial; or one for each arm, such as 0.4,0.4,2.")] = None,
    value: Annotated[float | None, typer.Option(help="Money that a unit of reward is worth.")] = None,
    cost: Annotated[str | None, typer.Option(help="price / value, instead of both.")] = None,
    sigma: Annotated[float | None, typer.Option(help="Standard deviation of a reward.")] = None,
    bounds: Annotated[str | None, typer.Option(help="What rewards stay within, such as 0,5.")] = None,
    binary: Annotated[bool, typer.Option("--binary", help="Rewards are 0 or 1.")] = False,
    risk: Annotated[
        RiskName, typer.Option(help="regret: a wrong choice loses its gap; error: all wrong choices lose the same.")
    ] = RiskName.REGRET,
    policy: Annotated[str, typer.Option(help="breakeven, breakeven-racing or dbcare.")] = "breakeven",
    minimize: Annotated[bool, typer.Option("--minimize", help="Less is better.")] = False,
    max_spend: Annotated[float | None, typer.Option(help="End the study before more than this is spent.")] = None,
    timeout_reward: Annotated[float | None, typer.Option(help="What a trial counts as whose lease runs out.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the breaking of ties.")] = 0,
) -> None:
    """Begin a study."""
    import dbcare

    with friendly_errors():
        limits = None if bounds is None else numbers_of("bounds", bounds)
        study = dbcare.create_study(
            name,
            [arm.strip() for arm in arms.split(",")],
            price=None if price is None else one_or_each("price", price),
            value=value,
            cost=None if cost is None else one_or_each("cost", cost),
            direction="minimize" if minimize else "maximize",
            risk="simple_regret" if risk is RiskName.REGRET else "misidentification",
            sigma=sigma,
            bounds=None if limits is None else tuple(limits),  # type: ignore[arg-type]  # checked there
            binary=binary,
            policy=policy,
            storage=storage,
            max_spend=max_spend,
            timeout_reward=timeout_reward,
            seed=seed,
        )
        typer.echo(f"Created {study.name}: {', '.join(study.settings.arms)}")


def ask(
    name: Name,
    storage: Storage,
    n: Annotated[int, typer.Option("-n", help="How many trials.")] = 1,
    lease: Annotated[str, typer.Option(help="How long a trial may take: 90s, 30m, 2h, 1d.")] = "30m",
    worker: Annotated[str | None, typer.Option(help="Who asks.")] = None,
    shape: Shape = Format.TABLE,
) -> None:
    """The next trials, a line each: number and arm. Exit code 3: none for now; 4: the study has stopped."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        trials = study.ask(n, lease, worker)
        stopped = not trials and study.should_stop()
    if shape is Format.JSON:
        typer.echo(json.dumps([asdict(trial) for trial in trials]))
    else:
        for trial in trials:
            typer.echo(f"{trial.id}\t{trial.arm}")
    if not trials:
        raise typer.Exit(STOPPED if stopped else WAIT)


def tell(
    name: Name,
    trial: Annotated[int, typer.Argument(help="The trial's number.")],
    storage: Storage,
    reward: Annotated[float | None, typer.Argument(help="What came of it.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Nothing came of it.")] = False,
    free: Annotated[bool, typer.Option("--free", help="A failed trial cost nothing.")] = False,
) -> None:
    """What came of a trial; a negative reward goes behind `--`."""
    import dbcare

    with friendly_errors():
        dbcare.load_study(name, storage).tell(trial, reward, failed=failed, charged=not free)


def status(name: Name, storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Where a study stands: means, what is out, what has been spent, and its recommendation."""
    import dbcare
    from dbcare.engines.evaluation import finite

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        found, choice = study.status(), study.recommendation()
    if shape is Format.JSON:
        typer.echo(json.dumps(finite({**asdict(found), "recommendation": asdict(choice)}), indent=2, allow_nan=False))
        return
    typer.echo(f"{found.name}: {found.state}; {found.counted} counted, {found.waiting} out, {found.held} held back")
    width = max(len(arm.name) for arm in found.arms)
    for arm in found.arms:
        low, high = arm.interval
        typer.echo(f"  {arm.name:<{width}}  {arm.trials:>7}  {arm.mean:>10.4g}  ({low:.4g} to {high:.4g})")
    typer.echo(f"recommended: {choice}")


def explain(name: Name, storage: Storage) -> None:
    """Every elimination and the stop, a sentence each."""
    import dbcare

    with friendly_errors():
        for sentence in dbcare.load_study(name, storage).explain():
            typer.echo(sentence)


def studies(storage: Storage) -> None:
    """The names of all studies, the oldest first."""
    import dbcare

    with friendly_errors():
        for name in dbcare.list_studies(storage):
            typer.echo(name)


def stop(name: Name, storage: Storage, reason: Annotated[str, typer.Option(help="Why.")] = "stopped by hand") -> None:
    """End a study for good."""
    import dbcare

    with friendly_errors():
        dbcare.load_study(name, storage).stop(reason)


def export(
    name: Name, file: Annotated[Path, typer.Argument(help="A .csv, .jsonl or .parquet file.")], storage: Storage
) -> None:
    """Write all trials to a file."""
    import dbcare

    with friendly_errors():
        typer.echo(f"Written: {dbcare.load_study(name, storage).export(file)}")
