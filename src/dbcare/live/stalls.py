"""Notes on a study that hands out no trials although it has not stopped."""

from __future__ import annotations

from dbcare.base.times import format_duration
from dbcare.live.events import EventKind
from dbcare.live.ledger import Ledger, RefusalReason

STALL_SECONDS = 300.0  # without a new trial, although somebody asks


def is_stalled(ledger: Ledger, now: float) -> bool:
    """Return whether it has been long since a trial was handed out."""
    return ledger.asked > 0 and now - ledger.handed_out >= STALL_SECONDS


def list_stalls(ledger: Ledger, now: float) -> tuple[str, ...]:
    """Return why asks get no trial now, and what to do.

    This is noted once nothing has been handed out for STALL_SECONDS, or more asks were refused for this reason than
    granted.
    """
    reason = ledger.why_refused()
    if reason is None:
        return ()
    if is_stalled(ledger, now) and ledger.turned_away > ledger.handed_out:
        return _describe_stall(ledger, now)
    refused = ledger.refused.get(reason, 0)
    if refused <= ledger.asked:
        return ()
    count = sum(ledger.decision.pending)
    pending = "one trial is pending" if count == 1 else f"{count:,} trials are pending"
    sentence = f"at least {refused:,} asks got no trial: {pending}"
    if reason is RefusalReason.PENDING:
        return (
            f"{sentence}, and no more than {ledger.max_pending():,} may be; if rewards take long, raise this limit, "
            "max_ahead, to the number of trials that are asked while one reward is on its way",
        )
    if reason is RefusalReason.POLICY:
        policy = ledger.settings.policy_entry.label
        return (f"{sentence}, and {policy} needs their rewards to choose the next arm; tell them, or let them fail",)
    return (f"{sentence}, and may use up the budget; tell them, or let them fail",)


def _describe_stall(ledger: Ledger, now: float) -> tuple[str, ...]:
    """Describe the trials that nobody answers, if there are any."""
    unanswered = [
        (number, trial)
        for number, trial in ledger.open.items()
        if trial.status is EventKind.ASKED and trial.arm not in ledger.retired
    ]
    if not unanswered:
        return ()
    number, oldest = min(unanswered, key=lambda numbered: numbered[1].asked)
    whose = "" if oldest.worker is None else f" of worker {oldest.worker}"
    end = ledger.lease_end(oldest)
    if end is None:
        lease = "its lease never ends"
    elif end > now:
        lease = f"its lease ends in {format_duration(end - now)}"
    else:
        lease = "its lease has ended"
    have = "1 trial has" if len(unanswered) == 1 else f"{len(unanswered):,} trials have"
    return (
        f"no trial has been handed out for {format_duration(now - ledger.handed_out)}, although somebody asked: {have} "
        f"no answer, the oldest, trial {number}{whose}, for {format_duration(now - oldest.asked)}; {lease}. If nobody "
        "will answer, give such trials up, at no charge: on the study's page, by `dbcare give-up`, or by `give_up`",
    )
