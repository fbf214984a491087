"""The policy's side of a study: rewards in, the next arm and the recommendation out.

A rule that takes any arm at any time (it has `send`) gets rewards in the order counted, and chooses the next arm with
all trials counted as made that are still out. A rule in rounds gets each arm's rewards as it asks for them, and hands
out the rest of its present round. Any other rule is asked one trial at a time.

A retired arm is as if it had never been: the policy decides among the others, from their rewards alone.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from dbcare.live.settings import Settings
from dbcare.policies import breakeven_rule
from dbcare.policies.breakeven import Breakeven
from dbcare.policies.rounds import RoundRule, upcoming
from dbcare.policies.rule import STOP, State
from dbcare.policies.run import RunEvent

ARM = re.compile(r"\barm (\d+)\b")


class Decision:
    """A policy at work on the arms that are not retired; arms are numbered as in the settings throughout."""

    def __init__(self, settings: Settings, retired: frozenset[int] = frozenset()) -> None:
        self.settings = settings
        self.racing = tuple(arm for arm in range(len(settings.arms)) if arm not in retired)
        # With a single arm left there is nothing to decide.
        self.policy = settings.policy_among(self.racing) if len(self.racing) > 1 else None
        self.run = None if self.policy is None else self.policy.start(seed=settings.seed)
        self.out = [0] * len(settings.arms)  # trials out, by arm; those of retired arms are not counted
        self.queues: list[list[float]] = [[] for _ in self.racing]  # counted, but not asked for yet by the policy
        self._place = {arm: place for place, arm in enumerate(self.racing)}
        self._planned: State | None = None  # the rule's state with all trials made that are out

    @property
    def stopped(self) -> bool:
        """Whether the policy asks for no more."""
        return self.run is None or self.run.ask() is None

    @property
    def recommended(self) -> int:
        """The arm to choose as things stand."""
        return self.racing[0 if self.run is None else self.run.recommendation()]

    def sent(self, arm: int) -> None:
        """One more trial of an arm is out."""
        if arm not in self._place:
            return
        self.out[arm] += 1
        if self._planned is not None and self.policy is not None and self.policy.rule.send is not None:
            self.policy.rule.send(self._planned, self.policy.tables, self._place[arm])

    def back(self, arm: int) -> None:
        """A trial is out no more: counted next, or given up."""
        if arm in self._place:
            self.out[arm] -= 1
            self._planned = None

    def count(self, arm: int, reward: float, *, final: bool = True) -> None:
        """Hand the policy a reward, once it is that one's turn; a stop that is not `final` may be undone by it."""
        place = self._place.get(arm)
        if place is None or self.run is None or self.policy is None:
            return
        self._planned = None
        signed = self.settings.sign * reward
        if self.policy.rule.send is not None:
            if not final:
                self.run.state[breakeven_rule.STOPPED] = 0.0
            self.run.count(place, signed)
            return
        self.queues[place].append(signed)
        while (wanted := self.run.ask()) is not None and self.queues[wanted]:
            self.run.count(wanted, self.queues[wanted].pop(0))

    def next_arm(self) -> int | None:
        """The arm that the policy would pull next; None if it has to wait, or has stopped."""
        place = self._next_place()
        return None if place is None else self.racing[place]

    def _next_place(self) -> int | None:
        if self.run is None or self.policy is None or self.stopped:
            return None
        rule, tables = self.policy.rule, self.policy.tables
        if rule.send is not None:
            if self._planned is None:
                self._planned = list(self.run.state)
                for place, arm in enumerate(self.racing):
                    for _ in range(self.out[arm]):
                        rule.send(self._planned, tables, place)
            chosen = int(rule.ask(self._planned, tables))
            return None if chosen == STOP else chosen
        if isinstance(rule, RoundRule):
            taken = Counter({place: self.out[arm] + len(self.queues[place]) for place, arm in enumerate(self.racing)})
            for place in upcoming(self.run.state):
                if taken[place] == 0:
                    return place
                taken[place] -= 1
            return None
        return None if any(self.out) else self.run.ask()

    def losses(self) -> dict[int, float] | None:
        """What choosing the leader is expected to lose to each other arm, by Breakeven; None where nothing says so."""
        if self.run is None or not isinstance(self.policy, Breakeven):
            return None
        state = self.run.state
        if state[breakeven_rule.SEEN] < self.policy.arms:
            return None
        first = breakeven_rule.section(self.policy.tables, breakeven_rule.LOSS)
        return {arm: float(state[first + place]) for place, arm in enumerate(self.racing)}

    def dropped(self) -> list[RunEvent]:
        """Eliminations so far, with the arms' own numbers."""
        return [] if self.run is None else [RunEvent(self.racing[each.arm], each.text) for each in self.run.events]

    def why(self) -> str:
        """Why the policy stopped, or what it waits for, with the arms by name."""
        names = [self.settings.arms[arm] for arm in self.racing]
        return f"only {names[0]} is left" if self.run is None else named(self.run.why(), names)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"run": None if self.run is None else self.run.snapshot(), "queues": self.queues, "out": self.out}

    def restore(self, plain: dict[str, Any]) -> None:
        """Go on from what `to_dict` gave."""
        if self.policy is not None:
            self.run = self.policy.resume(plain["run"])
        self.queues, self.out = plain["queues"], plain["out"]


def named(text: str, names: list[str]) -> str:
    """A policy's sentence, which knows its arms by number only, with their names."""
    return ARM.sub(lambda found: names[int(found[1])], text)
