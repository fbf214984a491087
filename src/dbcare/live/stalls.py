"""Notes on a study that hands out no trials although it has not stopped."""

from __future__ import annotations

from dbcare.live.ledger import Ledger, RefusalReason


def list_stalls(ledger: Ledger) -> tuple[str, ...]:
    """Return why asks get no trial now, and what to do, once more of them were refused for this reason than granted."""
    reason = ledger.why_refused()
    refused = 0 if reason is None else ledger.refused.get(reason, 0)
    if reason is None or refused <= ledger.asked:
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
