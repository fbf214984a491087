"""Budgets, confidence and the oracle's pulls against known values and hand arithmetic."""

import math
from math import e, log
from typing import Any

import numpy as np
import pytest

from dbcare.errors import InvalidValueError
from dbcare.problem.risk import Loss
from dbcare.theory import budgets

MI, SR = Loss.MISIDENTIFICATION, Loss.SIMPLE_REGRET
COST = 1e-4


@pytest.mark.parametrize(
    ("loss", "survivors", "sigma", "epochs"),
    [
        (MI, 2, 1.0, 1840),
        (MI, 2, 0.5, 1840),
        (MI, 8, 1.0, 460),
        (SR, 2, 1.0, 257),
        (SR, 2, 0.5, 162),
        (SR, 8, 1.0, 70),
    ],
)
def test_known_last_epochs(loss: Loss, survivors: int, sigma: float, epochs: int) -> None:
    assert budgets.last_epoch(loss, survivors, COST, sigma) == epochs


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (budgets.epoch_budget(MI, 2, 1e-4), 10_000 / (2 * e)),
        (budgets.epoch_budget(MI, 5, 1e-3, 7.0), 200 / e),
        (budgets.epoch_budget(SR, 2, 1e-3), 1.5 / e * 100),
        (budgets.epoch_budget(SR, 2, 1e-6, 8.0), 1.5 / e * 4 * 1e4),
        (budgets.epoch_budget(SR, 9, 1e-3), 1.5 / e * 100 / 4),
    ],
)
def test_epoch_budget(budget: float, expected: float) -> None:
    assert budget == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    ("loss", "arms", "preset", "expected"),
    [
        (MI, 2, "paper", 7.31e-5),
        (SR, 8, "paper", 3.5e-8),
        (SR, 8, "theorem", 3.5e-8),
        (SR, 8, "corrected", 7.8e-5),
    ],
)
def test_known_confidences(loss: Loss, arms: int, preset: str, expected: float) -> None:
    assert budgets.confidence(loss, arms, COST, preset=preset) == pytest.approx(expected, rel=0.015)


SR_BUDGET = 1.5 / e * (0.5 / COST) ** (2 / 3)


@pytest.mark.parametrize(
    ("loss", "arms", "preset", "expected"),
    [
        (MI, 2, "paper", COST / (1 + 1 / e)),
        (MI, 2, "corrected", COST / (1 + 1 / e)),
        (MI, 2, "theorem", COST / (1 + log(2) / e)),
        (MI, 5, "paper", COST / (1 + log(5) / e)),
        (MI, 5, "theorem", COST / (1 + log(5) / e)),
        (MI, 5, "corrected", COST / (1 + 2 * log(5) / e)),
        (SR, 2, "paper", COST / (3 + 2 * COST * SR_BUDGET)),
        (SR, 2, "corrected", COST / (3 + 2 * COST * SR_BUDGET)),
        (SR, 2, "theorem", COST / (3 + e * 2 ** (1 / 3) * log(2) * SR_BUDGET)),
        (SR, 27, "paper", COST / (3 + e * 3 * log(27) * SR_BUDGET)),
        (SR, 27, "corrected", COST / (3 + COST * e * 3 * log(27) * SR_BUDGET)),
    ],
)
def test_confidence(loss: Loss, arms: int, preset: str, expected: float) -> None:
    delta = budgets.confidence(loss, arms, COST, 0.5, 3.0, preset=preset)
    assert delta == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("arms", [3, 8, 100])
@pytest.mark.parametrize("loss", [MI, SR])
def test_corrected_confidence_pays_for_the_bad_event(loss: Loss, arms: int) -> None:
    # delta * (worst loss + c * sum of all budgets) <= c, with an explicit sum.
    if loss is MI:
        spent = (0.5 + sum(1 / k for k in range(2, arms + 1))) / e
    else:
        spent = 1.5 / e * COST ** (1 / 3) * (1 + sum((k - 1) ** (-2 / 3) for k in range(2, arms + 1)))
    assert budgets.confidence(loss, arms, COST, preset="corrected") * (1 + spent) <= COST


