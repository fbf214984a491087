"""What a comparison did not have to spend."""

from __future__ import annotations

from collections.abc import Iterable

from dbcare.compare.answer_rows import ComparedAnswer
from dbcare.compare.questions import QuestionPool


def find_mean_prices(
    answers: Iterable[ComparedAnswer], pool: QuestionPool, stated: dict[str, float]
) -> dict[str, float]:
    """Return the mean price of a question for each arm, all its calls included; `stated` where it has no answers."""
    totals = dict.fromkeys(stated, (0.0, 0))
    for answer in answers:
        total, questions = totals[answer.arm]
        totals[answer.arm] = total + answer.price, questions + len(pool.blocks[answer.question])
    return {arm: total / questions if questions else stated[arm] for arm, (total, questions) in totals.items()}
