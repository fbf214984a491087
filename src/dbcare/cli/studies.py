"""Commands that create and change studies, and their storage.

Exit codes: 0 done, 2 refused, 3 no trial available yet (ask again later), 4 the study has stopped.
"""

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbcare.cli.options import with_options
from dbcare.cli.output import at_terminal, print_grid, print_output
from dbcare.cli.shared import Format, Name, OptionNamingCommand, Shape, Storage, announce_new_database, friendly_errors
from dbcare.studies.options import StudyOptions

if TYPE_CHECKING:
    from dbcare.studies.results.status import Status
    from dbcare.studies.study import Study
    from dbcare.studies.trial import Trial


commands = typer.Typer(no_args_is_help=True, help="Check, back up, and restore stored studies.")

COLUMNS = ("study", "events", "agrees", "problem")


@commands.command(cls=OptionNamingCommand)
def backup(
    to: Annotated[Path, typer.Argument(help="The backup, a new file.")],
    storage: Storage,
) -> None:
    """Write a backup of an SQLite database, which may be in use meanwhile."""
    from dbcare.studies.stores.sql.backup import back_up

    with friendly_errors():
        written = back_up(storage, to)
    typer.echo(f"Written to {written}" if at_terminal() else written)


@commands.command(cls=OptionNamingCommand)
def restore(
    source: Annotated[Path, typer.Argument(metavar="from", help="The backup.")],
    storage: Storage,
) -> None:
    """Put a backup in the place of an SQLite database, which no program may have open.

    The database that was there before is kept, and its path is printed.
    """
    from dbcare.studies.stores.sql.backup import restore

    with friendly_errors():
        kept = restore(storage, source)
    if at_terminal():
        typer.echo(f"Restored {source}. Next: dbcare storage check")
    if kept is not None:
        typer.echo(f"The database from before is in {kept}" if at_terminal() else kept)


