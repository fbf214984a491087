"""The command for data from before: what a policy would have done with them, or a study that begins with them."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbcare.cli import study_options
from dbcare.cli.output import answer, grid
from dbcare.cli.shared import Format, RiskName, Shape, friendly_errors

if TYPE_CHECKING:
    from rich.console import Console

    from dbcare.live.replay import Replay

STUDY_HAS_ITS_OWN = (
    "price", "value", "cost", "sigma", "bounds", "binary", "risk", "policy", "minimize", "unit", "seed",
)  # fmt: skip


def import_log(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A CSV file with the columns arm and reward.")],
    price: study_options.Price = None,
    value: study_options.Value = None,
    cost: study_options.Cost = None,
    sigma: study_options.Sigma = None,
    bounds: study_options.Bounds = None,
    binary: study_options.Binary = False,
    risk: study_options.Risk = RiskName.REGRET,
    policy: study_options.Policy = "breakeven",
    minimize: study_options.Minimize = False,
    unit: study_options.Unit = "USD",
    seed: study_options.Seed = 0,
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
        given = study_options.terms_of(
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
    from dbcare.live.replay import sentences

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
    from dbcare.cli import study_view
    from dbcare.errors import InvalidValueError

    if storage is None:
        raise InvalidValueError("`--storage` must be given with --into, or DBCARE_STORAGE be set, but got neither.")
    study = dbcare.load_study(name, storage)
    log = dbcare.read_log(file)
    before = sum(arm.trials for arm in study.status().arms)
    study.add(log)
    found, status, choice = study_view.record(study), study.status(), study.recommendation()
    used = sum(arm.trials for arm in status.arms) - before
    said = f"Added {len(log):,} observations to {name}, of which the decision uses {used:,} so far; all are charged. "
    said += f"Now: {study_view.counts(status)}; {choice}"
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
    from dbcare.live.replay import sentences

    grid(
        ["arm", "logged", "used", "mean of the log"],
        [[arm.name, f"{arm.logged:,}", f"{arm.used:,}", f"{arm.mean:.4g}"] for arm in found.arms],
        right=("logged", "used", "mean of the log"),
    )
    for sentence in sentences(found):
        console.print(sentence, markup=False)
