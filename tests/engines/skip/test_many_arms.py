"""The skip-ahead kernels against laws computed, and against runs drawn, by independent code.

Two arms: the law of (stopping epoch, side) by quadrature (`WalkLaw`), and the exact engine for long runs. More arms:
`draw_runs`, which draws every pull and implements the elimination rule as written here.

Error rate: each comparison fails for a correct kernel with probability at most ALPHA = 4e-9 over the choice of the
seeds, which are fixed; there are fewer than 150, so less than 1e-6 in all. Two samples are compared by
`list_discrepancies`, which lists its tests. Against a known law:
- Shares: exact binomial tails.
- Distribution functions: Dvoretzky-Kiefer-Wolfowitz, 2 exp(-2 N t^2) (Massart).
- Means of pulls: Bernstein's inequality.
- Stopping epoch and side jointly: Pearson's statistic over cells of at least 200 expected runs, whose tail at ALPHA is
  close enough to that of the chi-square law.
Negative controls: kernels whose check for crossings, or for drops while every pull is drawn, is blinded, and laws that
are slightly wrong.
"""

import math
from dataclasses import replace
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numba import njit
from scipy.stats import binom, chi2, norm

from dbcare.engines.exact.gaussian import two_arm_gaussian
from dbcare.engines.kernels.compile import OPTIONS
from dbcare.engines.kernels.compile import kernel as compile_kernel
from dbcare.engines.simulate.draws import GaussianArms
from dbcare.engines.simulate.outcomes import Tallies
from dbcare.engines.skip import many_arms as skip_many
from dbcare.engines.skip import two_arms as skip_two
from dbcare.engines.skip.first_drop import close_arms
from dbcare.policies.breakeven.racing import BreakevenRacing
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.elimination import RULE, EliminationPolicy, EliminationTables, idle
from dbcare.policies.elimination.racing import Racing, TwoArmConfidence
from dbcare.policies.epochs import EpochRule, state_size
from dbcare.problem.risk import Risk
from tests.helpers.run_laws import ALPHA, Runs, list_discrepancies

pytestmark = pytest.mark.statistical

Floats = npt.NDArray[np.float64]


def make_arms(means: Any, sigmas: Any = 1.0) -> GaussianArms:
    mean = np.asarray(means, dtype=np.float64)
    return GaussianArms(mean, np.broadcast_to(np.asarray(sigmas, dtype=np.float64), mean.shape).copy())


@cache
def skip_kernel(module: ModuleType) -> Any:
    return compile_kernel(module.skip_loop(RULE), "the skip-ahead simulator")


def simulate(
    tables: EliminationTables,
    arms: GaussianArms,
    runs: int,
    *,
    seed: int = 1,
    first: int = 0,
    checkpoint: int = 0,
    kernel: Any = None,
    spare: int = 0,
) -> Runs:
    """Simulate runs with the skip-ahead kernels, or with another `kernel`; `spare` entries of the state are unused."""
    count = len(arms.mean)
    module = skip_two if count == 2 else skip_many
    results = Runs.empty(runs)
    state, work = np.zeros(state_size(count) + spare), np.zeros(module.work_size(count))
    (kernel or skip_kernel(module))(
        first,
        seed,
        arms,
        tables,
        state,
        work,
        checkpoint,
        results.recommended,
        results.pulls,
        results.undecided,
        results.leader,
        Tallies.empty(0, 0),
    )
    return results


def compile_blinded(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, path: tuple[str, ...], blind: Any, rule: EpochRule = RULE
) -> Any:
    """Compile the module's kernel with `blind` replacing the last function of `path`, each called by the one before."""
    callers = [getattr(module, path[0])]
    for name in path[1:-1]:
        callers.append(callers[-1].py_func.__globals__[name])
    # Give each function its own name: cached machine code is told apart by name alone.
    blind.__qualname__ = f"blind_{path[-1]}"
    changed = njit(**OPTIONS)(blind)
    for name, called in zip(reversed(path[:-1]), reversed(path[1:]), strict=True):
        original = callers.pop().py_func
        copy = FunctionType(original.__code__, {**original.__globals__, called: changed}, name)
        copy.__qualname__ = f"{name}_blind_{path[-1]}"
        changed = njit(**OPTIONS)(copy)
    monkeypatch.setattr(module, path[0], changed)
    return compile_kernel(module.skip_loop(rule), "a blinded simulator")


