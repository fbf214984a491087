"""What the questions of a comparison cost."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dbcare.comparing.answer_rows import ComparedAnswer
from dbcare.comparing.questions import QuestionPool


def count_questions(
    answers: Iterable[ComparedAnswer], pool: QuestionPool, stated: dict[str, float]
) -> dict[str, tuple[int, float]]:
    """Return for each arm how many questions it was asked, and their mean price; `stated` where there are none."""
    prices: dict[str, list[float]] = {arm: [] for arm in stated}
    questions = dict.fromkeys(stated, 0)
    for answer in answers:
        prices[answer.arm].append(answer.price)
        questions[answer.arm] += len(pool.blocks[answer.question])
    return {arm: (count, math.fsum(prices[arm]) / count if count else stated[arm]) for arm, count in questions.items()}
