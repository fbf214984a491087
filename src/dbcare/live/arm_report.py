"""What a study reports about each arm; chances and intervals only where there are rewards enough for them."""

from __future__ import annotations

from dbcare.live.ledger import Ledger
from dbcare.live.recommendation import RETIRED, ArmStatus, Interval, Lift
from dbcare.live.variety import MIN_REWARDS_FOR_CHANCE
from dbcare.problem.risk import Loss


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
