"""DBCARE stepped by hand on two Bernoulli arms, against a dynamic program over (epoch, difference of sums).

The program uses the paper's formulas as written here and none of the policy's tables.

Error rate: a setting is judged by two tests, each of which fails a correct policy with probability at most ALPHA = 1e-7
over the choice of the seeds (which are fixed). The number of errors is binomial: exact tails of ALPHA/2 each. The
epochs used are independent, lie in [1, last], and have the mean and variance that the program gives: by Bernstein's
inequality, their average over m runs is off by t with probability at most
2 exp(-m t^2 / (2 (variance + last t / 3))). With 4 settings, that makes 8 tests: below 1e-6 in all.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Loss, Risk

pytestmark = pytest.mark.statistical

ALPHA = 1e-7


@dataclass(frozen=True)
class Design:
    """N*, delta and the radius for two arms with sigma = 1/2 and B = 1, from the paper's corollaries.

    The defaults of the last three fields are the paper's values; other values are negative controls.
    """

    loss: Loss
    cost: float
    delta_factor: float = 1.0
    inside_log: float = 2.0  # the K in e_n = sqrt(4 sigma^2/n ln(K n/delta))
    epochs_more: int = 0

    @property
    def budget(self) -> float:
        if self.loss is Loss.MISIDENTIFICATION:
            return 1 / (2 * math.e * self.cost)
        return 3 / (2 * math.e) * math.pow(0.5 / self.cost, 2 / 3)

    @property
    def last(self) -> int:
        return math.floor(self.budget) + 1 + self.epochs_more

    def radius(self, n: int) -> float:
        delta = self.delta_factor * self.cost / (1 + 2 * self.cost * self.budget)
        return math.sqrt(4 * 0.25 / n * math.log(self.inside_log * n / delta))


@dataclass(frozen=True)
class Law:
    """The results of the dynamic program: the probability of an error, and the moments of the number of epochs."""

    error: float
    epochs: float
    variance: float

    def risk(self, loss: Loss, gap: float, cost: float) -> float:
        return self.error * (1.0 if loss is Loss.MISIDENTIFICATION else gap) + cost * 2 * self.epochs


def solve(design: Design, gap: float) -> Law:
    """Carry P(still running, difference = d) forward; arm 0 has mean 1/2 + gap/2, and arm 1 has mean 1/2 - gap/2."""
    better, worse = 0.5 + gap / 2, 0.5 - gap / 2
    up, down = better * (1 - worse), worse * (1 - better)
    last = design.last
    difference = np.arange(-last, last + 1)
    running = (difference == 0).astype(np.float64)
    error = first_moment = second_moment = 0.0
    for n in range(1, last + 1):
        ahead, behind = np.roll(running, 1), np.roll(running, -1)
        running = (1 - up - down) * running + up * ahead + down * behind
        stopped = np.abs(difference) > n * design.radius(n) if n < last else np.ones(2 * last + 1, dtype=bool)
        mass = running[stopped].sum()
        error += running[stopped & (difference < 0)].sum() + 0.5 * running[stopped & (difference == 0)].sum()
        first_moment += n * mass
        second_moment += n**2 * mass
        running[stopped] = 0.0
    return Law(float(error), float(first_moment), float(second_moment - first_moment**2))


@dataclass(frozen=True)
class Sample:
    """The results of stepping by hand."""

    runs: int
    errors: int
    mean_epochs: float


def step(loss: Loss, cost: float, gap: float, runs: int) -> Sample:
    """Step `runs` runs by hand, with rewards drawn from the bandit."""
    policy = DBCARE(Risk(loss, cost), arms=2, sigma=0.5)
    generator = np.random.default_rng(20251)
    horizon = policy.max_pulls // 2
    drawn = [arm.sample(generator, runs * horizon) for arm in Bandit.two_arm_bernoulli(gap).arms]
    errors = epochs = 0
    for seed, both in enumerate(np.stack(drawn).reshape(2, runs, horizon).swapaxes(0, 1).tolist()):
        run = policy.start(seed=seed)
        rewards = [iter(arm_rewards) for arm_rewards in both]
        while (arm := run.ask()) is not None:
            run.tell(next(rewards[arm]))
        errors += run.recommendation() == 1
        epochs += run.pulls // 2
    return Sample(runs, errors, epochs / runs)


def lower_tail(count: int, trials: int, chance: float) -> float:
    """Return P(X <= count) for a binomial X."""
    logs = [
        math.lgamma(trials + 1)
        - math.lgamma(hits + 1)
        - math.lgamma(trials - hits + 1)
        + hits * math.log(chance)
        + (trials - hits) * math.log1p(-chance)
        for hits in range(count + 1)
    ]
    return math.fsum(math.exp(log) for log in logs)


def error_agrees(sample: Sample, law: Law) -> bool:
    below = lower_tail(sample.errors, sample.runs, law.error)
    above = lower_tail(sample.runs - sample.errors, sample.runs, 1 - law.error)
    return min(below, above) >= ALPHA / 2


def epochs_agree(sample: Sample, law: Law, last: int) -> bool:
    deviation = abs(sample.mean_epochs - law.epochs)
    return 2 * math.exp(-sample.runs * deviation**2 / (2 * (law.variance + last * deviation / 3))) >= ALPHA


@pytest.mark.parametrize(
    ("loss", "gap", "risk"),
    [
        (Loss.MISIDENTIFICATION, 0.05, 0.368899),
        (Loss.MISIDENTIFICATION, 0.1, 0.303973),
        (Loss.MISIDENTIFICATION, 0.3, 0.0333405),
        (Loss.SIMPLE_REGRET, 0.05, 0.0416045),
        (Loss.SIMPLE_REGRET, 0.1, 0.0359654),
        (Loss.SIMPLE_REGRET, 0.3, 0.0276382),
    ],
)
def test_the_program_finds_known_risks(loss: Loss, gap: float, risk: float) -> None:
    """Risks of Algorithm 1 (Harding & Kandasamy 2025) at c = 1e-4, computed by another program."""
    assert solve(Design(loss, 1e-4), gap).risk(loss, gap, 1e-4) == pytest.approx(risk, rel=2e-6)


def test_the_program_against_hand_arithmetic() -> None:
    """c = 0.1: N* = 1.84, two epochs; e_1 = sqrt(ln(2/0.0731)) = 1.82 > 1, so nothing is dropped in the first.

    gap = 1/2, up = 9/16, down = 1/16, else 6/16: P(d < 0) = P(-,-) + 2 P(-,0) = 1/256 + 12/256,
    P(d = 0) = 36/256 + 2 * 9/256 = 54/256; error 13/256 + 27/256.
    """
    law = solve(Design(Loss.MISIDENTIFICATION, 0.1), 0.5)
    assert (law.error, law.epochs, law.variance) == pytest.approx((40 / 256, 2.0, 0.0), abs=1e-14)


SETTINGS = {
    # What the setting covers: loss, cost, gap, runs.
    "most runs end at the limit": (Loss.MISIDENTIFICATION, 5e-3, 0.1, 1200),
    "most runs separate the arms": (Loss.MISIDENTIFICATION, 2e-3, 0.5, 3000),
    "both happen": (Loss.MISIDENTIFICATION, 2e-3, 0.35, 1500),
    "simple regret": (Loss.SIMPLE_REGRET, 1e-3, 0.2, 800),
}


@pytest.fixture(scope="module")
def samples() -> dict[str, Sample]:
    return {name: step(*setting) for name, setting in SETTINGS.items()}


@pytest.mark.parametrize("name", SETTINGS)
def test_errors_and_pulls_agree(samples: dict[str, Sample], name: str) -> None:
    loss, cost, gap, _ = SETTINGS[name]
    design = Design(loss, cost)
    law = solve(design, gap)
    assert error_agrees(samples[name], law), (samples[name], law)
    assert epochs_agree(samples[name], law, design.last), (samples[name], law)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("most runs separate the arms", {"inside_log": 1.0}),  # ln(n/delta) instead of ln(2n/delta)
        ("most runs separate the arms", {"delta_factor": 0.2}),
        ("most runs separate the arms", {"delta_factor": 5.0}),
        ("both happen", {"inside_log": 0.5}),
        ("most runs end at the limit", {"epochs_more": -1}),  # a loop that tests n < N*
        ("most runs end at the limit", {"epochs_more": 1}),
        ("simple regret", {"epochs_more": -1}),
    ],
)
def test_the_pulls_reveal_a_wrong_program(samples: dict[str, Sample], name: str, wrong: dict[str, float]) -> None:
    """Negative control: the same test fails against another radius, delta or limit."""
    loss, cost, gap, _ = SETTINGS[name]
    design = Design(loss, cost, **wrong)  # type: ignore[arg-type]  # the values are of several types
    assert not epochs_agree(samples[name], solve(design, gap), design.last)


@pytest.mark.parametrize("gap", [0.0, 0.05, 0.15, 0.2])
def test_the_errors_reveal_a_wrong_gap(samples: dict[str, Sample], gap: float) -> None:
    """Negative control: the errors of runs at gap 0.1 do not fit another gap."""
    law = solve(Design(Loss.MISIDENTIFICATION, 5e-3), gap)
    assert not error_agrees(samples["most runs end at the limit"], law)
