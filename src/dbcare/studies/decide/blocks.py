"""Decisions in blocks: from a pool of blocks, or in rounds.

A trial without a reward is not replaced: its block does without that arm.

The rule gets rewards in the order counted, and chooses the next arm and its block as if all pending trials had been
made.

A round is handed out as a whole, and the rule gets its rewards once each of its trials is told, failed or expired, so
that fast arms never count before slow ones; the next round may be handed out before that.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict, dataclass, field
from typing import Any

from dbcare.policies.rule import STOP, BlockRule, State
from dbcare.studies.decide.decision import Decision
from dbcare.studies.settings import Settings

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


class PoolDecision(BlockDecision):
    """Decides about a pool of blocks, after every reward."""

    def __init__(self, settings: Settings, retired: frozenset[int] = frozenset()) -> None:
        super().__init__(settings, retired)
        self.sent: list[tuple[int, int]] = []  # places and blocks of trials that have not been counted, as asked
        self.asked = [0] * len(settings.arms)  # for each arm, a number whose bits are the blocks it has trials in

    def send(self, arm: int, block: int | None) -> None:
        number = require_block(block)
        self.asked[arm] |= 1 << number
        super().send(arm, block)
        if arm in self._place and self.run is not None:
            self.sent.append((self._place[arm], number))
            if self._planned is not None:
                self._send_in(self._planned, *self.sent[-1])

    def has_trial(self, arm: int, block: int) -> bool:
        """Return whether an arm has, or had, a trial in a block."""
        return bool(self.asked[arm] >> block & 1)

    @property
    def blocks_used(self) -> int:
        used = 0
        for blocks in self.asked:
            used |= blocks
        return used.bit_count()

    def next_block(self, arm: int) -> int:
        rule, policy = self._rule, self.policy
        assert policy is not None
        return int(rule.block(self._plan(), policy.tables, self._place[arm]))

    def _next_place(self) -> int | None:
        if self.policy is None or self.has_stopped:
            return None
        chosen = int(self._rule.ask(self._plan(), self.policy.tables))
        return None if chosen == STOP else chosen

    def _plan(self) -> State:
        """Return the rule's state as if all pending trials had been made."""
        assert self.run is not None
        if self._planned is None:
            self._planned = list(self.run.state)
            for place, block in self.sent:
                self._send_in(self._planned, place, block)
        return self._planned

    def _send_in(self, state: State, place: int, block: int) -> None:
        send, policy = self._rule.send_block, self.policy
        if send is not None and policy is not None:
            send(state, policy.tables, place, block)

    @property
    def _rule(self) -> BlockRule:
        assert self.policy is not None
        assert isinstance(self.policy.rule, BlockRule)
        return self.policy.rule

    def _resolve(self, place: int, block: int, outcome: Outcome, *, final: bool, waits: bool) -> None:
        assert self.run is not None
        assert self.policy is not None
        self.sent.remove((place, block))
        if not final:
            self.policy.reopen(self.run.state)
        reward, cost = outcome
        if reward is None:
            self.run.miss_block(place, block, cost)
        else:
            self.run.count_block(place, block, reward, cost)
        if waits:
            self.policy.reopen(self.run.state)

    def to_dict(self) -> dict[str, Any]:
        asked = [format(blocks, "x") for blocks in self.asked]
        return super().to_dict() | {"sent": [list(pair) for pair in self.sent], "asked": asked}

    def restore(self, plain: dict[str, Any]) -> None:
        super().restore(plain)
        self.sent = [(place, block) for place, block in plain["sent"]]
        self.asked = [int(blocks, 16) for blocks in plain["asked"]]


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
        self.rounds: dict[int, OpenRound] = {}  # by their block
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
        latest = self._latest
        if latest is None or number > latest.block:
            if latest is not None:
                latest.members.clear()  # what was not asked for by now never will be
            self.rounds[number] = OpenRound(number, self._next_members(number))
        current, place = self._find(number), self._place[arm]
        current.waiting += 1
        if place in current.members:
            current.members.remove(place)

    def _find(self, block: int) -> OpenRound:
        if block not in self.rounds:
            raise LookupError(f"round {block + 1} is over")
        return self.rounds[block]

    @property
    def _latest(self) -> OpenRound | None:
        return next(reversed(self.rounds.values()), None)

    def _next_members(self, block: int) -> list[int]:
        """Return the arms of the next round as things stand, each round starting with another one."""
        if self.policy is None or self.run is None:
            return []
        upcoming = self.policy.upcoming(self.run.state) or []
        return sorted(upcoming, key=lambda place: (place - block) % len(self.active))

    def next_block(self, arm: int) -> int:
        latest = self._latest
        return latest.block if latest is not None and latest.members else self.begun

    def arms_with(self, arm: int) -> list[int]:
        if self._members:
            return [arm]
        return [self.active[place] for place in self._next_members(self.begun)]

    @property
    def _members(self) -> list[int]:
        """The arms that the latest round still waits to hand out."""
        latest = self._latest
        return [] if latest is None else latest.members

    def _next_place(self) -> int | None:
        if self.has_stopped:
            return None
        members = self._members or self._next_members(self.begun)
        return members[0] if members else None

    def _resolve(self, place: int, block: int, outcome: Outcome, *, final: bool, waits: bool) -> None:
        current = self._find(block)
        current.waiting -= 1
        reward, cost = outcome
        current.outcomes.append((place, reward, cost))
        self._end_complete(1 if final else 2, reopens=not final, waits=waits)

    def end_rounds(self, *, waits: bool) -> None:
        for each in self.rounds.values():
            each.members.clear()
        self._end_complete(1, reopens=True, waits=waits)

    def _end_complete(self, least: int, *, reopens: bool, waits: bool) -> None:
        """End rounds that are complete, in order, as long as there are at least so many that are not ended.

        A round from before an arm was retired may have more trials than the others would have asked for: it is complete
        once a later one has begun.
        """
        if self.run is None or self.policy is None:
            return
        while len(self.rounds) >= least:
            finished = next(iter(self.rounds.values()))
            if finished.waiting or finished.members:
                return
            del self.rounds[finished.block]
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
        rounds = [
            asdict(each) | {"outcomes": [list(outcome) for outcome in each.outcomes]} for each in self.rounds.values()
        ]
        return super().to_dict() | {"rounds": rounds, "begun": self.begun}

    def restore(self, plain: dict[str, Any]) -> None:
        super().restore(plain)
        self.rounds = {
            entry["block"]: OpenRound(**entry | {"outcomes": [tuple(outcome) for outcome in entry["outcomes"]]})
            for entry in plain["rounds"]
        }
        self.begun = plain["begun"]


def make_decision(settings: Settings, retired: frozenset[int] = frozenset()) -> Decision:
    """Return the policy's side of a study, as its settings require."""
    if not settings.has_blocks:
        return Decision(settings, retired)
    return PoolDecision(settings, retired) if settings.pool is not None else RoundDecision(settings, retired)
