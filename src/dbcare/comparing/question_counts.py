"""How many questions the arms of a comparison have answered, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dbcare.comparing.answer_rows import ComparedAnswer
from dbcare.comparing.questions import QuestionPool


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
