"""The studies that have stopped, for the webhook."""

from __future__ import annotations

from dataclasses import dataclass

from dbcare.studies.stores.base import Store

STOPPED = "stopped"


@dataclass(frozen=True)
class StoppedStudy:
    """A study that has stopped: its identity, as in `StoreSession`, and how it ended, as in `Standing`."""

    name: str
    identity: int
    asked: int
    rewards: int
    spent: float
    currency: str | None
    recommended: str
    verdict: str
    reason: str


def list_stopped(store: Store) -> list[StoppedStudy]:
    """List the studies that have stopped, oldest first."""
    return [
        StoppedStudy(
            name=record.name,
            identity=record.identity,
            asked=record.standing.asked,
            rewards=record.standing.rewards,
            spent=record.standing.spent,
            currency=record.currency,
            recommended=record.standing.recommended,
            verdict=record.standing.verdict,
            reason=record.standing.reason,
        )
        for record in store.find()
        if record.standing.state == STOPPED
    ]
