"""The policy's side of a study with a pool of blocks.

The rule gets rewards in the order counted, and chooses the next arm and its block as if all pending trials had been
made.
"""

from __future__ import annotations

from typing import Any

from dbcare.live.block_decision import BlockDecision, Outcome, require_block
from dbcare.live.settings import Settings
from dbcare.policies.rule import STOP, BlockRule, State


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
