"""Diagnostics: which of a study's assumptions its own data contradict, and what else speaks against its means.

The checks of spread and drift have a chance of a false alarm of FALSE_ALARM_CHANCE at most at any one look, for rewards
of any shape that the policies allow, if their number does not depend on them. A policy chooses it by the rewards, so
that is approximate. The check of missing answers holds at all looks together, however trials are chosen.
"""

from __future__ import annotations

import math
from operator import sub

from dbcare.live.ledger import Ledger
from dbcare.live.options import AT_RANDOM
from dbcare.live.reward_notes import check_cap, check_spread, check_tails
from dbcare.live.significance import FALSE_ALARM_CHANCE, MISSING_ALARM_CHANCE, Shares, weigh_shares
from dbcare.problem.risk import Loss


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