@commands.command(cls=OptionNamingCommand)
def check(storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Replay every study from its events and compare with its stored summary. Exits 2 if one does not agree."""
    import dbcare

    with friendly_errors():
        rows = [check_study(name, storage) for name in dbcare.list_studies(storage)]
    cells = [
        [
            row["study"],
            "-" if row["events"] is None else f"{row['events']} events",
            "agrees" if row["agrees"] else f"does not agree: {row['problem']}",
        ]
        for row in rows
    ]
    print_output(
        shape,
        rows,
        rows,
        columns=COLUMNS,
        lines=["\t".join(line) for line in cells],
        show=lambda _console: print_grid(["study", "replayed", "stored summary"], cells),
    )
    if not all(row["agrees"] for row in rows):
        raise typer.Exit(2)


def check_study(name: str, storage: str) -> dict[str, Any]:
    """Return whether a study agrees with its events; one that is too damaged to be read does not."""
    import dbcare
    from dbcare.errors import DbcareError

    try:
        events = dbcare.load_study(name, storage).check()
    except (DbcareError, ArithmeticError, LookupError, TypeError, ValueError) as failure:
        problem = str(failure) if isinstance(failure, DbcareError) else f"{type(failure).__name__}: {failure}"
        return {"study": name, "events": None, "agrees": False, "problem": problem}
    return {"study": name, "events": events, "agrees": True, "problem": None}


EXIT_WAIT, EXIT_STOPPED = 3, 4
TRIAL_COLUMNS = ("id", "arm", "expires", "unit", "told", "block", "tag")


def print_done(study: "Study", shape: Format, sentence: str) -> None:
    """Print what was done to a terminal; a pipe gets nothing, JSON and CSV the state of the study."""
    if shape is Format.TABLE and not at_terminal():
        return
    from dbcare.cli import views

    with friendly_errors():
        record = views.make_record(study)
    print_output(shape, record, [record], lines=(), show=lambda console: console.print(sentence, markup=False))


@with_options(StudyOptions)
def create(
    name: Name,
    arms: Annotated[str, typer.Option(help="Names of the arms, separated by commas.")],
    storage: Storage,
    options: dict[str, Any],
    shape: Shape = Format.TABLE,
) -> None:
    """Create a study. State the spread of the rewards in one way, or let the study learn it."""
    import dbcare
    from dbcare.studies.results.words import explain_learning

    with friendly_errors():
        names = [arm.strip() for arm in arms.split(",")]
        study = dbcare.create_study(name, names, storage=storage, **options)
        announce_new_database(storage)
    if (learning := explain_learning(study.settings, "--max-spend")) is not None:
        typer.echo(learning, err=True)
    print_done(study, shape, f"Created {name}: {', '.join(study.settings.arms)}. Next: dbcare ask {name}")


def ask(
    name: Name,
    storage: Storage,
    n: Annotated[int, typer.Option("-n", help="Number of trials.")] = 1,
    lease: Annotated[str, typer.Option(help="How long a trial may take: 90s, 30m, 2h, 1d, 2w.")] = "30m",
    worker: Annotated[str | None, typer.Option(help="Name of the worker who asks.")] = None,
    unit: Annotated[
        str | None, typer.Option(help="Who the trial is for, such as a visitor; asking again gives the same trial.")
    ] = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Print the next trials, one per line: number and arm, and the block if the study has blocks.

    Exits 3 if no trial is available yet, 4 if the study has stopped.
    """
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        trials = study.ask(n, lease, worker, unit=unit)
        status = None if trials else study.status()
    print_output(
        shape,
        rows := [asdict(trial) for trial in trials],
        rows,
        columns=TRIAL_COLUMNS,
        lines=["\t".join(filter(None, (str(trial.id), trial.arm, trial.block))) for trial in trials],
        show=lambda console: console.print(
            "".join(f"{format_trial(trial)}\n" for trial in trials), end="", markup=False
        ),
        defused=False,
    )
    if status is not None:
        stopped = status.state == "stopped"
        if at_terminal():
            typer.echo(f"The study has stopped: {status.reason}." if stopped else explain_wait(status), err=True)
        raise typer.Exit(EXIT_STOPPED if stopped else EXIT_WAIT)


def format_trial(trial: "Trial") -> str:
    """Return a trial in words; its lease ends in the time zone of this machine, which is named."""
    arm = trial.arm if trial.block is None else f"{trial.arm} on {trial.block}"
    if trial.told:
        return f"trial {trial.id}: {arm} (already told)"
    if trial.expires is None:
        return f"trial {trial.id}: {arm}"
    expires = datetime.fromtimestamp(trial.expires).astimezone()
    return f"trial {trial.id}: {arm} (until {expires:%Y-%m-%d %H:%M:%S %Z})"


def explain_wait(status: "Status") -> str:
    """Explain why no trial is available yet."""
    if status.state == "paused":
        return "No trial available: the study is paused."
    trials = "1 pending trial" if status.waiting == 1 else f"{status.waiting} pending trials"
    return f"No trial available: waiting for {trials}."


def tell(
    name: Name,
    trial: Annotated[int, typer.Argument(help="Number of the trial.")],
    storage: Storage,
    reward: Annotated[float | None, typer.Argument(help="The trial's reward.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Mark the trial as failed.")] = False,
    free: Annotated[bool, typer.Option("--free", help="The failed trial cost nothing.")] = False,
    price: Annotated[float | None, typer.Option(help="What the trial cost. Default: the arm's price.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why the trial failed.")] = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Report a trial's reward."""
    import dbcare
    from dbcare.errors import InvalidValueError

    with friendly_errors():
        if free and not failed:
            raise InvalidValueError("`--free` requires --failed.")
        if free and price is not None:
            raise InvalidValueError(f"Pass `--free` or `--price`, not both, but got a price of {price:g}.")
        if (reward is None) != failed:
            raise InvalidValueError("Pass either `reward` or `failed`.")
        if reason is not None and not failed:
            raise InvalidValueError("`--reason` requires --failed.")
        study = dbcare.load_study(name, storage)
        study.tell(trial, reward, failed=failed, charged=not free, price=price, reason=reason)
        choice = study.recommendation()
    outcome = "failed" if reward is None else f"{reward:g}"
    verdict = "Nothing has been counted yet." if choice.mean is None else f"{choice.arm} leads so far."
    if choice.final:
        verdict = f"The study has stopped: {choice}"
    print_done(study, shape, f"Recorded: trial {trial}, {outcome}. {verdict}")


def describe(
    name: Name,
    storage: Storage,
    text: Annotated[str | None, typer.Argument(help="The new description. Default: remove it.")] = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Change a study's description."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        study.describe(text)
    print_done(study, shape, f"Described {name}." if text else f"Removed the description of {name}.")


def max_ahead(
    name: Name,
    storage: Storage,
    trials: Annotated[int | None, typer.Argument(help="How many trials may be pending. Default: the default.")] = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Change how many trials may be pending."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        study.set_max_ahead(trials)
    limit = "The default limit applies again" if trials is None else f"Up to {trials:,} trials may be pending"
    print_done(study, shape, f"{limit} in {name}.")


def give_up(
    name: Name,
    storage: Storage,
    trials: Annotated[
        list[int] | None, typer.Argument(help="Numbers of trials, as `dbcare pending` lists them.")
    ] = None,
    worker: Annotated[str | None, typer.Option(help="Only trials of this worker.")] = None,
    older_than: Annotated[str | None, typer.Option(help="Only trials asked longer ago than 90s, 30m, 2h, 1d.")] = None,
    all_trials: Annotated[bool, typer.Option("--all", help="All pending trials.")] = False,
    shape: Shape = Format.TABLE,
) -> None:
    """Give up pending trials that nobody will answer: they fail at no charge, and the study goes on."""
    import dbcare
    from dbcare.errors import InvalidValueError

    with friendly_errors():
        if not (trials or worker or older_than or all_trials):
            raise InvalidValueError("Pass numbers of trials, `--worker`, `--older-than`, or `--all`.")
        if all_trials and trials:
            raise InvalidValueError(f"Pass numbers of trials or `--all`, not both, but got {trials}.")
        study = dbcare.load_study(name, storage)
        count = study.give_up(trials or None, worker=worker, older_than=older_than)
    print_done(study, shape, f"Gave up {'1 trial' if count == 1 else f'{count:,} trials'} of {name}.")


def pause(name: Name, storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Hand out no trials until `resume`; rewards are still accepted."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        study.pause()
    print_done(study, shape, f"Paused {name}. To resume: dbcare resume {name}")


def resume(name: Name, storage: Storage, shape: Shape = Format.TABLE) -> None:
    """Resume after `pause`."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        study.resume()
    print_done(study, shape, f"Resumed {name}.")


def retire(
    name: Name,
    arm: Annotated[str, typer.Argument(help="Name of the arm.")],
    storage: Storage,
    reason: Annotated[str, typer.Option(help="Why the arm is withdrawn.")] = "withdrawn",
    shape: Shape = Format.TABLE,
) -> None:
    """Retire an arm; the study continues as if it had never been in it."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        study.retire(arm, reason)
    print_done(study, shape, f"Retired {arm} of {name}: {reason}")


def stop(
    name: Name,
    storage: Storage,
    reason: Annotated[str, typer.Option(help="Why the study is stopped.")] = "stopped by hand",
    shape: Shape = Format.TABLE,
) -> None:
    """Stop a study for good."""
    import dbcare

    with friendly_errors():
        study = dbcare.load_study(name, storage)
        study.stop(reason)
        choice = study.recommendation()
    print_done(study, shape, f"Stopped {name}: {choice}")


def delete(
    name: Name,
    storage: Storage,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm; deletion can't be undone.")] = False,
) -> None:
    """Delete a study and everything that happened in it."""
    import dbcare
    from dbcare.errors import InvalidValueError

    with friendly_errors():
        if not yes:
            raise InvalidValueError(f"Pass `--yes` to delete {name!r} and all its trials.")
        dbcare.delete_study(name, storage)
    if at_terminal():
        typer.echo(f"Deleted {name}.")
