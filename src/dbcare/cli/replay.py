"""`dbcare import` and `dbcare compare`: what a policy would have done with data from before."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbcare.cli.options import with_options
from dbcare.cli.output import print_grid, print_output
from dbcare.cli.shared import Format, Shape, friendly_errors, parse_amounts
from dbcare.studies.options import ReplayOptions

if TYPE_CHECKING:
    from rich.console import Console

    from dbcare.replay.block_logs import BlockLog
    from dbcare.replay.replay import LoggedArm, Replay


@with_options(ReplayOptions)
def import_log(
    file: Annotated[Path, typer.Argument(help="A CSV file with a header, or a .jsonl or .parquet file.")],
    options: dict[str, Any],
    arm_column: Annotated[str, typer.Option(help="Column with the arm.")] = "arm",
    reward_column: Annotated[str, typer.Option(help="Column with the reward.")] = "reward",
    unit_column: Annotated[
        str | None, typer.Option(help="Column with what was assigned to an arm, such as a user: sum rewards by it.")
    ] = None,
    block_column: Annotated[
        str | None,
        typer.Option(help="Column with the block that arms share, such as a question: compare arms within blocks."),
    ] = None,
    time_column: Annotated[
        str | None, typer.Option(help="Column with the time: sort by it. Default: the order of the file.")
    ] = None,
    orders: Annotated[
        int | None, typer.Option(help="Replay this many orders: the log's own, and random ones. Default: 20.")
    ] = None,
    into: Annotated[str | None, typer.Option(help="Add the data to this study, which has its own settings.")] = None,
    storage: Annotated[
        str | None, typer.Option(envvar="DBCARE_STORAGE", help="Where that study is kept, such as sqlite:///ads.db.")
    ] = None,
    shape: Shape = Format.TABLE,
) -> None:
    """Replay logged data: where a policy would have stopped, and what that would have saved."""
    import dbcare

    if orders is not None:
        options["orders"] = orders
    with friendly_errors():
        if into is not None:
            refuse_with_study(options)
        if block_column is not None:
            refuse_with_blocks(unit_column=unit_column, time_column=time_column, into=into)
            blocks = dbcare.read_block_log(
                file, arm_column=arm_column, block_column=block_column, reward_column=reward_column
            )
            print_replay(dbcare.replay_blocks(blocks, progress=True, **options), shape)
            return
        log = dbcare.read_log(
            file,
            arm_column=arm_column,
            reward_column=reward_column,
            unit_column=unit_column,
            time_column=time_column,
        )
        if into is not None:
            add(log, into, storage, shape)
            return
        replay = dbcare.replay_log(log, progress=True, **options)
    print_replay(replay, shape)


def print_replay(replay: "Replay", shape: Format) -> None:
    """Print a replay."""
    print_output(
        shape,
        to_plain(replay),
        arm_rows(replay),
        lines=str(replay).splitlines(),
        show=lambda console: show(replay, console),
    )


def refuse_with_study(options: dict[str, Any]) -> None:
    """Refuse options next to a study, which has its own settings."""
    from dbcare.errors import InvalidValueError

    for name, value in options.items():
        raise InvalidValueError(
            f"`{name}` cannot be combined with --into, as the study has its own settings, but got {value}."
        )


def refuse_with_blocks(**options: str | None) -> None:
    """Refuse options that have no meaning for a log by block."""
    from dbcare.errors import InvalidValueError

    for name, value in options.items():
        if value is not None:
            raise InvalidValueError(f"`{name}` cannot be combined with --block-column but got {value}.")


def add(log: list[tuple[str, float]], name: str, storage: str | None, shape: Format) -> None:
    """Add the log to a study."""
    from rich.console import Console

    import dbcare
    from dbcare.cli import views
    from dbcare.errors import InvalidValueError
    from dbcare.studies.results import words

    if storage is None:
        raise InvalidValueError("`--into` requires --storage, or the environment variable DBCARE_STORAGE.")
    study = dbcare.load_study(name, storage)
    before = study.status().rewards
    with Console(stderr=True).status(f"adding {len(log):,} observations"):  # shown on a terminal only
        study.add(log)
    status = study.status()
    used = status.rewards - before
    plain = {"added": len(log), "used": used, **views.make_record(study)}
    sentence = (
        f"Added {len(log):,} observations to {name}, of which the decision uses {used:,} so far; all are charged. "
        f"Now: {words.format_counts(study.settings, status)}; {study.recommendation()}"
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
        "over_orders": asdict(replay.over_orders),
        "orders": [asdict(order) for order in replay.orders],
        "notes": list(replay.notes),
    }


def arm_rows(replay: "Replay") -> list[dict[str, Any]]:
    """Return one row per arm, without numbers where nothing is known."""
    return [
        {
            "name": arm.name,
            "logged": arm.logged,
            "used": arm.used,
            "chosen": arm.chosen,
            "mean": arm.mean,
            "low": None if arm.status.interval is None else arm.status.interval[0],
            "high": None if arm.status.interval is None else arm.status.interval[1],
            "estimate": arm.status.estimate,
            "lift": None if arm.status.lift is None else arm.status.lift.absolute,
            "lead": arm.status.lead,
            "probability_best": arm.status.probability_best,
        }
        for arm in replay.arms
    ]


def show(replay: "Replay", console: "Console") -> None:
    """Print the main result, a table of the arms, what is behind it, and notes."""
    from rich.text import Text

    headline, *sentences = replay.sentences()
    console.print(Text(headline, style="bold"))
    has_lift = any(arm.status.lift is not None for arm in replay.arms)
    columns = ["arm", "logged", "used", "chosen", "naive mean", "estimate", "95% interval", "best"]
    rows = [format_cells(arm, has_lift) for arm in replay.arms]
    columns += ["lift"] if has_lift else []
    print_grid(columns, rows, right=[column for column in columns if column not in ("arm", "95% interval")])
    for sentence in sentences:
        console.print(Text(sentence))
    for note in replay.notes:
        console.print(Text(f"Note: {note}.", style="yellow"))


def format_cells(arm: "LoggedArm", has_lift: bool) -> list[str]:
    """Return an arm's cells for a table: counts, and what the whole log says."""
    from dbcare.studies.results import words

    status = arm.status
    counts = [f"{number:,}" for number in (arm.logged, arm.used, arm.chosen)]
    figures = [f"{arm.mean:.4g}", *words.format_estimate(status)]
    lift = [words.format_lift(status)] if has_lift else []
    return [arm.name, *counts, *figures, words.format_best(status), *lift]


