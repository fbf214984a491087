"""The calls of one trial: each answered with retries, scored, and paid for."""

from __future__ import annotations

import asyncio
import math
import numbers
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.comparing.calls import RateLimit, call
from dbcare.comparing.questions import QuestionPool
from dbcare.errors import InvalidValueError
from dbcare.studies.trial import Priced, Trial

ROUNDING = 1.0 + 1e-9  # sums of prices may exceed the budget by this much


@dataclass(eq=False)
class TrialMeter:
    """What one trial under way is expected to cost, what it has cost so far, and what its answers have cost."""

    expected: float
    spent: float = 0.0
    answered: int = 0
    answered_price: float = 0.0

    def note_answer(self) -> None:
        """Note that a question has been answered and scored; the first that is not ends the trial."""
        self.answered += 1
        self.answered_price = self.spent


@dataclass
class Meter:
    """Adds up all calls, also those that fail.

    Parameters
    ----------
    prices : dict
        Stated price of a call by arm, the judge's included.
    limit : float or None
        Budget, in money.
    spent : float
        What was spent before, by a run that this one continues.
    """

    prices: dict[str, float]
    limit: float | None
    spent: float = 0.0
    _open: list[TrialMeter] = field(default_factory=list)
    _totals: dict[str, tuple[float, int]] = field(default_factory=dict)

    def expect(self, arm: str) -> float:
        """Return the mean price of an arm's answered and scored questions; the stated price before there are any."""
        total, questions = self._totals.get(arm, (0.0, 0))
        return total / questions if questions else self.prices[arm]

    def begin(self, arm: str, questions: int) -> TrialMeter:
        """Reserve what a trial is expected to cost."""
        trial = TrialMeter(self.expect(arm) * questions)
        self._open.append(trial)
        return trial

    def add(self, trial: TrialMeter, price: float) -> None:
        """Add the price of a call."""
        trial.spent += price
        self.spent += price

    def end(self, trial: TrialMeter, arm: str) -> None:
        """Release what was reserved."""
        self._open.remove(trial)
        total, before = self._totals.get(arm, (0.0, 0))
        self._totals[arm] = total + trial.answered_price, before + trial.answered

    def reserve_retry(self, trial: TrialMeter, price: float) -> bool:
        """Reserve the price of another attempt; return whether the budget allows it."""
        if not self.can_afford(price):
            return False
        trial.expected += price
        return True

    def can_afford(self, price: float) -> bool:
        """Return whether another call stays within the budget, if all trials under way cost what is expected."""
        if self.limit is None:
            return True
        reserved = sum(max(0.0, trial.expected - trial.spent) for trial in self._open)
        return self.spent + reserved + price <= self.limit * ROUNDING


class MissingScoreError(ValueError):
    """A score is NaN or infinite: the call counts as failed."""


@dataclass(frozen=True)
class ScoreCheck:
    """Which scores are accepted.

    Parameters
    ----------
    bounds : tuple of float or None
        The range that was stated.
    binary : bool
        Whether scores are 0 or 1.
    """

    bounds: tuple[float, float] | None
    binary: bool

    def read_score(self, value: Any) -> float:
        """Return a score as a number; raise MissingScoreError if it is not finite, and InvalidValueError if invalid."""
        if isinstance(value, bool | np.bool_):
            return float(value)
        if not isinstance(value, numbers.Real):
            raise InvalidValueError(f"a score must be a number but got {show(value)}")
        try:
            finite = math.isfinite(value)
        except OverflowError:  # an integer beyond floating point
            finite = False
        if not finite:
            raise MissingScoreError(f"a score must be finite but got {show(value)}")
        score = checks.real("score", value)
        if self.binary and score not in (0.0, 1.0):
            raise InvalidValueError(f"a score must be 0 or 1 but got {score:g}")
        if self.bounds is not None and not self.bounds[0] <= score <= self.bounds[1]:
            low, high = self.bounds
            raise InvalidValueError(f"a score must lie within the bounds {low:g} and {high:g} but got {score:g}")
        return score


def split_price(returned: Any) -> tuple[Any, float | None]:
    """Return a call's value, and the price that it reports, if it does."""
    if isinstance(returned, Priced):
        return returned.value, check_price(returned.price)
    return returned, None


def check_price(price: Any) -> float:
    """Return a price that a call reports; raise InvalidValueError if it is not one."""
    try:
        return checks.non_negative("price", price)
    except InvalidValueError as refused:
        raise InvalidValueError(f"a reported {str(refused).removesuffix('.').replace('`', '')}") from None


class FailedCallError(Exception):
    """The last attempt of a call failed, with `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True)
class Attempts:
    """How calls are made: how often they are tried, and how long each may take.

    Parameters
    ----------
    retries : int
        Attempts after the first one.
    delay : float
        Seconds before the first retry; they double for each further one.
    timeout : float or None
        Seconds that an attempt may take.
    """

    retries: int
    delay: float
    timeout: float | None

    async def make(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        price: float | None,
        read: Callable[[Any], Any],
        meter: Meter,
        trial: TrialMeter,
        rate_limit: RateLimit | None = None,
    ) -> Any:
        """Return what `read` makes of the value that a function returns; raise FailedCallError if all attempts fail.

        An attempt costs what it reports, or else `price`. What is wrong for every question, such as a negative price,
        raises InvalidValueError at once.
        """
        for attempt in range(self.retries + 1):
            if rate_limit is not None:
                await rate_limit.wait()
            try:
                returned = await call(function, *arguments, timeout=self.timeout)
            except Exception as failure:
                problem: Exception = self._describe_timeout(failure)
                reported = getattr(failure, "price", None)
                cost = (price or 0.0) if reported is None else check_price(reported)
            else:
                value, reported = split_price(returned)
                if price is None and reported is None:
                    raise InvalidValueError(
                        "the call reports no price; return dbcare.Priced(value, price), or pass `price`"
                    )
                cost = (price or 0.0) if reported is None else reported
                try:
                    result = read(value)
                except MissingScoreError as missing:
                    problem = missing
                else:
                    meter.add(trial, cost)
                    return result
            meter.add(trial, cost)
            if attempt == self.retries or not meter.reserve_retry(trial, cost):
                break
            await asyncio.sleep(self.delay * 2.0**attempt)
        raise FailedCallError(problem)

    def _describe_timeout(self, failure: Exception) -> Exception:
        if isinstance(failure, TimeoutError) and not str(failure) and self.timeout is not None:
            return TimeoutError(f"no answer within {self.timeout:g} s")
        return failure


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
