"""The command for data from before: what a policy would have done with them, or a study that starts with them."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbcare.cli.option_parameters import with_options
from dbcare.cli.output import print_grid, print_output
from dbcare.cli.shared import Format, Shape, friendly_errors
from dbcare.live.options import ReplayOptions

if TYPE_CHECKING:
    from rich.console import Console

    from dbcare.live.replay import Replay


@with_options(ReplayOptions)
def import_log(
    file: Annotated[Path, typer.Argument(help="A CSV file with the columns arm and reward.")],
    options: dict[str, Any],
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
            refuse_options(options)
            add(file, into, storage, shape)
            return
        replay = dbcare.replay_log(dbcare.read_log(file), **options)
    print_output(
        shape,
        to_plain(replay),
        [asdict(arm) for arm in replay.arms],
        lines=replay.sentences(),
        show=lambda console: show(replay, console),
    )


def refuse_options(options: dict[str, Any]) -> None:
    """Refuse options next to a study, which has its own settings."""
    from dbcare.errors import InvalidValueError

    for name, value in options.items():
        raise InvalidValueError(
            f"`{name}` cannot be combined with --into, as the study has its own settings, but got {value}."
        )


def add(file: Path, name: str, storage: str | None, shape: Format) -> None:
    """Add the log to a study."""
    import dbcare
    from dbcare.cli import study_view
    from dbcare.errors import InvalidValueError

    if storage is None:
        raise InvalidValueError("`--into` requires --storage, or the environment variable DBCARE_STORAGE.")
    study = dbcare.load_study(name, storage)
    log = dbcare.read_log(file)
    before = study.status().rewards
    study.add(log)
    status = study.status()
    used = status.rewards - before
    plain = {"added": len(log), "used": used, **study_view.make_record(study)}
    sentence = (
        f"Added {len(log):,} observations to {name}, of which the decision uses {used:,} so far; all are charged. "
        f"Now: {study_view.format_counts(study.settings, status)}; {study.recommendation()}"
    )
    print_output(shape, plain, [plain], lines=[sentence], show=lambda console: console.print(sentence, markup=False))


def to_plain(replay: "Replay") -> dict[str, Any]:
    """Return everything about a replay, for JSON."""
    return {
        "stopped": replay.stopped,
        "wanted": replay.wanted,
        "logged": replay.logged,
        "used": replay.used,
        "arms": [asdict(arm) for arm in replay.arms],
        "best": replay.best,
        "logged_cost": replay.logged_cost,
        "spent": replay.spent,
        "saved": replay.saved,
        "forgone": replay.forgone,
        "recommendation": asdict(replay.recommendation),
    }


def show(replay: "Replay", console: "Console") -> None:
    """Print a table of the arms, and what follows."""
    print_grid(
        ["arm", "logged", "used", "mean of the log"],
        [[arm.name, f"{arm.logged:,}", f"{arm.used:,}", f"{arm.mean:.4g}"] for arm in replay.arms],
        right=("logged", "used", "mean of the log"),
    )
    for sentence in replay.sentences():
        console.print(sentence, markup=False)