COMPARED_ORDERS = 200  # by default; a replay by block is quick


@with_options(ReplayOptions, without=("price", "sigma", "baseline", "sigma_pulls", "policy"))
def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            help="A .jsonl, .csv or .parquet file with all scores; or several sample logs of lm-evaluation-harness, "
            "one per arm, such as A=samples_a.jsonl B=samples_b.jsonl."
        ),
    ],
    options: dict[str, Any],
    arm: Annotated[
        str | None, typer.Option(help="Column with the arm, such as a model. Default: arm.", show_default=False)
    ] = None,
    question: Annotated[
        str | None, typer.Option(help="Column with the question's id. Default: question.", show_default=False)
    ] = None,
    score: Annotated[str, typer.Option(help="Column with the score, or the harness's metric.")] = "score",
    price: Annotated[
        str | None,
        typer.Option(metavar="COLUMN|NUMBER[,NUMBER...]", help="Column with the price of an answer; or the price."),
    ] = None,
    filter_name: Annotated[
        str | None, typer.Option("--filter", help="The harness's filter, such as strict-match.")
    ] = None,
    shared_only: Annotated[bool, typer.Option(help="Leave out questions that not all arms have answered.")] = False,
    only_these_questions: Annotated[
        bool, typer.Option(help="The decision is about these questions alone, not about more like them.")
    ] = False,
    orders: Annotated[
        int, typer.Option(help="Replay this many orders of the questions: the log's own, and random ones.")
    ] = COMPARED_ORDERS,
    shape: Shape = Format.TABLE,
) -> None:
    """Replay scores on the same questions: what a comparison would have chosen, and what it would have saved."""
    import dbcare

    with friendly_errors():
        if len(files) > 1:
            refuse_options("is for a single file with all scores", arm=arm, question=question)
            named = name_files(files)
            log = dbcare.read_harness_samples(named, metric=score, filter_name=filter_name, shared_only=shared_only)
            if price is not None:
                options["price"] = parse_amounts("price", price)
        else:
            refuse_options("is for several sample logs of lm-evaluation-harness", filter=filter_name)
            column = price if price is not None and not is_amount(price) else None
            if price is not None and column is None:
                options["price"] = parse_amounts("price", price)
            if column is not None:
                check_value(column, options)
            log = read_one_log(
                files[0],
                arm=arm or "arm",
                question=question or "question",
                score=score,
                price=column,
                shared_only=shared_only,
                binary=options.get("binary", False),
            )
        replay = dbcare.replay_blocks(
            log, orders=orders, progress=True, only_these_blocks=only_these_questions, **options
        )
    if log.averaged:
        typer.echo("Several scores of an arm on a question are averaged, and count as one trial.", err=True)
    if log.left_out:
        noun = "question" if log.left_out == 1 else "questions"
        typer.echo(f"Left out {log.left_out:,} {noun} that not all arms have answered.", err=True)
    print_replay(replay, shape)


