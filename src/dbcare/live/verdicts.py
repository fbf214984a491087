"""What a study has decided, in words that claim no more than its numbers show."""

from __future__ import annotations

from dbcare.base.numbers import MOST_STATED, Money, format_chance, round_together
from dbcare.base.times import SECONDS_PER_DAY
from dbcare.live.ledger import Ledger
from dbcare.live.recommendation import ArmStatus, Interval
from dbcare.live.standing import UNDECIDED
from dbcare.live.variety import MIN_REWARDS_FOR_CHANCE
from dbcare.problem.risk import Loss

TRIALS_AHEAD = 100  # whose price is stated where the pace of a day is unknown
MIN_SECONDS = 3600.0  # that a study must have run before its pace is known


def name_verdict(ledger: Ledger, chosen: ArmStatus | None) -> str:
    """Return the outcome in a few words."""
    if ledger.stopped is None:
        return UNDECIDED
    if chosen is None:
        return "stopped without data"
    if len(ledger.decision.active) == 1:
        return "only one left"
    if chosen.name == ledger.settings.control:
        return "keep the control"
    if ledger.rewards == 0:
        return "chosen without data"
    if chosen.lift is not None:
        return "beats the control" if chosen.lift.beats else "may not beat the control"
    if chosen.probability_best is not None and chosen.probability_best > MOST_STATED:
        return "ahead of every rival"
    if chosen.probability_best is not None:
        return f"{format_chance(chosen.probability_best)} likely best"
    return f"leads, but {_describe_shortage(ledger, chosen.name)}"


def write_sentences(ledger: Ledger, chosen: ArmStatus | None, rival: str | None) -> tuple[str, ...]:
    """Return the outcome in sentences: what to choose, how sure that is, what it loses, why, and what more costs."""
    if chosen is None:
        return ("No rewards have been counted, so nothing is recommended.",)
    if len(ledger.decision.active) == 1:
        return (f"{chosen.name} is the only arm left.",)
    if ledger.rewards == 0:
        return (_choose_without_data(ledger, chosen),)
    parts = [
        _state_choice(ledger, chosen),
        _state_loss(ledger, chosen),
        _state_estimate(ledger, chosen, rival),
        _compare_with_control(ledger, chosen, rival),
        _explain_stop(ledger),
        _price_more(ledger),
    ]
    return tuple(part for part in parts if part)


def _choose_without_data(ledger: Ledger, chosen: ArmStatus) -> str:
    if chosen.name == ledger.settings.control and not ledger.decision.has_stopped:
        return f"Keep {chosen.name}, the control: the study ended before any rewards were counted."
    if chosen.name == ledger.settings.control:
        return f"Keep {chosen.name}, the control: a trial of each arm costs more than a better choice could gain."
    return (
        f"{chosen.name} is as good a guess as any: a trial of each arm costs more than a better choice could gain, so "
        "none was made."
    )


def _state_choice(ledger: Ledger, chosen: ArmStatus) -> str:
    is_control = chosen.name == ledger.settings.control
    if ledger.stopped is not None:
        beginning = f"Keep {chosen.name}, the control" if is_control else f"Choose {chosen.name}"
    else:
        beginning = f"{chosen.name}{', the control,' if is_control else ''} leads so far"
    if chosen.probability_best is None:
        shortage = _describe_shortage(ledger, chosen.name)
        return f"{beginning}, but it {shortage}: it is too early to say how likely it is the best."
    if chosen.probability_best > MOST_STATED:
        return f"{beginning}: it is ahead of every rival."
    return f"{beginning}: it is {format_chance(chosen.probability_best)} likely to be the best."


def _state_loss(ledger: Ledger, chosen: ArmStatus) -> str:
    if chosen.expected_loss is None:
        return ""
    loss = Money(chosen.expected_loss, ledger.settings.currency).rough()
    if ledger.settings.risk == Loss.MISIDENTIFICATION:
        return f"The risk that it isn't the best costs about {loss} on average."
    return f"Choosing it is expected to lose about {loss} against the unknown best."


