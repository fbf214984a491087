"""Guard rails: what a study's own data say against what was taken for granted.

Each check has a bound on its chance of a false alarm at any one look, ALARM, which holds for rewards of any shape that
the policies allow, not only for normal ones, and needs no table.
"""

from __future__ import annotations

import math

from dbcare.live.ledger import Ledger

ALARM = 1e-6
MATERIAL = 0.1  # a spread that is off by less than this share is not worth a word


def notes_of(ledger: Ledger) -> tuple[str, ...]:
    """What a person should know, a sentence each; none while all is as it should be."""
    return (*_spread(ledger), *_drift(ledger), *_ratio(ledger))


def _spread(ledger: Ledger) -> list[str]:
    """Rewards that spread by more, or less, than sigma.

    For rewards that are sub-Gaussian with sigma, the sum of N squared deviations, S, exceeds
    sigma^2 (N + 2 sqrt(N x) + 2 x) with a chance of at most exp(-x) (Laurent and Massart 2000; Hsu et al. 2012); for
    normal ones it falls below sigma^2 (nu - 2 sqrt(nu x)) with nu = N - K no more often than that.
    """
    settings = ledger.settings
    sigma = settings.spread
    seen = [tally for tally in ledger.tallies if tally.trials > 1]
    rewards = sum(tally.trials for tally in seen)
    freedom = rewards - len(seen)
    if sigma is None or freedom < 1:
        return []
    x = math.log(2.0 / ALARM)
    squares = sum(tally.squares for tally in seen) / sigma**2
    found = math.sqrt(squares / freedom) * sigma
    if squares > rewards + 2.0 * math.sqrt(rewards * x) + 2.0 * x and found > (1.0 + MATERIAL) * sigma:
        guarded = (
            "the policy goes by what it sees, but its bounds are void"
            if settings.policy == "breakeven"
            else "the study may stop too early; policy breakeven would guard against it"
        )
        return [f"rewards spread by {found:.3g}, more than sigma = {sigma:g} allows: {guarded}"]
    if (
        settings.sigma is not None
        and squares < freedom - 2.0 * math.sqrt(freedom * x)
        and found < (1.0 - MATERIAL) * sigma
    ):
        return [
            f"rewards spread by {found:.3g} only, while sigma = {sigma:g} was stated: "
            "the study takes more trials than it needs"
        ]
    return []


def _drift(ledger: Ledger) -> list[str]:
    """Arms whose earlier and later rewards differ.

    If order does not matter, the difference of the halves' means over its standard error is beyond z with a chance of
    about 2 exp(-z^2 / 2) at most: such sums, scaled by their own spread, are sub-Gaussian (Efron 1969).
    """
    limit = math.sqrt(2.0 * math.log(2.0 * len(ledger.tallies) / ALARM))
    notes = []
    for name, tally in zip(ledger.settings.arms, ledger.tallies, strict=True):
        halves = tally.halves()
        if halves is None or tally.squares == 0.0:
            continue
        (early, before), (later, after) = halves
        error = math.sqrt(tally.squares / tally.trials * (1.0 / early + 1.0 / later))
        if abs(after - before) > limit * error:
            notes.append(
                f"{name}: its first {early} rewards have the mean {before:.4g}, the {later} after them {after:.4g}: "
                "it changes with time, and a mean over all of it may mislead"
            )
    return notes


def _ratio(ledger: Ledger) -> list[str]:
    """Arms that are answered less, or more, often than the others; an outage counts once, however long it lasts.

    If answers are missing without regard to the arm, an arm's share of missing ones, a, is so far from that of all, b,
    with a chance of at most exp(-n KL(a, b)) to either side (Hoeffding 1963: also for draws without replacement).
    """
    missing = sum(tally.interruptions for tally in ledger.tallies)
    trials = missing + sum(tally.answered for tally in ledger.tallies)
    limit = math.log(2.0 * len(ledger.tallies) / ALARM)
    notes = []
    for name, tally in zip(ledger.settings.arms, ledger.tallies, strict=True):
        own = tally.answered + tally.interruptions
        if own and own * _divergence(tally.interruptions / own, missing / trials) > limit:
            notes.append(
                f"{name}: answers failed to come {tally.interruptions} times in {own}, those of the others "
                f"{missing - tally.interruptions} times in {trials - own}: if it depends on the reward which of them "
                "are missing, means mislead"
            )
    return notes


def _divergence(share: float, other: float) -> float:
    """Kullback-Leibler, of two Bernoulli laws."""
    total = 0.0
    for one, two in ((share, other), (1.0 - share, 1.0 - other)):
        if one > 0.0:
            total += one * math.log(one / two) if two > 0.0 else math.inf
    return total
