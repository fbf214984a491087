"""Asks the study for trials, keeps several calls going at once, and tells the outcomes."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from dbcare.base.numbers import Money
from dbcare.comparing.trials import CallFailure, TrialCalls, TrialOutcome
from dbcare.errors import ComparisonError
from dbcare.studies.stored import StoredStudy
from dbcare.studies.trial import AskRequest, Trial

FIRST_FAILURES = 3  # of an arm without a single score: its function is wrong, rather than unlucky
Outcome = tuple[Trial, float | None, float]  # what is told: a trial, its reward or None, and its price
PAUSE_SECONDS = 1.0  # between looks at a paused study


@dataclass
class Runner:
    """Carries out a comparison.

    Parameters
    ----------
    study : StoredStudy
        Who decides what to ask.
    calls : TrialCalls
        Who makes the calls.
    at_once : int
        Trials under way at the same time.
    report : callable
        Called after outcomes were recorded.
    """

    study: StoredStudy
    calls: TrialCalls
    at_once: int
    report: Callable[[], None]
    failures: dict[tuple[str, str | None], CallFailure] = field(default_factory=dict)  # by arm and block
    _running: dict[asyncio.Task[TrialOutcome], tuple[Trial, str]] = field(default_factory=dict)
    _idle: deque[str] = field(default_factory=deque)  # workers without a trial
    _queue: deque[Trial] = field(default_factory=deque)  # trials to start: rewards count in the order asked
    _untold: dict[str, list[Outcome]] = field(default_factory=dict)  # failures of arms that have not scored
    _failed: Counter[str] = field(default_factory=Counter)  # how many there were

    async def run(self) -> None:
        """Work until the study stops, or the next trial would exceed the budget, which then stays pending.

        Trials that an earlier process left pending come first: a comparison is its study's only worker. Failures of an
        arm are told once it has scored, so that after a mistake in its function few questions are lost.
        """
        scored = {row.arm for row in self.study.trials() if row.reward is not None}
        self._untold = {name: [] for name in self.study.settings.arms if name not in scored}
        self._idle.extend(f"call {number + 1}" for number in range(self.at_once))
        self._queue.extend(self._list_pending())
        finished: list[Outcome] = []
        try:
            while True:
                self._queue.extend(self._exchange(finished))
                self._start_affordable()
                if finished:
                    self.report()
                if self._running:
                    finished = await self._wait()
                elif held := [each for outcomes in self._untold.values() for each in outcomes]:
                    finished = held  # the study waits for them
                    self._untold = {name: [] for name in self._untold}
                elif not self._queue and await self._wait_for_resume():
                    finished = []
                else:
                    return
        finally:
            for task in self._running:
                task.cancel()
            self._charge_untold()

    def describe_shortage(self) -> str | None:
        """Return why the budget does not cover the next trial; None if it does, or there is none."""
        meter = self.calls.meter
        if meter.limit is None or not self._queue or self.study.should_stop():
            return None
        spent, price, limit = (
            Money(amount, self.study.settings.currency)
            for amount in (meter.spent, self.calls.expect_price(self._queue[0]), meter.limit)
        )
        return (
            f"{spent} has been spent, and the next trial, of {self._queue[0].arm}, is expected to cost {price}, which "
            f"would exceed max_spend, {limit}"
        )

    def _list_pending(self) -> list[Trial]:
        return [
            Trial(pending.trial, pending.arm, None, block=pending.block)
            for pending in self.study.pending()
            if not pending.told
        ]

    def _start_affordable(self) -> None:
        """Start trials in the order asked, as far as workers are idle and the budget covers what they will cost."""
        while self._idle and self._queue and self.calls.meter.can_afford(self.calls.expect_price(self._queue[0])):
            trial = self._queue.popleft()
            self._running[asyncio.create_task(self.calls.start(trial))] = trial, self._idle.popleft()

    def _exchange(self, finished: list[Outcome]) -> list[Trial]:
        """Record outcomes, and get trials for idle workers, unless some are queued or the budget may be used up."""
        wanted = 0 if self._queue else len(self._idle)
        while wanted > (not self._running) and not self.calls.meter.can_afford(wanted * self.calls.expect_least()):
            wanted -= 1
        requests = [AskRequest(1, None, worker) for worker in islice(self._idle, wanted)]
        return self.study.exchange(finished, requests) if finished or requests else []

    def _charge_untold(self) -> None:
        """Record what the failures cost that were not told, when a comparison breaks off.

        The last one of an arm is told with the price of all: the arm goes without this question, and a corrected
        function gets the others again.
        """
        outcomes = [
            (held[-1][0], None, price)
            for held in self._untold.values()
            if (price := math.fsum(each[2] for each in held)) > 0.0
        ]
        self._untold = {}
        if outcomes:
            self.study.exchange(outcomes, [])

    async def _wait(self) -> list[Outcome]:
        """Wait for trials to finish; return what is to be told about them."""
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        told: list[Outcome] = []
        problem: BaseException | None = None
        for task in done:
            trial, worker = self._running.pop(task)
            self._idle.append(worker)
            if (raised := task.exception()) is not None:
                problem = raised
            else:
                told += self._take(trial, task.result())
        if problem is None:
            problem = self._find_broken_arm()
        if problem is not None:
            self.study.exchange(told, [])
            raise problem
        return told

    def _take(self, trial: Trial, outcome: TrialOutcome) -> list[Outcome]:
        """Return what to tell after a trial: its outcome, unless failures of its arm are held back."""
        if outcome.failure is None:
            return [(trial, outcome.reward, outcome.price), *self._untold.pop(trial.arm, [])]
        self.failures[trial.arm, trial.block] = outcome.failure
        if trial.arm not in self._untold:
            return [(trial, None, outcome.price)]
        self._untold[trial.arm].append((trial, None, outcome.price))
        self._failed[trial.arm] += 1
        return []

    def _find_broken_arm(self) -> ComparisonError | None:
        """Return the error that ends a comparison in which an arm has only failed."""
        for arm in self._untold:
            if (times := self._failed[arm]) >= FIRST_FAILURES:
                failure = next(each for each in reversed(self.failures.values()) if each.arm == arm)
                error = ComparisonError(
                    f"Arm {arm!r} failed on its first {times} questions, the last of them "
                    f"{failure.question!r}, with {type(failure.error).__name__}: {failure.error}; correct it and run "
                    "the comparison again."
                )
                error.__cause__ = failure.error
                return error
        return None

    async def _wait_for_resume(self) -> bool:
        """Wait a while if someone paused the study; return whether that is so."""
        if self.study.status().state != "paused":
            return False
        await asyncio.sleep(PAUSE_SECONDS)
        return True
