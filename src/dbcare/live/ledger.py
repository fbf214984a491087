"""The state of a study, which follows from its events, and what to do next.

Answers count in the order in which their trials were asked, across the whole study: a trial's answer is handed to the
policy once every earlier trial is told, failed or expired. Counting answers as they arrive would favour those that
arrive early (a sale is known at once, no sale only after a while).

A rule that takes any arm at any time (it has `send`) gets the answers in that order, and chooses the next arm with all
trials counted as made that are still out. A rule in rounds gets each arm's answers as it asks for them, and hands out
the rest of its present round. Any other rule is asked one trial at a time.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from dbcare.live.events import Event, Kind
from dbcare.live.settings import Settings
from dbcare.policies.rounds import RoundRule, upcoming
from dbcare.policies.rule import STOP

RESOLVED = (Kind.TOLD, Kind.FAILED, Kind.EXPIRED)


@dataclass
class Open:
    """A trial that has not been counted yet: waiting for its answer, or for that of an earlier one."""

    arm: int
    asked: float
    expires: float | None
    worker: str | None
    status: Kind = Kind.ASKED
    reward: float | None = None
    asked_by_then: int = 0  # trials handed out when it was resolved

    @property
    def is_out(self) -> bool:
        """Whether it may still bring a reward that counts."""
        return self.status is Kind.ASKED or self.reward is not None


@dataclass
class Tally:
    """What was counted of an arm."""

    trials: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of deviations from the mean

    def add(self, reward: float) -> None:
        """One more reward (Welford 1962)."""
        self.trials += 1
        apart = reward - self.mean
        self.mean += apart / self.trials
        self.squares += apart * (reward - self.mean)


class Ledger:
    """A replay of the events so far; `apply` takes the next one."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.run = settings.made.start(seed=settings.seed)
        self.asked = 0  # trials handed out; their numbers are 1, 2, ...
        self.counted = 0  # all trials up to this one are told, failed or expired, and dealt with
        self.open: dict[int, Open] = {}
        self.queues: list[list[float]] = [[] for _ in settings.arms]  # counted, but not asked for yet by the policy
        self.tallies = [Tally() for _ in settings.arms]
        self.spent = 0.0
        self.workers: set[str] = set()
        self.paused = False
        self.ended: str | None = None  # a person's reason to stop

    def apply(self, event: Event) -> None:
        """Take in what happened next."""
        if event.kind is Kind.ASKED:
            self.asked = event.trial
            self.open[event.trial] = Open(event.arm, event.at, event.expires, event.worker)
            if event.worker is not None:
                self.workers.add(event.worker)
        elif event.kind in RESOLVED:
            self._resolve(event)
        elif event.kind is Kind.SURPLUS:
            self.spent += self.settings.costs[event.arm]
        elif event.kind is Kind.STOPPED:
            self.ended = event.note or "stopped by hand"
        else:
            self.paused = event.kind is Kind.PAUSED

    def _resolve(self, event: Event) -> None:
        trial = self.open[event.trial]
        trial.status, trial.reward, trial.asked_by_then = event.kind, event.reward, self.asked
        if event.kind is Kind.TOLD or event.reward is not None or (event.kind is Kind.FAILED and event.charged):
            self.spent += self.settings.costs[trial.arm]
        while (following := self.open.get(self.counted + 1)) is not None and following.status is not Kind.ASKED:
            self.counted += 1
            del self.open[self.counted]
            if following.reward is not None:
                self._count(following.arm, following.reward)

    def _count(self, arm: int, reward: float) -> None:
        if self.run.ask() is None:
            return  # what comes after the stop is on record, and changes nothing
        self.tallies[arm].add(reward)
        signed = self.settings.sign * reward
        if self.settings.made.rule.send is not None:
            self.run.count(arm, signed)
            return
        self.queues[arm].append(signed)
        while (wanted := self.run.ask()) is not None and self.queues[wanted]:
            self.run.count(wanted, self.queues[wanted].pop(0))

    @property
    def stopped(self) -> str | None:
        """Why nothing more will be asked, or None while it may."""
        if self.ended is not None:
            return self.ended
        if self.run.ask() is None:
            return self.run.why()
        limit = self.settings.max_spend
        if limit is not None and not self.open and self._affordable(min(self.settings.costs)) is False:
            amount = self.settings.amount
            return f"another trial would exceed max_spend: {amount(self.spent)} of {amount(limit)} has been spent"
        return None

    def _affordable(self, cost: float) -> bool:
        """Whether one more trial stays within `max_spend`, should all that are out be charged."""
        limit = math.inf if self.settings.max_spend is None else self.settings.max_spend
        out = math.fsum(self.settings.costs[each.arm] for each in self.open.values() if each.status is Kind.ASKED)
        return self.spent + out + cost <= limit * (1.0 + 1e-12)

    @property
    def max_ahead(self) -> int:
        """How many trials may be asked and not counted."""
        if self.settings.max_ahead is not None:
            return self.settings.max_ahead
        return max(2 * len(self.workers), len(self.settings.arms))

    def next_arm(self) -> int | None:
        """The arm of the next trial, or None if there is none, for now or for good."""
        out = [each.arm for each in self.open.values() if each.is_out]
        if self.paused or self.stopped is not None or len(out) >= self.max_ahead:
            return None
        arm = self._chosen(out)
        return None if arm is None or not self._affordable(self.settings.costs[arm]) else arm

    def _chosen(self, out: list[int]) -> int | None:
        """The arm that the policy would pull next, with pulls of these arms still out."""
        policy = self.settings.made
        if policy.rule.send is not None:
            state = list(self.run.state)
            for arm in out:
                policy.rule.send(state, policy.tables, arm)
            chosen = policy.rule.ask(state, policy.tables)
            return None if chosen == STOP else chosen
        if isinstance(policy.rule, RoundRule):
            taken = Counter(out) + Counter({arm: len(queue) for arm, queue in enumerate(self.queues)})
            for arm in upcoming(self.run.state):
                if taken[arm] == 0:
                    return arm
                taken[arm] -= 1
            return None
        return None if out else self.run.ask()

    def overdue(self, now: float) -> list[int]:
        """Trials whose lease has run out."""
        return [
            number
            for number, each in self.open.items()
            if each.status is Kind.ASKED and each.expires is not None and each.expires <= now
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of the state, ready for JSON: a summary of the events so far."""
        return {
            "run": self.run.snapshot(),
            "asked": self.asked,
            "counted": self.counted,
            "open": {str(number): asdict(each) for number, each in self.open.items()},
            "queues": self.queues,
            "tallies": [asdict(each) for each in self.tallies],
            "spent": self.spent,
            "workers": sorted(self.workers),
            "paused": self.paused,
            "ended": self.ended,
        }

    @classmethod
    def from_dict(cls, settings: Settings, plain: dict[str, Any]) -> Ledger:
        """The ledger that `to_dict` described."""
        ledger = cls(settings)
        ledger.run = settings.made.resume(plain["run"])
        ledger.open = {
            int(number): Open(**{**each, "status": Kind(each["status"])}) for number, each in plain["open"].items()
        }
        ledger.tallies = [Tally(**each) for each in plain["tallies"]]
        ledger.workers = set(plain["workers"])
        for name in ("asked", "counted", "queues", "spent", "paused", "ended"):
            setattr(ledger, name, plain[name])
        return ledger
