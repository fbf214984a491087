"""How a study's results are made from its ledger."""

from __future__ import annotations

from dataclasses import fields, replace

from dbcare.base.times import format_minute, spell_duration
from dbcare.problem.risk import Loss
from dbcare.studies.decide.blocks import BlockDecision
from dbcare.studies.record.events import EventKind
from dbcare.studies.record.ledger import Ledger
from dbcare.studies.record.statistics import MIN_REWARDS_FOR_CHANCE
from dbcare.studies.results.doubts import list_contradictions, list_stalls, list_unit_assumptions
from dbcare.studies.results.status import (
    RETIRED,
    ArmStatus,
    HistoryPoint,
    Interval,
    Lift,
    Pending,
    Recommendation,
    Status,
    VitalSigns,
)
from dbcare.studies.results.words import name_verdict, write_sentences
from dbcare.studies.stores.base import UNDECIDED, Standing, StudyRecord


def in_money(ledger: Ledger, amount: float | None) -> float | None:
    """Convert an amount of loss to money, where there is a value."""
    return None if amount is None else amount * (ledger.settings.value or 1.0)


def has_interval(ledger: Ledger, arm: int) -> bool:
    """Return whether an arm's rewards vary enough for an interval."""
    return ledger.statistics[arm].variety.is_enough and ledger.beliefs.posterior is not None


def has_chance(ledger: Ledger, arm: int) -> bool:
    """Return whether an arm has rewards enough for a chance, too."""
    return has_interval(ledger, arm) and ledger.statistics[arm].trials >= MIN_REWARDS_FOR_CHANCE


def find_rival(ledger: Ledger, arm: int) -> int | None:
    """Return the arm that another is compared with: the control, or else the best of the others."""
    control = ledger.settings.control_index
    if control in ledger.decision.active and control != arm:
        return control
    others = [other for other in ledger.decision.active if other != arm and ledger.statistics[other].trials]
    means = ledger.beliefs.rewards
    return max(others, key=lambda other: ledger.settings.sign * means[other].mean, default=None)


def list_arms(ledger: Ledger, chosen: int | None) -> tuple[ArmStatus, ...]:
    """Return all arms; chances are known if the chosen one has rewards enough."""
    left = {event.arm: event.text for event in ledger.decision.dropped()} | {
        arm: f"{RETIRED}{reason}" for arm, reason in ledger.withdrawn.items()
    }
    weighed = ledger.decision.expected_losses() or {}
    losses = dict(zip(ledger.decision.active, ledger.beliefs.expected_losses(), strict=False))
    chances: dict[int, float] = {}
    if chosen is not None and has_chance(ledger, chosen) and ledger.beliefs.posterior is not None:
        chances = dict(zip(ledger.decision.active, map(float, ledger.beliefs.posterior.chances), strict=True))
    return tuple(
        describe_arm(ledger, arm, left.get(arm), losses.get(arm), weighed.get(arm), chances.get(arm))
        for arm in range(len(ledger.settings.arms))
    )


def describe_arm(
    ledger: Ledger,
    arm: int,
    left: str | None = None,
    loss: float | None = None,
    weighed: float | None = None,
    chance: float | None = None,
) -> ArmStatus:
    """Return one arm; the losses are in units of the loss."""
    statistics, beliefs = ledger.statistics[arm], ledger.beliefs
    rival = find_rival(ledger, arm) if arm in ledger.decision.active else None
    shown = rival is not None and has_interval(ledger, arm)
    compared = rival if rival is not None and shown and has_interval(ledger, rival) else None
    return ArmStatus(
        ledger.settings.arms[arm],
        statistics.trials,
        statistics.mean if statistics.trials else None,
        beliefs.interval(arm) if shown else None,
        in_money(ledger, loss),
        ledger.decision.pending[arm],
        left,
        statistics.capped,
        statistics.late,
        estimate=beliefs.estimate(arm) if shown else None,
        probability_best=chance,
        lead=None if compared is None else beliefs.lead(arm, compared),
        lead_interval=None if compared is None else beliefs.lead_interval(arm, compared),
        policy_loss=in_money(ledger, weighed),
        lift=None if compared is None else make_lift(ledger, arm, compared),
        anytime_interval=beliefs.anytime_interval(arm) if shown else None,
    )


