"""What is believed about the arms: their means, the chances of each, and expected losses.

Means are compared as rewards count for the policy, so larger is better; what is returned is in the study's own
direction, but a lead is positive wherever an arm is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dbcare.policies.run import Comparisons
from dbcare.posterior import AlwaysValid, Posterior, expect_rewards
from dbcare.posterior.model import LEVEL, NORMAL_MARGIN, ComputedOnce, Floats
from dbcare.problem.risk import Loss
from dbcare.studies.record.statistics import ArmStatistics
from dbcare.studies.results.status import Interval
from dbcare.studies.settings import Settings


@dataclass(frozen=True)
class ArmRewards:
    """Number, mean, and sum of squared deviations of an arm's rewards, and what bounds on a bounded mean need."""

    trials: int
    mean: float
    squares: float
    variation: float = math.inf  # as in `ArmStatistics`; infinite if it is not known

    @classmethod
    def of(cls, statistics: ArmStatistics) -> ArmRewards:
        """Return those of an arm as they are now."""
        return cls(statistics.trials, statistics.mean, statistics.squares, statistics.variation)


class Beliefs:
    """What is believed about the active arms, given their rewards; all arms are numbered as in the settings."""

    def __init__(self, settings: Settings, active: Sequence[int], rewards: Iterable[ArmRewards]) -> None:
        self.settings = settings
        self.active = tuple(active)
        self.rewards = dict(zip(self.active, rewards, strict=True))
        self._place = {arm: place for place, arm in enumerate(self.active)}
        self._lead_intervals: dict[int, Floats] = {}  # of all arms, over those that were asked for

    def variance_of(self, arm: int) -> float:
        """Return the variance of a reward: the larger of what all arms share and of what the arm itself shows.

        With sigma as stated, counting as nu0 = `sigma_pulls` rewards, SS_k the sum of squares within arm k, W the sum
        of those, and N rewards of K arms, these are (nu0 sigma^2 + W)/(nu0 + N - K) and
        (nu0 sigma^2 + SS_k)/(nu0 + n_k - 1). Infinite while nothing is known, as before rewards vary.
        """
        weight, guess, largest = self._stated
        if math.isinf(weight):
            return guess
        own = self.rewards[arm]
        freedom = weight + own.trials - 1
        shown = (weight * guess + own.squares) / freedom if freedom > 0.0 else 0.0
        return min(max(self._shared_variance, shown), largest) or math.inf

    @ComputedOnce
    def _stated(self) -> tuple[float, float, float]:
        """Return the weight of the stated spread, its variance, and the largest possible one."""
        spread = self.settings.spread
        largest = math.inf if spread.largest is None else spread.largest**2
        return (0.0, 0.0, largest) if spread.guess is None else (self.settings.sigma_pulls, spread.guess**2, largest)

    @ComputedOnce
    def _shared_variance(self) -> float:
        weight, guess, _ = self._stated
        seen = [own for own in self.rewards.values() if own.trials > 0]
        freedom = weight + sum(own.trials for own in seen) - len(seen)
        within = math.fsum(own.squares for own in seen)
        return (weight * guess + within) / freedom if freedom > 0.0 else 0.0

    @ComputedOnce
    def _errors(self) -> list[float]:
        """Return the standard errors of the arms' means."""
        return [
            math.sqrt(self.variance_of(arm) / own.trials) if own.trials else math.inf
            for arm, own in self.rewards.items()
        ]

    @ComputedOnce
    def posterior(self) -> Posterior | None:
        """The posterior of the means; None until every arm has a reward and their spread is known."""
        if len(self.active) < 2 or not all(map(math.isfinite, self._errors)):
            return None
        return Posterior.from_means([self.settings.sign * own.mean for own in self.rewards.values()], self._errors)

    def expected_loss(self, arm: int) -> float | None:
        """Return what choosing an arm now is expected to lose against all others jointly, in units of the loss."""
        if self.posterior is None:
            return 0.0 if self.active == (arm,) else None
        if self.settings.risk == Loss.MISIDENTIFICATION:
            return max(0.0, 1.0 - self.posterior.chance_best(self._place[arm]))
        return self.posterior.expected_loss(self._place[arm])

    def expected_losses(self) -> list[float]:
        """Return that of every active arm, in order; none without a posterior."""
        if self.posterior is None:
            return []
        if self.settings.risk == Loss.MISIDENTIFICATION:
            return [1.0 - float(chance) for chance in self.posterior.chances]
        return [self.posterior.expected_loss(place) for place in range(len(self.active))]

    def chance_best(self, arm: int) -> float | None:
        """Return the probability that an arm is best."""
        return None if self.posterior is None else self.posterior.chance_best(self._place[arm])

    def estimate(self, arm: int) -> float | None:
        """Return an arm's mean, corrected for selection."""
        if self.posterior is None:
            return None
        return self._clip(self.settings.sign * float(self.posterior.estimates[self._place[arm]]))

    def interval(self, arm: int) -> Interval | None:
        """Return a 95% interval of an arm's mean that allows for selection, within the bounds of the rewards."""
        if self.posterior is None:
            return None
        low, high = (self.settings.sign * float(end) for end in self.posterior.intervals[self._place[arm]])
        return self._clip(min(low, high)), self._clip(max(low, high))

    def lead(self, arm: int, other: int) -> float | None:
        """Return by how much an arm is better than another, corrected for selection."""
        if self.posterior is None:
            return None
        return float(self.posterior.estimates[self._place[arm]] - self.posterior.estimates[self._place[other]])

    def lead_interval(self, arm: int, other: int) -> Interval | None:
        """Return a 95% interval of a lead that allows for selection."""
        if self.posterior is None:
            return None
        if other not in self._lead_intervals:
            self._lead_intervals[other] = self.posterior.lead_intervals(self._place[other])
        low, high = self._lead_intervals[other][self._place[arm]]
        return float(low), float(high)

    def chance_ahead(self, arm: int, other: int) -> float | None:
        """Return the probability that an arm is better than another."""
        return None if self.posterior is None else self.posterior.chance_ahead(self._place[arm], self._place[other])

    def anytime_interval(self, arm: int) -> Interval | None:
        """Return an interval of an arm's mean that holds however often one looks, together with those of all others.

        For rewards without a known range it is approximate: it takes them for normal, with the variance estimated.
        """
        if self.posterior is None:
            return None
        own = self.rewards[arm]
        if self._bounded is not None:
            low, high = map(float, self._bounded[self._place[arm]])
            return self._clip(low), self._clip(high)
        always = self._always_valid(len(self.settings.arms), arm)
        margin = always.margin(math.sqrt(self.variance_of(arm)), own.trials)
        return self._clip(own.mean - margin), self._clip(own.mean + margin)

    @ComputedOnce
    def _bounded(self) -> Floats | None:
        """Intervals that hold however often one looks, a row per arm; None where rewards have no known range."""
        from dbcare.posterior.bounded import OWN_SHARE, bound_deviations, bound_rates  # noqa: PLC0415  # imports scipy

        spread, arms = self.settings.spread, len(self.settings.arms)
        if spread.range is None or spread.width is None or spread.largest is None:
            return None
        counts, means, variation = (
            np.array([getattr(own, name) for own in self.rewards.values()], float)
            for name in ("trials", "mean", "variation")
        )
        alpha = (1.0 - LEVEL) / arms
        r = np.array([self._always_valid(arms, arm).r for arm in self.active])
        if spread.takes_binary:
            return bound_rates(np.round(counts * means), counts, r, alpha)
        deviation = (spread.sigma or OWN_SHARE * spread.largest) / spread.width
        margins = spread.width * bound_deviations(variation / spread.width**2, counts, r * deviation**2, alpha)
        return np.stack((means - margins, means + margins), axis=-1)

    def anytime_lead_interval(self, arm: int, other: int) -> Interval | None:
        """Return an interval of a lead that holds however often one looks, together with all leads over `other`.

        For bounded rewards it follows from the intervals of the two means, so it holds together with those, too.
        """
        if self.posterior is None:
            return None
        if self._bounded is not None:
            rows = [self._bounded[self._place[one]] for one in (arm, other)]
            ends = [self.settings.sign * float(rows[0][end] - rows[1][1 - end]) for end in (0, 1)]
            return min(ends), max(ends)
        pair = self.rewards[arm], self.rewards[other]
        deviations = math.sqrt(self.variance_of(arm)), math.sqrt(self.variance_of(other))
        always = self._always_valid(len(self.settings.arms) - 1, arm)
        margin = always.lead_margin(deviations, (pair[0].trials, pair[1].trials))
        lead = self.settings.sign * (pair[0].mean - pair[1].mean)
        return lead - margin, lead + margin

    def _always_valid(self, intervals: int, arm: int) -> AlwaysValid:
        cost = self.settings.costs[arm]
        sigma = self.settings.spread.guess or math.sqrt(self.variance_of(arm))
        return AlwaysValid((1.0 - LEVEL) / intervals, expect_rewards(Loss(self.settings.risk), cost, sigma))

    def _clip(self, value: float) -> float:
        """Cut a mean at the bounds of the rewards as they count."""
        low, high = self.settings.bounds or (-math.inf, math.inf)
        return min(max(value, low), self.settings.count_as(high))


