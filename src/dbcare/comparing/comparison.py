"""The result of a comparison."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from dbcare.comparing.answer_rows import ComparedAnswer, list_answers
from dbcare.comparing.question_counts import count_questions
from dbcare.comparing.questions import QuestionPool
from dbcare.comparing.report import make_page
from dbcare.comparing.table import ComparedArm, format_lines
from dbcare.comparing.trial_calls import CallFailure
from dbcare.errors import InvalidValueError
from dbcare.live.recommendation import Recommendation
from dbcare.live.status import Status
from dbcare.live.study import Study
from dbcare.money import Money
from dbcare.validation import show

COLUMNS = tuple(ComparedAnswer.__dataclass_fields__)


class Comparison:
    """What `compare` found out; print it for the recommendation and a table of the arms.

    Attributes
    ----------
    study : Study
        The study that decided, with all its reports.
    failures : tuple of CallFailure
        Calls of this run whose attempts all failed.

    Examples
    --------
    >>> from dbcare import compare
    >>> arms = {"short": lambda question: 0.5 + 0.1 * question % 0.3, "long": lambda question: 0.9}
    >>> comparison = compare(arms, range(100), price=0.01, value=1_000, progress=False)
    >>> comparison.recommendation.arm
    'long'
    >>> comparison.spent < comparison.full_cost
    True
    """

    def __init__(self, study: Study, pool: QuestionPool, prices: dict[str, float], failures: list[CallFailure]) -> None:
        self.study = study
        self.failures = tuple(failures)
        self._pool = pool
        self._prices = prices

    @cached_property
    def recommendation(self) -> Recommendation:
        """The arm to choose, how sure that is, and why no more was asked."""
        return self.study.recommendation()

    @cached_property
    def _status(self) -> Status:
        return self.study.status()

    def answers(self) -> Iterator[ComparedAnswer]:
        """Iterate over the answers in the order asked: question, arm, score and price."""
        return list_answers(self.study, self._pool)

    @cached_property
    def _asked(self) -> dict[str, tuple[int, float]]:
        return count_questions(self.answers(), self._pool, self._prices)

    @property
    def spent(self) -> float:
        """What all calls cost, in money."""
        return self.recommendation.spent

    @property
    def full_cost(self) -> float:
        """What asking every arm every question would have cost, by the mean price of each arm's questions."""
        return sum(price for _, price in self._asked.values()) * len(self._pool.questions)

    @property
    def saved(self) -> float:
        """What was saved by not asking everything."""
        return self.full_cost - self.spent

    @property
    def questions_used(self) -> int:
        """Questions that were put to at least one arm."""
        return sum(len(self._pool.blocks[block]) for block in {answer.question for answer in self.answers()})

    @property
    def arms(self) -> list[ComparedArm]:
        """The arms, each with what its answers say, and the mean price of a question."""
        return [ComparedArm(arm, *self._asked[arm.name]) for arm in self._status.arms]

    def to_dataframe(self) -> Any:
        """Return the answers as a data frame of pandas or polars, whichever is installed."""
        rows = list(self.answers())
        columns = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
        for library in ("pandas", "polars"):
            try:
                return import_module(library).DataFrame(columns)
            except ModuleNotFoundError:
                continue
        raise InvalidValueError("Data frames require pandas or polars; install either one.")

    def sentences(self) -> list[str]:
        """Return the result in words, the recommendation first."""
        choice = self.recommendation
        total, used = len(self._pool.questions), self.questions_used
        lost = f" {len(self.failures):,} calls failed for good." if self.failures else ""
        end = "" if choice.final else f" The comparison is not finished: {choice.reason}."
        return [
            *choice.sentences,
            f"{used:,} of {total:,} questions were asked, for {self.format_money(self.spent)}; asking every arm "
            f"everything would have cost {self.format_money(self.full_cost)}.{lost}{end}",
        ]

    def format_money(self, amount: float) -> Money:
        """Return an amount as people read it."""
        return Money(amount, self.study.settings.currency)

    def __str__(self) -> str:
        return "\n".join([*self.sentences(), "", *format_lines(self.arms, self.study.settings.currency)])

    def report(self, path: str | Path) -> Path:
        """Write a report as one HTML file, which loads no third-party resources, and return its path."""
        if not isinstance(path, str | os.PathLike):
            raise InvalidValueError(f"`path` must be the path of a file but got {show(path)}.")
        path = Path(path)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            draft.write_text(make_page(self), encoding="utf-8")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        return path
