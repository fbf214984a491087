"""Logs of arms that answered the same questions, also the samples of evaluation harnesses.

The harness writes such a file for each task with `--log_samples`. A line is a document after a filter: `doc_id`, the
name of the `filter`, the names of its `metrics`, and a field for each of them, such as `acc` or `exact_match`. Tasks
with several filters have a line for each document and filter. `doc_hash` tells whether files mean the same document.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError
from dbcare.problem.spread import BINARY
from dbcare.replay.logs import (
    check_columns,
    parse_number,
    read_arms,
    read_json_lines,
    read_rewards,
    read_table,
    read_units,
    refuse_totals,
)

LogRow = tuple[str, str, float, float | None]  # an arm, a block, a reward, and what it cost if that is known


@dataclass(frozen=True)
class BlockLog:
    """Rewards of every arm in every block.

    Parameters
    ----------
    arms, blocks : tuple of str
        Their names, in the order in which they first appear.
    rewards : tuple of tuple of float
        Rewards by arm and block; the mean where an arm has several in a block.
    prices : tuple of tuple of float or None
        What they cost by arm and block, all of a block's rewards together; None if the log does not say.
    left_out : int
        Blocks that are not shared by all arms, and were left out.
    averaged : bool
        Whether some arm has several rewards in a block.

    Examples
    --------
    >>> from dbcare import read_block_log
    >>> scores = {"arm": ["A", "B", "A", "B"], "question": ["q1", "q1", "q2", "q2"], "score": [1, 0, 1, 1]}
    >>> log = read_block_log(scores)
    >>> log.arms, log.blocks, log.rewards
    (('A', 'B'), ('q1', 'q2'), ((1.0, 1.0), (0.0, 1.0)))
    """

    arms: tuple[str, ...]
    blocks: tuple[str, ...]
    rewards: tuple[tuple[float, ...], ...]
    prices: tuple[tuple[float, ...], ...] | None = None
    left_out: int = 0
    averaged: bool = False


def read_block_log(
    source: str | PathLike[str] | Any,
    *,
    arm_column: str = "arm",
    block_column: str = "question",
    reward_column: str = "score",
    price_column: str | None = None,
    shared_only: bool = False,
    binary: bool = False,
) -> BlockLog:
    """Read scores of arms that answered the same questions, from a file or a data frame.

    Parameters
    ----------
    source : str, Path or data frame
        A .jsonl or .parquet file, any other file as CSV with a header, or a data frame, as in `read_log`.
    arm_column, block_column, reward_column : str
        The columns with the arm, the block that arms share, such as the id of a question, and the reward. Several
        rewards of an arm in a block are averaged.
    price_column : str, optional
        The column with what each row cost; the prices of rows that are averaged are added up.
    shared_only : bool
        Whether to leave out blocks that some arm lacks. Default: such a block is an error.
    binary : bool
        Whether rewards are 0 or 1, and anything else is an error.

    Returns
    -------
    BlockLog
        The rewards, for `replay_blocks`.

    Raises
    ------
    InvalidValueError
        If the source cannot be read, a cell is not what its column needs, an arm lacks a block, or the source is a
        table of totals, as in `read_log`.

    Examples
    --------
    >>> from dbcare import read_block_log
    >>> scores = {"model": ["A", "B", "A"], "id": [1, 1, 2], "right": [1, 0, 1]}
    >>> log = read_block_log(
    ...     scores, arm_column="model", block_column="id", reward_column="right", shared_only=True
    ... )
    >>> log.blocks, log.left_out
    (('1',), 1)
    """
    columns = check_columns(
        arm_column=arm_column, block_column=block_column, reward_column=reward_column, price_column=price_column
    )
    table = read_table(source, columns)
    arms, blocks = read_arms(table, arm_column), map(str, read_units(table, block_column))
    rewards = read_rewards(table, reward_column)
    refuse_totals(table.source, arms, rewards, table.cells, columns.values())
    if checks.flag("binary", binary):
        for row, reward in enumerate(rewards):
            if reward not in BINARY:
                raise InvalidValueError(
                    f"{table.name_row(row)}: column {reward_column!r} must be 0 or 1 but got {reward:g}."
                )
    prices: list[float] | list[None] = [None] * len(arms)
    if price_column is not None:
        prices = read_rewards(table, price_column)
        for row, price in enumerate(prices):
            if price < 0.0:
                raise InvalidValueError(
                    f"{table.name_row(row)}: column {price_column!r} must not be negative but got {price:g}."
                )
    return collect_blocks(zip(arms, blocks, rewards, prices, strict=True), shared_only=shared_only)


def collect_blocks(rows: Iterable[LogRow], *, shared_only: bool) -> BlockLog:
    """Return the log that rows make up, if every arm has every block, or else of the blocks that all arms have."""
    checks.flag("shared_only", shared_only)
    rewards: dict[str, dict[str, list[float]]] = {}
    prices: dict[str, dict[str, list[float]]] = {}
    blocks: dict[str, None] = {}
    for arm, block, reward, price in rows:
        blocks[block] = None
        rewards.setdefault(checks.text("arm", arm), {}).setdefault(block, []).append(reward)
        if price is not None:
            prices.setdefault(arm, {}).setdefault(block, []).append(price)
    shared = [block for block in blocks if all(block in answers for answers in rewards.values())]
    if len(shared) < len(blocks) and not shared_only:
        _refuse_gaps(blocks, rewards)
    return BlockLog(
        arms=tuple(rewards),
        blocks=tuple(shared),
        rewards=tuple(
            tuple(math.fsum(answers[block]) / len(answers[block]) for block in shared) for answers in rewards.values()
        ),
        prices=tuple(tuple(math.fsum(prices[arm][block]) for block in shared) for arm in rewards) if prices else None,
        left_out=len(blocks) - len(shared),
        averaged=any(len(answers[block]) > 1 for answers in rewards.values() for block in shared),
    )


def _refuse_gaps(blocks: Iterable[str], rewards: dict[str, dict[str, list[float]]]) -> None:
    missing = [(arm, block) for arm, answers in rewards.items() for block in blocks if block not in answers]
    arm, block = missing[0]
    more = f", and {len(missing) - 1:,} more are missing" if len(missing) > 1 else ""
    raise InvalidValueError(
        f"Arm {show(arm)} has no reward in block {show(block)}{more}; pass `shared_only` to leave out blocks that not "
        "all arms have."
    )


def read_harness_samples(
    files: Mapping[str, str | PathLike[str]],
    *,
    metric: str,
    filter_name: str | None = None,
    shared_only: bool = False,
) -> BlockLog:
    """Read the scores of several models from the sample logs of lm-evaluation-harness.

    Parameters
    ----------
    files : mapping
        The file of each arm by its name, all of the same task.
    metric : str
        The metric that is the score, such as "acc" or "exact_match".
    filter_name : str, optional
        The filter, such as "strict-match"; required if the files have several.
    shared_only : bool
        As in `read_block_log`.

    Returns
    -------
    BlockLog
        The scores, for `replay_blocks`; blocks are documents.

    Raises
    ------
    InvalidValueError
        If a file cannot be read, has no such metric, or means other documents than the first one.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from dbcare import read_harness_samples
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for model, rights in (("small", [1, 0]), ("large", [1, 1])):
    ...     lines = [json.dumps({"doc_id": place, "filter": "none", "metrics": ["acc"], "acc": right})
    ...              for place, right in enumerate(rights)]
    ...     _ = (folder / f"{model}.jsonl").write_text("\\n".join(lines))
    >>> log = read_harness_samples({name: folder / f"{name}.jsonl" for name in ("small", "large")}, metric="acc")
    >>> log.rewards
    ((1.0, 0.0), (1.0, 1.0))
    """
    if not isinstance(files, Mapping):
        raise InvalidValueError(f"`files` must be a mapping of arms to files but got {show(files)}.")
    for path in files.values():
        if not isinstance(path, str | PathLike):
            raise InvalidValueError(f"`files` must have the path of a file for each arm but got {show(path)}.")
    checks.text("metric", metric)
    hashes: dict[str, tuple[str, Any]] = {}
    rows = [row for arm, path in files.items() for row in _read_samples(arm, Path(path), metric, filter_name, hashes)]
    return collect_blocks(rows, shared_only=shared_only)


def _read_samples(
    arm: str, path: Path, metric: str, filter_name: str | None, hashes: dict[str, tuple[str, Any]]
) -> Iterator[LogRow]:
    samples = list(read_json_lines(path))
    filters = {str(sample.get("filter", "none")): None for _, sample in samples}
    if filter_name is None and len(filters) > 1:
        raise InvalidValueError(f"{path} has several filters; pass `filter_name` as one of them: {', '.join(filters)}.")
    if filter_name is not None and filter_name not in filters:
        raise InvalidValueError(f"{path} has no filter {show(filter_name)}; its filters are {', '.join(filters)}.")
    for line, sample in samples:
        if filter_name is not None and sample.get("filter", "none") != filter_name:
            continue
        if "doc_id" not in sample:
            raise InvalidValueError(f"{path}, line {line}, has no doc_id, so it is not a sample log of the harness.")
        if metric not in sample:
            known = ", ".join(map(str, sample.get("metrics", ()))) or "none"
            raise InvalidValueError(f"{path}, line {line}, has no metric {show(metric)}; its metrics are {known}.")
        reward = parse_number(sample[metric])
        if not abs(reward) < float("inf"):
            raise InvalidValueError(f"{path}, line {line}: {metric!r} must be a number but got {show(sample[metric])}.")
        block = str(sample["doc_id"])
        other, found = hashes.setdefault(block, (arm, sample.get("doc_hash")))
        if found != sample.get("doc_hash"):
            raise InvalidValueError(
                f"Document {block} is not the same for {other} and {arm}; pass files of the same task and version."
            )
        yield arm, block, reward, None