class PairedBeliefs(Beliefs):
    """Beliefs from comparisons with the leader on shared blocks, at the level of the leader's own mean.

    An arm's mean is that of the leader less the leader's lead over the arm, and its error is that of the comparison
    (`policies.run`). Intervals of the means themselves also allow for what all arms share: the leader's mean
    would differ on other blocks.
    """

    def __init__(
        self, settings: Settings, active: Sequence[int], rewards: Iterable[ArmRewards], comparisons: Comparisons
    ) -> None:
        super().__init__(settings, active, rewards)
        self._plain = Beliefs(settings, active, self.rewards.values())
        self._comparisons = comparisons
        leader = self.rewards[self.active[comparisons.leader]]
        errors = comparisons.error_variances()
        self._variances = {
            arm: error * blocks if blocks else 0.0
            for arm, error, blocks in zip(self.active, errors, comparisons.blocks, strict=True)
        }
        self.rewards = {
            arm: ArmRewards(
                blocks, leader.mean - settings.sign * lead, self._variances[arm] * (blocks - 1) if blocks else 0.0
            )
            for arm, blocks, lead in zip(self.active, comparisons.blocks, comparisons.leads, strict=True)
        }

    def variance_of(self, arm: int) -> float:
        return self._variances[arm]

    def interval(self, arm: int) -> Interval | None:
        within, estimate = super().interval(arm), self.estimate(arm)
        if within is None or estimate is None:
            return None
        shared = NORMAL_MARGIN * self._level_error
        low, high = (math.hypot(end - estimate, shared) for end in within)
        return self._clip(estimate - low), self._clip(estimate + high)

    @property
    def _level_error(self) -> float:
        """The standard error of what all arms' means have in common."""
        compared = self._comparisons
        leader = self.active[compared.leader]
        own = self._plain.rewards[leader]
        common = max(0.0, self._plain.variance_of(leader) - compared.variances[compared.leader] / 2.0)
        return math.sqrt(common * max(0.0, 1.0 / own.trials - compared.share_seen))

    @property
    def _bounded(self) -> None:
        """Leads within blocks are approximate; those that follow from the means would be far wider."""
        return None

    def anytime_interval(self, arm: int) -> Interval | None:
        return None if self.posterior is None else self._plain.anytime_interval(arm)
