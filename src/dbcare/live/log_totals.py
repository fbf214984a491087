"""Tables of totals, which are no logs: a row is an arm, or an arm on a day, with how many observations it had.

Read as single observations, such a table gives a confident wrong answer, so it is refused. It is recognized by either:

- it has two arms or more, and one row for each;
- it has a column that the caller has not named, is called like a count (`COUNT_NAME`), and holds only whole numbers,
  some above 1. Exempt are row numbers (1, 2, 3 and so on, in the whole log or starting over within an arm) and ids: in
  100 rows or more, no number belongs to two arms, and at most half of the rewards differ from each other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dbcare.errors import InvalidValueError
from dbcare.live.log_cells import parse_number

COUNTED = (
    "customer|exposure|impression|observation|participant|patient|pageview|recipient|sample|session|subject|trial|user|"
    "view|visitor|visit"
)
COUNT_NAME = re.compile(
    rf"n|n_?obs|counts?|sample_size|((n|num|number_of|total|unique)_)*({COUNTED})s|({COUNTED})s?_count"
)
THOUSANDS = re.compile(r"(?<=\d)[,' \u00a0\u202f](?=\d{3}(?!\d))")  # what separates them, such as in 20,000
MIN_ROWS_WITH_IDS = 100
WHAT_TO_DO = (
    "but each row must be one observation. Expand counts: 800 sales among 20,000 visitors are 800 rows with reward 1 "
    "and 19,200 rows with reward 0, in random order. Sums of amounts, such as revenue, cannot be expanded: export one "
    "row per visitor"
)


def is_count_name(column: str) -> bool:
    """Return whether a column is called like a count: "n", "Visitors", "user_count" or "Number of users"."""
    return COUNT_NAME.fullmatch(re.sub(r"[\s_.-]+", "_", column.strip().lower())) is not None


def refuse_totals(
    where: str,
    arms: Sequence[str],
    rewards: Sequence[float],
    cells: Mapping[str, Sequence[Any]],
    named: Collection[str],
) -> None:
    """Refuse a table of totals, by its cells and the columns that the caller has named."""
    if len(arms) > 1 and len(set(arms)) == len(arms):
        raise InvalidValueError(f"{where} has one row per arm, like a table of totals, {WHAT_TO_DO}.")
    for column in (name for name in cells if name not in named and is_count_name(name)):
        numbers = [parse_number(THOUSANDS.sub("", cell) if isinstance(cell, str) else cell) for cell in cells[column]]
        if (
            all(number >= 0.0 and number.is_integer() for number in numbers)
            and max(numbers) > 1.0
            and not _are_row_numbers(numbers, arms)
            and not _are_ids(numbers, arms, rewards)
        ):
            raise InvalidValueError(
                f"{where} looks like a table of totals, as its column {column!r} has counts such as "
                f"{max(numbers):,.0f}, {WHAT_TO_DO}. If each row is one observation already, remove or rename that "
                "column."
            )


def _are_row_numbers(numbers: Sequence[float], arms: Sequence[str]) -> bool:
    """Return whether numbers count rows, in any order; within an arm in order, and they may start over."""
    if sorted(numbers) == [min(numbers) + step for step in range(len(numbers))]:
        return True
    latest: dict[str, float] = {}
    for arm, number in zip(arms, numbers, strict=True):
        if number > 1.0 and number != latest.get(arm, 0.0) + 1.0:
            return False
        latest[arm] = number
    return True


def _are_ids(numbers: Sequence[float], arms: Sequence[str], rewards: Sequence[float]) -> bool:
    """Return whether numbers tell units apart, each of which has one arm.

    Counts that large that no two arms share one are sums over many observations, and so are their rewards, few of which
    are then equal.
    """
    if len(numbers) < MIN_ROWS_WITH_IDS or 2 * len(set(rewards)) > len(rewards):
        return False
    owner: dict[float, str] = {}
    return all(owner.setdefault(number, arm) == arm for number, arm in zip(numbers, arms, strict=True))
