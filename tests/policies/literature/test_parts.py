"""What adaptive rules share: rates, bounds by divergence, likelihood ratios, proportions, boundary and gains."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import zeta
from scipy.stats import norm

from dbcare.policies.breakeven.losses import series_of
from dbcare.policies.literature import parts
from dbcare.policies.literature.bounds import divergence, lower_bound, upper_bound
from dbcare.policies.literature.chick_frazier import boundary
from dbcare.policies.literature.kg_star import GainNumbers, best_shares, gain_rate
from dbcare.policies.literature.likelihood import RewardFamily, likelihood_ratio
from dbcare.policies.literature.track_and_stop import optimal_proportions
from tests.helpers import plain_rivals as plain

MEANS = (1e-9, 1e-4, 0.02, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-9)
LEVELS = (1e-12, 1e-8, 1e-4, 0.01, 0.5, 3.0, 15.0)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("level", LEVELS)
def test_bounds_by_divergence_are_roots(mean: float, level: float) -> None:
    """Against scipy's root finder and its relative entropy."""
    if plain.divergence(mean, 1.0 - 1e-15) > level:
        root = brentq(lambda q: plain.divergence(mean, q) - level, mean, 1.0 - 1e-15, xtol=1e-16, rtol=1e-15)
        assert upper_bound(mean, level) == pytest.approx(root, abs=1e-10)
    if plain.divergence(mean, 1e-15) > level:
        root = brentq(lambda q: plain.divergence(mean, q) - level, 1e-15, mean, xtol=1e-16, rtol=1e-15)
        assert lower_bound(mean, level) == pytest.approx(root, abs=1e-10)


def test_bounds_at_the_ends_of_the_range() -> None:
    """kl(0, q) = -ln(1 - q), kl(1, q) = -ln q."""
    assert upper_bound(0.0, 2.0) == pytest.approx(1.0 - math.exp(-2.0), rel=1e-14)
    assert lower_bound(1.0, 2.0) == pytest.approx(math.exp(-2.0), rel=1e-14)
    assert (upper_bound(1.0, 2.0), lower_bound(0.0, 2.0)) == (1.0, 0.0)
    assert divergence(0.3, 0.3) == 0.0
    assert divergence(0.25, 0.5) == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5), rel=1e-14)


def test_published_proportions() -> None:
    """Garivier and Kaufmann (2016), Section 6: to three digits."""
    first = optimal_proportions([0.5, 0.45, 0.43, 0.4], bernoulli=True)
    assert first.round(3).tolist() == [0.417, 0.390, 0.136, 0.057]
    second = optimal_proportions([0.3, 0.21, 0.2, 0.19, 0.18], bernoulli=True)
    assert second.round(3).tolist() == [0.336, 0.251, 0.177, 0.132, 0.104]


@pytest.mark.parametrize("bernoulli", [True, False])
def test_proportions_maximize_the_smallest_ratio(bernoulli: bool) -> None:
    """Against two nested root finders, and no nearby proportions are better; two Gaussian arms share equally."""
    generator = np.random.default_rng(3)
    for arms in (2, 3, 5, 8) * 5:
        means = generator.uniform(0.02, 0.98, arms)
        shares = optimal_proportions(means.tolist(), bernoulli=bernoulli)
        assert shares == pytest.approx(plain.proportions(means, bernoulli), abs=1e-7)
        best = int(np.argmax(means))

        def value(shares: np.ndarray, means: np.ndarray = means, best: int = best) -> float:
            others = (k for k in range(len(means)) if k != best)
            return min(plain.likelihood_ratio(bernoulli, 0.5, shares, means, best, k) for k in others)

        for _ in range(20):
            moved = shares * (1.0 + 0.01 * generator.normal(size=arms))
            assert value(moved / moved.sum()) <= value(shares) * (1.0 + 1e-9)
    assert optimal_proportions([1.0, -3.0], bernoulli=False) == pytest.approx([0.5, 0.5])


def test_tied_arms_share_all_pulls() -> None:
    assert optimal_proportions([0.5, 0.2, 0.5], bernoulli=True).tolist() == [0.5, 0.0, 0.5]
    assert optimal_proportions([1.0, 0.0, 0.0], bernoulli=True).sum() == pytest.approx(1.0)


