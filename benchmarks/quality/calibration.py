"""Measure whether what studies say about their decision is true: losses, chances, estimates, and intervals.

In every cell, 1,000 studies by Breakeven run until they stop; their true means are drawn anew for each. What a study
says is computed as a live study computes it, and compared with the truth. Only stops that pass the gate are judged (a
chosen arm with 5 rewards that differ from its most common one; 25 for chances), and only cells with 300 of those; the
others are listed. A bar counts as met if the figure is within three standard errors of it.
"""

import itertools
import math
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchmarks.parts.bars import Bars, make_parser
from benchmarks.parts.calibration_figures import (
    Figures,
    Judged,
    list_cell,
    report,
    report_blocks,
    report_close,
    report_heavy,
)
from benchmarks.parts.stops import BlockCell, Family, StopCell, Stops, run_blocks_to_stops, run_to_stops
from dbcare import create_study
from dbcare.posterior import AlwaysValid, expect_rewards
from dbcare.posterior.bounded import OWN_SHARE, log_mean_wealth, log_rate_wealth
from dbcare.problem.risk import Loss
from dbcare.studies.record.statistics import MIN_REWARDS, MIN_REWARDS_FOR_CHANCE, ArmStatistics
from dbcare.studies.results.beliefs import ArmRewards, Beliefs
from dbcare.studies.results.report import make_recommendation
from dbcare.studies.settings import Settings

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
STUDIES = 1_000  # in each cell
COSTS = {
    Family.GAUSSIAN: (1e-3, 1e-4, 1e-5),
    Family.EVEN_RATE: (1e-4, 1e-5),
    Family.LOW_RATE: (1e-5, 1e-6),
    Family.REVENUE: (1e-5, 1e-6),
}
SHORT_COSTS = {Family.GAUSSIAN: 1e-4, Family.EVEN_RATE: 1e-4, Family.LOW_RATE: 1e-6, Family.REVENUE: 1e-5}
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


def list_block_cells() -> Iterator[BlockCell]:
    """Yield the cells of studies whose arms share blocks."""
    for correlation in (0.5, 0.9):
        yield from (BlockCell(arms, u, correlation, 1e-4) for arms in (2, 5, 20) for u in (1.0, 2.9, 9.0))
        yield from (BlockCell(5, u, correlation, 1e-4, pooled=True) for u in (1.0, 2.9, 9.0))
    yield BlockCell(5, 0.0, 0.9, 1e-4)


def list_cells(full: bool) -> Iterator[StopCell]:
    """Yield the cells: 61 by default, and 272 in full; those of two close arms are the last 8 by default."""
    spreads, arms = ((0.5, 1.0, 2.9, 9.0, 17.0), (2, 5, 20, 50)) if full else ((1.0, 2.9, 9.0), (2, 5, 20))
    for family in Family:
        for cost in COSTS[family] if full else (SHORT_COSTS[family],):
            yield from (StopCell(count, u, family, cost) for count in arms for u in spreads)
            yield from (StopCell(count, u, family, cost, True) for count in arms for u in spreads if full and u < 9.0)
        if not full:
            yield StopCell(5, 2.9, family, SHORT_COSTS[family], True)
            yield from (StopCell(count, 0.5, family, SHORT_COSTS[family]) for count in (2, 20))
        yield StopCell(5, 0.0, family, SHORT_COSTS[family])
    if not full:
        yield StopCell(50, 2.9, Family.GAUSSIAN, SHORT_COSTS[Family.GAUSSIAN])
        yield from (StopCell(2, u, family, SHORT_COSTS[family]) for family in Family for u in (2.0, 3.0))


def list_heavy_cells() -> Iterator[StopCell]:
    """Yield studies of revenue whose orders vary as in the guide (1.5), and more."""
    cost = SHORT_COSTS[Family.REVENUE]
    yield from (
        StopCell(2, u, Family.REVENUE, cost, order_deviation=each) for each in (1.5, 2.0) for u in (1.0, 2.0, 3.0)
    )


def judge(cell: StopCell | BlockCell, studies: int, seed: int) -> Judged:
    """Run a cell, and compare what is said with the truth."""
    if isinstance(cell, BlockCell):
        ended = run_blocks_to_stops(cell, studies, seed)
        rows = [judge_beliefs(stop.beliefs, stop.truth, stop.chosen, stop.trials) for stop in ended]
    else:
        stops, settings = run_to_stops(cell, studies, seed), make_settings(cell)
        rows = [row for study in range(studies) if (row := judge_stop(settings, stops, study)) is not None]
    columns = np.array(rows, dtype=np.float64).reshape(len(rows), 10).T
    return Judged(cell, studies, *columns)


def make_settings(cell: StopCell) -> Settings:
    """Return the settings of the study that a cell runs."""
    arms = tuple(f"arm {number}" for number in range(cell.arms))
    rates = {Family.EVEN_RATE: 0.5, Family.LOW_RATE: 0.04}
    if cell.family in rates:
        return Settings(arms, cell.cost, baseline=rates[cell.family])
    return Settings(arms, cell.cost, sigma=cell.deviation)


def judge_stop(settings: Settings, stops: Stops, study: int) -> list[float] | None:
    """Return one row of `Judged`; None for a stop that does not pass the gate. The control is arm 0."""
    chosen, truth = int(stops.chosen[study]), stops.truth[study]
    trials = stops.counts[study, chosen]
    if trials < MIN_REWARDS or trials - stops.repeated[study, chosen] < MIN_REWARDS:
        return None
    arms = range(len(truth))
    beliefs = Beliefs(
        settings,
        arms,
        [
            ArmRewards(int(count), float(mean), float(squares))
            for count, mean, squares in zip(stops.counts[study], stops.means[study], stops.squares[study], strict=True)
        ],
    )
    row = judge_beliefs(beliefs, truth, chosen, int(trials))
    row[-2] *= _has_variety(stops, study, 0)
    return row


