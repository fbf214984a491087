"""Results in words: verdicts, settings, rewards and counts."""

from __future__ import annotations

import math

from dbcare.base.numbers import MOST_STATED, Money, format_chance, round_together
from dbcare.base.times import SECONDS_PER_DAY, format_duration, spell_duration
from dbcare.problem.risk import Loss
from dbcare.problem.spread import DEFAULT_SIGMA_PULLS
from dbcare.studies.options import AT_RANDOM
from dbcare.studies.record.ledger import Ledger
from dbcare.studies.record.statistics import MIN_REWARDS_FOR_CHANCE
from dbcare.studies.results.status import ArmStatus, Interval, Recommendation, Status
from dbcare.studies.settings import Settings
from dbcare.studies.stores.base import UNDECIDED


def describe_uncounted(status: Status, currency: str | None) -> list[str]:
    """Return one phrase for each reason why trials were charged and not counted, with their number and cost."""
    after = "answered after the stop"
    if status.late_expired:
        answered = status.late - status.late_expired
        after = f"after the stop: {answered:,} answered, {status.late_expired:,} expired"
    reasons = (
        (status.late, status.late_cost, after),
        (status.failed, status.failed_cost, "failed and charged"),
        (status.surplus, status.surplus_cost, "answered after being replaced"),
    )
    return [f"{count:,} {what} ({Money(cost, currency)})" for count, cost, what in reasons if count]


def describe_rewards(settings: Settings) -> str:
    """Return what rewards look like, such as "0 or 1, usually about 4%"."""
    parts = []
    if settings.spread.takes_binary:
        parts.append("0 or 1")
    elif settings.bounds is not None:
        parts.append(f"{settings.bounds[0]:.4g} to {settings.bounds[1]:.4g}")
    if settings.baseline is not None:
        parts.append(f"usually about {100.0 * settings.baseline:.3g}%{_format_weight(settings)}")
    elif settings.sigma is not None:
        about = "about " if _takes_guess(settings) else ""
        guess = _format_weight(settings) or (" (a guess)" if about else "")
        parts.append(f"standard deviation {about}{settings.sigma:.4g}{guess}")
    elif not settings.spread.is_stated:
        parts.append("spread learned from them")
    if settings.cap is not None:
        parts.append(f"capped at {settings.cap:.4g}")
    return ", ".join(parts)


def explain_learning(settings: Settings, limit_name: str) -> str | None:
    """Explain what follows where nothing is stated about the spread; None where it is.

    `limit_name` is what the option for a limit on spending is called where this is shown.
    """
    if settings.spread.is_stated:
        return None
    learned = "Nothing is stated about the spread of the rewards, so the study learns it from them"
    limit = min(getattr(settings.built_policy, "max_spend", math.inf), settings.max_spend or math.inf)
    if math.isinf(limit):
        return f"{learned}. No limit on spending is promised unless you set {limit_name}."
    prices = " at the stated prices" if settings.has_blocks else ""
    return f"{learned}. It stops before it spends more than {settings.money(limit)}{prices}, pending trials aside."


def _takes_guess(settings: Settings) -> bool:
    """Return whether the policy takes a stated spread for a guess."""
    return "sigma_pulls" in settings.policy_entry.options and not math.isinf(settings.sigma_pulls)


def _format_weight(settings: Settings) -> str:
    if "sigma_pulls" not in settings.policy_entry.options or settings.sigma_pulls == DEFAULT_SIGMA_PULLS:
        return ""
    if math.isinf(settings.sigma_pulls):
        return " (known for certain)"
    noun = "reward" if settings.sigma_pulls == 1.0 else "rewards"
    return f" (a guess worth {settings.sigma_pulls:g} {noun})"


