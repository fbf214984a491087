"""Diagnostics: which of a study's assumptions its own data contradict, and what else speaks against its means.

Each check but that for heavy tails has a bound on its chance of a false alarm at any one look, FALSE_ALARM_CHANCE,
which holds for rewards of any shape that the policies allow, not only for normal ones, and needs no table.
"""

from __future__ import annotations

import math

from dbcare.live.ledger import Ledger
from dbcare.live.reward_notes import check_cap, check_spread, check_tails
from dbcare.live.significance import FALSE_ALARM_CHANCE, measure_divergence


def list_contradictions(ledger: Ledger) -> tuple[str, ...]:
    """Return one sentence per assumption that the data contradict, or other reason to doubt the means."""
    checks = (check_cap, check_spread, check_tails, _check_drift, _check_missing)
    return tuple(note for check in checks for note in check(ledger))


def _check_drift(ledger: Ledger) -> list[str]:
    """Check whether the earlier and later rewards of an arm differ.

    If order does not matter, the difference of the halves' means over its standard error is beyond z with a chance of
    about 2 exp(-z^2 / 2) at most: such sums, scaled by their own spread, are sub-Gaussian (Efron 1969).
    """
    limit = math.sqrt(2.0 * math.log(2.0 * len(ledger.statistics) / FALSE_ALARM_CHANCE))
    notes = []
    for name, statistics in zip(ledger.settings.arms, ledger.statistics, strict=True):
        halves = statistics.halves()
        if halves is None or statistics.squares == 0.0:
            continue
        (early, before), (later, after) = halves
        error = math.sqrt(statistics.squares / statistics.trials * (1.0 / early + 1.0 / later))
        if abs(after - before) > limit * error:
            notes.append(
                f"{name}: its first {early} rewards have a mean of {before:.4g}, the {later} after them {after:.4g}: "
                f"it changes over time, and {_advise_on_drift(ledger)}"
            )
    return notes


def _advise_on_drift(ledger: Ledger) -> str:
    policy = ledger.settings.built_policy
    if policy.rule.send is None and policy.upcoming(policy.start().state) is not None:
        return (
            "unless all arms change alike, which does no harm to a policy that tries them equally often, its overall "
            "mean misleads; create a new study once things are stable"
        )
    return (
        "rewards of different times don't compare; create a new study once things are stable, or one with the policy "
        "breakeven-racing, which tries all active arms equally often at all times (it needs a stated spread, and the "
        "same price for all arms)"
    )


def _check_missing(ledger: Ledger) -> list[str]:
    """Check whether an arm's rewards go missing more or less often than those of the others.

    An outage counts once, however long it lasts. If rewards are missing regardless of the arm, an arm's share of
    missing ones, a, is so far from that of all, b, with a chance of at most exp(-n KL(a, b)) to either side
    (Hoeffding 1963: also for draws without replacement).
    """
    missing = sum(statistics.interruptions for statistics in ledger.statistics)
    trials = missing + sum(statistics.answered for statistics in ledger.statistics)
    limit = math.log(2.0 * len(ledger.statistics) / FALSE_ALARM_CHANCE)
    notes = []
    for name, statistics in zip(ledger.settings.arms, ledger.statistics, strict=True):
        asked = statistics.answered + statistics.interruptions
        if asked and asked * measure_divergence(statistics.interruptions / asked, missing / trials) > limit:
            notes.append(
                f"{name}: rewards failed to arrive {statistics.interruptions} times in {asked}, those of the others "
                f"{missing - statistics.interruptions} times in {trials - asked}: if that depends on the reward, "
                "the means may be biased"
            )
    return notes
