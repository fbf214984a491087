"""What a comparison did not have to spend."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dbcare.comparing.answer_rows import ComparedAnswer
from dbcare.comparing.questions import QuestionPool


def find_mean_prices(
    answers: Iterable[ComparedAnswer], pool: QuestionPool, stated: dict[str, float]
) -> dict[str, float]:
    """Return the mean price of a question for each arm, all its calls included; `stated` where it has no answers."""
    prices: dict[str, list[float]] = {arm: [] for arm in stated}
    questions = dict.fromkeys(stated, 0)
    for answer in answers:
        prices[answer.arm].append(answer.price)
        questions[answer.arm] += len(pool.blocks[answer.question])
    return {arm: math.fsum(prices[arm]) / count if count else stated[arm] for arm, count in questions.items()}