def judge_beliefs(beliefs: Beliefs, truth: Floats, chosen: int, trials: int) -> list[float]:
    """Return one row of `Judged`; the control is arm 0."""
    posterior, arms = beliefs.posterior, range(len(truth))
    assert posterior is not None
    rival = max((arm for arm in arms if arm != chosen), key=lambda arm: posterior.means[arm])
    low, high = beliefs.interval(chosen) or (math.nan, math.nan)
    lead_low, lead_high = posterior.lead_interval(chosen, rival)
    beats = chosen != 0 and posterior.lead_interval(chosen, 0)[0] > 0.0
    error, mean = posterior.errors[chosen], truth[chosen]
    return [
        posterior.expected_loss(chosen),
        truth.max() - mean,
        posterior.chance_best(chosen) if trials >= MIN_REWARDS_FOR_CHANCE else math.nan,
        float(mean == truth.max()),
        (float(posterior.estimates[chosen]) - mean) / error,
        (posterior.means[chosen] - mean) / error,
        float(low <= mean <= high),
        float(lead_low <= mean - truth[rival] <= lead_high),
        float(beats),
        float(all(low <= mean <= high for arm, mean in enumerate(truth) for low, high in [always(beliefs, arm)])),
    ]


def always(beliefs: Beliefs, arm: int) -> tuple[float, float]:
    """Return the interval of an arm's mean that holds however often one looks."""
    interval = beliefs.anytime_interval(arm)
    assert interval is not None
    return interval


def _has_variety(stops: Stops, study: int, arm: int) -> bool:
    return bool(stops.counts[study, arm] - stops.repeated[study, arm] >= MIN_REWARDS)


def measure_always_valid(figures: Figures, studies: int, rewards: int) -> None:
    """Look at every arm after every reward, and ask whether its approximate interval ever missed: normal rewards.

    The stated sigma is right. For comparison, whether 1.96 standard errors around the naive mean ever missed.
    """
    settings = Settings(("A", "B", "C"), 1e-5, sigma=1.0)
    covered = usual = 0
    for seed in range(studies):
        generator = np.random.default_rng([12, seed])
        run = settings.built_policy.start(seed=seed)
        arms = [ArmStatistics() for _ in settings.arms]
        misses = usual_misses = False
        for _ in range(rewards):
            arm = run.ask()
            if arm is None:
                break
            reward = float(generator.standard_normal())
            run.tell(reward)
            arms[arm].add(reward)
            if not all(each.variety.is_enough for each in arms):
                continue
            beliefs = Beliefs(settings, range(3), map(ArmRewards.of, arms))
            low, high = beliefs.anytime_interval(arm) or (0.0, 0.0)
            misses |= not low <= 0.0 <= high
            error = math.sqrt(beliefs.variance_of(arm) / arms[arm].trials)
            usual_misses |= abs(arms[arm].mean) > 1.96 * error
        covered += not misses
        usual += not usual_misses
    slack = 3.0 * math.sqrt(0.05 * 0.95 / studies)
    name = f"normal rewards, approximate intervals at every of {rewards}: coverage"
    figures.add(name, covered / studies, 0.95, math.inf, slack)
    print(f"{'  for comparison, the usual intervals':<66} {usual / studies:>8.3f}", flush=True)


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


def measure_time(figures: Figures) -> None:
    """Time `recommendation()` of studies that have stopped, whose figures have to be computed."""
    for arms, bar in ((3, 3.0), (50, 15.0)):
        names = [f"arm {number}" for number in range(arms)]
        study = create_study(f"timed, {arms}", names, cost=1e-4, sigma=1.0, control=names[0])
        generator = np.random.default_rng(arms)
        true = dict(zip(names, 0.15 * generator.standard_normal(arms), strict=True))
        while (trial := study.ask()) is not None:
            study.tell(trial, float(generator.normal(true[trial.arm])))
        times = []
        with study._ledger.read() as transaction:  # type: ignore[attr-defined]  # a fresh computation each time
            for _ in range(50):
                transaction.ledger._beliefs = None
                start = time.perf_counter()
                make_recommendation(transaction.ledger)
                times.append(1e3 * (time.perf_counter() - start))
        figures.add(
            f"milliseconds of recommendation(), K = {arms}, median of 50", float(np.median(times)), -math.inf, bar
        )


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--full", action="store_true", help="all cells")
    bars = Bars(__doc__, options := parser.parse_args())
    figures, studies = Figures(), bars.size(STUDIES, 100)
    measure_time(figures)
    measure_always_valid(figures, studies, 300)
    measure_bounded(figures, studies, 2_000)
    heavy = list(list_heavy_cells())
    cells: list[StopCell | BlockCell] = [*list_cells(options.full), *heavy, *list_block_cells()]
    run_to_stops(StopCell(2, 1.0, Family.GAUSSIAN, 1e-2), 1, 0)  # compile before others need it
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        judged = list(pool.map(judge, cells, itertools.repeat(studies), range(len(cells))))
    report(figures, [each for each in judged if isinstance(each.cell, StopCell) and each.cell not in heavy])
    report_close(figures, judged)
    report_heavy([each for each in judged if each.cell in heavy])
    report_blocks(figures, [each for each in judged if isinstance(each.cell, BlockCell)])
    bars.figures = figures.rows
    bars.save(cells=[list_cell(each) for each in judged])