def refuse_options(purpose: str, **options: str | None) -> None:
    """Refuse options that have no meaning for the files given."""
    from dbcare.errors import InvalidValueError

    for name, value in options.items():
        if value is not None:
            raise InvalidValueError(f"`--{name}` {purpose} but got {value}.")


def check_value(column: str, options: dict[str, Any]) -> None:
    """Refuse prices in money without a value in money, and a cost beside them."""
    from dbcare.errors import InvalidValueError

    if options.get("cost") is not None:
        raise InvalidValueError(f"Pass `cost`, or `price` and `value`, not both, but got the column {column} too.")
    if options.get("value") is None:
        raise InvalidValueError(f"Pass `cost`, or both `price` and `value`, but got the column {column}, no --value.")


def read_one_log(
    file: str, *, arm: str, question: str, score: str, price: str | None, shared_only: bool, binary: bool
) -> "BlockLog":
    """Read a file with the scores of all arms; an error names the command's own options."""
    import dbcare
    from dbcare.errors import InvalidValueError

    try:
        return dbcare.read_block_log(
            file,
            arm_column=arm,
            block_column=question,
            reward_column=score,
            price_column=price,
            shared_only=shared_only,
            binary=binary,
        )
    except InvalidValueError as refused:
        message = str(refused)
        for option, name in (("arm", "arm"), ("block", "question"), ("reward", "score"), ("price", "price")):
            message = message.replace(f"`{option}_column`", f"`{name}`")
        raise InvalidValueError(message) from None


def is_amount(text: str) -> bool:
    """Return whether a text is an amount, or one per arm, rather than the name of a column."""
    from dbcare.errors import InvalidValueError

    try:
        parse_amounts("price", text)
    except InvalidValueError:
        return False
    return True


def name_files(files: list[str]) -> dict[str, str]:
    """Return the file of each arm: A=FILE, or FILE in a folder that is named after its model, as the harness writes."""
    from dbcare.errors import InvalidValueError

    named: dict[str, str] = {}
    for text in files:
        name, mark, path = text.partition("=")
        if not mark or Path(text).exists():
            name, path = Path(text).resolve().parent.name, text
        if name in named:
            raise InvalidValueError(f"{named[name]} and {path} are both of arm {name}; name them, such as A={path}.")
        named[name] = path
    return named
