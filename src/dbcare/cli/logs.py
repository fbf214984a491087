"""The command for data from before: what a policy would have done with them, or a study that begins with them."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbcare.cli import terms
from dbcare.cli.answers import answer, grid
from dbcare.cli.shared import Format, RiskName, Shape, friendly_errors

if TYPE_CHECKING:
    from rich.console import Console

    from dbcare.live.logged import Replay

STUDY_HAS_ITS_OWN = (
    "price", "value", "cost", "sigma", "bounds", "binary", "risk", "policy", "minimize", "unit", "seed",
)  # fmt: skip


def import_log(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A CSV file with the columns arm and reward.")],
    price: terms.Price = None,
    value: terms.Value = None,
    cost: terms.Cost = None,
    sigma: terms.Sigma = None,
    bounds: terms.Bounds = None,
    binary: terms.Binary = False,
    risk: terms.Risk = RiskName.REGRET,
    policy: terms.Policy = "breakeven",
    minimize: terms.Minimize = False,
    unit: terms.Unit = "USD",
    seed: terms.Seed = 0,
    into: Annotated[str | None, typer.Option(help="Add the data to this study, which has its own settings.")] = None,
    storage: Annotated[
        str | None, typer.Option(envvar="DBCARE_STORAGE", help="Where that study is kept, such as sqlite:///ads.db.")
    ] = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Replay logged data: where a policy would have stopped, and what that would have saved."""
    import dbcare

    with friendly_errors():
        if into is not None:
            refuse_terms(context)
            add(file, into, storage, shape)
            return
        given = terms.terms_of(
            price=price,
            value=value,
            cost=cost,
            sigma=sigma,
            bounds=bounds,
            binary=binary,
            risk=risk,
            policy=policy,
            minimize=minimize,
            unit=unit,
            seed=seed,
        )
        found = dbcare.replay_log(dbcare.read_log(file), **given)
    from dbcare.live.logged import sentences

    answer(
        shape,
        plain(found),
        [asdict(arm) for arm in found.arms],
        lines=sentences(found),
        show=lambda console: show(found, console),
    )


def refuse_terms(context: typer.Context) -> None:
    """A study has its own settings: none can be given beside it."""
    from dbcare.errors import InvalidValueError

    for name in STUDY_HAS_ITS_OWN:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise InvalidValueError(
                f"`--{name}` must not be given with --into, as the study has its own, but got {context.params[name]}."
            )


def add(file: Path, name: str, storage: str | None, shape: Format) -> None:
    """Seed a study with the log."""
    import dbcare
    from dbcare.cli import standing
    from dbcare.errors import InvalidValueError

    if storage is None:
        raise InvalidValueError("`--storage` must be given with --into, or DBCARE_STORAGE be set, but got neither.")
    study = dbcare.load_study(name, storage)
    log = dbcare.read_log(file)
    before = sum(arm.trials for arm in study.status().arms)
    study.add(log)
    found, status, choice = standing.record(study), study.status(), study.recommendation()
    used = sum(arm.trials for arm in status.arms) - before
    said = f"Added {len(log):,} observations to {name}, of which the decision uses {used:,} so far; all are charged. "
    said += f"Now: {standing.counts(status)}; {choice}"
    answer(
        shape,
        {"added": len(log), "used": used, **found},
        [{"added": len(log), "used": used, **found}],
        lines=[said],
        show=lambda console: console.print(said, markup=False),
    )


def plain(found: "Replay") -> dict[str, Any]:
    """All of a replay, for JSON."""
    return {
        "stopped": found.stopped,
        "wanted": found.wanted,
        "logged": found.logged,
        "used": found.used,
        "arms": [asdict(arm) for arm in found.arms],
        "best": found.best,
        "logged_cost": found.logged_cost,
        "spent": found.spent,
        "saved": found.saved,
        "forgone": found.forgone,
        "recommendation": asdict(found.recommendation),
    }


def show(found: "Replay", console: "Console") -> None:
    """A table of the arms, and what follows."""
    from dbcare.live.logged import sentences

    grid(
        ["arm", "logged", "used", "mean of the log"],
        [[arm.name, f"{arm.logged:,}", f"{arm.used:,}", f"{arm.mean:.4g}"] for arm in found.arms],
        right=("logged", "used", "mean of the log"),
    )
    for sentence in sentences(found):
        console.print(sentence, markup=False)
