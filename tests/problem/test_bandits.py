"""Bandits: gaps, complexity, the paper's named instances, and the drug data."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dbcare.errors import InvalidValueError
from dbcare.problem import bandits
from dbcare.problem.bandits import Bandit
from dbcare.problem.rewards import Bernoulli, Categorical, Empirical, Gaussian


def test_gaps_and_complexity_by_hand() -> None:
    """The best mean is 0.5; gaps are 0.5, 0, 0.25 in the order of the arms; H = 1/0.25 + 1/0.0625 = 4 + 16."""
    bandit = Bandit.gaussian([0.0, 0.5, 0.25], sigma=[1.0, 2.0, 0.5])
    assert bandit.means == (0.0, 0.5, 0.25)
    assert bandit.best_mean == 0.5
    assert bandit.best_arms == (1,)
    assert bandit.gaps == (0.5, 0.0, 0.25)
    assert bandit.smallest_gap == 0.25
    assert bandit.complexity == 20.0
    assert bandit.sigma == 2.0


def test_tied_best_arms() -> None:
    bandit = Bandit.bernoulli([0.5, 0.2, 0.5])
    assert bandit.best_arms == (0, 2)
    assert bandit.smallest_gap == 0.0
    assert bandit.complexity == math.inf


@pytest.mark.parametrize(
    ("bandit", "means", "complexity"),
    [
        (Bandit.two_arm(0.5), (0.25, -0.25), 4.0),
        (Bandit.two_arm_bernoulli(0.5), (0.75, 0.25), 4.0),
        # (K-1) / gap^2 = 3 / 0.25
        (Bandit.one_sparse(4, 0.5), (0.5, 0.0, 0.0, 0.0), 12.0),
        # K = 4: mean_k = -gap (k-2)/2 for k = 2, 3, 4; gaps 1, 1.5, 2: 1 + 4/9 + 1/4
        (Bandit.linear_decay(4, 1.0), (1.0, 0.0, -0.5, -1.0), 61 / 36),
        # K = 3: gaps 1 and 2
        (Bandit.linear_decay(3, 1.0), (1.0, 0.0, -1.0), 1.25),
    ],
)
def test_named_instances(bandit: Bandit, means: tuple[float, ...], complexity: float) -> None:
    assert bandit.means == means
    assert bandit.best_arms == (0,)
    assert bandit.complexity == pytest.approx(complexity, rel=1e-14)


def test_named_instances_take_a_sigma() -> None:
    for bandit in (Bandit.two_arm(1.0, 0.7), Bandit.one_sparse(3, 1.0, 0.7), Bandit.linear_decay(3, 1.0, 0.7)):
        assert {arm.sigma for arm in bandit.arms} == {0.7}


def test_families() -> None:
    assert Bandit.gaussian([0, 1], 2).arms == (Gaussian(0, 2), Gaussian(1, 2))
    assert Bandit.bernoulli([0, 1]).arms == (Bernoulli(0), Bernoulli(1))
    assert Bandit.categorical([0, 1], [[0.5, 0.5], [1, 0]]).arms == (
        Categorical((0, 1), (0.5, 0.5)),
        Categorical((0, 1), (1, 0)),
    )
    assert Bandit.empirical([[1, 2], [3]]).arms == (Empirical((1, 2)), Empirical((3,)))


# Means of the drug trial: 300, 75 and 150 mg, placebo, 25 mg. The paper (Harding & Kandasamy 2025) prints the first two
# rows; the third counts each patient once, at the best level reached.
BINARY = (0.537, 0.469, 0.465, 0.360, 0.340)
EXCLUSIVE = (0.227, 0.200, 0.230, 0.102, 0.196)
NESTED = (0.168, 0.153, 0.165, 0.090, 0.128)


@pytest.mark.parametrize(
    ("bandit", "means", "best", "sigma"),
    [
        (Bandit.drug_binary(), BINARY, "300 mg", 0.5),
        (Bandit.drug_leveled(), EXCLUSIVE, "150 mg", 0.35),
        (Bandit.drug_leveled("exclusive"), EXCLUSIVE, "150 mg", 0.35),
        (Bandit.drug_leveled("nested"), NESTED, "300 mg", 0.35),
    ],
)
def test_the_drug_data_give_the_published_means(
    bandit: Bandit, means: tuple[float, ...], best: str, sigma: float
) -> None:
    assert bandit.means == pytest.approx(means, abs=5.1e-4)
    assert bandit.names == ("300 mg", "75 mg", "150 mg", "placebo", "25 mg")
    assert [bandit.names[arm] for arm in bandit.best_arms] == [best]
    assert bandit.sigma == pytest.approx(sigma, abs=1e-15)


ACR20 = {"300 mg": (22, 41), "75 mg": (23, 49), "150 mg": (20, 43), "placebo": (18, 50), "25 mg": (18, 53)}
LEVELED_MEANS = (0.230, 0.227, 0.200, 0.196, 0.102)  # as printed, of unnamed treatments


def find_leveled_tables() -> set[tuple[tuple[int, int], ...]]:
    """Find all ACR50 and ACR70 counts for which the means round to the printed ones, in any order of treatments.

    Each count is at most the one before it, and the three exclusive shares of a treatment sum to at most 1.
    """
    fits = {
        (name, mean): [
            (at50, at70)
            for at50 in range(at20 + 1)
            for at70 in range(min(at50, patients - at20 - at50) + 1)
            if abs((0.2 * at20 + 0.5 * at50 + 0.7 * at70) / patients - mean) <= 0.0005 + 1e-12
        ]
        for name, (at20, patients) in ACR20.items()
        for mean in LEVELED_MEANS
    }
    return {
        table
        for order in itertools.permutations(LEVELED_MEANS)
        for table in itertools.product(*(fits[name, mean] for name, mean in zip(ACR20, order, strict=True)))
    }


def test_exactly_four_tables_fit_the_leveled_means() -> None:
    own = {
        tuple(changes.get(each.name, (each.acr50, each.acr70)) for each in bandits.SECUKINUMAB)
        for changes in bandits.LEVELED_TABLES
    }
    assert len(bandits.LEVELED_TABLES) == 4
    assert own == find_leveled_tables()
    # ACR50 of 9/43 for 150 mg, and 10/0 for 75 mg, as the module says
    assert [changes.get("150 mg", (9, 2))[0] for changes in bandits.LEVELED_TABLES] == [9, 9, 9, 5]
    assert [changes.get("75 mg", (9, 1)) for changes in bandits.LEVELED_TABLES] == [(9, 1), *[(10, 0)] * 3]
    for table in range(1, 5):
        assert sorted(Bandit.drug_leveled(table=table).means) == pytest.approx(sorted(LEVELED_MEANS), abs=5.1e-4)


def test_the_groups_sum_to_one_patient_less_than_the_paper_says() -> None:
    assert {each.name: (each.acr20, each.patients) for each in bandits.SECUKINUMAB} == ACR20
    assert sum(each.patients for each in bandits.SECUKINUMAB) == 237 - 1


def test_only_differences_of_means_matter_to_the_bound() -> None:
    assert Bandit.two_arm(1.0).means == (0.5, -0.5)
    Bandit.gaussian([0.5, -0.5], bound=1.0)
    Bandit.gaussian([100.0, 101.0], bound=1.0)
    Bandit.bernoulli([0.1, 0.4], bound=0.3)  # 0.4 - 0.1 = 0.30000000000000004
    Bandit.two_arm(1.0).require_bound(1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bandit.gaussian([1.0]), "`arms` must be at least 2 but got 1."),
        (lambda: Bandit(()), "`arms` must be at least 2 but got 0."),
        (lambda: Bandit.one_sparse(1, 0.5), "`arms` must be at least 2 but got 1."),
        (lambda: Bandit.linear_decay(2, 0.5), "`arms` must be at least 3 but got 2."),
        (lambda: Bandit.one_sparse(4, -0.5), "`gap` must not be negative but got -0.5."),
        (lambda: Bandit.two_arm_bernoulli(1.5), "`gap` must lie between 0 and 1 but got 1.5."),
        (lambda: Bandit.two_arm(1.0, sigma=0.0), "`sigma` must be positive but got 0.0."),
        (lambda: Bandit.gaussian([0, 1], [1.0]), "`sigma` must be one number or one per arm (2) but got 1."),
        (lambda: Bandit.gaussian([0, math.inf]), "`mean` must be finite but got inf."),
        (lambda: Bandit.bernoulli([0.5, 1.5]), "`mean` must lie between 0 and 1 but got 1.5."),
        (lambda: Bandit.categorical([0, 1], [[0.5, 0.5], [0.5, 0.6]]), "`probabilities` must sum to 1 but got 1.1."),
        (lambda: Bandit.drug_leveled("best"), "`reading` must be one of exclusive, nested but got 'best'."),
        (lambda: Bandit.drug_leveled(table=5), "`table` must be at most 4 but got 5."),
        (lambda: Bandit((Bernoulli(0.5), 0.5)), "`arms[1]` must be a reward family but got 0.5."),  # type: ignore[arg-type]  # wrong on purpose
        (
            lambda: Bandit((Bernoulli(0.5), Bernoulli(0.1)), names=("a", "a")),
            "`names` must be 2 distinct names but got ('a', 'a').",
        ),
        (
            lambda: Bandit.gaussian([0.6, -0.5], bound=1.0),
            "`bound` must be at least the largest difference between means, 1.1, but got 1.",
        ),
        (lambda: Bandit.gaussian([0, 1], bound=0.0), "`bound` must be positive but got 0.0."),
        (
            lambda: Bandit.two_arm(1.0).require_bound(0.5),
            "`bound` must be at least the largest difference between means, 1, but got 0.5.",
        ),
    ],
)
def test_invalid_arguments_are_rejected(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        make()
    assert str(caught.value) == message


def test_sigmas_may_be_any_sequence_of_numbers() -> None:
    means: Any = np.array([0.0, 1.0])
    sigmas: Any = np.array([1.0, 2.0])
    assert Bandit.gaussian(means, sigmas) == Bandit.gaussian([0.0, 1.0], [1.0, 2.0])