def make_lift(ledger: Ledger, arm: int, rival: int) -> Lift | None:
    """Return the comparison of an arm with its rival, if that is the control; None if it is not."""
    settings, beliefs = ledger.settings, ledger.beliefs
    if rival != settings.control_index:
        return None
    lead, interval = beliefs.lead(arm, rival), beliefs.lead_interval(arm, rival)
    anytime, base = beliefs.anytime_lead_interval(arm, rival), beliefs.estimate(rival)
    if lead is None or interval is None or anytime is None or base is None:
        return None
    has_money = settings.value is not None and settings.risk == Loss.SIMPLE_REGRET
    return Lift(
        control=settings.arms[rival],
        absolute=lead,
        interval=interval,
        anytime_interval=anytime,
        relative=lead / base if base > 0.0 else None,
        relative_interval=_scale(interval, 1.0 / base) if base > 0.0 else None,
        money=in_money(ledger, lead) if has_money else None,
        money_interval=_scale(interval, settings.value or 1.0) if has_money else None,
        probability=beliefs.chance_ahead(arm, rival) if has_chance(ledger, arm) else None,
        beats=interval[0] > 0.0,
    )


def _scale(interval: Interval, factor: float) -> Interval:
    return interval[0] * factor, interval[1] * factor


def explain_state(ledger: Ledger) -> str:
    """Explain why the study stopped, or what it is waiting for, with the arms by name."""
    if ledger.stopped is not None or not ledger.waits_until > ledger.last_counted:
        return ledger.stopped or ledger.decision.why()
    date = f"{spell_duration(ledger.settings.wait_seconds)} after the first trial"
    if ledger.began is not None:
        date = format_minute(ledger.waits_until)
    return f"{ledger.decision.why()}; no stop before {date}"


def explain_decisions(ledger: Ledger) -> list[str]:
    """Explain every arm that is no longer active, and the stop, in one sentence each."""
    names = ledger.settings.arms
    sentences = [f"{names[event.arm]} {event.text}" for event in ledger.decision.dropped()]
    sentences += [f"{names[arm]} was retired: {reason}" for arm, reason in ledger.withdrawn.items()]
    return sentences if ledger.stopped is None else [*sentences, ledger.stopped]


def make_recommendation(ledger: Ledger) -> Recommendation:
    """Return the policy's choice."""
    chosen = _describe_choice(ledger)
    place = None if chosen is None else find_rival(ledger, ledger.settings.arms.index(chosen.name))
    rival = None if place is None else ledger.settings.arms[place]
    nothing = Recommendation(
        arm=None,
        mean=None,
        interval=None,
        expected_loss=None,
        spent=ledger.spent * (ledger.settings.value or 1.0),
        reason=explain_state(ledger),
        final=ledger.stopped is not None,
        verdict=name_verdict(ledger, chosen),
        sentences=write_sentences(ledger, chosen, rival),
    )
    if chosen is None:
        return nothing
    shared = {field.name for field in fields(Recommendation)} & {field.name for field in fields(ArmStatus)}
    return replace(nothing, arm=chosen.name, rival=rival, **{name: getattr(chosen, name) for name in shared})


def _describe_choice(ledger: Ledger) -> ArmStatus | None:
    """Return the recommended arm; None if there is none."""
    arm = ledger.recommended
    if arm is None:
        return None
    chance = ledger.beliefs.chance_best(arm) if has_chance(ledger, arm) else None
    return describe_arm(ledger, arm, loss=ledger.beliefs.expected_loss(arm), chance=chance)


def make_standing(ledger: Ledger) -> Standing:
    """Return how the study stands, for lists of studies."""
    stopped, chosen = ledger.stopped, ledger.recommended
    # While it runs, the loss is that of a little earlier: to compute it takes milliseconds, and this is written often.
    loss = ledger.losses.latest() if stopped is None else ledger.expected_loss
    return Standing(
        state=ledger.state,
        asked=ledger.asked,
        rewards=ledger.rewards,
        spent=ledger.spent * (ledger.settings.value or 1.0),
        expected_loss=in_money(ledger, loss),
        recommended="" if chosen is None else ledger.settings.arms[chosen],
        verdict=UNDECIDED if stopped is None else name_verdict(ledger, _describe_choice(ledger)),
        reason=stopped or "",
        curve=ledger.history.curve(),
    )


