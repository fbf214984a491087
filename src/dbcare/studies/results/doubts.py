"""Notes on what contradicts the assumptions of a study, or keeps it from going on.

The checks of spread and drift have a chance of a false alarm of FALSE_ALARM_CHANCE at most at any one look, for rewards
of any shape that the policies allow, if their number does not depend on them. A policy chooses it by the rewards, so
that is approximate. The check of missing answers holds at all looks together, however trials are chosen.
"""

from __future__ import annotations

import math
from operator import sub
from typing import NamedTuple

from dbcare.base.times import format_duration
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES
from dbcare.problem.risk import Loss
from dbcare.studies.options import AT_RANDOM
from dbcare.studies.record.events import EventKind
from dbcare.studies.record.ledger import Ledger, RefusalReason
from dbcare.studies.record.statistics import LARGEST_KEPT, find_heavy_tail

FALSE_ALARM_CHANCE = 1e-6  # at one look
MISSING_ALARM_CHANCE = 0.01  # in a study's whole life, however often one looks


def measure_divergence(share: float, other: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli laws."""
    total = 0.0
    for one, two in ((share, other), (1.0 - share, 1.0 - other)):
        if one > 0.0:
            total += one * math.log(one / two) if two > 0.0 else math.inf
    return total


class Shares(NamedTuple):
    """How many trials had no answer, of how many: those in the wake of a trial without one, and all others."""

    missing: int
    trials: int
    missing_in_wake: int = 0
    wake: int = 0


def weigh_shares(first: Shares, second: Shares) -> float:
    """Return the logarithm of the evidence that two groups of trials differ in missing answers.

    That is the likelihood with rates of their own, mixed over Jeffreys' priors, over the largest one with the same
    rates for both, where the rate in the wake of a missing answer is at least the other one, as in outages. If that is
    the truth, whatever the rates, and however the next one to look at is chosen, the ratio ever exceeds 1/alpha with a
    chance of at most alpha: it is never above a mixture of likelihood ratios to the truth, which is a martingale (Ville
    1939; Wasserman, Ramdas and Balakrishnan 2020).
    """
    both = Shares(*map(sum, zip(first, second, strict=True)))
    mixed = sum(_mix(own.missing, own.trials) + _mix(own.missing_in_wake, own.wake) for own in (first, second))
    if both.missing * both.wake > both.missing_in_wake * both.trials:
        return mixed - _fit(both.missing + both.missing_in_wake, both.trials + both.wake)
    return mixed - _fit(both.missing, both.trials) - _fit(both.missing_in_wake, both.wake)


def _fit(some: int, of: int) -> float:
    """Return the logarithm of the largest chance of a sequence, over all rates."""
    return sum(part * math.log(part / of) for part in (some, of - some) if part)


def _mix(some: int, of: int) -> float:
    """Return the logarithm of the mean chance of a sequence, over rates from a beta law with parameters 1/2."""
    return math.lgamma(some + 0.5) + math.lgamma(of - some + 0.5) - math.lgamma(of + 1.0) - math.log(math.pi)


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


STALL_SECONDS = 300.0  # without a new trial, although somebody asks


def is_stalled(ledger: Ledger, now: float) -> bool:
    """Return whether it has been long since a trial was handed out."""
    return ledger.asked > 0 and now - ledger.handed_out >= STALL_SECONDS


def list_stalls(ledger: Ledger, now: float) -> tuple[str, ...]:
    """Return why asks get no trial now, and what to do.

    This is noted once nothing has been handed out for STALL_SECONDS, or more asks were refused for this reason than
    granted.
    """
    reason = ledger.why_refused()
    if reason is None:
        return ()
    if is_stalled(ledger, now) and ledger.turned_away > ledger.handed_out:
        return _describe_stall(ledger, now)
    refused = ledger.refused.get(reason, 0)
    if refused <= ledger.asked:
        return ()
    count = sum(ledger.decision.pending)
    pending = "one trial is pending" if count == 1 else f"{count:,} trials are pending"
    sentence = f"at least {refused:,} asks got no trial: {pending}"
    if reason is RefusalReason.PENDING:
        return (
            f"{sentence}, and no more than {ledger.max_pending():,} may be; if rewards take long, raise this limit, "
            "max_ahead, to the number of trials that are asked while one reward is on its way",
        )
    if reason is RefusalReason.POLICY:
        policy = ledger.settings.policy_entry.label
        return (f"{sentence}, and {policy} needs their rewards to choose the next arm; tell them, or let them fail",)
    return (f"{sentence}, and may use up the budget; tell them, or let them fail",)


def _describe_stall(ledger: Ledger, now: float) -> tuple[str, ...]:
    """Describe the trials that nobody answers, if there are any."""
    unanswered = [
        (number, trial)
        for number, trial in ledger.open.items()
        if trial.status is EventKind.ASKED and trial.arm not in ledger.retired
    ]
    if not unanswered:
        return ()
    number, oldest = min(unanswered, key=lambda numbered: numbered[1].asked)
    whose = "" if oldest.worker is None else f" of worker {oldest.worker}"
    end = ledger.lease_end(oldest)
    if end is None:
        lease = "its lease never ends"
    elif end > now:
        lease = f"its lease ends in {format_duration(end - now)}"
    else:
        lease = "its lease has ended"
    have = "1 trial has" if len(unanswered) == 1 else f"{len(unanswered):,} trials have"
    return (
        f"no trial has been handed out for {format_duration(now - ledger.handed_out)}, although somebody asked: {have} "
        f"no answer, the oldest, trial {number}{whose}, for {format_duration(now - oldest.asked)}; {lease}. If nobody "
        "will answer, give such trials up, at no charge: on the study's page, by `dbcare give-up`, or by `give_up`",
    )


def list_contradictions(ledger: Ledger) -> tuple[str, ...]:
    """Return one sentence per assumption that the data contradict, or other reason to doubt the means."""
    checks = (check_cap, check_spread, check_tails, _check_drift, _check_missing, _check_expiry)
    return tuple(note for check in checks for note in check(ledger))


def list_unit_assumptions(ledger: Ledger) -> list[str]:
    """Say what the paper's rule assumes about the unit of the rewards, in a study where that matters.

    Under simple regret, delta = c / (B + x): B is the width of the bounds, or 1 if there are none, and for more than
    two arms the printed x lacks a factor c (`theory.budgets.confidence`). Rewards of 0 or 1 have no other unit.
    """
    settings = ledger.settings
    if not settings.built_policy.depends_on_unit or settings.risk != Loss.SIMPLE_REGRET or settings.spread.takes_binary:
        return []
    assumed = [] if settings.spread.width is not None else ["that means differ by at most 1"]
    if len(settings.arms) > 2:
        name = "the cost" if settings.value is None else "price / value"
        assumed.append(f"that {name}, here {max(settings.costs):.3g}, is well below 1")
    if not assumed:
        return []
    return [
        f"the paper's rule depends on the unit of the rewards: it assumes {' and '.join(assumed)}; where that does not "
        "hold in any unit, create a new study with Breakeven, which is the same in all units"
    ]


def _check_drift(ledger: Ledger) -> list[str]:
    """Check whether the earlier and later rewards of an arm differ.

    If order does not matter, the difference of the halves' means over its standard error is beyond z with a chance of
    about 2 exp(-z^2 / 2) at most: such sums, scaled by their own spread, are sub-Gaussian (Efron 1969). Arms that are
    compared within blocks may change, as long as they change together.
    """
    if ledger.settings.has_blocks:
        return []
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
        "rewards of different times don't compare; create a new study once things are stable, or one with rounds=True, "
        "which compares arms only with rewards of the same time"
    )


def _check_missing(ledger: Ledger) -> list[str]:
    """Check whether an arm's trials go without an answer more or less often than those of the others.

    Only trials whose turn has come are compared: each of them was answered, failed, or expired, and nothing after a
    pending trial counts, so trials that are merely recent neither bias the means nor raise an alarm. Observations made
    elsewhere are left out, since those are never missing.

    An outage counts as one interruption, however long it lasts: trials in the wake of one without a reward, which come
    next, or whose lease had ended when the last one was found to have expired, have a rate of missing answers of their
    own. The evidence of each arm against the others is averaged over the arms; if answers go missing regardless of the
    arm, at two constant rates, the average ever exceeds 1/alpha with a chance of at most alpha.
    """
    arms = list(zip(ledger.statistics, ledger.counts, strict=True))
    answered = [statistics.answered - counts.added for statistics, counts in arms]
    asked = [known + counts.missing for known, counts in zip(answered, ledger.counts, strict=True)]
    interruptions = [statistics.interruptions for statistics in ledger.statistics]
    if not any(interruptions):
        return []
    shares = [
        Shares(own.interruptions, all_of - own.wake, own.missing_in_wake, own.wake)
        for own, all_of in zip(ledger.statistics, asked, strict=True)
    ]
    total = Shares(*map(sum, zip(*shares, strict=True)))
    evidence = [weigh_shares(own, Shares(*map(sub, total, own))) for own in shares]
    most = max(evidence)
    mean = most + math.log(sum(math.exp(each - most) for each in evidence) / len(evidence))
    if mean <= -math.log(MISSING_ALARM_CHANCE):
        return []
    # Of two arms, both differ alike: name the one with more missing.
    rates = [own.missing / max(1, own.trials) for own in shares]
    arm = max(range(len(arms)), key=lambda place: (evidence[place], rates[place]))
    return [
        f"{ledger.settings.arms[arm]}: {answered[arm]:,} of {asked[arm]:,} trials were answered, of the others "
        f"{sum(answered) - answered[arm]:,} of {sum(asked) - asked[arm]:,} ({interruptions[arm]:,} against "
        f"{total.missing - interruptions[arm]:,} interruptions), which differs by more than chance: if "
        f"whether an answer comes depends on the reward, the means are biased{_advise_on_expiry(ledger)}"
    ]


def _check_expiry(ledger: Ledger) -> list[str]:
    """Ask what a missing answer means, once a trial of a study of rates has expired without saying so."""
    settings, expired = ledger.settings, [counts.expired for counts in ledger.counts]
    if not any(expired) or settings.missing == AT_RANDOM or not settings.spread.takes_binary:
        return []
    most = sorted(zip(settings.arms, expired, strict=True), key=lambda pair: -pair[1])[:3]
    found = ", ".join(f"{count:,} of {name}" for name, count in most if count)
    are = "1 trial has" if sum(expired) == 1 else f"{sum(expired):,} trials have"
    return [
        f"{are} expired without an answer ({found}): does that mean no? If so, their rewards are 0: pass "
        "timeout_reward=0 to ask, or to a new study. If answers go missing at random, create studies with "
        'missing="at random". Otherwise the means are biased'
    ]


def _advise_on_expiry(ledger: Ledger) -> str:
    if ledger.settings.timeout_reward is not None or not any(counts.expired for counts in ledger.counts):
        return ""
    return "; timeout_reward says what an expired trial counts as"
