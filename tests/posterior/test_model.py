"""What is known about the arms: the quadrature against simulation and closed forms, and always-valid intervals."""

import math

import numpy as np
import pytest
from scipy import stats

from dbcare.errors import InvalidValueError
from dbcare.posterior import AlwaysValid, Posterior, expect_rewards
from dbcare.posterior.model import find_quantiles
from dbcare.problem.risk import Loss

DRAWS = 150_000
CASES = {
    "two arms": ((0.5, 0.3), (0.1, 0.3)),
    "three arms": ((0.6, 0.5, 0.45), (0.05, 0.08, 0.05)),
    "a clear winner": ((0.45, 0.1, 0.0, -0.1), (0.1, 0.1, 0.1, 0.1)),
    "eight arms": (tuple(0.1 * place for place in range(8)), (0.2, 0.1, 0.3, 0.2, 0.4, 0.1, 0.2, 0.2)),
    "an arm without rewards": ((0.6, 0.5, 0.0), (0.05, 0.05, math.inf)),
}


def simulate(means: tuple[float, ...], errors: tuple[float, ...], draws: int) -> np.ndarray:
    """Draw from the posterior: hyperparameters from a fine grid of mu and tau, then the means of the arms."""
    m, a = np.array(means), np.square(errors)
    seen = np.isfinite(a)
    scale = 2.0 * math.sqrt(float(np.median(a[seen])))
    log_tau = np.linspace(math.log(1e-3 * scale), math.log(1e4 * scale), 1_501)
    tau = np.exp(log_tau)
    steps = np.linspace(-11.0, 11.0, 1_601)  # of mu, dense around the precise arms
    mu = float(np.average(m[seen], weights=1.0 / np.sqrt(a[seen]))) + 1e-3 * (np.ptp(m[seen]) + scale) * np.sinh(steps)
    log_weight = np.log(tau / (1.0 + np.square(tau / scale)))[:, None] + np.log(np.cosh(steps))
    for mean, variance in zip(m[seen], a[seen], strict=True):
        log_weight += stats.norm.logpdf(mean, mu[None, :], np.sqrt(np.square(tau) + variance)[:, None])
    weight = np.exp(log_weight - log_weight.max()).ravel()
    generator = np.random.default_rng(7)
    chosen = generator.choice(weight.size, size=draws, p=weight / weight.sum())
    mu_drawn, tau_drawn = mu[chosen % len(mu)][:, None], tau[chosen // len(mu)][:, None]
    precision = np.where(seen, 1.0 / np.where(seen, a, 1.0), 0.0)
    variance = 1.0 / (1.0 / np.square(tau_drawn) + precision)
    center = variance * (mu_drawn / np.square(tau_drawn) + precision * m)
    return np.asarray(center + np.sqrt(variance) * generator.standard_normal((draws, len(m))))


@pytest.mark.parametrize("name", CASES)
def test_quadrature_agrees_with_simulation(name: str) -> None:
    """Within 5 standard errors of each, and 1% for the grids of both: the chance of a false alarm is below 1e-6.

    Negative control: the loss against the strongest rival alone is further away wherever there are more than two arms.
    """
    means, errors = CASES[name]
    posterior, drawn = Posterior(means, errors), simulate(means, errors, DRAWS)
    observed = [place for place in range(len(means)) if math.isfinite(errors[place])]
    best = max(observed, key=lambda place: means[place])
    losses = drawn.max(axis=1) - drawn[:, best]
    slack = 5.0 * losses.std() / math.sqrt(DRAWS) + 0.01 * losses.mean()
    assert posterior.expected_loss(best) == pytest.approx(losses.mean(), abs=slack)
    shares = np.bincount(drawn.argmax(axis=1), minlength=len(means)) / DRAWS
    assert posterior.chances == pytest.approx(shares, abs=0.009)
    assert sum(posterior.chances) == pytest.approx(1.0, abs=5e-4)
    assert posterior.estimates == pytest.approx(drawn.mean(axis=0), abs=0.03 * drawn.std(axis=0).max())
    other = max((place for place in observed if place != best), key=lambda place: means[place])
    assert posterior.chance_ahead(best, other) == pytest.approx(np.mean(drawn[:, best] > drawn[:, other]), abs=0.009)
    for interval, column, mean, error in (
        (posterior.intervals[best], drawn[:, best], means[best], errors[best]),
        (
            posterior.lead_interval(best, other),
            drawn[:, best] - drawn[:, other],
            means[best] - means[other],
            math.hypot(errors[best], errors[other]),
        ),
    ):
        low, high = np.quantile(column, [0.025, 0.975])
        hull = min(low, mean - 1.959964 * error), max(high, mean + 1.959964 * error)
        assert tuple(interval) == pytest.approx(hull, abs=0.03 * error)
    pair = np.maximum(drawn[:, other] - drawn[:, best], 0.0).mean()
    assert (abs(pair - losses.mean()) > slack) == (len(means) > 2)


def test_two_arms_have_a_closed_form() -> None:
    """Given tau, mu_2 - mu_1 is normal, so its positive part has a known mean; both arms have the same error."""
    posterior = Posterior((0.30, 0.25), (0.04, 0.04))
    tau, weight = posterior._nodes
    shrunk = np.square(tau) / (np.square(tau) + 0.04**2)
    delta, spread = -0.05 * shrunk, np.sqrt(2.0 * shrunk) * 0.04
    z = delta / spread
    loss = weight @ (spread * (stats.norm.pdf(z) + z * stats.norm.cdf(z)))
    assert posterior.expected_loss(0) == pytest.approx(loss, rel=1e-6)
    assert posterior.chances == pytest.approx([weight @ stats.norm.cdf(-z), weight @ stats.norm.cdf(z)], rel=1e-6)
    assert posterior.chance_ahead(0, 1) == pytest.approx(posterior.chances[0], rel=1e-6)
    assert posterior.expected_loss(1) - posterior.expected_loss(0) == pytest.approx(
        posterior.estimates[0] - posterior.estimates[1]
    )


@pytest.mark.parametrize("arms", [2, 3, 20, 300])
def test_equal_arms_are_equally_likely(arms: int) -> None:
    """Each with the same chance; what one loses to the best of K is E[max of K standard normals] d_k, given tau."""
    posterior = Posterior((0.7,) * arms, (0.1,) * arms)
    assert posterior.chances == pytest.approx([1.0 / arms] * arms, rel=1e-2)
    assert posterior.estimates == pytest.approx([0.7] * arms)
    tau, weight = posterior._nodes
    x = np.linspace(-10.0, 10.0, 20_001)
    largest = np.trapezoid(x * arms * stats.norm.pdf(x) * stats.norm.cdf(x) ** (arms - 1), x)
    spread = weight @ (0.1 * tau / np.sqrt(np.square(tau) + 0.01))
    assert posterior.expected_loss(0) == pytest.approx(largest * spread, rel=2e-3)


def test_spreads_that_differ_widely_have_an_uneven_grid() -> None:
    """One arm has 10^12 times the rewards of another."""
    posterior = Posterior((0.5, 0.49, 0.3), (1e-6, 1e-3, 1.0))
    drawn = simulate((0.5, 0.49, 0.3), (1e-6, 1e-3, 1.0), DRAWS)
    assert posterior._grid.points.shape[1] == 2 * 61  # the second arm cannot be the best
    losses = drawn.max(axis=1) - drawn[:, 0]
    assert posterior.expected_loss(0) == pytest.approx(losses.mean(), rel=0.03)
    assert sum(posterior.chances) == pytest.approx(1.0, abs=0.01)


def test_quantiles_of_a_mixture() -> None:
    """Against a root finder on the distribution function."""
    generator = np.random.default_rng(3)
    centers, spreads = generator.normal(size=(30, 4)), np.exp(generator.normal(size=(30, 4)))
    weights = generator.dirichlet(np.ones(30))
    for share in (0.025, 0.5, 0.975):
        found = find_quantiles(centers, spreads, weights, share)
        for place in range(4):
            reached = weights @ stats.norm.cdf((found[place] - centers[:, place]) / spreads[:, place])
            assert reached == pytest.approx(share, abs=1e-7)


def test_what_is_not_a_set_of_arms_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="one entry for each of 2 or more arms but got 2 and 1"):
        Posterior((0.5, 0.4), (0.1,))
    with pytest.raises(InvalidValueError, match="finite for at least one arm"):
        Posterior((0.5, 0.4), (math.inf, math.inf))


