"""The state of a study, which its events determine, and its stored summary.

Rewards count in the order in which their trials were asked, across the whole study: a trial's reward is handed to the
policy once every earlier trial is told, failed or expired. Counting rewards as they arrive would favor those that
arrive early (a sale is known at once, no sale only after a while).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from operator import attrgetter
from typing import Any

from dbcare.base.times import ClockJump, extend_lease
from dbcare.studies.decide.blocks import make_decision
from dbcare.studies.options import MAX_PENDING
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.statistics import (
    ArmStatistics,
    Charges,
    Compute,
    History,
    LossCurve,
    Tail,
    TrialCounts,
    Variety,
)
from dbcare.studies.results.beliefs import ArmRewards, Beliefs, PairedBeliefs
from dbcare.studies.results.status import Activity
from dbcare.studies.settings import Settings

MAX_ACTIVITIES = 50  # what people did last
SPARE_LEASES = 1_000  # of trials that are not open anymore, before they are forgotten
RECENT_TRIALS = 200  # a worker who asked for none of these is forgotten
RESOLVED = (EventKind.TOLD, EventKind.FAILED, EventKind.EXPIRED)


class RefusalReason(StrEnum):
    """Why an ask gets no trial from a study that is running."""

    PENDING = "pending"  # as many trials are pending as may be
    POLICY = "policy"  # the policy needs rewards of pending trials before it goes on
    BUDGET = "budget"  # pending trials may use up the budget


@dataclass(slots=True)  # there may be a million
class OpenTrial:
    """A trial that has not been counted yet: waiting for its own outcome, or for that of an earlier one."""

    arm: int
    asked: float
    expires: float | None
    worker: str | None
    timeout_reward: float | None  # its reward once it expires
    status: EventKind = EventKind.ASKED
    reward: float | None = None
    asked_by_then: int = 0  # trials handed out by the time it was resolved
    was_added: bool = False  # an observation made elsewhere
    wasted: float = 0.0  # what it cost without giving a reward
    block: int | None = None
    price: float | None = None  # as reported, in units of the loss
    ended: float = 0.0  # when it was resolved
    tag: str | None = None

    @property
    def has_expired(self) -> bool:
        """Whether its lease has ended without a reward."""
        return self.status is EventKind.EXPIRED and self.reward is None

    @property
    def may_count(self) -> bool:
        """Whether it has, or may still bring, a reward that counts."""
        return self.status is EventKind.ASKED or self.reward is not None


class Ledger:
    """A replay of the events so far; `apply` takes the next one. `retired` arms count as if never in the study."""

    def __init__(self, settings: Settings, retired: frozenset[int] = frozenset()) -> None:
        self.settings = settings
        self.retired = retired
        self.decision = make_decision(settings, retired)
        self.asked = 0  # trials handed out; their numbers are 1, 2, ...
        self.counted = 0  # all trials up to this one are told, failed or expired, and have been processed
        self.open: dict[int, OpenTrial] = {}
        self.waiting = [0] * len(settings.arms)  # trials without an outcome, by arm
        self.statistics = [ArmStatistics() for _ in settings.arms]
        self.counts = [TrialCounts() for _ in settings.arms]
        self.charges = [Charges() for _ in settings.arms]
        self.history = History()  # of `standing`
        self.losses = LossCurve()
        self.spent = 0.0
        self.workers: dict[str, int] = {}  # who asked recently, and for which trial
        self.interrupted = False  # whether the last trial counted had no reward
        self.expired_at = 0.0  # when the last of those expired that were counted without a reward
        self.description = settings.description
        self.activities: list[Activity] = []
        self.paused = False
        self.ended: str | None = None  # a person's reason to stop
        self.withdrawn: dict[int, str] = {}  # retired arms and why
        self.max_ahead = settings.max_ahead  # people may change it
        self.refused: dict[str, int] = {}  # asks that got no trial, by `RefusalReason`, as far as that was recorded
        self.handed_out = 0.0  # when the last trial was handed out
        self.turned_away = 0.0  # when an ask got no trial, as far as that was recorded
        self._leases: list[tuple[float, int]] = []  # a heap: when trials expire, also of some that are not open anymore
        self._jumps: tuple[ClockJump, ...] = ()  # of this machine's clock, which extended the leases
        self._now = 0.0  # when the last event happened
        self.began: float | None = None  # when the first trial was asked
        self.last_counted = 0.0  # when the last reward counted
        self._beliefs: Beliefs | None = None  # as of the last reward counted

    @classmethod
    def replay(cls, settings: Settings, events: Iterable[Event]) -> Ledger:
        """Return the ledger that follows from all events."""
        history = list(events)
        ledger = cls(settings, frozenset(event.arm for event in history if event.kind is EventKind.RETIRED))
        for event in history:
            ledger.apply(event)
        return ledger

    def apply(self, event: Event) -> None:
        """Apply the next event; an arm that is retired must be among those the ledger was created with."""
        self._now = event.at
        if event.trial == 0 and event.kind is not EventKind.REFUSED:
            self._note_activity(event)
        if event.kind is EventKind.ASKED:
            self._ask(event)
        elif event.kind in RESOLVED:
            self._resolve(event)
        elif event.kind is EventKind.SURPLUS:
            self.counts[event.arm].surplus += event.charged
            if event.charged:
                self.charges[event.arm].surplus += self._charge(event)
        elif event.kind is EventKind.STOPPED:
            self.ended = self.ended or event.note
        elif event.kind is EventKind.DESCRIBED:
            self.description = event.note
        elif event.kind is EventKind.LIMITED:
            self.max_ahead = event.number
        elif event.kind is EventKind.REFUSED:
            reason = event.note or ""
            self.turned_away = event.at
            self.refused[reason] = self.refused.get(reason, 0) + (event.number or 0)
        elif event.kind is EventKind.RETIRED:
            self.withdrawn[event.arm] = event.note or ""
            self._advance()
            if self._is_final:
                self.decision.end_rounds(waits=self._waits)
            self._beliefs = None
        else:
            self.paused = event.kind is EventKind.PAUSED

    def _note_activity(self, event: Event) -> None:
        arm = None if event.arm < 0 else self.settings.arms[event.arm]
        note = event.note
        if event.kind is EventKind.LIMITED:
            note = "pending trials, as by default" if event.number is None else f"pending trials, to {event.number:,}"
        self.activities.append(Activity(event.at, str(event.kind), arm, note, event.worker))
        del self.activities[:-MAX_ACTIVITIES]

    def _ask(self, event: Event) -> None:
        self.asked = event.trial
        if event.tag is not None:  # rather than observed elsewhere
            self.handed_out = event.at
        self.began = event.at if self.began is None else self.began
        self.open[event.trial] = OpenTrial(
            event.arm, event.at, event.expires, event.worker, event.reward, block=event.block, tag=event.tag
        )
        self.waiting[event.arm] += 1
        self.decision.send(event.arm, event.block)
        if event.expires is not None:
            heapq.heappush(self._leases, (extend_lease(event.at, event.expires, self._jumps), event.trial))
            if len(self._leases) > 2 * len(self.open) + SPARE_LEASES:
                self._collect_leases()
        if event.worker is not None:
            self._see(event.worker)
        self._advance()

    def _see(self, worker: str) -> None:
        """Remember who asks, and forget who has not asked for a long time."""
        self.workers.pop(worker, None)
        self.workers[worker] = self.asked
        while self.workers[oldest := next(iter(self.workers))] <= self.asked - RECENT_TRIALS:
            del self.workers[oldest]

    def _resolve(self, event: Event) -> None:
        trial = self.open[event.trial]
        could_count = trial.may_count
        self.waiting[trial.arm] -= trial.status is EventKind.ASKED
        had_expired = trial.has_expired
        trial.status, trial.reward, trial.asked_by_then = event.kind, event.reward, self.asked
        trial.price, trial.ended = event.price, event.at
        self.counts[trial.arm].expired += trial.has_expired - had_expired
        if trial.may_count != could_count:  # given up, or told after all
            (self.decision.add_pending if trial.may_count else self.decision.remove_pending)(trial.arm)
        trial.was_added = event.at == trial.asked  # only those are told the moment they are asked
        has_cost = event.kind is EventKind.FAILED and event.charged
        self.counts[trial.arm].failed += has_cost
        if event.reward is not None or has_cost:
            excess = self._charge(event)
            if has_cost:
                self.charges[trial.arm].failed += excess
                trial.wasted = self.settings.costs[trial.arm] if event.price is None else event.price
        if event.trial <= self.counted:  # of a retired arm, for which the study did not wait
            del self.open[event.trial]
            self._count(trial)
        self._advance()

    def _charge(self, event: Event) -> float:
        """Charge a trial; return by how much the reported price exceeds that of its arm."""
        cost, charges = self.settings.costs[event.arm], self.charges[event.arm]
        excess = 0.0 if event.price is None else event.price - cost
        self.spent += cost if event.price is None else event.price
        charges.trials += 1
        charges.excess += excess
        return excess

    def _advance(self) -> None:
        """Count what is next in order, without waiting for trials of retired arms."""
        while (following := self.open.get(self.counted + 1)) is not None:
            if following.status is EventKind.ASKED and following.arm not in self.retired:
                return
            self.counted += 1
            if following.status is not EventKind.ASKED:
                del self.open[self.counted]
                self._count(following)

    def _count(self, trial: OpenTrial) -> None:
        statistics, counts = self.statistics[trial.arm], self.counts[trial.arm]
        # An outage must not look like an arm's fault. What counts as its wake is known before a trial's own outcome.
        in_wake = not trial.was_added and (self.interrupted or (trial.expires or math.inf) <= self.expired_at)
        statistics.wake += in_wake
        if trial.reward is None:
            counts.missing += 1
            statistics.interruptions += not in_wake
            statistics.missing_in_wake += in_wake
            self.interrupted = True
            self.expired_at = trial.ended if trial.has_expired else self.expired_at
            if not self._ignores_outcomes:
                self.decision.miss(trial.arm, trial.block, trial.wasted, final=self._is_final, waits=self._waits)
                if self.settings.has_blocks:
                    self.charges[trial.arm].wasted += trial.wasted
                    self._beliefs = None
            return
        self.interrupted = False
        statistics.answered += 1
        counts.added += trial.was_added
        self.decision.remove_pending(trial.arm)
        excess = 0.0 if trial.price is None else trial.price - self.settings.costs[trial.arm]
        if self._ignores_outcomes:
            self.charges[trial.arm].late += excess
            counts.late_expired += trial.status is EventKind.EXPIRED
            return  # what comes after the stop is recorded, and changes nothing
        self.charges[trial.arm].counted += excess
        reward = self.settings.count_as(trial.reward)
        statistics.add(reward)
        statistics.tail.capped += reward < trial.reward
        self.decision.count(trial.arm, reward, trial.block, trial.price, final=self._is_final, waits=self._waits)
        self._beliefs = None
        self.last_counted = self._now
        self.history.add(self.standing, self._now)
        self.losses.add(self.rewards, self._prepare_loss)

    @property
    def _is_final(self) -> bool:
        """Whether a stop counts: before an arm was retired, others may have more rewards than they asked for alone."""
        return len(self.withdrawn) == len(self.retired)

    @property
    def _waits(self) -> bool:
        return self.waits_until > self._now

    @property
    def _ignores_outcomes(self) -> bool:
        return self.ended is not None or (self._is_final and self.decision.has_stopped)

    def standing(self) -> list[float | None]:
        """Return how many rewards have been counted, what those cost, and the loss that the policy weighs."""
        rewards = [statistics.trials for statistics in self.statistics]
        costs = zip(rewards, self.settings.costs, self.charges, strict=True)
        spent = sum(trials * cost + charges.counted + charges.wasted for trials, cost, charges in costs)
        return [sum(rewards), spent, self.policy_loss]

    @property
    def waits_until(self) -> float:
        """When the study may stop at the earliest, in seconds since 1970; 0 if it does not wait for a date."""
        return 0.0 if not self.settings.wait_seconds else (self.began or 0.0) + self.settings.wait_seconds

    @property
    def rewards(self) -> int:
        """Rewards counted."""
        return self.history.seen

    @property
    def policy_loss(self) -> float | None:
        """The loss that the policy weighs, that to the strongest rival; None where it weighs none."""
        losses = self.decision.expected_losses()
        return None if losses is None else max(losses.values())

    @property
    def recommended(self) -> int | None:
        """The arm to choose as things stand; None before any data.

        A study that stops without data keeps the control; without one, a policy may choose anyway.
        """
        if self.rewards or len(self.decision.active) == 1:
            return self.decision.recommended
        control = self.settings.control_index
        if control in self.decision.active and self.stopped is not None:
            return control
        return self.decision.recommended if self.decision.has_stopped else None

    @property
    def beliefs(self) -> Beliefs:
        """What the rewards counted say about the active arms."""
        if self._beliefs is None:
            active = self.decision.active
            rewards = [ArmRewards.of(self.statistics[arm]) for arm in active]
            compared = self.decision.comparisons()
            if compared is None:
                self._beliefs = Beliefs(self.settings, active, rewards)
            else:
                self._beliefs = PairedBeliefs(self.settings, active, rewards, compared)
        return self._beliefs

    @property
    def expected_loss(self) -> float | None:
        """What choosing the recommended arm now is expected to lose; None where too little is known."""
        chosen = self.recommended
        return None if chosen is None else self.beliefs.expected_loss(chosen)

    def _prepare_loss(self) -> Compute:
        chosen, beliefs = self.decision.recommended, self.beliefs
        return lambda: beliefs.expected_loss(chosen)

    @property
    def stopped(self) -> str | None:
        """Why no more trials will be handed out; None while they may be."""
        if self.ended is not None:
            return self.ended
        if self.decision.has_stopped:
            return self.decision.why()
        limit = self.settings.max_spend
        if limit is None or any(trial.arm not in self.retired for trial in self.open.values()):
            return None
        if self._affordable_arm() is None:
            spent, budget = self.settings.money(self.spent), self.settings.money(limit)
            return f"another trial would exceed max_spend: {spent} of {budget} has been spent"
        return None

    @property
    def state(self) -> str:
        """Whether the study is running, paused or stopped."""
        return "stopped" if self.stopped is not None else "paused" if self.paused else "running"

    def _affordable_arm(self) -> int | None:
        """Return the policy's next arm, if it stays within `max_spend` even if all pending trials are charged."""
        arm = self.decision.next_arm()
        if arm is None or self.settings.max_spend is None:
            return arm
        pending = sum(trials * self._expect_cost(place) for place, trials in enumerate(self.waiting) if trials)
        total = self.spent + pending + sum(map(self._expect_cost, self.decision.arms_with(arm)))
        return arm if total <= self.settings.max_spend * (1.0 + 1e-12) else None

    def _expect_cost(self, arm: int) -> float:
        """Return the mean cost of an arm's trials so far; its stated price before there are any."""
        charges = self.charges[arm]
        return self.settings.costs[arm] + (charges.excess / charges.trials if charges.trials else 0.0)

    def max_pending(self, *, without_limit: bool = False) -> int:
        """Return how many trials may be pending: unless that is stated, twice the number of workers.

        Without a limit by default are asks for units, each of which gets one trial, and studies in which an expired
        trial counts: there, no trial can hold up the study for longer than its lease.
        """
        if self.max_ahead is not None:
            return self.max_ahead
        if without_limit or self.settings.timeout_reward is not None:
            return MAX_PENDING
        return max(2 * len(self.workers), len(self.settings.arms))

    def next_arm(self, *, without_limit: bool = False) -> int | None:
        """Return the arm of the next trial; None if there is none, for now or for good."""
        if self.paused or self.stopped is not None or self._is_full(without_limit):
            return None
        return self._affordable_arm()

    def _is_full(self, without_limit: bool) -> bool:
        return sum(self.decision.pending) >= self.max_pending(without_limit=without_limit)

    def why_refused(self, *, without_limit: bool = False) -> RefusalReason | None:
        """Return why `next_arm` returned None; None if the study is paused or has stopped."""
        if self.paused or self.stopped is not None:
            return None
        if self._is_full(without_limit):
            return RefusalReason.PENDING
        return RefusalReason.POLICY if self.decision.next_arm() is None else RefusalReason.BUDGET

    def overdue(self, now: float, jumps: tuple[ClockJump, ...]) -> list[int]:
        """Return the trials whose lease has expired after these jumps of the clock; they are not returned again."""
        if jumps != self._jumps:
            self._jumps = jumps
            self._collect_leases()
        found = []
        while self._leases and self._leases[0][0] <= now:
            _, number = heapq.heappop(self._leases)
            trial = self.open.get(number)
            if trial is not None and trial.status is EventKind.ASKED:
                found.append(number)
        return sorted(found)

    def restore_open(self, trials: dict[int, OpenTrial]) -> None:
        """Restore the trials that have not been counted yet."""
        self.open = trials
        self._collect_leases()

    def lease_end(self, trial: OpenTrial) -> float | None:
        """Return when a trial's lease ends, after the jumps of the clock that this process has seen."""
        return None if trial.expires is None else extend_lease(trial.asked, trial.expires, self._jumps)

    def _collect_leases(self) -> None:
        """Collect the leases of open trials; a busy study would otherwise remember one per trial until it expires."""
        self._leases = [
            (extend_lease(trial.asked, trial.expires, self._jumps), number)
            for number, trial in self.open.items()
            if trial.expires is not None
        ]
        heapq.heapify(self._leases)


