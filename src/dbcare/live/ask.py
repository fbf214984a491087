"""Which trials an ask gets: new ones, those that the same request got before, or the one that its unit has."""

from __future__ import annotations

from dataclasses import dataclass

from dbcare.base.times import list_clock_jumps
from dbcare.live.events import Event, EventKind
from dbcare.live.settings import Settings
from dbcare.live.transaction import Transaction
from dbcare.live.trial import AskRequest, Trial, make_tag, read_unit


@dataclass(frozen=True)
class AskOutcome:
    """What an ask brought: trials, how many of them are new, and why there are none, such as "pending"."""

    trials: list[Trial]
    new: int
    lack: str | None  # a RefusalReason, "paused" or "stopped"; None if there are trials

    @property
    def stopped(self) -> bool:
        """Whether there are none because the study has stopped."""
        return self.lack == "stopped"


def hand_out(transaction: Transaction, request: AskRequest, now: float) -> AskOutcome:
    """Hand out the trials of a request, after recording what has expired by now."""
    expire(transaction, now)
    ledger = transaction.ledger
    asked = ledger.asked
    earlier = _find_earlier(transaction, request)
    if request.unit is not None:
        trials = _hand_to_unit(transaction, request, earlier[-1] if earlier else None, now)
    else:
        known = [_make_trial(ledger.settings, event) for event in earlier]
        trials = known or _hand_out_new(transaction, request, now)
    if trials:
        return AskOutcome(trials, ledger.asked - asked, None)
    reason = ledger.why_refused(without_limit=request.unit is not None)
    if reason is not None:
        transaction.refuse(reason, now)
    return AskOutcome([], 0, str(reason or ledger.state))


def expire(transaction: Transaction, now: float) -> None:
    """Record which leases have ended by now."""
    for number in transaction.ledger.overdue(now, list_clock_jumps()):
        trial = transaction.ledger.open[number]
        transaction.record(Event(EventKind.EXPIRED, now, number, trial.arm, trial.timeout_reward))


def _find_earlier(transaction: Transaction, request: AskRequest) -> list[Event]:
    """Return how the trials were asked that this key or unit got before."""
    return [] if request.note is None else transaction.asks_with_note(request.note)


def _hand_out_new(transaction: Transaction, request: AskRequest, now: float) -> list[Trial]:
    ledger, settings = transaction.ledger, transaction.ledger.settings
    expires = None if request.lease is None else now + request.lease
    fallback = settings.timeout_reward if request.timeout_reward is None else request.timeout_reward
    trials: list[Trial] = []
    first_block: int | None = None
    without_limit = request.unit is not None
    while len(trials) < request.wanted and (arm := ledger.next_arm(without_limit=without_limit)) is not None:
        number = ledger.asked + 1
        block = ledger.decision.next_block(arm)
        if settings.rounds and trials and block != first_block:
            break  # a round is one moment, and the next one another
        first_block = block
        event = Event(
            EventKind.ASKED,
            now,
            number,
            arm,
            fallback,
            True,
            expires,
            request.worker,
            request.note,
            block,
            tag=request.tag or make_tag(),
        )
        transaction.record(event)
        trials.append(_make_trial(settings, event))
    return trials


def _hand_to_unit(transaction: Transaction, request: AskRequest, last: Event | None, now: float) -> list[Trial]:
    """Return the unit's last trial if it is open or brought a reward, or else a new one, as far as there is one."""
    if last is None or last.arm in transaction.ledger.retired:
        return _hand_out_new(transaction, request, now)
    outcomes = transaction.events_of_trial(last.trial)[1:]
    known = [_make_trial(transaction.ledger.settings, last, told=bool(outcomes))]
    if not outcomes or any(event.reward is not None for event in outcomes):
        return known
    was_given_back = outcomes[-1].kind is EventKind.FAILED and not outcomes[-1].charged  # and perhaps never shown
    return _hand_out_new(transaction, request, now) or ([] if was_given_back else known)


def _make_trial(settings: Settings, event: Event, *, told: bool = False) -> Trial:
    return Trial(
        event.trial,
        settings.arms[event.arm],
        event.expires,
        read_unit(event.note),
        told,
        settings.name_block(event.block),
        event.tag,
    )