def test_likelihood_ratios_are_maximal_likelihoods() -> None:
    """Twice maximized numerically: freely, and over means that are equal, where the contrary is most likely."""
    counts, means = np.array([7.0, 12.0]), np.array([0.6, 0.35])

    def log_likelihood(theta: np.ndarray) -> float:
        return float(np.sum(counts * (means * np.log(theta) + (1.0 - means) * np.log(1.0 - theta))))

    together = -minimize_scalar(lambda x: -log_likelihood(np.array([x, x])), bounds=(0.01, 0.99), method="bounded").fun
    ratio = likelihood_ratio(RewardFamily(True, 0.25), 0.6, 7.0, 0.35, 12.0)
    assert ratio == pytest.approx(log_likelihood(means) - together, rel=1e-6)
    assert likelihood_ratio(RewardFamily(False, 4.0), 1.0, 3.0, 0.0, 6.0) == pytest.approx(
        1.0 / (2.0 * 4.0 * 0.5), rel=1e-14
    )


def test_rates() -> None:
    """Against the formulas, written out."""
    arms, delta, t = 6, 0.05, 37.0
    assert parts.rate_at(parts.lucb_rate(arms, delta), t) == pytest.approx(math.log(5 * arms * t**4 / (4 * delta)))
    assert parts.rate_at(parts.ugape_rate(arms, delta), t) == pytest.approx(math.log(4 * arms * t**3 / delta))
    assert parts.rate_at(parts.heuristic_rate(delta), t) == pytest.approx(math.log((math.log(t) + 1) / delta))
    ratio = parts.rate_at(parts.bernoulli_ratio_rate(arms, delta), t)
    assert ratio == pytest.approx(math.log(2 * (arms - 1) * t / delta))
    x = 405.5 * arms * t**1.1 / delta
    assert parts.rate_at(parts.kl_lucb_rate(arms, delta), t) == pytest.approx(math.log(x) + math.log(math.log(x)))
    shares = np.linspace(0.5001, 0.9999, 20_000)
    curve = 2 * shares - 2 * shares * np.log(4 * shares) + np.log(zeta(2 * shares)) - 0.5 * np.log(1 - shares)
    smallest = np.min((curve + 0.5 * math.log((arms - 1) / delta)) / shares)
    expected = 2 * smallest + 4 * math.log(4 + math.log(t / 2))
    assert parts.rate_at(parts.gaussian_ratio_rate(arms, delta), t) == pytest.approx(expected, rel=1e-6)


def test_the_boundary_is_continuous_and_rises() -> None:
    for s in (1.0, 3.0, 40.0):
        assert boundary(s * (1.0 + 1e-9)) == pytest.approx(boundary(s), rel=0.015)
    assert np.all(np.diff([boundary(each) for each in np.geomspace(0.01, 1e5, 500)]) > 0.0)


def solve_boundary(s_end: float, steps: int, width: int) -> dict[float, float]:
    """Solve the stopping problem by backward induction on a binomial tree, from the certainty at s near 0.

    The posterior mean w moves by a variance of s - s' as the posterior variance falls from s to s', which costs
    1/s' - 1/s. Stopping is worth max(w, 0); the boundary is the smallest w >= 0 at which stopping is best.
    """
    step = math.sqrt(s_end / steps)
    w = step * np.arange(-width, width + 1)
    value = np.maximum(w, 0.0)
    found = {}
    for index in range(1, steps):
        s = s_end * index / steps
        cost = 1.0 / s - 1.0 / (s + s_end / steps)
        going = 0.5 * (value[2:] + value[:-2]) - cost
        value[1:-1] = np.maximum(np.maximum(w, 0.0)[1:-1], going)
        stops = np.flatnonzero(going[width - 1 :] <= w[width:-1])
        found[s + s_end / steps] = float(w[width + stops[0]])
    return found


@pytest.mark.parametrize(("s_end", "within"), [(1.5, 0.05), (10.0, 0.05), (60.0, 0.05)])
def test_the_boundary_solves_the_stopping_problem(s_end: float, within: float) -> None:
    """At the largest s and at half of it, against backward induction."""
    solved = solve_boundary(s_end, 40_000, 2_000)
    for target in (s_end, s_end / 2.0):
        s = min(solved, key=lambda each: abs(each - target))
        assert boundary(s) == pytest.approx(solved[s], rel=within)


def test_gains_look_as_far_ahead_as_is_best() -> None:
    """The tabulated look-ahead against trying all numbers of pulls."""
    numbers = GainNumbers(2.0, np.array([1e-3]), best_shares(), series_of(True))
    more = np.arange(1, 200_001)
    for pulls in (1, 7, 300):
        for difference in (0.0, 0.01, 0.3, 1.0, 2.5):
            width = 2.0 * np.sqrt(1.0 / pulls - 1.0 / (pulls + more))
            gains = width * (norm.pdf(difference / width) - difference / width * norm.sf(difference / width)) / more
            # The table of Psi is accurate to 1e-6 up to z = 8.
            if difference / width[np.argmax(gains)] < 8.0:
                assert gain_rate(numbers, 0, difference, pulls) == pytest.approx(np.max(gains) / 1e-3, rel=2e-6)
