"""The studies that have stopped, for the webhook."""

from __future__ import annotations

from dataclasses import dataclass

from dbcare.live.stores.base import Store
from dbcare.live.studies import find_in

STOPPED = "stopped"


@dataclass(frozen=True)
class StoppedStudy:
    """A study that has stopped: its identity, as in `StoreSession`, and how it ended, as in `Standing`."""

    name: str
    identity: int
    asked: int
    counted: int
    spent: float
    unit: str | None
    recommended: str
    verdict: str
    reason: str


def list_stopped(store: Store) -> list[StoppedStudy]:
    """List the studies that have stopped, oldest first, without those that are unusable here."""
    return [
        StoppedStudy(
            name=record.name,
            identity=record.identity,
            asked=standing.asked,
            counted=standing.counted,
            spent=standing.spent,
            unit=record.currency,
            recommended=standing.recommended,
            verdict=standing.verdict,
            reason=standing.reason,
        )
        for record in find_in(store)
        if (standing := record.standing) is not None and standing.state == STOPPED
    ]
