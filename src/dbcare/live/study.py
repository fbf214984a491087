"""`Study`: a decision in progress, safe for many workers, that survives whatever happens to them.

study = dbcare.create_study("ads", arms=["A", "B"], price=0.40, value=20_000, sigma=0.5, storage="sqlite:///ads.db")
while not study.should_stop():
    if trial := study.ask():
        study.tell(trial, show_ad(trial.arm))
print(study.recommendation())
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from dbcare import validation
from dbcare.errors import AlreadyToldError, InvalidValueError, StorageError, StudyNotFoundError
from dbcare.live.events import Event, Kind
from dbcare.live.leases import Lease, seconds_of
from dbcare.live.ledger import Ledger, Open
from dbcare.live.outlook import Recommendation, Status, named, reason_of, recommendation_of, status_of
from dbcare.live.rows import Row, data_frame, export, rows_of
from dbcare.live.settings import Settings
from dbcare.live.store import Session, Store

SUMMARY_EVERY = 500  # events; opening a study replays no more than that


@dataclass(frozen=True)
class Trial:
    """One observation to make: of `arm`, to be told until `expires` (seconds since 1970)."""

    id: int
    arm: str
    expires: float | None


class Study:
    """A study that is stored; get one with `create_study` or `load_study`. Safe to use from several threads."""

    def __init__(self, store: Store, name: str) -> None:
        self.name = name
        self.settings = Settings.from_dict(store.settings(name))
        self._store = store
        self._lock = threading.RLock()
        self._ledger: Ledger | None = None
        self._position = 0
        self._summarised = 0

    @overload
    def ask(self, n: None = None, lease: Lease = "30m", worker: str | None = None) -> Trial | None: ...
    @overload
    def ask(self, n: int, lease: Lease = "30m", worker: str | None = None) -> list[Trial]: ...
    def ask(self, n: int | None = None, lease: Lease = "30m", worker: str | None = None) -> Trial | list[Trial] | None:
        """The next trial, or up to `n` of them; None, or fewer, where the policy waits for answers or has stopped.

        A trial that is not told within its `lease` ("90s", "30m", "2h", "1d", seconds, or None for ever) is given up,
        and another one takes its place. `worker` names who asks: twice as many trials as workers may be out.
        """
        wanted = 1 if n is None else validation.whole("n", n, at_least=1)
        duration = seconds_of(lease)
        if worker is not None and not isinstance(worker, str):
            raise InvalidValueError(f"`worker` must be a text but got {worker!r}.")
        given: list[Trial] = []
        with self._session(write=True) as (session, ledger):
            now = time.time()
            self._note(session, ledger, [self._expiry(number, now) for number in ledger.overdue(now)])
            while len(given) < wanted and (arm := ledger.next_arm()) is not None:
                expires = None if duration is None else now + duration
                number = ledger.asked + 1
                self._note(session, ledger, [Event(Kind.ASKED, now, number, arm, expires=expires, worker=worker)])
                given.append(Trial(number, self.settings.arms[arm], expires))
        return given if n is not None else (given[0] if given else None)

    def tell(
        self, trial: Trial | int, reward: float | None = None, *, failed: bool = False, charged: bool = True
    ) -> None:
        """What came of a trial: its reward, or that it `failed` (and whether it cost its price all the same).

        The same again is accepted and changes nothing; another outcome for the same trial is an error.
        """
        if failed is not (reward is None):
            raise InvalidValueError(f"Either `reward` or failed=True must be given but got {reward!r} and {failed!r}.")
        with self._session(write=True) as (session, ledger):
            self._tell(session, ledger, trial, reward, charged)

    def tell_many(self, answers: Iterable[tuple[Trial | int, float]]) -> None:
        """Many rewards at once, all of them or none."""
        with self._session(write=True) as (session, ledger):
            for trial, reward in answers:
                self._tell(session, ledger, trial, reward, charged=True)

    def should_stop(self) -> bool:
        """Whether nothing more will be asked for."""
        with self._session(write=False) as (_, ledger):
            return ledger.stopped is not None

    def recommendation(self) -> Recommendation:
        """The arm to choose as things stand, and how sure that is."""
        with self._session(write=False) as (_, ledger):
            return recommendation_of(ledger)

    def status(self) -> Status:
        """Where the study stands."""
        with self._session(write=False) as (_, ledger):
            return status_of(self.name, ledger, time.time())

    def explain(self) -> list[str]:
        """Every elimination and the stop, each in one sentence with its numbers."""
        with self._session(write=False) as (_, ledger):
            said = [named(str(event), self.settings.arms) for event in ledger.run.events]
            return [*said, *([reason_of(ledger)] if ledger.stopped is not None else [])]

    def trials(self) -> list[Row]:
        """Every trial that was asked, in order, with what became of it."""
        with self._session(write=False) as (session, ledger):
            return rows_of(self.settings, (event for _, event in session.since(0)), ledger.counted)

    def to_dataframe(self) -> Any:
        """The trials as a data frame of pandas or polars, whichever is installed."""
        return data_frame(self.trials())

    def export(self, path: str | Path) -> Path:
        """Write the trials to a .csv, .jsonl or .parquet file."""
        return export(self.trials(), path)

    def pause(self) -> None:
        """Hand out no trials until `resume`; answers are taken all the same."""
        self._say(Kind.PAUSED)

    def resume(self) -> None:
        """Go on after `pause`."""
        self._say(Kind.RESUMED)

    def stop(self, reason: str = "stopped by hand") -> None:
        """End the study for good."""
        if not isinstance(reason, str) or not reason:
            raise InvalidValueError(f"`reason` must be a text but got {reason!r}.")
        self._say(Kind.STOPPED, reason)

    def check(self) -> None:
        """Replay all events and compare with the stored summary; an error says what differs."""
        with self._store.session(self.name, write=False) as session:
            summary = session.summary()
            replayed = Ledger(self.settings)
            for position, event in session.since(0):
                replayed.apply(event)
                if summary is not None and position == summary[0] and replayed.to_dict() != summary[1]:
                    raise StorageError(f"The summary of {self.name!r} must follow from its events but does not.")

    def _tell(self, session: Session, ledger: Ledger, trial: Trial | int, reward: float | None, charged: bool) -> None:
        number = trial.id if isinstance(trial, Trial) else validation.whole("trial", trial, at_least=1)
        if number > ledger.asked:
            raise StudyNotFoundError(f"`trial` must have been asked in {self.name!r} but got {number}.")
        value = None if reward is None else self.settings.counted("reward", reward)
        waiting = ledger.open.get(number)
        if waiting is not None and waiting.status is Kind.ASKED:
            kind = Kind.FAILED if value is None else Kind.TOLD
            self._note(session, ledger, [Event(kind, time.time(), number, waiting.arm, value, charged)])
        else:
            self._tell_again(session, ledger, number, waiting, value)

    def _tell_again(
        self, session: Session, ledger: Ledger, number: int, waiting: Open | None, value: float | None
    ) -> None:
        """An answer for a trial that was told, had failed, or had expired."""
        history = session.of_trial(number)
        outcome = history[-1]
        arm = history[0].arm
        if outcome.kind is Kind.EXPIRED:
            if value is None:
                return  # it had been given up anyway
            # Neither replaced since, nor has the count gone on without it.
            in_time = waiting is not None and outcome.reward is None and waiting.asked_by_then == ledger.asked
            kind = Kind.TOLD if in_time else Kind.SURPLUS
            self._note(session, ledger, [Event(kind, time.time(), number, arm, value)])
        elif (outcome.kind is Kind.FAILED) != (value is None) or outcome.reward != value:
            said = "failed" if outcome.reward is None else f"{outcome.reward:g}"
            raise AlreadyToldError(
                f"Trial {number} of {self.name!r} must keep its first outcome, {said}, "
                f"but got {'failed' if value is None else f'{value:g}'}."
            )

    def _expiry(self, number: int, now: float) -> Event:
        return Event(Kind.EXPIRED, now, number, reward=self.settings.timeout_reward)

    def _say(self, kind: Kind, note: str | None = None) -> None:
        with self._session(write=True) as (session, ledger):
            self._note(session, ledger, [Event(kind, time.time(), note=note)])

    def _note(self, session: Session, ledger: Ledger, events: list[Event]) -> None:
        """Write events down, and let the ledger follow."""
        if not events:
            return
        for position, event in zip(session.append(events), events, strict=True):
            ledger.apply(event)
            self._position = position
        if self._position - self._summarised >= SUMMARY_EVERY:
            session.save_summary(self._position, ledger.to_dict())
            self._summarised = self._position

    @contextmanager
    def _session(self, *, write: bool) -> Iterator[tuple[Session, Ledger]]:
        """The store's session, and the ledger brought up to date with what others have done."""
        with self._lock:
            try:
                with self._store.session(self.name, write=write) as session:
                    yield session, self._caught_up(session)
            except BaseException:
                self._ledger = None  # it may be ahead of what is stored: begin again from there
                raise

    def _caught_up(self, session: Session) -> Ledger:
        if self._ledger is None:
            summary = session.summary()
            self._position = self._summarised = 0 if summary is None else summary[0]
            self._ledger = Ledger(self.settings) if summary is None else Ledger.from_dict(self.settings, summary[1])
        for position, event in session.since(self._position):
            self._ledger.apply(event)
            self._position = position
        return self._ledger

    def __repr__(self) -> str:
        return f"Study({self.name!r}, arms={list(self.settings.arms)})"