@pytest.mark.parametrize("count", [1, 10, 1_000, 100_000])
def test_always_valid_intervals_are_the_published_ones(count: int) -> None:
    """Howard et al. (2021), equation 14: sqrt((v + rho) ln((v + rho)/(alpha^2 rho))) bounds the sum, for any rho."""
    alpha, rewards = 0.05 / 3.0, 250.0
    always = AlwaysValid(alpha, rewards)
    x = -2.0 * math.log(alpha)
    rho = rewards / (x + math.log(1.0 + x))
    assert always.margin(2.0, count) * count == pytest.approx(
        2.0 * math.sqrt((count + rho) * math.log((count + rho) / (alpha**2 * rho)))
    )
    # With infinitely many rewards of the other arm, a lead is as certain as the arm, but for the price of two.
    lone = always.lead_margin((2.0, 2.0), (count, 10**12))
    assert always.margin(2.0, count) < lone < 2.0 * always.margin(2.0, count)


def test_always_valid_intervals_are_narrowest_where_they_should_be() -> None:
    """Among all constants r, the one chosen has the smallest margin at that number of rewards, within 1%."""
    margins = {scale: AlwaysValid(0.05, 400.0 * scale).margin(1.0, 400) for scale in np.geomspace(0.1, 10.0, 41)}
    assert margins[1.0] <= 1.01 * min(margins.values())
    assert expect_rewards(Loss.SIMPLE_REGRET, 1e-3, 2.0) == pytest.approx(0.43 * 2_000.0 ** (2.0 / 3.0))
    assert expect_rewards(Loss.MISIDENTIFICATION, 1e-3, 2.0) == pytest.approx(50.0)


def test_always_valid_intervals_hold_for_studies_that_stop_when_they_look_best() -> None:
    """Each of 2,000 studies looks 1,000 times, and stops where the interval is furthest from the truth.

    At least 95% cover it: fewer than 1,844 then have a chance below 1e-6 (binomial). Negative control: of the usual
    intervals, fewer than half hold at every look.
    """
    studies, looks = 2_000, 1_000
    assert stats.binom.cdf(1_843, studies, 0.95) < 1e-6
    counts = np.arange(1, looks + 1)
    always = AlwaysValid(0.05, 100.0)
    margins = np.array([always.margin(1.0, int(count)) for count in counts])
    rewards = np.random.default_rng(5).standard_normal((studies, looks))
    errors = np.abs(np.cumsum(rewards, axis=1)) / counts
    assert np.sum(np.all(errors <= margins, axis=1)) >= 1_844
    assert np.sum(np.all(errors <= 1.96 / np.sqrt(counts), axis=1)) < studies / 2