def describe_settings(settings: Settings, max_ahead: int | None) -> list[tuple[str, str]]:
    """Return labels and texts of the settings; `max_ahead` is as in `Status`, since it may have been changed."""
    prices = dict.fromkeys(str(settings.money(cost)) for cost in settings.costs)
    regret = settings.risk == Loss.SIMPLE_REGRET
    limit = settings.max_spend
    rows = [
        ("Price of a trial", ", ".join(prices)),
        ("A wrong choice loses", "its gap in means" if regret else "the same whatever the gap"),
        ("Goal", settings.direction),
        ("Control", settings.control or "none"),
        ("Rewards", describe_rewards(settings)),
        ("Policy", settings.policy_entry.label),
        ("Does not stop before", _describe_wait(settings)),
        ("Budget", "no limit" if limit is None else str(settings.money(limit))),
        ("Max pending trials", _describe_limit(settings, max_ahead)),
        (
            "Expired trials",
            _describe_expiry(settings),
        ),
        ("Seed", str(settings.seed)),
    ]
    if settings.has_blocks:
        rows.insert(-1, ("Blocks", _describe_blocks(settings)))
    if settings.value is not None:
        worth = "One unit of reward is worth" if regret else "A wrong choice costs"
        rows.insert(1, (worth, str(Money(settings.value, settings.currency))))
    return rows


def _describe_wait(settings: Settings) -> str:
    if not settings.not_before:
        return "any time"
    if settings.wait_seconds:
        return f"{spell_duration(settings.wait_seconds)} after the first trial"
    return f"{settings.not_before:,} rewards"


def _describe_limit(settings: Settings, max_ahead: int | None) -> str:
    if max_ahead is not None:
        return f"{max_ahead:,}"
    return "twice the workers; no limit for units" if settings.timeout_reward is None else "no limit"


def _describe_expiry(settings: Settings) -> str:
    if settings.timeout_reward is not None:
        return f"count as {settings.timeout_reward:.4g}"
    fate = "leave their block without that arm" if settings.has_blocks else "are replaced"
    return f"{fate}; answers go missing at random" if settings.missing == AT_RANDOM else fate


def _describe_blocks(settings: Settings) -> str:
    if settings.pool is None:
        return "rounds of trials that run at the same time"
    scope = "only these matter" if settings.only_these_blocks else "more like them matter too"
    return f"a pool of {settings.pool:,}; {scope}"


UNKNOWN = "-"


def format_capped(status: Status) -> str:
    """Return how many rewards of each arm were above the cap."""
    return ", ".join(f"{arm.name} {arm.capped:,}" for arm in status.arms)


def format_best(arm: ArmStatus) -> str:
    """Return the probability of being best."""
    return UNKNOWN if arm.probability_best is None else format_chance(arm.probability_best)


def format_lift(arm: ArmStatus) -> str:
    """Return the lift over the control, relative to it where that makes sense; a star marks what beats it."""
    lift = arm.lift
    if lift is None:
        return UNKNOWN
    value = f"{lift.absolute:+.3g}" if lift.relative is None else f"{100.0 * lift.relative:+.3g}%"
    return f"{value}{'*' if lift.beats else ''}"


def format_counts(settings: Settings, status: Status) -> str:
    """Return how many rewards are counted, what else was charged, and how many trials are pending and held."""
    oldest = "" if status.oldest is None or status.oldest < 1.0 else f" (oldest: {format_duration(status.oldest)})"
    uncounted = "".join(f", {phrase}" for phrase in describe_uncounted(status, settings.currency))
    counts = f"{status.rewards:,} counted{uncounted}, {status.waiting:,} pending{oldest}, {status.held:,} held"
    return counts if status.blocks_used is None else f"{counts}; {format_blocks(status)}"


def format_blocks(status: Status) -> str:
    """Return how many blocks have been used: of a pool, or rounds."""
    if status.blocks is not None:
        return f"{status.blocks_used:,} of {status.blocks:,} blocks used"
    return "1 round" if status.blocks_used == 1 else f"{status.blocks_used:,} rounds"


def format_spending(settings: Settings, choice: Recommendation) -> str:
    """Return what has been spent, and what stopping is expected to lose."""
    spent = str(Money(choice.spent, settings.currency))
    if choice.expected_loss is None:
        return spent
    loss = Money(choice.expected_loss, settings.currency)
    return f"{spent}; expected loss of {'the choice' if choice.final else 'stopping now'}: {loss}"


def format_number(number: float | None) -> str:
    """Return a number with four digits."""
    return UNKNOWN if number is None else f"{number:.4g}"


def format_estimate(arm: ArmStatus) -> tuple[str, str]:
    """Return an arm's estimate and its interval, with digits that the interval supports."""
    if arm.estimate is None or arm.interval is None:
        return UNKNOWN, UNKNOWN
    estimate, low, high = round_together(arm.estimate, *arm.interval, digits=3)
    return estimate, f"{low} to {high}"


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
