"""`Study`: a decision in progress, safe for many workers, that survives whatever happens to them.

study = dbcare.create_study("ads", arms=["A", "B"], price=0.40, value=20_000, sigma=0.5, storage="sqlite:///ads.db")
while not study.should_stop():
    if trial := study.ask():
        study.tell(trial, show_ad(trial.arm))
print(study.recommendation())
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, overload

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.live.events import Event, EventKind
from dbcare.live.export import TrialRow, data_frame, export, rows_of
from dbcare.live.leases import Lease, seconds_of
from dbcare.live.report import (
    HistoryPoint,
    Pending,
    Recommendation,
    Status,
    explanation_of,
    history_of,
    pending_of,
    recommendation_of,
    status_of,
)
from dbcare.live.settings import Settings
from dbcare.live.stores.base import Store
from dbcare.live.synced_ledger import SyncedLedger, Transaction
from dbcare.live.tell import Trial, note_answer, number_of

LONGEST_REASON = 1000


class Study:
    """A study that is stored; get one with `create_study` or `load_study`. Safe to use from several threads."""

    def __init__(self, store: Store, name: str) -> None:
        self.name = name
        self.settings = Settings.from_dict(store.settings(name))
        self._book = SyncedLedger(store, name, self.settings)

    @overload
    def ask(
        self,
        n: None = None,
        lease: Lease = "30m",
        worker: str | None = None,
        *,
        timeout_reward: float | None = None,
        key: str | None = None,
    ) -> Trial | None: ...
    @overload
    def ask(
        self,
        n: int,
        lease: Lease = "30m",
        worker: str | None = None,
        *,
        timeout_reward: float | None = None,
        key: str | None = None,
    ) -> list[Trial]: ...
    def ask(
        self,
        n: int | None = None,
        lease: Lease = "30m",
        worker: str | None = None,
        *,
        timeout_reward: float | None = None,
        key: str | None = None,
    ) -> Trial | list[Trial] | None:
        """The next trial, or up to `n` of them; None, or fewer, where the policy waits for answers or has stopped.

        A trial that is not told within its `lease` ("90s", "30m", "2h", "1d", seconds, or None for ever) is given up,
        and another one takes its place; or it counts as `timeout_reward`, the study's own if none is given here.
        `worker` names who asks: twice as many trials as workers may be out. Asking again with the same `key` gives the
        same trials, for when an answer may have been lost on its way.
        """
        wanted = 1 if n is None else validation.whole("n", n, at_least=1)
        duration = seconds_of(lease)
        by = None if worker is None else validation.text("worker", worker)
        fallback = self.settings.timeout_reward
        if timeout_reward is not None:
            fallback = self.settings.counted("timeout_reward", timeout_reward)
        note = None if key is None else f"key: {validation.text('key', key)}"
        with self._book.turn(write=True) as turn:
            now = time.time()
            expires = None if duration is None else now + duration
            given = self._asked_before(turn, note)
            if given:
                wanted = 0
            self._expire(turn, now)
            while len(given) < wanted and (arm := turn.ledger.next_arm()) is not None:
                event = Event(EventKind.ASKED, now, turn.ledger.asked + 1, arm, fallback, True, expires, by, note)
                turn.note(event)
                given.append(self._trial(event))
        return given if n is not None else (given[0] if given else None)

    def _asked_before(self, turn: Transaction, note: str | None) -> list[Trial]:
        events = [] if note is None else turn.session.noted(note)
        return [self._trial(event) for event in events if event.kind is EventKind.ASKED]

    def _trial(self, event: Event) -> Trial:
        return Trial(event.trial, self.settings.arms[event.arm], event.expires)

    @staticmethod
    def _expire(turn: Transaction, now: float) -> None:
        for number in turn.ledger.overdue(now):
            trial = turn.ledger.open[number]
            turn.note(Event(EventKind.EXPIRED, now, number, trial.arm, trial.timeout_reward))

    def tell(
        self, trial: Trial | int, reward: float | None = None, *, failed: bool = False, charged: bool = True
    ) -> None:
        """What came of a trial: its reward, or that it `failed` (and whether it cost its price all the same).

        The same again is accepted and changes nothing; another outcome for the same trial is an error.
        """
        if failed is not (reward is None):
            raise InvalidValueError(f"Either `reward` or failed=True must be given but got {reward!r} and {failed!r}.")
        if not isinstance(charged, bool):
            raise InvalidValueError(f"`charged` must be True or False but got {charged!r}.")
        with self._book.turn(write=True) as turn:
            note_answer(turn, trial, reward, charged, time.time())

    def tell_many(self, answers: Iterable[tuple[Trial | int, float]]) -> None:
        """Many rewards at once, all of them or none."""
        listed = list(answers)
        with self._book.turn(write=True) as turn:
            now = time.time()
            for trial, reward in listed:
                if reward is None:
                    raise InvalidValueError(f"`reward` of trial {number_of(trial)} must be a real number but got None.")
                note_answer(turn, trial, reward, True, now)

    def add(self, observations: Iterable[tuple[str, float]]) -> None:
        """Observations made elsewhere, each an arm's name and a reward: charged, and counted in this order.

        Like answers, they wait for trials that are out, and those behind the policy's stop change nothing.
        """
        rewards = [(self._arm(name), self.settings.counted("reward", reward)) for name, reward in observations]
        with self._book.turn(write=True) as turn:
            now = time.time()
            for arm, reward in rewards:
                number = turn.ledger.asked + 1
                turn.note(Event(EventKind.ASKED, now, number, arm))
                turn.note(Event(EventKind.TOLD, now, number, arm, reward))

    def should_stop(self) -> bool:
        """Whether nothing more will be asked for."""
        with self._book.turn(write=False) as turn:
            return turn.ledger.stopped is not None

    def recommendation(self) -> Recommendation:
        """The arm to choose as things stand, and how sure that is."""
        with self._book.turn(write=False) as turn:
            return recommendation_of(turn.ledger)

    def status(self) -> Status:
        """Where the study stands."""
        with self._book.turn(write=False) as turn:
            return status_of(self.name, turn.ledger, time.time())

    def pending(self) -> list[Pending]:
        """Trials that have not been counted, in the order asked."""
        with self._book.turn(write=False) as turn:
            return pending_of(turn.ledger, time.time())

    def history(self) -> list[HistoryPoint]:
        """How spending and expected loss went: the study stops where they meet."""
        with self._book.turn(write=False) as turn:
            return history_of(turn.ledger)

    def explain(self) -> list[str]:
        """Every elimination and the stop, each in one sentence with its numbers."""
        with self._book.turn(write=False) as turn:
            return explanation_of(turn.ledger)

    def trials(self) -> list[TrialRow]:
        """Every trial that was asked, in order, with what became of it."""
        with self._book.turn(write=False) as turn:
            return rows_of(self.settings, (event for _, event in turn.session.since(0)), turn.ledger.counted)

    def to_dataframe(self) -> Any:
        """The trials as a data frame of pandas or polars, whichever is installed."""
        return data_frame(self.trials())

    def export(self, path: str | Path) -> Path:
        """Write the trials to a .csv, .jsonl or .parquet file."""
        return export(self.trials(), path)

    def pause(self) -> None:
        """Hand out no trials until `resume`; answers are taken all the same."""
        self._say(EventKind.PAUSED)

    def resume(self) -> None:
        """Go on after `pause`."""
        self._say(EventKind.RESUMED)

    def stop(self, reason: str = "stopped by hand") -> None:
        """End the study for good."""
        self._say(EventKind.STOPPED, validation.text("reason", reason, longest=LONGEST_REASON))

    def retire(self, arm: str, reason: str = "withdrawn") -> None:
        """Withdraw an arm, for a reason outside the study: the others are decided among as if it had never been.

        What was spent on it stays spent. If the study had stopped, the others may be worth some more trials.
        """
        number, note = self._arm(arm), validation.text("reason", reason, longest=LONGEST_REASON)
        with self._book.turn(write=True) as turn:
            racing = turn.ledger.decision.racing
            if number not in racing or len(racing) == 1:
                left = ", ".join(self.settings.arms[each] for each in racing)
                raise InvalidValueError(f"`arm` must be one of those left, {left}, and not the last but got {arm!r}.")
            turn.note(Event(EventKind.RETIRED, time.time(), arm=number, note=note))

    def check(self) -> int:
        """Replay all events and compare with the stored summary: their number, or an error that says what differs."""
        return self._book.check()

    def _say(self, kind: EventKind, note: str | None = None) -> None:
        with self._book.turn(write=True) as turn:
            turn.note(Event(kind, time.time(), note=note))

    def _arm(self, name: str) -> int:
        if name not in self.settings.arms:
            raise InvalidValueError(f"`arm` must be one of {', '.join(self.settings.arms)} but got {name!r}.")
        return self.settings.arms.index(name)

    def __repr__(self) -> str:
        return f"Study({self.name!r}, arms={list(self.settings.arms)})"
