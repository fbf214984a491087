"""The policy's side of a study: rewards in, the next arm and the recommendation out.

A rule that takes any arm at any time (it has `send`) gets rewards in the order counted, and chooses the next arm as if
all pending trials had been made. A policy that knows its next arms (`upcoming`, as those in epochs do) gets each arm's
rewards as it asks for them, and those arms are handed out together. Any other policy is asked one trial at a time.

A retired arm is treated as if it had never been in the study: the policy decides among the others, from their rewards
alone.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from dbcare.policies.rule import STOP, State
from dbcare.policies.run import Comparisons, RunEvent, Wording
from dbcare.studies.settings import Settings


class Decision:
    """A policy at work on the active arms, those not retired; arms are numbered as in the settings throughout."""

    def __init__(self, settings: Settings, retired: frozenset[int] = frozenset()) -> None:
        self.settings = settings
        self.active = tuple(arm for arm in range(len(settings.arms)) if arm not in retired)
        # With a single arm left there is nothing to decide.
        self.policy = settings.build_policy(self.active) if len(self.active) > 1 else None
        self.run = None if self.policy is None else self.policy.start(seed=settings.seed)
        self.pending = [0] * len(settings.arms)  # trials by arm; those of retired arms are not counted
        self.queues: list[deque[float]] = [deque() for _ in self.active]  # counted, but not asked for yet by the policy
        self._place = {arm: place for place, arm in enumerate(self.active)}
        self._planned: State | None = None  # the rule's state as if all pending trials had been made
        self._wording = Wording(tuple(settings.arms[arm] for arm in self.active), "trial", settings.currency or "")

    @property
    def has_stopped(self) -> bool:
        """Whether the policy asks for no more."""
        return self.run is None or self.run.ask() is None

    @property
    def has_broken_even(self) -> bool:
        """Whether the policy stopped because the loss that it weighs is no more than what has been spent."""
        if self.run is None or self.policy is None or not self.has_stopped:
            return False
        return self.policy.has_broken_even(self.run.state)

    @property
    def recommended(self) -> int:
        """The arm to choose as things stand."""
        return self.active[0 if self.run is None else self.run.recommendation()]

    def send(self, arm: int, block: int | None) -> None:
        """Note that a trial was handed out, in the block that `next_block` returned."""
        self.add_pending(arm)

    def add_pending(self, arm: int) -> None:
        """Note that one more trial of an arm is pending."""
        if arm not in self._place:
            return
        self.pending[arm] += 1
        if self._planned is not None and self.policy is not None and self.policy.rule.send is not None:
            self.policy.rule.send(self._planned, self.policy.tables, self._place[arm], 1)

    def remove_pending(self, arm: int) -> None:
        """Note that a trial is no longer pending: counted next, or given up."""
        if arm in self._place:
            self.pending[arm] -= 1
            self._planned = None

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
        """Hand the policy a reward once it asks for it; a stop that is not `final` does not keep it from deciding.

        While the study `waits`, the policy does not stop. Without blocks, the policy goes by the stated costs; with
        them, by the reported `price`, in units of the loss.
        """
        place = self._place.get(arm)
        if place is None or self.run is None or self.policy is None:
            return
        self._planned = None
        signed = self.settings.sign * reward
        if self.policy.rule.send is not None:
            if not final:
                self.policy.reopen(self.run.state)
            self.run.count(place, signed)
            if waits:
                self.policy.reopen(self.run.state)
            return
        self.queues[place].append(signed)
        while (wanted := self.run.ask()) is not None and self.queues[wanted]:
            self.run.count(wanted, self.queues[wanted].popleft())

    def miss(self, arm: int, block: int | None, cost: float = 0.0, *, final: bool = True, waits: bool = False) -> None:
        """Note that a trial gave no reward, and what it cost. Without blocks, another of its arm takes its place."""

    def end_rounds(self, *, waits: bool) -> None:
        """Hand out no more trials of rounds that were begun before an arm was retired."""

    def next_arm(self) -> int | None:
        """Return the arm that the policy would observe next; None if it has to wait, or has stopped."""
        place = self._next_place()
        return None if place is None else self.active[place]

    def next_block(self, arm: int) -> int | None:
        """Return the block of the next trial, which is of this arm; None where there are no blocks."""
        return None

    def arms_with(self, arm: int) -> list[int]:
        """Return the arms that have to follow if the next one is handed out, itself included."""
        return [arm]

    def _next_place(self) -> int | None:
        if self.run is None or self.policy is None or self.has_stopped:
            return None
        rule, tables = self.policy.rule, self.policy.tables
        if rule.send is not None:
            if self._planned is None:
                self._planned = list(self.run.state)
                for place, arm in enumerate(self.active):
                    if pending := self.pending[arm]:
                        rule.send(self._planned, tables, place, pending)
            chosen = int(rule.ask(self._planned, tables))
            return None if chosen == STOP else chosen
        upcoming = self.policy.upcoming(self.run.state)
        if upcoming is not None:
            taken = [self.pending[arm] + len(queue) for arm, queue in zip(self.active, self.queues, strict=True)]
            for place in upcoming:
                if taken[place] == 0:
                    return place
                taken[place] -= 1
            return None
        return None if any(self.pending) else self.run.ask()

    def expected_losses(self) -> dict[int, float] | None:
        """Return what choosing the leader is expected to lose to each other arm; None where the policy cannot say."""
        if self.run is None or self.policy is None:
            return None
        losses = self.policy.expected_losses(self.run.state)
        if losses is None or not all(map(math.isfinite, losses)):  # infinite before anything is known of the spread
            return None
        return dict(zip(self.active, losses, strict=True))

    def comparisons(self) -> Comparisons | None:
        """Return how the leader compares with the active arms on shared blocks, if the policy compares arms there."""
        return None if self.run is None or self.policy is None else self.policy.comparisons(self.run.state)

    def dropped(self) -> list[RunEvent]:
        """List the eliminations so far, with the arms numbered as in the settings."""
        return [] if self.run is None else [RunEvent(self.active[event.arm], event.text) for event in self.run.events]

    def why(self) -> str:
        """Explain why the policy stopped, or what it is waiting for, with the arms by name."""
        return f"only {self._wording.arm(0)} is left" if self.run is None else self.run.why(self._wording)

    def to_dict(self) -> dict[str, Any]:
        """Return the state, ready for JSON."""
        run = None if self.run is None else self.run.snapshot()
        return {"run": run, "queues": [list(queue) for queue in self.queues], "out": self.pending}

    def restore(self, plain: dict[str, Any]) -> None:
        """Restore the state that `to_dict` returned."""
        if self.policy is not None:
            self.run = self.policy.resume(plain["run"])
        self.queues, self.pending = [deque(queue) for queue in plain["queues"]], plain["out"]
