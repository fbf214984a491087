"""The exact engine against Monte Carlo, partly with policies stepped by hand, so that the rule itself is compared.

A sample is compared in four ways: error and capped runs by Chernoff's bound and the distribution of pulls by the bound
of Dvoretzky, Kiefer and Wolfowitz, each at 1e-7, and the mean of pulls by a z test at 5.5 standard deviations. The
error rate of a test is below 4e-7. The negative control applies the same comparison to laws that are slightly wrong.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from dbcare.engines.exact import two_arm_law
from dbcare.engines.exact.law import TwoArmLaw
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.elimination import EliminationPolicy
from dbcare.policies.elimination.racing import Racing, TwoArmConfidence
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Risk

pytestmark = pytest.mark.statistical

RATE = 1e-7
LEVELS = tuple(np.linspace(0.05, 0.95, 19).tolist())


@dataclass(frozen=True)
class Sample:
    wrong: npt.NDArray[np.bool_]
    pulls: npt.NDArray[np.int64]
    capped: npt.NDArray[np.bool_]


def step_by_hand(policy: EliminationPolicy, bandit: Bandit, runs: int, seed: int) -> Sample:
    """Sample runs of the policy itself; the second arm is best."""
    generator = np.random.default_rng(seed)
    rewards = [arm.sample(generator, runs * (policy.max_pulls // 2)).reshape(runs, -1) for arm in bandit.arms]
    wrong, pulls, capped = [], [], []
    for number in range(runs):
        run = policy.start(seed=int(generator.integers(2**31)))
        while (arm := run.ask()) is not None:
            run.tell(float(rewards[arm][number, run.pulls // 2]))
        wrong.append(run.recommendation() == 0)
        pulls.append(run.pulls)
        capped.append(not run.events)
    return Sample(np.array(wrong), np.array(pulls), np.array(capped))


def walk(policy: EliminationPolicy, gap: float, sigma: float, runs: int, seed: int) -> Sample:
    """Sample Gaussian runs by walking the difference of the sums, chunk by chunk."""
    generator = np.random.default_rng(seed)
    boundary = policy.tables.boundary[1:]
    lead = np.zeros(runs)
    stop = np.zeros(runs, dtype=np.int64)
    for start in range(0, boundary.size, 256):
        limits = boundary[start : start + 256]
        running = np.flatnonzero(stop == 0)
        steps = generator.normal(gap, math.sqrt(2.0) * sigma, (running.size, limits.size))
        paths = lead[running, None] + np.cumsum(steps, axis=1)
        out = np.abs(paths) > limits
        first = np.where(out.any(axis=1), out.argmax(axis=1), limits.size - 1)
        lead[running] = paths[np.arange(running.size), first]
        stop[running[out.any(axis=1)]] = start + 1 + first[out.any(axis=1)]
    capped = stop == 0
    return Sample(lead < 0.0, 2 * np.where(capped, boundary.size, stop), capped)


def divergence(share: float, chance: float) -> float:
    """Return the Kullback-Leibler divergence: by Chernoff, P(a share this far off) <= 2 exp(-runs * divergence)."""
    parts = ((share, chance), (1.0 - share, 1.0 - chance))
    return math.fsum(p * math.log(p / q) if q > 0.0 else math.inf for p, q in parts if p > 0.0)


def disagreements(law: TwoArmLaw, sample: Sample) -> list[str]:
    """List the ways in which the sample contradicts the law."""
    runs = sample.pulls.size
    allowed = math.log(2.0 / RATE) / runs
    failures = []
    for name, hits, chance in (("error", sample.wrong, law.error[0]), ("capped", sample.capped, law.capped[0])):
        if divergence(float(hits.mean()), float(chance)) > allowed:
            failures.append(f"{name} {hits.mean()} against {chance}")
    if abs(sample.pulls.mean() - law.mean_pulls[0]) > 5.5 * law.deviation_pulls[0] / math.sqrt(runs):
        failures.append(f"pulls {sample.pulls.mean()} against {law.mean_pulls[0]}")
    band = math.sqrt(allowed / 2.0)
    for level, quantile in zip(law.levels, law.quantiles[0], strict=True):
        if not (sample.pulls < quantile).mean() - band <= level <= (sample.pulls <= quantile).mean() + band:
            failures.append(f"quantile {quantile} at {level}")
    return failures


STEPPED = {
    "dbcare, Gaussian": (DBCARE(Risk.misidentification(0.004), arms=2), Bandit.gaussian([0.0, 0.6])),
    "dbcare, other sigmas": (DBCARE(Risk.simple_regret(0.004), arms=2), Bandit.gaussian([0.2, 0.6], sigma=[0.4, 1.1])),
    "racing, Gaussian": (Racing(2, 0.2, max_pulls=90), Bandit.gaussian([0.0, 1.0])),
    "dbcare, Bernoulli": (DBCARE(Risk.misidentification(0.004), arms=2, sigma=0.5), Bandit.bernoulli([0.5, 0.8])),
    "racing, Bernoulli": (Racing(2, 0.2, sigma=0.3, max_pulls=61), Bandit.bernoulli([0.05, 0.3])),
}


@pytest.mark.parametrize("runs", [800, pytest.param(20_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", STEPPED)
def test_policies_stepped_by_hand(name: str, runs: int) -> None:
    policy, bandit = STEPPED[name]
    sample = step_by_hand(policy, bandit, runs, seed=20_251)
    assert disagreements(two_arm_law(policy, bandit, levels=LEVELS), sample) == []


@pytest.mark.parametrize(
    ("policy", "gap", "sigma"),
    [
        (TwoArmConfidence(0.1, max_pulls=10_000), 0.1, 1.0),
        (TwoArmConfidence(0.01, rate="heuristic", max_pulls=6_000), 0.12, 1.0),
        (DBCARE(Risk.misidentification(1e-4), arms=2), 0.15, 1.0),
        (DBCARE(Risk.misidentification(1e-4), arms=2, sigma=0.3), 0.1, 0.6),
    ],
)
def test_long_runs(policy: EliminationPolicy, gap: float, sigma: float) -> None:
    law = two_arm_law(policy, Bandit.two_arm(gap, sigma), levels=LEVELS)
    assert disagreements(law, walk(policy, gap, sigma, runs=10_000, seed=20_252)) == []


def test_a_slightly_wrong_law_is_detected() -> None:
    """Each part of the comparison can fail."""
    policy = TwoArmConfidence(0.1, rate="heuristic", max_pulls=2_000)
    sample = walk(policy, 0.1, 1.0, runs=10_000, seed=20_253)
    assert disagreements(two_arm_law(policy, Bandit.two_arm(0.1), levels=LEVELS), sample) == []
    failures = " ".join(disagreements(two_arm_law(policy, Bandit.two_arm(0.115), levels=LEVELS), sample))
    assert "pulls" in failures
    assert "capped" in failures
    assert "quantile" in failures
    failures = " ".join(disagreements(two_arm_law(policy, Bandit.two_arm(0.08), levels=LEVELS), sample))
    assert "error" in failures
