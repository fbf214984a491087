"""The policy's side of a study in rounds: moments at which arms are tried together.

A round is handed out as a whole, and the rule gets its rewards once each of its trials is told, failed or expired, so
that fast arms never count before slow ones; the next round may be handed out before that.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from dbcare.live.block_decision import BlockDecision, Outcome, require_block
from dbcare.live.settings import Settings


@dataclass
class OpenRound:
    """A round that has not been counted: arms by their place among the active ones."""

    block: int
    members: list[int]  # still to be handed out
    waiting: int = 0  # handed out, and not counted yet
    outcomes: list[tuple[int, float | None, float]] = field(default_factory=list)  # places, rewards, costs, as asked


class RoundDecision(BlockDecision):
    """Decides after complete rounds; `rounds` are those that have not been counted, oldest first."""

    def __init__(self, settings: Settings, retired: frozenset[int] = frozenset()) -> None:
        super().__init__(settings, retired)
        self.rounds: list[OpenRound] = []
        self.begun = 0  # rounds so far

    @property
    def blocks_used(self) -> int:
        return self.begun

    def send(self, arm: int, block: int | None) -> None:
        number = require_block(block)
        self.begun = max(self.begun, number + 1)
        super().send(arm, block)
        if arm not in self._place or self.run is None:
            return
        if not self.rounds or number > self.rounds[-1].block:
            for earlier in self.rounds:
                earlier.members.clear()  # what was not asked for by now never will be
            self.rounds.append(OpenRound(number, self._next_members(number)))
        current, place = self._find(number), self._place[arm]
        current.waiting += 1
        if place in current.members:
            current.members.remove(place)

    def _find(self, block: int) -> OpenRound:
        for each in self.rounds:
            if each.block == block:
                return each
        raise LookupError(f"round {block + 1} is over")

    def _next_members(self, block: int) -> list[int]:
        """Return the arms of the next round as things stand, each round starting with another one."""
        if self.policy is None or self.run is None:
            return []
        upcoming = self.policy.upcoming(self.run.state) or []
        return sorted(upcoming, key=lambda place: (place - block) % len(self.active))

    def next_block(self, arm: int) -> int:
        return self.rounds[-1].block if self._is_handing_out else self.begun

    def arms_with(self, arm: int) -> list[int]:
        if self._is_handing_out:
            return [arm]
        return [self.active[place] for place in self._next_members(self.begun)]

    @property
    def _is_handing_out(self) -> bool:
        return bool(self.rounds and self.rounds[-1].members)

    def _next_place(self) -> int | None:
        if self.has_stopped:
            return None
        members = self.rounds[-1].members if self._is_handing_out else self._next_members(self.begun)
        return members[0] if members else None

    def _resolve(self, place: int, block: int, outcome: Outcome, *, final: bool, waits: bool) -> None:
        current = self._find(block)
        current.waiting -= 1
        reward, cost = outcome
        current.outcomes.append((place, reward, cost))
        self._end_complete(1 if final else 2, reopens=not final, waits=waits)

    def end_rounds(self, *, waits: bool) -> None:
        for each in self.rounds:
            each.members.clear()
        self._end_complete(1, reopens=True, waits=waits)

    def _end_complete(self, least: int, *, reopens: bool, waits: bool) -> None:
        """End rounds that are complete, in order, as long as there are at least so many that are not ended.

        A round from before an arm was retired may have more trials than the others would have asked for: it is complete
        once a later one has begun.
        """
        if self.run is None or self.policy is None:
            return
        while len(self.rounds) >= least and not (self.rounds[0].waiting or self.rounds[0].members):
            finished = self.rounds.pop(0)
            if reopens:
                self.policy.reopen(self.run.state)
            for place, reward, cost in finished.outcomes:
                if reward is None:
                    self.run.miss_block(place, finished.block, cost)
                else:
                    self.run.count_block(place, finished.block, reward, cost)
            for place in self.policy.upcoming(self.run.state) or []:
                self.run.miss_block(place, finished.block, 0.0)
            self.run.end_round()
            if waits:
                self.policy.reopen(self.run.state)

    def to_dict(self) -> dict[str, Any]:
        rounds = [asdict(each) | {"outcomes": [list(outcome) for outcome in each.outcomes]} for each in self.rounds]
        return super().to_dict() | {"rounds": rounds, "begun": self.begun}

    def restore(self, plain: dict[str, Any]) -> None:
        super().restore(plain)
        self.rounds = [
            OpenRound(**entry | {"outcomes": [(place, reward, cost) for place, reward, cost in entry["outcomes"]]})
            for entry in plain["rounds"]
        ]
        self.begun = plain["begun"]
