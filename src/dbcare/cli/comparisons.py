"""The command for scores of models or prompts on the same questions: what a comparison would have done with them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbcare.cli.logs import print_replay
from dbcare.cli.option_parameters import with_options
from dbcare.cli.shared import Format, Shape, friendly_errors, parse_amounts
from dbcare.studies.options import ReplayOptions

if TYPE_CHECKING:
    from dbcare.replay.block_logs import BlockLog

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
