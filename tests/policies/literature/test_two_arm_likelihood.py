"""The likelihood ratio test of two Bernoulli arms: against the formula from SciPy's entropies, and its error."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom, entropy

from dbcare import Bandit, Risk, evaluate
from dbcare.policies import TwoArmConfidence, TwoArmLikelihood

RISK = Risk.misidentification(1e-4)


def plain_ratio(first: int, second: int, pulls: int) -> float:
    """Return the log-likelihood ratio of two counts of successes in so many pulls each."""
    middle = (first + second) / (2 * pulls)
    shares = (first / pulls, second / pulls)
    if middle in (0.0, 1.0):
        return 0.0
    return float(sum(pulls * entropy([share, 1.0 - share], [middle, 1.0 - middle]) for share in shares))


@pytest.mark.parametrize(
    ("rate", "level"),
    [
        ("proven", lambda time, delta: math.log(2.0 * time / delta)),
        ("heuristic", lambda time, delta: math.log((math.log(time) + 1.0) / delta)),
    ],
)
def test_a_run_stops_at_the_first_pair_beyond_the_rate(rate: str, level: Callable[[int, float], float]) -> None:
    generator = np.random.default_rng(4)
    lengths = []
    for means in ((0.5, 0.5), (0.9, 0.3), (0.05, 0.3), (0.97, 0.9)):
        run = TwoArmLikelihood(delta=0.1, rate=rate, max_pulls=400).start(seed=2)
        wins, pulls = [0, 0], 0
        while (arm := run.ask()) is not None:
            reward = int(generator.random() < means[arm])
            run.tell(reward)
            wins[arm] += reward
            pulls += 1
            if pulls % 2 == 0:
                ratio, threshold = plain_ratio(wins[0], wins[1], pulls // 2), level(pulls, 0.1)
                assert abs(ratio - threshold) > 1e-9
                assert (run.ask() is None) == (ratio > threshold or pulls == 400)
        assert pulls % 2 == 0
        assert wins[run.recommendation()] == max(wins)
        lengths.append(pulls)
    assert min(lengths) < 60
    assert max(lengths) > 100


def test_the_error_is_at_most_delta_and_runs_are_shorter_where_rewards_vary_less() -> None:
    """2,000 runs; a larger count of errors has a chance below 1e-6 if the error is delta. Control: at delta = 0.9."""
    runs, bandit = 2_000, Bandit.bernoulli([0.15, 0.02])
    most = binom.isf(1e-6, runs, 0.02)
    ratio = evaluate(TwoArmLikelihood(0.02), bandit, RISK, runs=runs, seed=3)
    assert ratio.error * runs <= most
    loose = evaluate(TwoArmLikelihood(0.9, "heuristic"), Bandit.bernoulli([0.52, 0.48]), RISK, runs=runs, seed=3)
    assert loose.error * runs > most
    plain = evaluate(TwoArmConfidence(0.02, sigma=0.5, max_pulls=10_000), bandit, RISK, runs=200, seed=3)
    assert ratio.pulls.mean < 0.3 * plain.pulls.mean
