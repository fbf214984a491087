"""Reward families: mean, sigma and sampling, each against a closed form."""

import math
from typing import Any

import numpy as np
import pytest

from dbcare.errors import InvalidValueError
from dbcare.problem.rewards import Bernoulli, Categorical, Empirical, Gaussian, Reward

LEVELS = Categorical((0.0, 0.2, 0.7), (0.5, 0.4, 0.1))
OBSERVED = Empirical((3.0, 1.0, 1.0, 2.0))


@pytest.mark.parametrize(
    ("family", "mean", "sigma"),
    [
        (Gaussian(0.3, 2.0), 0.3, 2.0),
        (Gaussian(-1), -1.0, 1.0),
        (Bernoulli(0.3), 0.3, 0.5),
        (Bernoulli(1), 1.0, 0.5),
        # 0.4 * 0.2 + 0.1 * 0.7 = 0.15; range 0.7
        (LEVELS, 0.15, 0.35),
        # (3 + 1 + 1 + 2) / 4; range 2
        (OBSERVED, 1.75, 1.0),
        (Empirical((5.0,)), 5.0, 0.0),
    ],
)
def test_mean_and_sigma(family: Reward, mean: float, sigma: float) -> None:
    assert isinstance(family, Reward)
    assert family.mean == pytest.approx(mean, abs=1e-15)
    assert family.sigma == pytest.approx(sigma, abs=1e-15)


@pytest.mark.parametrize(
    ("family", "values", "probabilities"),
    [
        (Bernoulli(0.25), (0.0, 1.0), (0.75, 0.25)),
        (LEVELS, (0.0, 0.2, 0.7), (0.5, 0.4, 0.1)),
        (OBSERVED, (1.0, 2.0, 3.0), (0.5, 0.25, 0.25)),
    ],
)
def test_outcomes(
    family: Bernoulli | Categorical | Empirical, values: tuple[float, ...], probabilities: tuple[float, ...]
) -> None:
    assert family.outcomes[0] == values
    assert family.outcomes[1] == pytest.approx(probabilities, abs=1e-15)


@pytest.mark.parametrize(
    "family", [Bernoulli(0.02), Bernoulli(0.5), LEVELS, OBSERVED, Categorical((-1, 4), (0.9, 0.1))]
)
def test_sigma_is_sub_gaussian(family: Bernoulli | Categorical | Empirical) -> None:
    """E exp(t(X - mean)) <= exp(t^2 sigma^2 / 2), from the outcomes, for t on both sides of 0."""
    values, probabilities = family.outcomes
    for t in np.linspace(-6, 6, 121) / family.sigma:
        moment = math.fsum(p * math.exp(t * (v - family.mean)) for v, p in zip(values, probabilities, strict=True))
        assert moment <= math.exp(t**2 * family.sigma**2 / 2) * (1 + 1e-12)


@pytest.mark.parametrize("family", [Bernoulli(0.3), LEVELS, OBSERVED])
def test_samples_have_the_stated_frequencies(family: Bernoulli | Categorical | Empirical) -> None:
    """Hoeffding: a frequency in n draws is off by t with probability at most 2 exp(-2 n t^2) = 1e-7 each."""
    draws = 100_000
    sample = family.sample(np.random.default_rng(1), draws)
    tolerance = math.sqrt(math.log(2e7) / (2 * draws))
    assert sample.dtype == np.float64
    assert sample.shape == (draws,)
    assert set(np.unique(sample)) == set(family.outcomes[0])
    for value, probability in zip(*family.outcomes, strict=True):
        assert abs(np.mean(sample == value) - probability) < tolerance


def test_gaussian_samples() -> None:
    """The mean and the share beyond one sigma are both within 5.5 standard errors (p = 4e-8 each)."""
    draws = 100_000
    sample = Gaussian(-2.0, 3.0).sample(np.random.default_rng(1), draws)
    assert sample.shape == (draws,)
    assert abs(sample.mean() + 2.0) < 5.5 * 3.0 / math.sqrt(draws)
    beyond = math.erfc(math.sqrt(0.5))  # P(|Z| > 1) = 0.3173
    assert abs(np.mean(np.abs(sample + 2.0) > 3.0) - beyond) < 5.5 * math.sqrt(beyond * (1 - beyond) / draws)


@pytest.mark.parametrize("family", [Gaussian(0.0), Bernoulli(0.5), LEVELS, OBSERVED])
def test_randomness_comes_only_from_the_generator(family: Reward) -> None:
    first, again, other = (family.sample(np.random.default_rng(seed), 50) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_certain_rewards_are_certain() -> None:
    generator = np.random.default_rng(1)
    assert set(Bernoulli(0.0).sample(generator, 1000)) == {0.0}
    assert set(Bernoulli(1.0).sample(generator, 1000)) == {1.0}


def test_probabilities_are_normalized_exactly() -> None:
    """Ten tenths sum to 1 - 1e-16 in floating point; they are accepted and rescaled to sum to 1."""
    assert math.fsum(Categorical(tuple(range(10)), (0.1,) * 10).probabilities) == 1.0


def test_equal_fields_make_equal_rewards() -> None:
    assert Gaussian(1) == Gaussian(1.0, 1.0) != Gaussian(1.0, 2.0)
    assert len({Bernoulli(0.5), Bernoulli(0.5), Categorical((0, 1), (0.5, 0.5))}) == 2


@pytest.mark.parametrize(
    ("family", "arguments", "message"),
    [
        (Gaussian, (math.nan,), "`mean` must be finite but got nan."),
        (Gaussian, ("0",), "`mean` must be a real number but got '0'."),
        (Gaussian, (0.0, 0.0), "`sigma` must be positive but got 0.0."),
        (Gaussian, (0.0, -1.0), "`sigma` must be positive but got -1.0."),
        (Gaussian, (0.0, math.inf), "`sigma` must be finite but got inf."),
        (Bernoulli, (1.1,), "`mean` must lie between 0 and 1 but got 1.1."),
        (Bernoulli, (-0.1,), "`mean` must lie between 0 and 1 but got -0.1."),
        (Bernoulli, (True,), "`mean` must be a real number but got True."),
        (Categorical, ((0.0, 1.0), (0.5, 0.4)), "`probabilities` must sum to 1 but got 0.9."),
        (Categorical, ((0.0, 1.0), (0.5, 0.5, 0.0)), "`probabilities` must be as long as `values` (2) but got 3."),
        (Categorical, ((0.0, 1.0), (1.5, -0.5)), "`probabilities[0]` must lie between 0 and 1 but got 1.5."),
        (Categorical, ((0.0, math.inf), (0.5, 0.5)), "`values[1]` must be finite but got inf."),
        (Categorical, ((), ()), "`values` must not be empty but got ()."),
        (Empirical, ((),), "`data` must not be empty but got ()."),
        (Empirical, ((0.0, None),), "`data[1]` must be a real number but got None."),
    ],
)
def test_invalid_arguments_are_rejected(family: type[Any], arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        family(*arguments)
    assert str(caught.value) == message