def make_status(record: StudyRecord, ledger: Ledger, now: float) -> Status:
    """Return the state of the study."""
    waiting = [trial for trial in ledger.open.values() if trial.status is EventKind.ASKED]
    late = [statistics.late for statistics in ledger.statistics]
    failed, surplus = [counts.failed for counts in ledger.counts], [counts.surplus for counts in ledger.counts]
    return Status(
        name=record.name,
        state=ledger.state,
        arms=list_arms(ledger, ledger.recommended),
        asked=ledger.asked,
        counted=ledger.counted,
        waiting=len(waiting),
        held=len(ledger.open) - len(waiting),
        oldest=max((now - trial.asked for trial in waiting), default=None),
        spent=ledger.spent * (ledger.settings.value or 1.0),
        expected_loss=in_money(ledger, ledger.expected_loss),
        reason=explain_state(ledger),
        notes=_list_notes(ledger, now),
        policy_loss=in_money(ledger, ledger.policy_loss),
        description=ledger.description,
        created=record.created,
        created_by=record.created_by,
        activities=tuple(ledger.activities),
        cap=ledger.settings.cap,
        late=sum(late),
        late_cost=_price(ledger, late, sum(charges.late for charges in ledger.charges)),
        late_expired=sum(counts.late_expired for counts in ledger.counts),
        failed=sum(failed),
        failed_cost=_price(ledger, failed, sum(charges.failed for charges in ledger.charges)),
        surplus=sum(surplus),
        blocks_used=ledger.decision.blocks_used if isinstance(ledger.decision, BlockDecision) else None,
        blocks=ledger.settings.pool,
        max_ahead=ledger.max_ahead,
        surplus_cost=_price(ledger, surplus, sum(charges.surplus for charges in ledger.charges)),
    )


def _list_notes(ledger: Ledger, now: float) -> tuple[str, ...]:
    return (*list_stalls(ledger, now), *list_unit_assumptions(ledger), *list_contradictions(ledger))


def measure_vital_signs(ledger: Ledger, now: float) -> VitalSigns:
    """Return what shows whether the study goes on."""
    is_over = ledger.stopped is not None
    asked = [] if is_over else [trial.asked for trial in ledger.open.values() if trial.status is EventKind.ASKED]
    return VitalSigns(len(asked), min(asked, default=None), len(_list_notes(ledger, now)))


def _price(ledger: Ledger, trials: list[int], excess: float) -> float:
    """Return what so many trials of each arm cost, with the excess that was reported, as `Status.spent` has it."""
    cost = sum(count * cost for count, cost in zip(trials, ledger.settings.costs, strict=True))
    return (cost + excess) * (ledger.settings.value or 1.0)


def list_pending(ledger: Ledger, now: float) -> list[Pending]:
    """Return the trials that have not been counted, in the order asked."""
    return [
        Pending(
            number,
            ledger.settings.arms[trial.arm],
            trial.worker,
            now - trial.asked,
            None if (end := ledger.lease_end(trial)) is None else end - now,
            trial.status is not EventKind.ASKED,
            ledger.settings.name_block(trial.block),
        )
        for number, trial in sorted(ledger.open.items())
    ]


def list_history(ledger: Ledger) -> list[HistoryPoint]:
    """Return spend and expected loss over time: 100 to 200 points of a longer study, the last of them now."""
    points, times = ledger.history.points, ledger.history.times
    if points and points[-1] != ledger.standing():
        points, times = [*points, ledger.standing()], [*times, ledger.last_counted]
    rewards = [int(point[0] or 0) for point in points]
    losses = ledger.losses.at(rewards, ledger.expected_loss)
    if losses:  # but for rounding
        losses[-1] = ledger.expected_loss
    return [
        HistoryPoint(count, in_money(ledger, spent) or 0.0, in_money(ledger, loss), in_money(ledger, weighed), at)
        for count, (_, spent, weighed), loss, at in zip(rewards, points, losses, times, strict=True)
    ]
