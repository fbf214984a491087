"""Asks the study for trials, keeps several calls going at once, and tells the outcomes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from dbcare.compare.trial_calls import CallFailure, TrialCalls, TrialOutcome
from dbcare.errors import ComparisonError
from dbcare.live.study import Study
from dbcare.live.trial import Trial

FIRST_FAILURES = 3  # of an arm without a single score: its function is wrong, rather than unlucky
PAUSE_SECONDS = 1.0  # between looks at a paused study


@dataclass
class Runner:
    """Carries out a comparison.

    Parameters
    ----------
    study : Study
        Who decides what to ask.
    calls : TrialCalls
        Who makes the calls.
    at_once : int
        Trials under way at the same time.
    report : callable
        Called after each outcome.
    """

    study: Study
    calls: TrialCalls
    at_once: int
    report: Callable[[], None]
    failures: list[CallFailure] = field(default_factory=list)
    _running: dict[asyncio.Task[TrialOutcome], tuple[Trial, str]] = field(default_factory=dict)
    _untold: dict[str, list[tuple[Trial, TrialOutcome]]] = field(default_factory=dict)  # by arm, until it scores

    async def run(self) -> None:
        """Work until the study stops.

        Trials that an earlier process left pending come first: a comparison is its study's only worker. Failures of an
        arm are told once it has scored, so that after a mistake in its function nothing is lost.
        """
        left = deque(self._list_pending())
        scored = {row.arm for row in self.study.trials() if row.reward is not None}
        self._untold = {name: [] for name in self.study.settings.arms if name not in scored}
        workers = deque(f"call {number + 1}" for number in range(self.at_once))
        try:
            while True:
                while workers and (trial := left.popleft() if left else self._ask(workers[0])) is not None:
                    task = asyncio.create_task(self.calls.run(trial))
                    self._running[task] = trial, workers.popleft()
                if self._running:
                    done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        trial, worker = self._running.pop(task)
                        workers.append(worker)
                        self._take(trial, task.result())
                    self.report()
                elif not self._tell_failures(*self._untold) and not await self._wait_for_resume():
                    return
        finally:
            for task in self._running:
                task.cancel()

    def _list_pending(self) -> list[Trial]:
        return [
            Trial(pending.trial, pending.arm, None, block=pending.block)
            for pending in self.study.pending()
            if not pending.told
        ]

    def _ask(self, worker: str) -> Trial | None:
        """Return the next trial, unless the calls under way may use up the budget."""
        if self._running:
            cheapest = min(map(self.calls.meter.expect, self.study.settings.arms))
            if not self.calls.meter.can_afford(cheapest):
                return None
        return self.study.ask(lease=None, worker=worker)

    def _take(self, trial: Trial, outcome: TrialOutcome) -> None:
        untold = self._untold.get(trial.arm)
        if outcome.failure is None:
            self.study.tell(trial, outcome.reward, price=outcome.price)
            self._tell_failures(trial.arm)
            self._untold.pop(trial.arm, None)
            return
        self.failures.append(outcome.failure)
        if untold is None:
            self.study.tell(trial, failed=True, price=outcome.price)
            return
        untold.append((trial, outcome))
        if len(untold) == FIRST_FAILURES:
            failure = outcome.failure
            raise ComparisonError(
                f"Arm {trial.arm!r} failed on its first {FIRST_FAILURES} questions, the last of them "
                f"{failure.question!r}, with {type(failure.error).__name__}: {failure.error}; correct it and run the "
                "comparison again."
            ) from failure.error

    def _tell_failures(self, *arms: str) -> bool:
        """Tell failures that were held back; return whether there were any."""
        held = [each for arm in arms for each in self._untold.get(arm, ())]
        for trial, outcome in held:
            self.study.tell(trial, failed=True, price=outcome.price)
        self._untold.update({arm: [] for arm in arms if arm in self._untold})
        return bool(held)

    async def _wait_for_resume(self) -> bool:
        """Wait a while if someone paused the study; return whether that is so."""
        if self.study.status().state != "paused":
            return False
        await asyncio.sleep(PAUSE_SECONDS)
        return True
