"""Diagnostics: which of a study's assumptions its own data contradict.

Each check has a bound on its chance of a false alarm at any one look, FALSE_ALARM_CHANCE, which holds for rewards of
any shape that the policies allow, not only for normal ones, and needs no table.
"""

from __future__ import annotations

import math

from dbcare.live.ledger import Ledger
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES

FALSE_ALARM_CHANCE = 1e-6
MIN_RELATIVE_ERROR = 0.1  # a spread that is off by a smaller share is not worth mentioning


def list_contradictions(ledger: Ledger) -> tuple[str, ...]:
    """Return one sentence per assumption that the data contradict."""
    return (*_check_spread(ledger), *_check_drift(ledger), *_check_missing(ledger))


def _check_spread(ledger: Ledger) -> list[str]:
    """Check whether rewards spread by more, or less, than sigma.

    For rewards that are sub-Gaussian with sigma, the sum of N squared deviations, S, exceeds
    sigma^2 (N + 2 sqrt(N x) + 2 x) with a chance of at most exp(-x) (Laurent and Massart 2000; Hsu et al. 2012); for
    normal ones it falls below sigma^2 (nu - 2 sqrt(nu x)) with nu = N - K no more often than that.
    """
    settings = ledger.settings
    sigma = settings.spread
    arms = [statistics for statistics in ledger.statistics if statistics.trials > 1]
    rewards = sum(statistics.trials for statistics in arms)
    freedom = rewards - len(arms)
    if sigma is None or freedom < 1:
        return []
    x = math.log(2.0 / FALSE_ALARM_CHANCE)
    squares = sum(statistics.squares for statistics in arms) / sigma**2
    observed = math.sqrt(squares / freedom) * sigma
    if squares > rewards + 2.0 * math.sqrt(rewards * x) + 2.0 * x and observed > (1.0 + MIN_RELATIVE_ERROR) * sigma:
        consequence = (
            "the policy adapts to the rewards, but its bounds no longer hold"
            if settings.built_policy.learns_spread
            else f"the study may stop too early; {POLICIES[DEFAULT_POLICY].label} would notice"
        )
        return [f"rewards have a standard deviation of {observed:.3g}, more than sigma = {sigma:g}: {consequence}"]
    if (
        settings.sigma is not None
        and squares < freedom - 2.0 * math.sqrt(freedom * x)
        and observed < (1.0 - MIN_RELATIVE_ERROR) * sigma
    ):
        return [
            f"rewards have a standard deviation of only {observed:.3g}, and sigma = {sigma:g} was stated: "
            "the study takes more trials than it needs"
        ]
    return []


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
                "it changes over time, and its overall mean may be misleading"
            )
    return notes


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
        if asked and asked * _divergence(statistics.interruptions / asked, missing / trials) > limit:
            notes.append(
                f"{name}: rewards failed to arrive {statistics.interruptions} times in {asked}, those of the others "
                f"{missing - statistics.interruptions} times in {trials - asked}: if that depends on the reward, "
                "the means may be biased"
            )
    return notes


def _divergence(share: float, other: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli laws."""
    total = 0.0
    for one, two in ((share, other), (1.0 - share, 1.0 - other)):
        if one > 0.0:
            total += one * math.log(one / two) if two > 0.0 else math.inf
    return total
