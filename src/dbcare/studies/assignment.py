"""`Study.assign`: which arm to show a unit, whatever the state of the study, and in time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from dbcare.errors import AnswerLostError, DbcareError, InvalidValueError, StorageError
from dbcare.studies.record.ask_and_tell import AskOutcome, hand_out
from dbcare.studies.record.forks import renew_after_fork
from dbcare.studies.record.sync import Transaction
from dbcare.studies.trial import AskRequest, Trial

LOG = logging.getLogger("dbcare")
MAX_REQUESTS = 64  # under way at a time
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 10.0  # between attempts to give back a trial
ARRIVAL_SECONDS = 1.0


class AssignmentReason(StrEnum):
    """Why a unit is shown its arm.

    Examples
    --------
    >>> from dbcare.studies.assignment import AssignmentReason
    >>> str(AssignmentReason.WINNER)
    'winner'
    """

    OWN_TRIAL = "own trial"  # the unit has a trial
    NEW_TRIAL = "new trial"  # it has one from now on
    WINNER = "winner"  # the study has stopped, and recommends this arm
    FALLBACK = "fallback"  # the study has no trial for it, or did not answer in time
    CONTROL = "control"  # the study has no trial for it, and there is no fallback


@dataclass(frozen=True)
class Assignment:
    """The arm to show a unit, as `Study.assign` returns it.

    Parameters
    ----------
    arm : str
        The arm.
    reason : str
        "own trial", "new trial", "winner", "fallback" or "control".
    trial : Trial or None
        The unit's trial; None if it is not in the study.
    problem : str or None
        Why the study could not be asked; None if it answered.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("assignment example", arms=["old", "new"], cost=0.01, sigma=1.0)
    >>> study.assign("visitor-7", fallback="old").reason
    'new trial'
    >>> study.tell(unit="visitor-7", reward=0.7)
    True
    """

    arm: str
    reason: str
    trial: Trial | None = None
    problem: str | None = None


def find_assignment(
    transaction: Transaction, request: AskRequest, fallback: str | None, now: float
) -> tuple[Assignment, AskOutcome]:
    """Return the arm for a unit, after handing out a trial if there is one for it, and what that brought."""
    outcome = hand_out(transaction, request, now)
    return _assign_arm(transaction, request, fallback, outcome), outcome


def _assign_arm(transaction: Transaction, request: AskRequest, fallback: str | None, outcome: AskOutcome) -> Assignment:
    ledger, settings = transaction.ledger, transaction.ledger.settings
    if outcome.trials:
        (trial,) = outcome.trials
        reason = AssignmentReason.NEW_TRIAL if outcome.new else AssignmentReason.OWN_TRIAL
        return Assignment(trial.arm, str(reason), trial)
    if outcome.stopped and ledger.recommended is not None:
        return Assignment(settings.arms[ledger.recommended], str(AssignmentReason.WINNER))
    if fallback is not None:
        return Assignment(fallback, str(AssignmentReason.FALLBACK))
    if settings.control is not None:
        return Assignment(settings.control, str(AssignmentReason.CONTROL))
    raise InvalidValueError(
        f"There is no arm for unit {request.unit!r}: the study has {_describe_lack(transaction)}, and it has no "
        "`control`; pass `fallback`."
    )


def _describe_lack(transaction: Transaction) -> str:
    state = transaction.ledger.state
    return f"{state} without data" if state == "stopped" else "no trial for it now"


class TimelyAssignments:
    """Assigns arms in time: each request has a thread of its own, which goes on if nobody waits for it any longer.

    A unit that was shown the fallback must not have a trial. If one was granted too late, or if nobody knows because
    the answer was lost, the thread gives it back as soon as the study answers; its tag tells it from one that the unit
    had before. Until then, the unit is shown the fallback again.
    """

    def __init__(
        self, assign: Callable[[AskRequest, str, float], Assignment], give_back: Callable[[str, str], bool]
    ) -> None:
        self._assign, self._give_back = assign, give_back
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Start again in a child process, which has no threads under way."""
        self._free = threading.BoundedSemaphore(MAX_REQUESTS)
        self._lock = threading.Lock()
        self._unsettled: set[str] = set()  # units that may have a trial whose arm they were not shown

    def assign(self, asked: AskRequest, fallback: str, within: float) -> Assignment:
        """Return the arm for the unit that is asked for, or the fallback after `within` seconds."""
        until, free, request = time.monotonic() + within, self._free, _Request(asked)
        with self._lock:
            if request.unit in self._unsettled:
                return _fall_back(fallback, "an earlier request for this unit has had no answer")
        if not free.acquire(timeout=within):
            return _fall_back(fallback, f"{MAX_REQUESTS} requests have had no answer")
        try:
            threading.Thread(target=self._carry_out, args=(request, fallback, within, free), daemon=True).start()
        except RuntimeError as failure:  # no thread can be started
            free.release()
            return _fall_back(fallback, str(failure))
        if not request.done.wait(max(0.0, until - time.monotonic())):
            with self._lock:
                if not request.done.is_set():
                    request.is_late = True
                    self._unsettled.add(request.unit)
                    return _fall_back(fallback, f"no answer within {within:g} seconds")
        if isinstance(request.error, StorageError):
            return _fall_back(fallback, str(request.error))
        return request.outcome()

    def _carry_out(self, request: _Request, fallback: str, within: float, free: threading.BoundedSemaphore) -> None:
        try:
            try:
                request.found = self._assign(request.asked, fallback, within)
            except BaseException as error:  # raised where the outcome is awaited
                request.error = error
            with self._lock:
                if request.is_lost:
                    self._unsettled.add(request.unit)
                elif not request.is_late and request.found is not None and request.found.trial is not None:
                    self._unsettled.discard(request.unit)  # it is shown the arm of its trial, whoever asked for that
                request.done.set()
            if request.is_lost or (request.is_late and request.found is not None):
                self._settle(request)
            if request.is_lost:  # if it was still on its way, it has arrived by now
                time.sleep(ARRIVAL_SECONDS)
                self._settle(request)
        finally:
            with self._lock:
                if request.is_lost or request.is_late:
                    self._unsettled.discard(request.unit)
            free.release()

    def _settle(self, request: _Request) -> None:
        """Give back the trial of a request as soon as the study answers, unless the unit was shown its arm since."""
        pause = MIN_PAUSE_SECONDS
        while request.unit in self._unsettled:
            try:
                self._give_back(request.unit, request.tag)
            except StorageError:
                time.sleep(pause)
                pause = min(2.0 * pause, MAX_PAUSE_SECONDS)
            except DbcareError as failure:  # such as a study that was deleted
                LOG.warning("A trial of %r that was granted too late cannot be given back: %s", request.unit, failure)
                return
            else:
                return


class _Request:
    """A request for a unit, and what came of it."""

    def __init__(self, asked: AskRequest) -> None:
        assert asked.unit is not None
        assert asked.tag is not None
        self.asked, self.unit, self.tag = asked, asked.unit, asked.tag
        self.done = threading.Event()
        self.is_late = False  # whether nobody waits for it any longer
        self.error: BaseException | None = None
        self.found: Assignment | None = None

    @property
    def is_lost(self) -> bool:
        """Whether nobody knows what it brought."""
        return isinstance(self.error, AnswerLostError)

    def outcome(self) -> Assignment:
        """Return the assignment, or raise the request's error."""
        if self.found is None:
            assert self.error is not None
            raise self.error
        return self.found


def _fall_back(arm: str, problem: str) -> Assignment:
    return Assignment(arm, str(AssignmentReason.FALLBACK), None, problem)
