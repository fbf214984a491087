"""Runs the trials of a study: each worker asks for a trial, calls a function, and tells the outcome."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbcare.base.times import Lease
from dbcare.errors import InvalidValueError, StudyError, TrialsFailedError
from dbcare.studies.stores.group_commit import deferred_interrupt
from dbcare.studies.trial import MAX_REASON_LENGTH, Priced, Trial

if TYPE_CHECKING:
    from dbcare.studies.study import Study

FIRST_WAIT, LONGEST_WAIT = 0.02, 1.0  # seconds between asks while no trial is available
SECONDS_BETWEEN_LOOKS = 0.1  # of the thread that shows progress
SECONDS_TO_FINISH = 30.0  # for asks and tells under way when a run breaks off
GIVEN_BACK = "given back: the run was interrupted"


@dataclass(frozen=True)
class Measurement:
    """What a call of the function came to: a reward, or why there is none; and its price, if that is reported."""

    reward: float | None
    price: float | None = None
    failure: Exception | None = None

    @property
    def reason(self) -> str | None:
        """Why there is no reward, in one line."""
        if self.failure is None:
            return None
        kind = "" if isinstance(self.failure, UnmeasuredError) else f"{type(self.failure).__name__}: "
        return shorten_reason(f"{kind}{self.failure}") or type(self.failure).__name__


class UnmeasuredError(Exception):
    """Raised by a function whose message alone says why there is no reward."""


def shorten_reason(text: str) -> str:
    """Return a text in one printable line that can be stored as a reason."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= MAX_REASON_LENGTH else f"{line[: MAX_REASON_LENGTH - 3]}..."


class TrialRunner:
    """Carries out a study with workers in threads of their own.

    Parameters
    ----------
    study : Study
        Who decides what to measure.
    function : callable
        Measures a trial: takes it, and returns its reward, or a `Priced` reward.
    workers : int
        Calls under way at the same time.
    lease : Lease
        How long a trial may take.
    max_failures : int
        How often in a row an arm may fail.
    """

    def __init__(
        self, study: Study, function: Callable[[Trial], Any], workers: int, lease: Lease, max_failures: int
    ) -> None:
        self._study = study
        self._function = function
        self._lease = lease
        self._max_failures = max_failures
        self._changed = threading.Condition()  # guards all that follows; notified when a trial is told
        self._is_ending = False
        self._exchanging = 0  # asks and tells under way
        self._held: dict[int, Trial] = {}  # trials that functions are working on
        self._failed: Counter[str] = Counter()  # failures in a row by arm
        self._sentences: list[str] = []  # about failures, to be shown
        self._problem: BaseException | None = None
        place = f"{socket.gethostname()}:{os.getpid()}"
        self._threads = [
            threading.Thread(target=self._work, args=(f"{place}/{number}",), name=f"dbcare-run-{number}", daemon=True)
            for number in range(1, workers + 1)
        ]

    def run(self, show: Callable[[list[str]], None]) -> None:
        """Work until the study stops; `show` is called now and then, with sentences about trials that failed.

        If that is interrupted, or fails, trials that have no outcome yet are given back: told as failed, at no cost.
        """
        try:
            for thread in self._threads:
                thread.start()
            while any(thread.is_alive() for thread in self._threads) and self._problem is None:
                with self._changed:
                    self._changed.wait(SECONDS_BETWEEN_LOOKS)
                show(self._take_sentences())
            if self._problem is not None:
                raise self._problem
        except BaseException:
            with deferred_interrupt():
                self._give_back()
            raise
        finally:
            show(self._take_sentences())

    def _take_sentences(self) -> list[str]:
        with self._changed:
            sentences, self._sentences = self._sentences, []
        return sentences

    def _give_back(self) -> None:
        """Tell all trials that have no outcome as failed, at no cost, so that the study does not wait for them."""
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._exchanging, SECONDS_TO_FINISH)
            held, self._held = self._held, {}
        for trial in held.values():
            with contextlib.suppress(StudyError):  # their leases expire
                self._study.tell(trial, failed=True, charged=False, reason=GIVEN_BACK)

    def _work(self, worker: str) -> None:
        """Ask, measure and tell until the study stops."""
        try:
            while (trial := self._wait_for_trial(worker)) is not None:
                self._tell(trial, self._measure(trial))
        except BaseException as problem:  # raised again by `run`
            with self._changed:
                self._problem = self._problem or problem
                self._is_ending = True
                self._changed.notify_all()

    def _wait_for_trial(self, worker: str) -> Trial | None:
        """Return a trial, as soon as there is one; None if the study has stopped, or the run is ending."""
        wait = FIRST_WAIT
        while True:
            with self._exchange():
                if self._is_ending:
                    return None
                trial = self._study.ask(lease=self._lease, worker=worker)
                if trial is not None:
                    self._held[trial.id] = trial
                    return trial
                if self._study.should_stop():
                    return None
            with self._changed:
                if not self._is_ending:
                    self._changed.wait(wait)
            wait = min(2.0 * wait, LONGEST_WAIT)

    @contextlib.contextmanager
    def _exchange(self) -> Iterator[None]:
        """Have a run that breaks off wait for what is done in the block."""
        with self._changed:
            self._exchanging += 1
        try:
            yield
        finally:
            with self._changed:
                self._exchanging -= 1
                self._changed.notify_all()

    def _measure(self, trial: Trial) -> Measurement:
        try:
            value = self._function(trial)
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
            price = None
            if isinstance(value, Priced):
                value, price = value.value, self._study.settings.check_price(value.price)
            return Measurement(self._study.settings.check_reward("reward", value), price)
        except InvalidValueError as refused:
            return Measurement(None, failure=UnmeasuredError(str(refused)))
        except Exception as failure:
            return Measurement(None, failure=failure)

    def _tell(self, trial: Trial, measured: Measurement) -> None:
        """Record what a trial came to, unless it was given back meanwhile."""
        with self._exchange():
            with self._changed:
                if self._held.pop(trial.id, None) is None:
                    return
            if measured.failure is None:
                self._study.tell(trial, measured.reward, price=measured.price)
                self._failed.pop(trial.arm, None)
                return
            reason = measured.reason
            self._study.tell(trial, failed=True, price=measured.price, reason=reason)
        with self._changed:
            self._sentences.append(f"Trial {trial.id}, of {trial.arm}, failed: {reason}")
            self._failed[trial.arm] += 1
            failures = self._failed[trial.arm]
        if failures >= self._max_failures:
            raise TrialsFailedError(
                f"Arm {trial.arm!r} failed {failures} times in a row, the last time with {reason!r}; "
                "correct that and run the study again."
            ) from measured.failure
