"""Diagnostics: which of a study's assumptions its own data contradict, and what else speaks against its means.

The checks of spread and drift have a chance of a false alarm of FALSE_ALARM_CHANCE at most at any one look, for rewards
of any shape that the policies allow, if their number does not depend on them. A policy chooses it by the rewards, so
that is approximate. The check of missing answers holds at all looks together, however trials are chosen.
"""

from __future__ import annotations

import math

from dbcare.live.ledger import Ledger
from dbcare.live.reward_notes import check_cap, check_spread, check_tails
from dbcare.live.significance import FALSE_ALARM_CHANCE, measure_divergence


def list_contradictions(ledger: Ledger) -> tuple[str, ...]:
    """Return one sentence per assumption that the data contradict, or other reason to doubt the means."""
    checks = (check_cap, check_spread, check_tails, _check_drift, _check_sample_ratio)
    return tuple(note for check in checks for note in check(ledger))


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


def _check_sample_ratio(ledger: Ledger) -> list[str]:
    """Check whether an arm's trials are answered more or less often than those of the others: against what was asked.

    Only trials whose turn has come are compared: each of them was answered, failed or expired, and nothing after a
    pending trial counts, so trials that are merely recent neither bias the means nor raise an alarm. Observations made
    elsewhere are left out, since those are never missing.

    An outage counts as one interruption, however long it lasts. If answers are missing regardless of the arm, an arm's
    share of interruptions, a, is so far from that of all, b, with a chance of at most exp(-n KL(a, b)) to either side
    (Hoeffding 1963: also for draws without replacement). That holds for small counts, where chi-square would not.
    """
    arms = list(zip(ledger.statistics, ledger.counts, strict=True))
    answered = [statistics.answered - counts.added for statistics, counts in arms]
    asked = [known + counts.missing for known, counts in zip(answered, ledger.counts, strict=True)]
    interruptions = [statistics.interruptions for statistics in ledger.statistics]
    compared = [known + interrupted for known, interrupted in zip(answered, interruptions, strict=True)]
    limit = math.log(2.0 * len(arms) / FALSE_ALARM_CHANCE)
    overall = sum(interruptions) / max(1, sum(compared))
    notes = []
    for arm, name in enumerate(ledger.settings.arms):
        size = compared[arm]
        if size and size * measure_divergence(interruptions[arm] / size, overall) > limit:
            notes.append(
                f"{name}: {answered[arm]:,} of {asked[arm]:,} trials asked were answered, of the others "
                f"{sum(answered) - answered[arm]:,} of {sum(asked) - asked[arm]:,} (sample-ratio mismatch, with "
                f"{interruptions[arm]:,} against {sum(interruptions) - interruptions[arm]:,} interruptions): "
                "if an answer depends on the reward, the means are biased"
            )
    return notes
