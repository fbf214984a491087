"""Measure the speed of the engines as ratios.

The contenders of a comparison take turns for several rounds, and each is scored by its best time, so that a busy
machine affects them equally. Prints a table of ratios with the bar that each must clear, and writes them as JSON.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np

from benchmarks.parts.bars import Bars
from benchmarks.parts.numpy_batch import eliminate, make_draw
from dbcare import DBCARE, Bandit, BreakevenRacing, Policy, Risk, evaluate, evaluate_grid
from dbcare.engines.simulate.rng import normal, stream
from dbcare.policies import KnownGapOracle, Racing, SequentialHalving, TwoArmConfidence

ERROR = Risk.misidentification(1e-4)
REGRET = Risk.simple_regret(1e-4)
ROUNDS = 7


@numba.njit(error_model="numpy", nogil=True)
def add_gaussians(seed, count):
    """Draw and add up `count` Gaussians: the speed of the generator alone."""
    s0, s1, s2, s3 = stream(seed, 0)
    total = 0.0
    for _ in range(count):
        z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
        total += z
    return total


def best_times(contenders: dict[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, float]:
    """Return the seconds of each contender, the best of `rounds` turns."""
    times = dict.fromkeys(contenders, float("inf"))
    for call in contenders.values():
        call()  # compile, load, fill caches
    for _ in range(rounds):
        for name, call in contenders.items():
            began = time.perf_counter()
            call()
            times[name] = min(times[name], time.perf_counter() - began)
    return times


def make_call(policy: Policy, bandit: Bandit, runs: int, engine: str, threads: int = 1) -> Callable[[], Any]:
    return lambda: evaluate(policy, bandit, ERROR, runs=runs, seed=1, engine=engine, threads=threads)


def direct_over_bare(arms: int) -> dict[str, float]:
    """Compare pulls per second of the direct engine with Gaussians per second of the generator."""
    policy, bandit, runs = Racing(arms, 0.1), Bandit.one_sparse(arms, 0.5), 400_000 // arms
    pulls = make_call(policy, bandit, runs, "direct")().pulls_simulated
    times = best_times(
        {"bare": lambda: add_gaussians(1, 10_000_000), "direct": make_call(policy, bandit, runs, "direct")}
    )
    gaussians = 10_000_000 / times["bare"]
    return {"ratio": pulls / times["direct"] / gaussians, "gaussians_per_second": gaussians,
            "pulls_per_second": pulls / times["direct"]}  # fmt: skip


def direct_over_numpy() -> dict[str, float]:
    """Compare the direct engine with NumPy on the same work, a batch of 1e4 runs."""
    policy, bandit = Racing(8, 0.1), Bandit.one_sparse(8, 0.5)
    batch = partial(eliminate, policy.tables, 8, 10_000, make_draw([bandit], 10_000, seed=1))
    direct = make_call(policy, bandit, 10_000, "direct")
    numpy_pulls, direct_pulls = int(batch()[1].sum()), direct().pulls_simulated
    times = best_times({"numpy": batch, "direct": direct}, rounds=3)
    return {
        "ratio": (direct_pulls / times["direct"]) / (numpy_pulls / times["numpy"]),
        "numpy_pulls_per_second": numpy_pulls / times["numpy"],
    }


def skip_over_direct(arms: int, runs: int) -> dict[str, float]:
    """Compare the times of the skip and the direct engine for the same number of runs."""
    policy = Racing(arms, 0.01, max_pulls=100_000)
    bandit = Bandit.two_arm(0.05) if arms == 2 else Bandit.one_sparse(arms, 0.05)
    times = best_times({engine: make_call(policy, bandit, runs, engine) for engine in ("direct", "skip")}, rounds=3)
    return {"ratio": times["direct"] / times["skip"]}


SETTINGS: dict[str, tuple[Policy, Bandit]] = {
    f"{type(policy).__name__} {shape} K={arms} gap={gap}": (policy, make(arms, gap))
    for arms in (8, 32)
    for shape, make in (("sparse", Bandit.one_sparse), ("linear", Bandit.linear_decay))
    for policy, gap in ((Racing(arms, 0.1), 0.05), (Racing(arms, 0.1), 0.8), (DBCARE(ERROR, arms, bound=3.0), 0.3))
}


def auto_over_best(policy: Policy, bandit: Bandit, rounds: int = ROUNDS) -> dict[str, float]:
    """Compare the engine that `auto` chooses, including its pilot, with the better of the two."""
    probe = make_call(policy, bandit, 200, "direct")().pulls.mean
    runs = int(min(10_000, max(500, 3e8 / probe)))
    times = best_times(
        {engine: make_call(policy, bandit, runs, engine) for engine in ("direct", "skip", "auto")}, rounds
    )
    return {
        "ratio": min(times["direct"], times["skip"]) / times["auto"],
        "skip_over_direct": times["direct"] / times["skip"],
    }


def paper_curves() -> None:
    """Compute every two-arm curve of the paper, for both families with 40 gaps each."""
    for family, sigma, gaps in (
        ("gaussian", 1.0, np.geomspace(0.05, 2.0, 40)),
        ("bernoulli", 0.5, np.geomspace(0.01, 0.95, 40)),
    ):
        for policy in (
            DBCARE(ERROR, 2, sigma=sigma),
            DBCARE(REGRET, 2, sigma=sigma, bound=2.0),
            TwoArmConfidence(0.1, sigma=sigma),
            TwoArmConfidence(0.01, sigma=sigma),
            SequentialHalving(2, 10),
            SequentialHalving(2, 500),
        ):
            evaluate_grid(policy, gaps, family, sigma)
        for risk in (ERROR, REGRET):
            evaluate_grid(lambda gap, risk=risk, sigma=sigma: KnownGapOracle(risk, gap, sigma), gaps, family, sigma)


def exact_over_skip() -> dict[str, float]:
    """Compare one exact risk (error below 1e-8) with skip run until the standard error is 1e-4 of the risk."""
    policy, bandit = DBCARE(ERROR, 2), Bandit.two_arm(0.2)
    evaluation = make_call(policy, bandit, 100_000, "skip", threads=2)()
    times = best_times(
        {"skip": make_call(policy, bandit, 100_000, "skip"), "exact": make_call(policy, bandit, 1, "exact")}, rounds=3
    )
    runs = 100_000 * (evaluation.standard_error / (1e-4 * evaluation.risk)) ** 2
    return {"ratio": times["skip"] * runs / 100_000 / times["exact"], "exact_seconds": times["exact"]}


def two_threads_over_one() -> dict[str, float]:
    """Compare two threads with one."""
    policy, bandit = Racing(8, 0.1), Bandit.one_sparse(8, 0.5)
    times = best_times({str(n): make_call(policy, bandit, 60_000, "direct", threads=n) for n in (1, 2)}, rounds=5)
    return {"ratio": times["1"] / times["2"]}


MEMORY = """
from pathlib import Path

