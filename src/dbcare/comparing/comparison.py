"""What a comparison found: its study, the choice, and how many questions and what money they took."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dbcare.base.files import check_path, replacing
from dbcare.base.frames import find_types, make_frame
from dbcare.base.numbers import Money
from dbcare.comparing.questions import QuestionPool
from dbcare.comparing.report import ComparedAnswer, ComparedArm, format_lines, list_answers, make_page
from dbcare.comparing.trials import CallFailure
from dbcare.studies.record.events import EventKind
from dbcare.studies.results.status import Recommendation, Status
from dbcare.studies.study import Study


@dataclass
class QuestionCounts:
    """How many questions an arm has answered, how many it was asked in vain, and the mean price of all of them."""

    price: float
    answered: int = 0
    failed: int = 0


def count_questions(
    answers: Iterable[ComparedAnswer], pool: QuestionPool, stated: dict[str, float]
) -> dict[str, QuestionCounts]:
    """Return the counts of each arm; the price is as `stated` where an arm was asked nothing."""
    prices: dict[str, list[float]] = {arm: [] for arm in stated}
    counts = {arm: QuestionCounts(price) for arm, price in stated.items()}
    for answer in answers:
        prices[answer.arm].append(answer.price)
        size = len(pool.blocks[answer.question])
        if answer.score is None:
            counts[answer.arm].failed += size
        else:
            counts[answer.arm].answered += size
    for arm, count in counts.items():
        if prices[arm]:
            count.price = math.fsum(prices[arm]) / (count.answered + count.failed)
    return counts


class Comparison:
    """What `compare` found out; print it for the recommendation and a table of the arms.

    Attributes
    ----------
    study : Study
        The study that decided, with all its reports.
    failures : tuple of CallFailure
        Questions that an arm goes without, as all attempts failed.
    reason : str
        Why no more was asked.

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

    def __init__(
        self,
        study: Study,
        pool: QuestionPool,
        prices: dict[str, float],
        failures: dict[tuple[str, str | None], CallFailure],
        shortage: str | None,
    ) -> None:
        self.study = study
        self.failures = tuple(
            failures.get((row.arm, row.block)) or CallFailure(row.arm, str(row.block), None)
            for row in study.trials()
            if row.status == EventKind.FAILED
        )
        self._pool = pool
        self._prices = prices
        self._shortage = shortage

    @property
    def reason(self) -> str:
        return self._shortage or self.recommendation.reason

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

    def _list_answered(self) -> dict[str, list[str]]:
        """Return the questions that each arm has answered."""
        answered: dict[str, list[str]] = {arm: [] for arm in self._prices}
        for answer in self.answers():
            if answer.score is not None:
                answered[answer.arm].append(answer.question)
        return answered

    @cached_property
    def _asked(self) -> dict[str, QuestionCounts]:
        return count_questions(self.answers(), self._pool, self._prices)

    @property
    def spent(self) -> float:
        """What all calls cost, in money."""
        return self.recommendation.spent

    @property
    def full_cost(self) -> float:
        """What asking every arm every question would have cost, by the mean price of each arm's questions."""
        return sum(asked.price for asked in self._asked.values()) * len(self._pool.questions)

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
        return [
            ComparedArm(arm, asked.answered + asked.failed, asked.price, asked.failed)
            for arm in self._status.arms
            for asked in [self._asked[arm.name]]
        ]

    def to_dataframe(self, library: str | None = None) -> Any:
        """Return the answers as a data frame of pandas, polars or pyarrow. Default: the first that is installed."""
        rows = list(self.answers())
        types = find_types(ComparedAnswer)
        return make_frame({name: [getattr(row, name) for row in rows] for name in types}, types, library)

    def sentences(self) -> list[str]:
        """Return the result in words, the recommendation first."""
        choice = self.recommendation
        total, used, late = len(self._pool.questions), self.questions_used, self._status.late_cost
        under_way = f", of which {self.format_money(late)} on calls that were under way at the stop" if late else ""
        asked = (
            f"{used:,} of {total:,} questions were asked, for {self.format_money(self.spent)}{under_way}; asking every "
            f"arm everything would have cost {self.format_money(self.full_cost)}."
        )
        unanswered = [
            f"{arm.status.name} has no answer to {arm.failed:,} question{'s' if arm.failed > 1 else ''}."
            for arm in self.arms
            if arm.failed
        ]
        if len({frozenset(questions) for questions in self._list_answered().values()}) > 1:
            unanswered.append("Arms have answered different questions: compare their estimates, not their mean scores.")
        end = [] if choice.final else [f"The comparison is not finished: {self.reason}."]
        return [*choice.sentences, " ".join([asked, *unanswered, *end])]

    def format_money(self, amount: float) -> Money:
        """Return an amount as people read it."""
        return Money(amount, self.study.settings.currency)

    def __str__(self) -> str:
        return "\n".join([*self.sentences(), "", *format_lines(self.arms, self.study.settings.currency)])

    def report(self, path: str | Path) -> Path:
        """Write a report as one HTML file, which loads no third-party resources, and return its path."""
        path = check_path(path)
        with replacing(path) as draft:
            draft.write_text(make_page(self), encoding="utf-8")
        return path