class WalkLaw:
    """When and on which side a Gaussian walk leaves |x| <= b(n), and on which side of 0 it ends if it does not.

    The density of the walks still inside is carried from one epoch to the next at the nodes of Gauss-Legendre
    quadrature.
    """

    def __init__(self, tables: EliminationTables, arms: GaussianArms) -> None:
        drift = arms.mean[0] - arms.mean[1]
        scale = math.hypot(*arms.sigma)
        self.last = min(int(tables.last_epoch[2]), tables.max_pulls // 2)
        boundary = tables.boundary[tables.row[2] :]
        nodes, weights = np.polynomial.legendre.leggauss(40 + int(3.0 * boundary[: self.last + 1].max() / scale))
        self.stopped = np.zeros((self.last + 1, 2))  # by epoch and side: 0 where the first arm wins
        self.rest = np.zeros(2)
        points, masses = np.zeros(1), np.ones(1)
        for epoch in range(1, self.last + 1):
            edge = boundary[epoch]
            starts = points + drift
            self.stopped[epoch] = masses @ norm.sf(edge, starts, scale), masses @ norm.cdf(-edge, starts, scale)
            right_half = masses @ (norm.cdf(edge, starts, scale) - norm.cdf(0.0, starts, scale))
            left_half = masses @ (norm.cdf(0.0, starts, scale) - norm.cdf(-edge, starts, scale))
            self.rest[:] = right_half, left_half
            steps = (edge * nodes[:, None] - starts[None, :]) / scale
            density = np.exp(-0.5 * steps**2) @ masses / (scale * math.sqrt(2.0 * math.pi))
            points, masses = edge * nodes, edge * weights * density
        assert self.stopped.sum() + self.rest.sum() == pytest.approx(1.0, abs=1e-9)

    @property
    def second_wins(self) -> float:
        return float(self.stopped[:, 1].sum() + self.rest[1])

    @property
    def by_epoch(self) -> Floats:
        """P(stopped at epoch n); the last entry includes those stopped by the limit."""
        law = self.stopped.sum(axis=1)
        law[-1] += self.rest.sum()
        return np.asarray(law)


def share_fits(hits: int, runs: int, probability: float) -> bool:
    """Run an exact binomial test."""
    return bool(min(binom.cdf(hits, runs, probability), binom.sf(hits - 1, runs, probability)) > ALPHA / 2.0)


def pearson_p(runs: Runs, law: WalkLaw) -> float:
    """Return the tail of Pearson's statistic over cells (range of epochs, side) and the runs left at the limit."""
    epochs = runs.pulls // 2
    observed: list[float] = []
    expected: list[float] = []
    for side in range(2):
        wins = runs.recommended == side
        counts = np.bincount(epochs[wins & ~runs.undecided], minlength=law.last + 1)
        means = law.stopped[:, side] * len(epochs)
        cell = (np.cumsum(means) // 200.0).astype(np.int64)
        observed += [*np.bincount(cell, counts), np.sum(wins & runs.undecided)]
        expected += [*np.bincount(cell, means), law.rest[side] * len(epochs)]
    large = np.asarray(expected) >= 100.0
    count, mean = np.asarray(observed)[large], np.asarray(expected)[large]
    return float(chi2.sf(np.sum((count - mean) ** 2 / mean), len(mean)))


def distance_to(epochs: npt.NDArray[np.int64], law: Floats) -> float:
    """Return the distance between the distribution function of `epochs` and that of a law over 0, 1, ..."""
    counts = np.bincount(epochs, minlength=len(law))
    return float(np.max(np.abs(np.cumsum(counts) / len(epochs) - np.cumsum(law))))


def misfits(runs: Runs, law: WalkLaw) -> list[str]:
    """List the comparisons that fail."""
    count = len(runs.pulls)
    epochs = np.arange(law.last + 1)
    mean = float(law.by_epoch @ epochs)
    variance = float(law.by_epoch @ epochs**2) - mean**2
    level = math.log(2.0 / ALPHA)
    third = law.last * level / (3.0 * count)
    allowed = third + math.sqrt(third**2 + 2.0 * variance * level / count)
    checks = {
        "second wins": share_fits(int(np.sum(runs.recommended == 1)), count, law.second_wins),
        "undecided": share_fits(int(np.sum(runs.undecided)), count, float(law.rest.sum())),
        "mean": abs(float(np.mean(runs.pulls)) / 2.0 - mean) < allowed,
        "distribution": distance_to(runs.pulls // 2, law.by_epoch) < math.sqrt(level / (2.0 * count)),
        "cells": pearson_p(runs, law) > ALPHA,
    }
    return [name for name, passed in checks.items() if not passed]


TWO_ARM_SETTINGS: dict[str, tuple[EliminationPolicy, GaussianArms]] = {
    "racing, gap 0.5": (Racing(arms=2, delta=0.1, max_pulls=500), make_arms([0.5, 0.0])),
    "racing, gap 0.2, mostly capped": (Racing(arms=2, delta=0.01, max_pulls=500), make_arms([0.0, 0.2])),
    "racing, large gap": (Racing(arms=2, delta=0.1, max_pulls=400), make_arms([2.0, 0.0])),
    "racing, no gap, a loose boundary": (
        Racing(arms=2, delta=0.9, sigma=0.4, max_pulls=800),
        make_arms([0.0, 0.0]),
    ),
    "kaufmann, unequal sigmas": (TwoArmConfidence(delta=0.1, max_pulls=600), make_arms([0.5, 0.1], [2.0, 0.3])),
    "dbcare": (DBCARE(Risk.misidentification(cost=1e-3), arms=2), make_arms([0.1, 0.5])),
    "breakeven": (BreakevenRacing(Risk.misidentification(cost=5e-4), arms=2), make_arms([0.1, 0.3])),
    "breakeven, to a boundary of 0": (
        BreakevenRacing(Risk.simple_regret(cost=1e-4), arms=2),
        make_arms([0.05, 0.0]),
    ),
    "dbcare, simple regret, wrong sigma": (
        DBCARE(Risk.simple_regret(cost=1e-4), arms=2),
        make_arms([0.3, 0.0], 2.0),
    ),
}


@cache
def compute_law(name: str) -> WalkLaw:
    policy, arms = TWO_ARM_SETTINGS[name]
    return WalkLaw(policy.tables, arms)


@pytest.mark.parametrize("name", TWO_ARM_SETTINGS)
def test_two_arms_have_the_law_of_the_walk(name: str) -> None:
    policy, arms = TWO_ARM_SETTINGS[name]
    assert misfits(simulate(policy.tables, arms, 100_000), compute_law(name)) == []


def test_a_blinded_check_for_two_arms_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "racing, gap 0.5"
    policy, arms = TWO_ARM_SETTINGS[name]
    blind = compile_blinded(
        monkeypatch, skip_two, ("cross", "crossing_bound"), lambda x, y, left, right, spread, length: 0.0
    )
    failures = misfits(simulate(policy.tables, arms, 100_000, kernel=blind), compute_law(name))
    assert {"mean", "distribution", "cells"} <= set(failures)


@pytest.mark.parametrize(
    ("policy", "gap"),
    [(Racing(arms=2, delta=0.01), 0.05), (DBCARE(Risk.misidentification(cost=1e-5), arms=2), 0.05)],
    ids=["racing", "dbcare"],
)
def test_long_runs_of_two_arms_agree_with_the_exact_engine(policy: EliminationPolicy, gap: float) -> None:
    count = 100_000
    levels = np.linspace(0.02, 0.98, 49)
    law = two_arm_gaussian(policy.tables, gap, 1.0, levels=levels)
    runs = simulate(policy.tables, make_arms([gap, 0.0]), count)
    assert share_fits(int(np.sum(runs.recommended == 1)), count, float(law.error[0]))
    assert share_fits(int(np.sum(runs.undecided)), count, float(law.capped[0]))
    below = np.mean(runs.pulls[:, None] <= law.quantiles[0], axis=0)
    uncapped = law.quantiles[0] < policy.max_pulls
    step = 1e-3  # an upper bound on P(one value), by which P(pulls <= quantile) may exceed its level
    slack = math.sqrt(math.log(2.0 / ALPHA) / (2.0 * count))
    assert np.all(np.abs(below - levels)[uncapped] < slack + step)
    level = math.log(2.0 / ALPHA)
    third = policy.max_pulls * level / (3.0 * count)
    allowed = third + math.sqrt(third**2 + 2.0 * float(law.deviation_pulls[0]) ** 2 * level / count)
    assert abs(float(np.mean(runs.pulls)) - float(law.mean_pulls[0])) < allowed


def draw_every_pull(
    generator: Any,
    mean: Any,
    sigma: Any,
    boundary: Any,
    row: Any,
    last_epoch: Any,
    max_pulls: int,
    overtime: int,
    best: Any,
    pulls: Any,
    left: Any,
) -> None:
    """Simulate elimination with every pull drawn."""
    sums, alive = np.zeros(len(mean)), np.zeros(len(mean), np.int64)
    for run in range(len(pulls)):
        survivors = len(mean)
        for arm in range(survivors):
            sums[arm], alive[arm] = 0.0, arm
        epoch, made, dropped_at = 0, 0, 0
        while (
            survivors > 1
            and epoch < max(last_epoch[survivors], dropped_at + overtime)
            and made + survivors <= max_pulls
        ):
            epoch += 1
            made += survivors
            highest = -np.inf
            for place in range(survivors):
                arm = alive[place]
                sums[arm] += mean[arm] + sigma[arm] * generator.standard_normal()
                highest = max(highest, sums[arm])
            threshold = highest - boundary[row[survivors] + epoch]
            kept = 0
            for place in range(survivors):
                if sums[alive[place]] >= threshold:
                    alive[kept] = alive[place]
                    kept += 1
            if kept < survivors:
                dropped_at = epoch
            survivors = kept
        best[run] = alive[np.argmax(sums[alive[:survivors]])]
        pulls[run] = made
        left[run] = survivors > 1


draw_all: Any = njit(draw_every_pull)


def draw_runs(tables: EliminationTables, arms: GaussianArms, runs: int) -> Runs:
    """Simulate runs with every pull drawn."""
    results = Runs.empty(runs)
    draw_all(np.random.default_rng(77), *arms, *tables, results.recommended, results.pulls, results.undecided)
    return results


def sparse(count: int, gap: float) -> Floats:
    return np.array([gap] + [0.0] * (count - 1))


def spread(count: int, gap: float) -> Floats:
    return np.array([0.0, *(-gap * (1.0 + place) for place in range(count - 1))])


def by_survivors(count: int, epochs: int) -> EliminationTables:
    """Build tables with a separate boundary and epoch limit for each number of survivors."""
    alive = np.arange(count + 1)
    lines = [np.sqrt(np.arange(epochs + 1) * (4.0 + 3.0 * survivors)) for survivors in range(2, count + 1)]
    row = np.where(alive < 2, 0, (alive - 2) * (epochs + 1))
    return EliminationTables(np.concatenate(lines), row, np.where(alive < 2, 0, epochs - 40 * alive), 10**9)


def flat(count: int, height: float, epochs: int) -> EliminationTables:
    """Build a boundary that does not rise: walks that cross it often return, so that a missed crossing matters."""
    line = np.concatenate([[0.0], np.full(epochs, height)])
    return EliminationTables(line, np.zeros(count + 1, np.int64), np.full(count + 1, epochs), 10**9)


# Rules use differences only, so sums far from 0 expose values that belong to another epoch.
SETTINGS: dict[str, tuple[EliminationTables, GaussianArms, int]] = {
    "K=8 racing, sparse": (Racing(arms=8, delta=0.1, max_pulls=8000).tables, make_arms(sparse(8, 0.2)), 3_000),
    "K=8 racing, dense": (Racing(arms=8, delta=0.1).tables, make_arms(10.0 + sparse(8, 0.7)), 20_000),
    "K=8 racing, arm by arm": (Racing(arms=8, delta=0.1).tables, make_arms(spread(8, 0.4)), 30_000),
    "K=8 dbcare": (DBCARE(Risk.misidentification(cost=1e-4), arms=8).tables, make_arms(sparse(8, 0.4)), 5_000),
    "K=32 racing, sparse": (Racing(arms=32, delta=0.5, max_pulls=20_000).tables, make_arms(sparse(32, 0.2)), 1_500),
    "K=32 racing, dense": (Racing(arms=32, delta=0.1).tables, make_arms(10.0 + sparse(32, 0.7)), 5_000),
    "K=32 dbcare": (
        DBCARE(Risk.simple_regret(cost=1e-5), arms=32).tables,
        make_arms(10.0 + sparse(32, 0.5)),
        5_000,
    ),
    "K=3 racing, wrong sigma": (Racing(arms=3, delta=0.1).tables, make_arms([0.5, 0.2, 0.0], 2.0), 20_000),
    "K=5 unequal sigmas": (
        Racing(arms=5, delta=0.1).tables,
        make_arms(spread(5, 0.3) - 10.0, [1.0, 0.2, 1.5, 1.0, 0.5]),
        20_000,
    ),
    "K=4 flat boundary": (flat(4, 25.0, 3000), make_arms([10.0] * 4, [1.0, 1.2, 1.0, 0.8]), 20_000),
    "K=8 breakeven": (
        BreakevenRacing(Risk.misidentification(1e-4), arms=8).tables,
        make_arms(sparse(8, 0.3)),
        15_000,
    ),
    "K=32 breakeven": (
        BreakevenRacing(Risk.misidentification(1e-4), arms=32).tables,
        make_arms(sparse(32, 0.3)),
        8_000,
    ),
    "K=8 breakeven, to a boundary of 0": (
        BreakevenRacing(Risk.simple_regret(1e-4), arms=8).tables,
        make_arms(sparse(8, 0.05)),
        20_000,
    ),
    "K=6 tables by survivors": (by_survivors(6, 1000), make_arms([0.1, 0.05, 0.0, 0.0, -0.1, -0.2]), 8_000),
}


@cache
def draw_setting(name: str) -> Runs:
    return draw_runs(*SETTINGS[name])


@pytest.mark.parametrize("name", SETTINGS)
def test_many_arms_agree_with_drawing_every_pull(name: str) -> None:
    tables, arms, runs = SETTINGS[name]
    one, two = simulate(tables, arms, runs), draw_setting(name)
    assert list_discrepancies(one, two, int(two.pulls.max())) == []


# One kernel serves both negative controls, since compiling takes long. An even length of the state, one more than its
# size, makes the search for crossings blind, and a negative `overtime`, which means 0, the check while pulls are drawn.
def find_no_close_arms(state, order, right, count, before, after, need):
    if len(state) % 2 == 0:
        return 0, 0, 0, 0.0
    return close_arms(state, order, right, count, before, after, need)


def idle_until_the_limit(
    tables: EliminationTables, survivors: int, completed: int, limit: int, high: float, low: float
) -> bool:
    if tables.overtime < 0:
        return completed < limit
    return idle(tables, survivors, completed, limit, high, low)


@pytest.fixture(scope="module")
def blind() -> Any:
    with pytest.MonkeyPatch.context() as monkeypatch:
        rule = replace(RULE, idle=idle_until_the_limit)
        return compile_blinded(monkeypatch, skip_many, ("jump", "first_drop", "close_arms"), find_no_close_arms, rule)


@pytest.mark.parametrize("name", ["K=4 flat boundary", "K=6 tables by survivors"])
def test_a_blinded_check_for_many_arms_is_detected(name: str, blind: Any) -> None:
    tables, arms, runs = SETTINGS[name]
    failures = list_discrepancies(simulate(tables, arms, runs, kernel=blind, spare=1), draw_setting(name), 10**5)
    assert "distribution" in failures


@pytest.mark.parametrize("name", ["K=8 racing, dense", "K=32 racing, dense"])
def test_drawing_pulls_without_checking_for_drops_is_detected(name: str, blind: Any) -> None:
    tables, arms, runs = SETTINGS[name]
    failures = list_discrepancies(
        simulate(tables._replace(overtime=-1), arms, runs, kernel=blind), draw_setting(name), 10**5
    )
    assert "distribution" in failures


def test_where_nothing_is_blind_nothing_is_detected(blind: Any) -> None:
    tables, arms, runs = SETTINGS["K=8 racing, dense"]
    one, two = simulate(tables, arms, runs, kernel=blind), simulate(tables, arms, runs)
    assert np.array_equal(one.pulls, two.pulls)


def leader_law(means: Floats, checkpoint: int) -> Floats:
    """Return P(arm k has the largest sum) after `checkpoint` normal rewards of each arm, sigma = 1."""
    grid = np.linspace(-10.0, 10.0, 4001)
    lead = (means[:, None] - means[None, :]) * math.sqrt(checkpoint)
    density = norm.pdf(grid) * np.prod([norm.cdf(grid[None, :] + lead[:, [j]]) for j in range(len(means))], axis=0)
    own = norm.cdf(grid)  # the factor of an arm against itself
    return np.asarray(np.sum(density / own, axis=1) * (grid[1] - grid[0]))


CONTROL = DBCARE(Risk.misidentification(cost=1e-4), arms=8)
CONTROL_ARMS = make_arms([0.35, 0.3, 0.25, 0.2, 0.0, -0.3, -0.4, -0.5])


@pytest.fixture(scope="module")
def watched() -> Runs:
    return simulate(CONTROL.tables, CONTROL_ARMS, 100_000, checkpoint=CONTROL.epoch_limit(8))


def test_the_leader_at_the_checkpoint_has_its_law(watched: Runs) -> None:
    law = leader_law(CONTROL_ARMS.mean, CONTROL.epoch_limit(8))
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    counts = np.bincount(watched.leader, minlength=8)
    assert all(share_fits(int(hits), 100_000, float(share)) for hits, share in zip(counts, law, strict=True))


def test_the_leader_at_another_checkpoint_is_detected(watched: Runs) -> None:
    law = leader_law(CONTROL_ARMS.mean, CONTROL.epoch_limit(8) - 40)
    assert not share_fits(int(np.sum(watched.leader == 0)), 100_000, float(law[0]))


def test_recording_the_leader_does_not_change_the_law_of_runs(watched: Runs) -> None:
    other = simulate(CONTROL.tables, CONTROL_ARMS, 100_000, seed=2)
    assert list_discrepancies(watched, other, CONTROL.max_pulls) == []


def test_the_leader_is_recommended_if_no_arm_is_dropped() -> None:
    arms = make_arms(sparse(8, 0.05))
    runs = simulate(CONTROL.tables, arms, 20_000, checkpoint=CONTROL.epoch_limit(8))
    full = runs.undecided & (runs.pulls == 8 * CONTROL.epoch_limit(8))
    assert full.sum() > 15_000
    assert np.array_equal(runs.recommended[full], runs.leader[full])


def test_the_leader_belongs_to_its_run() -> None:
    """Two equal arms outlive the rest: their difference has the same sign at N0 and 4 N0 with probability 2/3."""
    first, last = CONTROL.epoch_limit(8), CONTROL.epoch_limit(2)
    assert last == pytest.approx(4 * first, rel=1e-2)
    runs = simulate(CONTROL.tables, make_arms([0.0, 0.0, *[-1.0] * 6]), 20_000, checkpoint=first)
    assert np.mean(runs.undecided & (runs.pulls < 2 * last + 6 * 200)) > 0.99
    assert share_fits(int(np.sum(runs.recommended == runs.leader)), 20_000, 2.0 / 3.0)


@pytest.mark.parametrize("name", ["K=8 dbcare", "K=3 racing, wrong sigma"])
def test_a_run_depends_only_on_its_number(name: str) -> None:
    tables, arms, _ = SETTINGS[name]
    whole = simulate(tables, arms, 300)
    parts = [simulate(tables, arms, stop - start, first=start) for start, stop in [(0, 100), (100, 101), (101, 300)]]
    assert np.array_equal(whole.pulls, np.concatenate([part.pulls for part in parts]))
    assert np.array_equal(whole.recommended, np.concatenate([part.recommended for part in parts]))