@pytest.mark.parametrize(
    ("loss", "gap", "sigma", "pulls"),
    [
        (MI, 1.0, 1.0, math.ceil(4 * log(1 / 8e-4))),
        (MI, 0.05, 1.0, math.ceil(1600 * log(0.0025 / 8e-4))),
        (MI, 0.3, 0.5, math.ceil(1 / 0.09 * log(0.09 / 2e-4))),
        (MI, 0.0282, 1.0, 0),  # sqrt(8e-4) = 0.02828
        (MI, 0.0283, 1.0, 6),  # 4994.4 * 0.00111 = 5.6
        (SR, 1.0, 1.0, math.ceil(4 * log(1 / 8e-4))),
        (SR, 0.3, 0.5, math.ceil(1 / 0.09 * log(0.027 / 2e-4))),
        (SR, 0.0928, 1.0, 0),  # cbrt(8e-4) = 0.09283
        (SR, 0.0929, 1.0, 2),  # 463.5 * 0.00220 = 1.02
        (SR, 0.0, 1.0, 0),
    ],
)
def test_oracle_pulls(loss: Loss, gap: float, sigma: float, pulls: int) -> None:
    assert budgets.oracle_pulls(loss, gap, COST, sigma) == pulls


@pytest.mark.parametrize(("loss", "sigma"), [(MI, 1.0), (MI, 0.5), (SR, 1.0), (SR, 0.5)])
def test_the_epoch_budget_is_the_most_that_the_oracle_pulls(loss: Loss, sigma: float) -> None:
    pulls = budgets.oracle_pulls(loss, np.geomspace(1e-3, 10, 50_001), COST, sigma)
    assert np.max(pulls) == math.ceil(budgets.epoch_budget(loss, 2, COST, sigma))


def test_arrays_agree_with_scalars() -> None:
    costs, arms, gaps = [1e-2, 1e-4], [2, 3, 8], [0.0, 0.02, 0.5]
    for loss in Loss:
        np.testing.assert_array_equal(
            budgets.epoch_budget(loss, np.array(arms)[:, None], costs),
            [[budgets.epoch_budget(loss, k, c) for c in costs] for k in arms],
        )
        np.testing.assert_array_equal(
            budgets.oracle_pulls(loss, np.array(gaps)[:, None], costs),
            [[budgets.oracle_pulls(loss, gap, c) for c in costs] for gap in gaps],
        )
        for preset in budgets.PRESETS:
            np.testing.assert_array_equal(
                budgets.confidence(loss, np.array(arms)[:, None], costs, preset=preset),
                [[budgets.confidence(loss, k, c, preset=preset) for c in costs] for k in arms],
            )


@pytest.mark.parametrize("loss", list(Loss))
def test_scalars_give_scalars_and_sigma_defaults_to_one(loss: Loss) -> None:
    assert budgets.last_epoch(loss, 2, COST) == budgets.last_epoch(loss, 2, COST, 1.0)
    assert budgets.oracle_pulls(loss, 0.5, COST) == budgets.oracle_pulls(loss, 0.5, COST, 1.0)
    assert isinstance(budgets.epoch_budget(loss, 2, COST), float)
    assert isinstance(budgets.confidence(loss, 2, COST), float)
    assert isinstance(budgets.last_epoch(loss, 2, COST), np.integer)
    assert isinstance(budgets.oracle_pulls(loss, 0.5, COST), np.integer)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: budgets.epoch_budget(MI, 2, -1.0), "`cost` must be positive but got -1.0."),
        (lambda: budgets.epoch_budget(MI, 2, [1e-3, 0.0, -2.0]), "`cost` must be positive but got 0.0."),
        (lambda: budgets.epoch_budget(MI, 2, math.nan), "`cost` must be finite but got nan."),
        (lambda: budgets.epoch_budget(MI, 2, math.inf), "`cost` must be finite but got inf."),
        (lambda: budgets.epoch_budget(MI, 2, "1e-4"), "`cost` must be a real number but got '1e-4'."),
        (lambda: budgets.epoch_budget(MI, 2, True), "`cost` must be a real number but got True."),
        (lambda: budgets.epoch_budget(MI, 2, [[1.0], [1.0, 2.0]]), "`cost` must be a real number but got"),
        (lambda: budgets.epoch_budget(SR, 1, COST), "`survivors` must be at least 2 but got 1."),
        (lambda: budgets.epoch_budget(SR, 2.5, COST), "`survivors` must be a whole number but got 2.5."),
        (lambda: budgets.epoch_budget(SR, 2, COST, 0.0), "`sigma` must be positive but got 0.0."),
        (lambda: budgets.epoch_budget("regret", 2, COST), "`loss` must be one of"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: budgets.confidence(SR, 1, COST), "`arms` must be at least 2 but got 1."),
        (lambda: budgets.confidence(SR, 2, COST, 1.0, -3.0), "`bound` must be positive but got -3.0."),
        (
            lambda: budgets.confidence(SR, 2, COST, preset="best"),
            "`preset` must be one of paper, theorem, corrected",
        ),
        (lambda: budgets.oracle_pulls(SR, -0.5, COST), "`gap` must not be negative but got -0.5."),
    ],
)
def test_invalid_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        call()
    assert str(caught.value).startswith(message)
