"""Commands that change a live study: create one, ask, tell, pause, stop; fit for scripts.

Exit codes: 0 done, 2 refused, 3 nothing to hand out for now (ask again later), 4 the study has stopped.
"""

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from dbcare.cli import study_options
from dbcare.cli.output import answer, at_terminal
from dbcare.cli.shared import Format, RiskName, Shape, friendly_errors

if TYPE_CHECKING:
    from dbcare.live.report import Status
    from dbcare.live.stored_study import Study
    from dbcare.live.tell import Trial

WAIT, STOPPED = 3, 4
TRIAL_COLUMNS = ("id", "arm", "expires")

Storage = Annotated[
    str, typer.Option(envvar="DBCARE_STORAGE", help="Where studies are kept, such as sqlite:///ads.db.")
]
Name = Annotated[str, typer.Argument(help="The study's name.")]


def done(study: "Study", shape: Format, sentence: str) -> None:
    """What was done, for a person; a pipe gets nothing, a program where the study stands now."""
    if shape is Format.TABLE and not at_terminal():
        return
    from dbcare.cli import study_view

    with friendly_errors():
        found = study_view.record(study)
    answer(shape, found, [found], lines=(), show=lambda console: console.print(sentence, markup=False))


def create(
    name: Name,
    arms: Annotated[str, typer.Option(help="Names of the arms, with commas between them.")],
    storage: Storage,
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
    max_spend: Annotated[float | None, typer.Option(help="End the study before more than this is spent.")] = None,
    timeout_reward: Annotated[float | None, typer.Option(help="What a trial counts as whose lease runs out.")] = None,
    seed: study_options.Seed = 0,
    shape: Shape = Format.TABLE,
) -> None:
    """Begin a study."""
    import dbcare

    with friendly_errors():
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
        study = dbcare.create_study(
            name,
            [arm.strip() for arm in arms.split(",")],
            storage=storage,
            max_spend=max_spend,
            timeout_reward=timeout_reward,
            **given,
        )
    done(study, shape, f"Created {name}: {', '.join(study.settings.arms)}. Next: dbcare ask {name}")


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
        status = None if trials else study.status()
    answer(
        shape,
        rows := [asdict(trial) for trial in trials],
        rows,
        columns=TRIAL_COLUMNS,
        lines=[f"{trial.id}\t{trial.arm}" for trial in trials],
        show=lambda console: console.print("".join(f"{said(trial)}\n" for trial in trials), end="", markup=False),
    )
    if status is not None:
        stopped = status.state == "stopped"
        if at_terminal():
            typer.echo(f"The study has stopped: {status.reason}." if stopped else why_none(status), err=True)
        raise typer.Exit(STOPPED if stopped else WAIT)


def said(trial: "Trial") -> str:
    """A trial in words; its lease ends by the clock of this machine."""
    until = "" if trial.expires is None else f" (until {datetime.fromtimestamp(trial.expires):%Y-%m-%d %H:%M:%S})"
    return f"trial {trial.id}: {trial.arm}{until}"


def why_none(status: "Status") -> str:
    """Why there is no trial for now."""
    if status.state == "paused":
        return "No trial for now: the study is paused."
    return f"No trial for now: {status.waiting} are out and must be told first."


def tell(
    name: Name,
    trial: Annotated[int, typer.Argument(help="The trial's number.")],
    storage: Storage,
    reward: Annotated[float | None, typer.Argument(help="What came of it.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Nothing came of it.")] = False,
    free: Annotated[bool, typer.Option("--free", help="A failed trial cost nothing.")] = False,
    shape: Shape = Format.TABLE,
) -> None:
    """What came of a trial; a negative reward goes behind `--`."""
    import dbcare
    from dbcare.errors import InvalidValueError

    with friendly_errors():
        if free and not failed:
            raise InvalidValueError("`--free` must stand with --failed but got it without.")
        study = dbcare.load_study(name, storage)
        study.tell(trial, reward, failed=failed, charged=not free)
        choice = study.recommendation()
    outcome = "failed" if reward is None else f"{reward:g}"
    verdict = "Nothing has been counted yet." if choice.mean is None else f"So far {choice.arm} is best."
    if choice.final:
        verdict = f"The study has stopped: {choice}"
    done(study, shape, f"Noted: trial {trial}, {outcome}. {verdict}")


def pause(name: Name, storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Hand out no trials until `resume`; answers are taken all the same."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        study.pause()
    done(study, shape, f"Paused {name}. Go on: dbcare resume {name}")


def resume(name: Name, storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Go on after `pause`."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        study.resume()
    done(study, shape, f"Resumed {name}.")


def retire(
    name: Name,
    arm: Annotated[str, typer.Argument(help="The arm's name.")],
    storage: Storage,
    reason: Annotated[str, typer.Option(help="Why.")] = "withdrawn",
    shape: Shape = Format.TABLE,
) -> None:
    """Withdraw an arm for a reason outside the study; the others are decided among as if it had never been."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        study.retire(arm, reason)
    done(study, shape, f"Retired {arm} of {name}: {reason}")


def stop(
    name: Name,
    storage: Storage,
    reason: Annotated[str, typer.Option(help="Why.")] = "stopped by hand",
    shape: Shape = Format.TABLE,
) -> None:
    """End a study for good."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        study.stop(reason)
        choice = study.recommendation()
    done(study, shape, f"Stopped {name}: {choice}")


def delete(
    name: Name,
    storage: Storage,
    yes: Annotated[bool, typer.Option("--yes", help="Needed: nothing of the study will be left.")] = False,
) -> None:
    """Remove a study and everything that happened in it."""
    import dbcare
    from dbcare.errors import InvalidValueError

    with friendly_errors():
        if not yes:
            raise InvalidValueError(f"`--yes` must be given to delete {name!r} with all its trials but was not.")
        dbcare.delete_study(name, storage)
    if at_terminal():
        typer.echo(f"Deleted {name}.")
