"""Coverage and width of the intervals of bounded means, for `benchmarks/calibration.py`."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from calibration_figures import Figures

from dbcare.live.beliefs import ArmRewards, Beliefs
from dbcare.live.settings import Settings
from dbcare.live.variety import MIN_REWARDS
from dbcare.posterior import AlwaysValid, expect_rewards
from dbcare.posterior.bounded import OWN_SHARE, log_mean_wealth, log_rate_wealth
from dbcare.risk import Loss

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
COST, MISSES = 1e-5, 0.05
MEASURED = 50  # studies whose intervals are measured; coverage counts all
RATE_1 = Settings(("A", "B"), COST, baseline=0.01)
RATE_4 = Settings(("A", "B"), COST, baseline=0.04)
RATE = Settings(("A", "B"), COST, binary=True)
RANGE = Settings(("A", "B"), COST, bounds=(0.0, 1.0))
# Settings, a draw of rewards, and their mean.
SHAPES: dict[str, tuple[Settings, Callable[[np.random.Generator, tuple[int, int]], npt.NDArray], float]] = {
    "rate of 1%": (RATE_1, lambda draw, size: draw.random(size) < 0.01, 0.01),
    "rate of 4%": (RATE_4, lambda draw, size: draw.random(size) < 0.04, 0.04),
    "rate of 50%": (RATE, lambda draw, size: draw.random(size) < 0.5, 0.5),
    "skewed": (RANGE, lambda draw, size: draw.beta(0.2, 3.8, size), 0.05),
    "two points": (RANGE, lambda draw, size: np.where(draw.random(size) < 0.05, 0.9, 0.2), 0.235),
}


def measure_bounded(figures: Figures, studies: int, rewards: int) -> None:
    """Look at bounded rewards after each of them: does an interval ever miss, and how wide are they?

    Every arm has its own rewards: a policy only chooses how fast they come. For comparison, the same for the intervals
    that take the estimated spread for the true one, which studies showed before and show for other rewards.
    """
    for (name, (settings, draw, mean)), arms in itertools.product(SHAPES.items(), (2, 8)):
        study = replace(settings, arms=tuple(f"arm {arm}" for arm in range(arms)))
        generator = np.random.default_rng([21, arms])
        held = [judge_arm(study, np.asarray(draw(generator, (studies, rewards)), float), mean) for _ in range(arms)]
        covered, plain, widths = (np.stack(part) for part in zip(*held, strict=True))
        ours, theirs = widths.mean(axis=0)
        title = f"{name}, K = {arms}, intervals at every of {rewards}: coverage"
        slack = 3.0 * math.sqrt(MISSES * (1.0 - MISSES) / studies)
        figures.add(title, float(covered.all(axis=0).mean()), 1.0 - MISSES, math.inf, slack)
        print(
            f"    approximate, once shown: {plain.all(axis=0).mean():.3f}; mean width over theirs at 100, 500, "
            f"{rewards}: {', '.join(f'{ratio:.2f}' for ratio in ours / theirs)}",
            flush=True,
        )


def judge_arm(study: Settings, drawn: Floats, mean: float) -> tuple[Flags, Flags, Floats]:
    """Return for each row of rewards whether its intervals always hold, the approximate ones too, and mean widths."""
    rewards, arms, guess = drawn.shape[1], len(study.arms), study.spread.guess or 0.0
    counts, sums = np.arange(1.0, rewards + 1.0), np.cumsum(drawn, axis=1)
    squares = np.cumsum(drawn * drawn, axis=1) - sums * sums / counts
    variation = np.zeros_like(drawn)
    variation[:, 1:] = np.cumsum((drawn[:, 1:] - sums[:, :-1] / counts[:-1]) ** 2, axis=1)
    always = AlwaysValid(MISSES / arms, expect_rewards(Loss.SIMPLE_REGRET, COST, guess))
    deviations = np.sqrt((study.sigma_pulls * guess**2 + squares) / (study.sigma_pulls - 1.0 + counts))
    margins = deviations * [always.margin(1.0, int(count)) for count in counts]
    common = np.cumsum(drawn == np.median(drawn), axis=1)  # no study shows an interval before rewards vary
    shown = counts - common >= MIN_REWARDS
    plain = np.all((np.abs(sums / counts - mean) <= margins) | ~shown, axis=1)
    if study.spread.takes_binary:
        wealth, limit = log_rate_wealth(sums, counts, mean, always.r), math.log(arms / MISSES)
    else:
        rho = always.r * (OWN_SHARE * 0.5) ** 2
        wealth = log_mean_wealth(np.abs(sums - mean * counts), 0.25 + variation, rho)
        limit = math.log(2.0 * arms / MISSES)
    widths = np.zeros((2, 3))
    for place, look in enumerate((100, 500, rewards)):
        for row in range(MEASURED):
            total, within, varied, margin = (float(part[row, look - 1]) for part in (sums, squares, variation, margins))
            seen = ArmRewards(look, total / look, within, varied)
            low, high = Beliefs(study, range(arms), [seen] * arms).anytime_interval(0) or (math.nan, math.nan)
            approximate = min(1.0, seen.mean + margin) - max(0.0, seen.mean - margin)
            widths[:, place] += (high - low) / MEASURED, approximate / MEASURED
    return np.all(wealth < limit, axis=1), plain, widths