def _state_estimate(ledger: Ledger, chosen: ArmStatus, rival: str | None) -> str:
    if chosen.estimate is None or chosen.interval is None:
        return ""
    mean = f"Its mean is about {_with_interval(chosen.estimate, chosen.interval, '95% interval ')}"
    if chosen.lead is None or chosen.lead_interval is None or rival is None:
        return f"{mean}, adjusted for selection."
    over = f"{rival}, the control," if rival == ledger.settings.control else rival
    lead = _with_interval(chosen.lead, chosen.lead_interval)
    return f"{mean}, and it leads {over} by about {lead}; both are adjusted for selection."


def _with_interval(value: float, interval: Interval, label: str = "") -> str:
    middle, low, high = round_together(value, *interval)
    return f"{middle} ({label}{low} to {high})"


def _compare_with_control(ledger: Ledger, chosen: ArmStatus, rival: str | None) -> str:
    lift = chosen.lift
    if lift is None:
        if rival is None or rival != ledger.settings.control:
            return ""
        shortage = _describe_shortage(ledger, rival)
        return f"It is too early to say whether it beats {rival}, the control, which {shortage}."
    if lift.beats:
        return f"It beats {lift.control}, the control{_state_gain(ledger, chosen)}."
    if lift.probability is None:
        return f"It may not beat {lift.control}, the control."
    if lift.probability > MOST_STATED:
        return f"It is ahead of {lift.control}, the control, but the interval of its lead includes 0."
    chance = format_chance(lift.probability)
    return f"It is {chance} likely to beat {lift.control}, the control, but that is not certain."


def _describe_shortage(ledger: Ledger, name: str) -> str:
    """Return what an arm lacks for a chance to be stated: rewards, or differences among them."""
    statistics = ledger.statistics[ledger.settings.arms.index(name)]
    return "has few rewards" if statistics.trials < MIN_REWARDS_FOR_CHANCE else "has rewards that hardly vary"


def _state_gain(ledger: Ledger, chosen: ArmStatus) -> str:
    lift = chosen.lift
    if lift is None or lift.money is None or lift.money_interval is None:
        return ""
    money, (low, high) = Money(lift.money, ledger.settings.currency), lift.money_interval
    ends = f"{Money(low, '').rough()} to {Money(high, '').rough()}"
    return f", which is worth about {money.rough()} ({ends})"


def _explain_stop(ledger: Ledger) -> str:
    """Say why the study stopped, in a sentence for those who pay."""
    if ledger.stopped is None:
        return ""
    if ledger.ended is not None:
        return f"The study was stopped: {ledger.ended}."
    spent, weighed = ledger.standing()[1:]
    if ledger.decision.has_broken_even and spent is not None and weighed is not None:
        return (
            f"Stopped at break-even after {ledger.settings.money(spent)}: by the rule's own estimate, the choice loses "
            "no more than that to its strongest rival."
        )
    if ledger.decision.run is not None and ledger.decision.has_stopped:  # in the words "stopped after so many trials"
        return f"The study {ledger.stopped}."
    return f"The study has stopped: {ledger.stopped}."


def _price_more(ledger: Ledger) -> str:
    """Say what another day would cost, at the pace so far; without one, some more trials."""
    times, rewards = ledger.history.times, ledger.rewards
    is_used_up = ledger.settings.pool is not None and ledger.decision.has_stopped
    if not rewards or ledger.settings.value is None or (is_used_up and not ledger.decision.has_broken_even):
        return ""
    spent = ledger.standing()[1] or 0.0
    elapsed = times[-1] - times[0]
    if elapsed >= MIN_SECONDS and not any(counts.added for counts in ledger.counts):
        per_day = ledger.settings.money(spent * SECONDS_PER_DAY / elapsed)
        return f"Another day at this pace would cost about {per_day.rough()}."
    more = ledger.settings.money(TRIALS_AHEAD * spent / rewards)
    return f"Another {TRIALS_AHEAD} trials would cost about {more.rough()}."
