"""What was charged without being counted, in the words that the command line and the dashboard share."""

from __future__ import annotations

from dbcare.base.numbers import Money
from dbcare.live.status import Status


def describe_uncounted(status: Status, currency: str | None) -> list[str]:
    """Return one phrase for each reason why trials were charged and not counted, with their number and cost."""
    after = "answered after the stop"
    if status.late_expired:
        answered = status.late - status.late_expired
        after = f"after the stop: {answered:,} answered, {status.late_expired:,} expired"
    reasons = (
        (status.late, status.late_cost, after),
        (status.failed, status.failed_cost, "failed and charged"),
        (status.surplus, status.surplus_cost, "answered after being replaced"),
    )
    return [f"{count:,} {what} ({Money(cost, currency)})" for count, cost, what in reasons if count]
