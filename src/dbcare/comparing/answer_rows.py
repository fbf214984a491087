"""Who scored what on which question, and at which price, from the trials of the study."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbcare.comparing.questions import QuestionPool
from dbcare.studies.record.events import EventKind
from dbcare.studies.study import Study


@dataclass(frozen=True)
class ComparedAnswer:
    """An arm on a question, or on a cluster of them.

    Parameters
    ----------
    question : str
        The question's id, or the cluster.
    arm : str
        The arm.
    score : float or None
        Its score, or the mean over repeats and over the questions of a cluster; None if a call failed.
    price : float
        What all calls for it cost, the judge's and failed ones included.

    Examples
    --------
    >>> from dbcare import compare
    >>> arms = {"short": lambda question: 0.5, "long": lambda question: 0.75}
    >>> comparison = compare(arms, range(20), price=0.01, value=100, progress=False, at_once=1)
    >>> answer = next(iter(comparison.answers()))
    >>> answer.arm, answer.score, answer.price
    ('short', 0.5, 0.01)
    """

    question: str
    arm: str
    score: float | None
    price: float


def list_answers(study: Study, pool: QuestionPool) -> Iterator[ComparedAnswer]:
    """Yield the trials that have an outcome, in the order asked."""
    value = study.settings.value or 1.0
    stated = dict(zip(study.settings.arms, study.settings.costs, strict=True))
    for row in study.trials():
        if row.block is None or row.status == EventKind.ASKED:
            continue
        size = len(pool.blocks[row.block]) * pool.weight
        yield ComparedAnswer(
            question=row.block,
            arm=row.arm,
            score=None if row.reward is None else row.reward / size,
            price=stated[row.arm] * value if row.price is None else row.price,
        )