AS_THEY_ARE = (
    "asked", "counted", "waiting", "spent", "workers", "interrupted", "expired_at", "began", "last_counted",
    "description", "paused", "ended", "max_ahead", "refused", "handed_out", "turned_away",
)  # fmt: skip
TRIAL_FIELDS = [field.name for field in fields(OpenTrial)]
read_trial = attrgetter(*TRIAL_FIELDS)  # as `dataclasses.astuple`, which takes ten times as long


def summarize(ledger: Ledger) -> dict[str, Any]:
    """Return the whole state, ready for JSON."""
    return {
        **{name: getattr(ledger, name) for name in AS_THEY_ARE},
        "retired": sorted(ledger.retired),
        "withdrawn": {str(arm): reason for arm, reason in ledger.withdrawn.items()},
        "decision": ledger.decision.to_dict(),
        "open": [[number, *read_trial(trial)] for number, trial in ledger.open.items()],  # there may be many
        "tallies": [statistics.to_dict() for statistics in ledger.statistics],
        "tails": [asdict(statistics.tail) for statistics in ledger.statistics],
        "varieties": [asdict(statistics.variety) for statistics in ledger.statistics],
        "counts": [asdict(counts) for counts in ledger.counts],
        "charges": [asdict(charges) for charges in ledger.charges],
        "history": ledger.history.to_dict(),
        "times": ledger.history.times,
        "losses": {"points": ledger.losses.compute(), "seen": ledger.losses.seen},
        "activities": [asdict(activity) for activity in ledger.activities],
    }


def restore(settings: Settings, plain: dict[str, Any]) -> Ledger:
    """Return the ledger that `summarize` described."""
    ledger = Ledger(settings, frozenset(plain["retired"]))
    ledger.decision.restore(plain["decision"])
    ledger.restore_open({number: _restore_trial(values) for number, *values in plain["open"]})
    ledger.withdrawn = {int(arm): reason for arm, reason in plain["withdrawn"].items()}
    ledger.statistics = [
        ArmStatistics(**entry, tail=Tail(**tail), variety=Variety(**variety))
        for entry, tail, variety in zip(plain["tallies"], plain["tails"], plain["varieties"], strict=True)
    ]
    ledger.counts = [TrialCounts(**entry) for entry in plain["counts"]]
    ledger.charges = [Charges(**entry) for entry in plain["charges"]]
    ledger.history = History(**plain["history"], times=plain["times"])
    ledger.losses = LossCurve(**plain["losses"])
    ledger.activities = [Activity(**activity) for activity in plain["activities"]]
    for name in AS_THEY_ARE:
        setattr(ledger, name, plain[name])
    return ledger


def _restore_trial(values: list[Any]) -> OpenTrial:
    trial = OpenTrial(*values)
    trial.status = EventKind(trial.status)
    return trial