from dbcare import Bandit, DBCARE, Risk, evaluate

def megabytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))

policy, bandit = DBCARE(Risk.misidentification(1e-2), 32), Bandit.one_sparse(32, 0.5)
evaluate(policy, bandit, runs=100, engine="direct")
Path("/proc/self/clear_refs").write_text("5")  # resets the peak
before = megabytes("VmRSS")
evaluate(policy, bandit, runs=1_000_000, engine="direct")
print(megabytes("VmHWM") - before)
"""


def extra_memory() -> float:
    """Return the peak memory during 1e6 runs, beyond what the process used before, in MB; Linux only."""
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", MEMORY], capture_output=True, text=True, check=True)
    return float(result.stdout)


def fixed_cost(policy: type[DBCARE] | type[BreakevenRacing]) -> float:
    """Return the milliseconds of a single run among 1,000 arms, nearly all of which are spent before it."""
    bandit = Bandit.one_sparse(1_000, 0.5)
    return 1e3 * best_times({"once": lambda: evaluate(policy(ERROR, 1_000), bandit, runs=1)})["once"]


def main() -> None:
    bars = Bars(__doc__)

    def report_ratio(name: str, figures: dict[str, float], bar: float) -> None:
        bars.report(name, bar=bar, value=figures.pop("ratio"), at_least=True, **figures)

    for arms in (8, 32):
        report_ratio(f"direct / bare generator, K={arms}", direct_over_bare(arms), 0.65)
    report_ratio("direct / NumPy batch, K=8", direct_over_numpy(), 8.0)
    report_ratio("skip / direct, K=2", skip_over_direct(2, 4_000), 40.0)
    report_ratio("skip / direct, K=32", skip_over_direct(32, 300), 10.0)
    for name, (policy, bandit) in list(SETTINGS.items())[:: bars.size(1, 5)]:
        report_ratio(f"auto / better: {name}", auto_over_best(policy, bandit, bars.size(ROUNDS, 1)), 0.85)
    seconds = best_times({"curves": paper_curves}, rounds=3)["curves"]
    bars.report("exact, all two-arm curves of the paper, seconds", seconds, 2.0)
    report_ratio("exact / skip at a standard error of 1e-4", exact_over_skip(), 1.0)
    report_ratio("2 threads / 1", two_threads_over_one(), 1.8)
    bars.report("extra memory of 1e6 runs, K=32, MB", extra_memory(), 64.0)
    for policy_class in (DBCARE, BreakevenRacing):
        name = f"fixed cost of evaluate, {policy_class.__name__}, K=1,000, ms"
        bars.report(name, fixed_cost(policy_class), 10.0)
    bars.save()
