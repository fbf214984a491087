"""Notes on rewards: their spread against the stated one, heavy tails, and a cap that hides everything."""

from __future__ import annotations

import math

from dbcare.live.ledger import Ledger
from dbcare.live.significance import FALSE_ALARM_CHANCE, measure_divergence
from dbcare.live.tail import LARGEST_KEPT, find_heavy_tail
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES

MIN_RELATIVE_ERROR = 0.1  # a sigma that a policy relies on and that is off by a smaller share is not worth mentioning
MIN_FACTOR_LEARNED = 1.5  # nor is one that a policy corrects, unless it is off by this factor


def check_cap(ledger: Ledger) -> list[str]:
    """Check whether every reward so far, of every arm, was above the cap."""
    arms = [ledger.statistics[arm] for arm in ledger.decision.active]
    cap = ledger.settings.cap
    if cap is None or any(arm.trials == 0 or arm.capped < arm.trials for arm in arms):
        return []
    return [
        f"the cap of {cap:g} is below every reward so far, so all arms look the same: "
        "create a new study with a higher cap"
    ]


def check_spread(ledger: Ledger) -> list[str]:
    """Check whether rewards spread by more, or less, than stated.

    A policy that learns the spread corrects what was stated, so only a large difference is worth a note. Where rewards
    are unbounded, nothing shows that they spread by less: those seen may have missed a tail.
    """
    if ledger.settings.baseline is not None:
        return _check_baseline(ledger)
    return _check_too_small(ledger) or _check_too_large(ledger)


def _learns(ledger: Ledger) -> bool:
    settings = ledger.settings
    return settings.built_policy.learns_spread and not math.isinf(settings.sigma_pulls)


def _check_baseline(ledger: Ledger) -> list[str]:
    """Check whether the rate of rewards of 0 or 1 is far from the stated one.

    If it were the stated one, p, the share of ones among N rewards, a, would be that far from it with a chance of at
    most exp(-N KL(a, p)) to either side (Hoeffding 1963).
    """
    baseline, guess = ledger.settings.baseline, ledger.settings.spread.guess
    rewards = sum(arm.trials for arm in ledger.statistics)
    takes_guess = "sigma_pulls" in ledger.settings.policy_entry.options
    if baseline is None or guess is None or not rewards or not takes_guess:
        return []  # the others rely on the largest possible spread
    rate = min(1.0, max(0.0, sum(arm.mean * arm.trials for arm in ledger.statistics) / rewards))
    if rewards * measure_divergence(rate, baseline) <= math.log(2.0 / FALSE_ALARM_CHANCE):
        return []
    factor = math.sqrt(rate * (1.0 - rate)) / guess
    found = f"rewards are 1 in {100.0 * rate:.3g}% of trials, and a usual rate of {100.0 * baseline:.3g}% was stated"
    if not _learns(ledger):
        return [f"{found} for certain: the study may stop too early"] if factor > 1.0 + MIN_RELATIVE_ERROR else []
    if 1.0 / MIN_FACTOR_LEARNED < factor < MIN_FACTOR_LEARNED:
        return []
    return [f"{found}: the policy adapts, but a plan made for that rate does not describe this study"]


def _check_too_small(ledger: Ledger) -> list[str]:
    """Check whether rewards spread by more than sigma.

    For rewards that are sub-Gaussian with sigma, the sum of N squared deviations exceeds
    sigma^2 (N + 2 sqrt(N x) + 2 x) with a chance of at most exp(-x) (Laurent and Massart 2000; Hsu et al. 2012).
    """
    settings, sigma = ledger.settings, ledger.settings.spread.certain
    arms = [arm for arm in ledger.statistics if arm.trials > 1]
    if sigma is None or not arms:
        return []
    rewards = sum(arm.trials for arm in arms)
    squares = sum(arm.squares for arm in arms)
    observed = math.sqrt(squares / (rewards - len(arms)))
    x = math.log(2.0 / FALSE_ALARM_CHANCE)
    learns = _learns(ledger)
    least = MIN_FACTOR_LEARNED if learns else 1.0 + MIN_RELATIVE_ERROR
    if squares / sigma**2 <= rewards + 2.0 * math.sqrt(rewards * x) + 2.0 * x or observed <= least * sigma:
        return []
    believed = settings.built_policy.believed_sigma
    if learns and observed > believed:
        consequence = (
            f"the policy believes at most {believed:g}, so the study may stop too early; create a new one with a "
            "larger sigma"
        )
    elif learns:
        consequence = "the policy adapts, and takes longer than a plan with that sigma says"
    elif math.isinf(settings.sigma_pulls):
        consequence = "the study may stop too early, since it takes sigma for certain"
    else:
        consequence = f"the study may stop too early; {POLICIES[DEFAULT_POLICY].label} would learn the spread"
    return [f"rewards have a standard deviation of {observed:.3g}, more than sigma = {sigma:g}: {consequence}"]


def _check_too_large(ledger: Ledger) -> list[str]:
    """Check whether rewards spread by less than a sigma that the policy relies on.

    For N rewards within bounds of width w, their standard deviation exceeds the observed one by more than
    w sqrt(2 x/(N - 1)) with a chance of at most exp(-x) (Maurer and Pontil 2009).
    """
    sigma, width = ledger.settings.sigma, ledger.settings.spread.width
    if sigma is None or width is None or _learns(ledger):
        return []
    x = math.log(len(ledger.statistics) / FALSE_ALARM_CHANCE)
    largest = 0.0
    for arm in ledger.statistics:
        if arm.trials < 2:
            return []
        largest = max(largest, math.sqrt(arm.variance) + width * math.sqrt(2.0 * x / (arm.trials - 1)))
    if largest >= (1.0 - MIN_RELATIVE_ERROR) * sigma:
        return []
    return [
        f"no arm has a standard deviation above {largest:.3g}, and sigma = {sigma:g} was stated: "
        "the study takes more trials than it needs"
    ]


def check_tails(ledger: Ledger) -> list[str]:
    """Check whether an arm's mean rests on few rewards, and say what a cap would do, unless one is at work."""
    found = []
    if any(arm.capped for arm in ledger.statistics):
        return []
    for name, arm in zip(ledger.settings.arms, ledger.statistics, strict=True):
        effect = find_heavy_tail(arm.tail, arm.trials, arm.mean, arm.squares)
        if effect is not None:
            found.append((effect.share_removed, name, arm, effect))
    if not found:
        return []
    _, name, arm, effect = max(found, key=lambda entry: entry[0])
    others = len(found) - 1
    too = "" if not others else ", as does another arm's" if others == 1 else f", as do those of {others} other arms"
    lower = "" if ledger.settings.cap is None else "lower "
    note = (
        f"{name}: its mean of {arm.mean:.4g} rests on few rewards{too} (without the {LARGEST_KEPT} largest of "
        f"{arm.trials:,} it is {effect.mean_without_largest:.4g})"
    )
    if not effect.leaves_spread:
        return [note]
    return [
        f"{note}; in a new study, a {lower}cap of {effect.cap:.3g} would make its mean {effect.mean:.4g} and its "
        f"standard deviation {math.sqrt(effect.variance):.3g} instead of {math.sqrt(arm.variance):.3g}"
    ]
