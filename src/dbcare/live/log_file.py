"""A log of observations made elsewhere: a file or a data frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from typing import Any

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError
from dbcare.live.log_cells import read_arms, read_rewards, read_times, read_units
from dbcare.live.log_table import LogTable, read_table
from dbcare.live.log_totals import refuse_totals

REQUIRED = ("arm_column", "block_column", "reward_column")


def read_log(
    source: str | PathLike[str] | Any,
    *,
    arm_column: str = "arm",
    reward_column: str = "reward",
    unit_column: str | None = None,
    time_column: str | None = None,
) -> list[tuple[str, float]]:
    """Read observations from a file or a data frame.

    Parameters
    ----------
    source : str, Path or data frame
        A .jsonl or .parquet file, any other file as CSV in UTF-8 with a header, a data frame or table (pandas, polars,
        pyarrow), or a mapping of names to columns. In CSV, an apostrophe that marks a text as no formula is removed:
        `Study.export` puts it there.
    arm_column, reward_column : str
        The columns with the arm and the reward. Other columns are ignored.
    unit_column : str, optional
        What was assigned to an arm, such as a user: rewards are summed by unit, so that each unit is one observation.
        Its place in the order is that of its first row. Default: each row is an observation.
    time_column : str, optional
        Sort rows by this column first: times in ISO 8601, numbers, or dates; rows of equal times keep their order.
        Default: rows are in the order of time.

    Returns
    -------
    list of tuple
        Arm and reward of each observation, in order.

    Raises
    ------
    InvalidValueError
        If the source cannot be read, a column is missing, a cell is not what its column needs, or a unit has two arms:
        the message names the line of a file, or the row of a data frame, counted from 0. Also if the source is a table
        of totals instead of a log.

    Notes
    -----
    A table of totals has one row per arm, or a column with counts. A column has counts if no option names it, it is
    called like one ("n", "count", "visitors", "users", "impressions", "trials", "sample_size", "n_users",
    "user_count"), and it holds only whole numbers, some above 1. With a `unit_column`, no column is taken for counts.
    Row numbers and ids are not counts either. Row numbers are 1, 2, 3 and so on, in the whole log or starting over
    within an arm. Ids are recognized in logs of 100 rows or more: no id belongs to two arms, and at most half of the
    rewards differ from each other.

    Examples
    --------
    >>> from dbcare import read_log
    >>> visits = {"user": [7, 8, 7], "variant": ["A", "B", "A"], "revenue": [20.0, 0.0, 5.0]}
    >>> read_log(visits, arm_column="variant", reward_column="revenue", unit_column="user")
    [('A', 25.0), ('B', 0.0)]
    """
    columns = check_columns(
        arm_column=arm_column, reward_column=reward_column, unit_column=unit_column, time_column=time_column
    )
    table = read_table(source, columns)
    arms, rewards = read_arms(table, arm_column), read_rewards(table, reward_column)
    if unit_column is None:
        refuse_totals(table.source, arms, rewards, table.cells, columns.values())
    order: Sequence[int] = range(len(arms))
    if time_column is not None:
        order = sorted(order, key=read_times(table, time_column).__getitem__)
    if unit_column is None:
        return [(arms[row], rewards[row]) for row in order]
    return _sum_by_unit(table, read_units(table, unit_column), arms, rewards, order)


def check_columns(**options: str | None) -> dict[str, str]:
    """Return the columns that are named, by their options; each must be named once."""
    columns: dict[str, str] = {}
    for option, given in options.items():
        if given is not None or option in REQUIRED:
            column = checks.text(option, given)
            if column in columns.values():
                raise InvalidValueError(f"`{option}` must be a column of its own but got {show(column)}.")
            columns[option] = column
    return columns


def _sum_by_unit(
    table: LogTable, units: Sequence[Any], arms: Sequence[str], rewards: Sequence[float], order: Sequence[int]
) -> list[tuple[str, float]]:
    rows: dict[Any, list[int]] = {}
    for row in order:
        seen = rows.setdefault(units[row], [])
        seen.append(row)
        if arms[row] != arms[seen[0]]:
            raise InvalidValueError(
                f"{table.name_row(row)}: unit {show(units[row])} must have one arm but has {show(arms[row])} here and "
                f"{show(arms[seen[0]])} in {table.noun} {table.numbers[seen[0]]}; leave such units out."
            )
    return [(arms[seen[0]], math.fsum(rewards[row] for row in seen)) for seen in rows.values()]
