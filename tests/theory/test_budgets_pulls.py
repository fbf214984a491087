"""Bounds on DBCARE's pulls against the lemma's arithmetic and every sequence of eliminations."""

from functools import cache
from math import e, log

import numpy as np
import pytest

from dbcare.errors import InvalidValueError
from dbcare.problem.risk import Loss
from dbcare.theory import budgets

MI, SR = Loss.MISIDENTIFICATION, Loss.SIMPLE_REGRET


def budget(loss: Loss, survivors: int, cost: float, sigma: float) -> float:
    if loss is MI:
        return 1 / (survivors * e * cost)
    return float(3 / (2 * e) * sigma ** (2 / 3) * ((survivors - 1) * cost) ** (-2 / 3))


def worst_schedule(loss: Loss, arms: int, cost: float, sigma: float) -> int:
    """Return the most pulls over all numbers of survivors that each epoch of Algorithm 1 may leave."""

    @cache
    def most(epoch: int, survivors: int) -> int:
        if survivors == 1 or epoch > budget(loss, survivors, cost, sigma):
            return 0
        return survivors + max(most(epoch + 1, left) for left in range(1, survivors + 1))

    return most(0, arms)


@pytest.mark.parametrize("loss", [MI, SR])
@pytest.mark.parametrize("arms", [2, 3, 4, 6, 9])
@pytest.mark.parametrize(("cost", "sigma"), [(0.3, 1.0), (0.05, 1.0), (0.011, 0.5), (0.004, 2.0)])
def test_most_pulls_is_the_worst_schedule(loss: Loss, arms: int, cost: float, sigma: float) -> None:
    assert budgets.most_pulls(loss, arms, cost, sigma) == worst_schedule(loss, arms, cost, sigma)


@pytest.mark.parametrize(("loss", "sigma", "expected"), [(MI, 1.0, 3680), (SR, 1.0, 514), (SR, 0.5, 324)])
def test_most_pulls_of_two_arms_is_twice_the_last_epoch(loss: Loss, sigma: float, expected: int) -> None:
    assert budgets.most_pulls(loss, 2, 1e-4, sigma) == expected


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        (budgets.expected_pulls(MI, 2, 1e-4), 20_000 * log(2) / e),
        (budgets.expected_pulls(MI, 8, 1e-4, 3.0), 60_000 * log(2) / e),
        (budgets.expected_pulls(MI, 32, 1e-3), 10_000 * log(2) / e),
        (budgets.expected_pulls(SR, 2, 1e-3, 2.0), 3 * log(2) * 2 / (2 * 1e-2)),
        (budgets.expected_pulls(SR, 8, 1e-6), 3 * 3 * log(2) * 2 / (2 * 1e-4)),
        (budgets.expected_pulls(SR, 27, 1e-3, 8.0), 3 * 3 * log(3) * 3 * 4 / (2 * 1e-2)),
    ],
)
def test_expected_pulls(bound: float, expected: float) -> None:
    assert bound == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("loss", [MI, SR])
@pytest.mark.parametrize("arms", [2, 3, 8, 32, 1000])
def test_most_pulls_exceeds_the_lemma_by_at_most_one_pull_per_arm(loss: Loss, arms: int) -> None:
    cost = np.geomspace(1e-6, 1, 25)
    assert np.all(budgets.most_pulls(loss, arms, cost) <= budgets.expected_pulls(loss, arms, cost) + arms)


def test_most_pulls_can_exceed_the_lemma() -> None:
    assert budgets.most_pulls(MI, 1000, 0.1) > budgets.expected_pulls(MI, 1000, 0.1)


@pytest.mark.parametrize("loss", [MI, SR])
def test_arrays_agree_with_scalars(loss: Loss) -> None:
    costs, sigmas = [1e-2, 1e-3, 1e-4], [0.5, 2.0]
    for function in (budgets.most_pulls, budgets.expected_pulls):
        np.testing.assert_array_equal(
            np.broadcast_to(function(loss, 5, costs, np.array(sigmas)[:, None]), (2, 3)),
            [[function(loss, 5, cost, sigma) for cost in costs] for sigma in sigmas],
        )
    assert isinstance(budgets.most_pulls(loss, 5, 1e-3), np.integer)
    assert isinstance(budgets.expected_pulls(loss, 5, 1e-3), float)


@pytest.mark.parametrize("function", [budgets.most_pulls, budgets.expected_pulls])
def test_invalid_arguments_are_named(function: object) -> None:
    assert callable(function)
    with pytest.raises(InvalidValueError, match=r"^`arms` must be at least 2 but got 1\.$"):
        function(MI, 1, 1e-4)
    with pytest.raises(InvalidValueError, match=r"^`cost` must be positive but got 0\.0\.$"):
        function(SR, 2, 0.0)
    with pytest.raises(InvalidValueError, match=r"^`sigma` must be positive but got -1\.0\.$"):
        function(MI, 2, 1e-4, -1.0)
