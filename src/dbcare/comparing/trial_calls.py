"""The calls of one trial: each question of its block is answered by the arm and scored, as often as it is repeated."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from dbcare.comparing.attempts import Attempts, FailedCallError
from dbcare.comparing.meter import Meter, TrialMeter
from dbcare.comparing.questions import QuestionPool
from dbcare.comparing.rate_limits import RateLimit
from dbcare.comparing.scoring import ScoreCheck
from dbcare.errors import InvalidValueError
from dbcare.studies.trial import Trial


@dataclass(frozen=True)
class TrialOutcome:
    """What a trial came to; `reward` is None if a call of it failed, and `failure` then says which and why."""

    reward: float | None
    price: float
    failure: CallFailure | None = None


@dataclass(frozen=True)
class CallFailure:
    """A question that an arm goes without, as all attempts of a call failed.

    Parameters
    ----------
    arm, question : str
        Whose call it was, and the question's id; after an earlier run with clusters, the cluster.
    error : Exception or None
        What the last attempt raised; None if that was in an earlier run.

    Examples
    --------
    >>> from dbcare import compare
    >>> def tired(question):
    ...     if question == 7:
    ...         raise RuntimeError("no more")
    ...     return question % 2
    >>> arms = {"tired": tired, "fresh": lambda question: question % 3 / 2}
    >>> comparison = compare(arms, range(20), price=0.01, value=1_000_000, retries=0, progress=False)
    >>> [(failure.arm, failure.question, str(failure.error)) for failure in comparison.failures]
    [('tired', '8', 'no more')]
    """

    arm: str
    question: str
    error: Exception | None


@dataclass(frozen=True)
class TrialCalls:
    """Makes the calls of trials.

    Parameters
    ----------
    arms : dict
        The functions that answer.
    score : callable or None
        The function that scores an answer; None if answers are scores.
    prices : dict
        Stated price of a call by arm; None where calls report it.
    judge_price : float
        Stated price of a call of `score`.
    pool, repeats, attempts, check, rate_limits, meter
        What to ask, how often and how, and who counts.
    """

    arms: dict[str, Callable[..., Any]]
    score: Callable[..., Any] | None
    prices: dict[str, float | None]
    judge_price: float
    pool: QuestionPool
    repeats: int
    attempts: Attempts
    check: ScoreCheck
    rate_limits: dict[str, RateLimit]
    meter: Meter

    def expect_price(self, trial: Trial) -> float:
        """Return what a trial is expected to cost."""
        return self.meter.expect(trial.arm) * self._count_calls(trial)

    def expect_least(self) -> float:
        """Return what the cheapest trial is expected to cost."""
        return min(map(self.meter.expect, self.arms)) * min(map(len, self.pool.blocks.values())) * self.repeats

    def _count_calls(self, trial: Trial) -> int:
        return len(self._list_questions(trial)) * self.repeats

    def _list_questions(self, trial: Trial) -> tuple[str, ...]:
        assert trial.block is not None  # the study has blocks
        return self.pool.blocks[trial.block]

    def start(self, trial: Trial) -> Coroutine[Any, Any, TrialOutcome]:
        """Reserve what a trial is expected to cost, and return the coroutine that makes its calls."""
        return self._run(trial, self.meter.begin(trial.arm, self._count_calls(trial)))

    async def _run(self, trial: Trial, metered: TrialMeter) -> TrialOutcome:
        """Make the calls of a trial, one after another; the first that fails ends it."""
        scores = []
        try:
            for name in self._list_questions(trial):
                for _ in range(self.repeats):
                    try:
                        scores.append(await self._answer(trial.arm, name, metered))
                    except FailedCallError as failed:
                        return TrialOutcome(None, metered.spent, CallFailure(trial.arm, name, failed.error))
                    except InvalidValueError as refused:
                        raise InvalidValueError(f"Arm {trial.arm!r}, question {name!r}: {refused}.") from refused
                    metered.note_answer()
        finally:
            self.meter.end(metered, trial.arm)
        return TrialOutcome(math.fsum(scores) / self.repeats * self.pool.weight, metered.spent)

    async def _answer(self, arm: str, name: str, metered: TrialMeter) -> float:
        question = self.pool.questions[name]
        answer = await self.attempts.make(
            self.arms[arm],
            question,
            price=self.prices[arm],
            read=self.check.read_score if self.score is None else lambda value: value,
            meter=self.meter,
            trial=metered,
            rate_limit=self.rate_limits.get(arm),
        )
        if self.score is None:
            return float(answer)
        score: float = await self.attempts.make(
            self.score,
            question,
            answer,
            price=self.judge_price,
            read=self.check.read_score,
            meter=self.meter,
            trial=metered,
        )
        return score
