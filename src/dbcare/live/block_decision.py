"""The policy's side of a study whose arms share blocks: what `pool_decision` and `round_decision` have in common.

A trial without a reward is not replaced: its block does without that arm.
"""

from __future__ import annotations

from abc import abstractmethod

from dbcare.live.decision import Decision

Outcome = tuple[float | None, float]  # a reward as policies see it, or None if there is none, and what it cost


class BlockDecision(Decision):
    """What both modes share: a trial counts in its block, with or without a reward."""

    def count(
        self,
        arm: int,
        reward: float,
        block: int | None = None,
        price: float | None = None,
        *,
        final: bool = True,
        waits: bool = False,
    ) -> None:
        outcome = self.settings.sign * reward, self.settings.costs[arm] if price is None else price
        self._take(arm, block, outcome, final=final, waits=waits)

    def miss(self, arm: int, block: int | None, cost: float = 0.0, *, final: bool = True, waits: bool = False) -> None:
        self._take(arm, block, (None, cost), final=final, waits=waits)

    def _take(self, arm: int, block: int | None, outcome: Outcome, *, final: bool, waits: bool) -> None:
        place = self._place.get(arm)
        if place is not None and self.run is not None:
            self._planned = None
            self._resolve(place, require_block(block), outcome, final=final, waits=waits)

    @abstractmethod
    def _resolve(self, place: int, block: int, outcome: Outcome, *, final: bool, waits: bool) -> None:
        """Take the outcome of an active arm in a block."""

    @property
    @abstractmethod
    def blocks_used(self) -> int:
        """The number of blocks in which some arm has, or had, a trial."""


def require_block(block: int | None) -> int:
    """Return the block of a trial, which every trial here has."""
    if block is None:
        raise ValueError("a trial has no block")
    return block
