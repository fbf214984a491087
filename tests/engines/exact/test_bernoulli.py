"""The exact Bernoulli engine against a dynamic program over the successes of both arms, and independent figures."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from dbcare.engines.exact.bernoulli import two_arm_bernoulli, two_arm_bernoulli_pair
from dbcare.engines.exact.law import bernoulli_error
from dbcare.errors import InvalidValueError
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.elimination import NO_CAP, EliminationTables
from dbcare.policies.elimination.racing import Racing, TwoArmConfidence
from dbcare.problem.risk import Risk

Floats = npt.NDArray[np.float64]

MISIDENTIFICATION = Risk.misidentification(1e-4)
SIMPLE_REGRET = Risk.simple_regret(1e-4)
PAPER_GAPS = np.geomspace(0.01, 0.95, 40)
PAPER_POLICIES = {
    "dbcare-mi": DBCARE(MISIDENTIFICATION, arms=2, sigma=0.5),
    "dbcare-sr": DBCARE(SIMPLE_REGRET, arms=2, sigma=0.5),
    "confidence-0.1": TwoArmConfidence(0.1, sigma=0.5),
    "confidence-0.01": TwoArmConfidence(0.01, sigma=0.5),
}


def make_tables(boundary: npt.ArrayLike) -> EliminationTables:
    values = np.concatenate([[0.0], np.asarray(boundary, dtype=np.float64)])
    last = np.full(3, values.size - 1, dtype=np.int64)
    return EliminationTables(boundary=values, row=np.zeros(3, dtype=np.int64), last_epoch=last, max_pulls=NO_CAP)


class Reference(NamedTuple):
    error: float
    mean_pulls: float
    deviation_pulls: float
    capped: float
    stopped: Floats


def reference(boundary: Floats, best: float, other: float) -> Reference:
    last = len(boundary)
    running = np.zeros((last + 1, last + 1))
    running[0, 0] = 1.0
    successes = np.arange(last + 1)
    lead = successes[:, None] - successes[None, :]
    stopped = np.zeros(last)
    wrong = 0.0
    for epoch in range(1, last + 1):
        for axis, chance in enumerate((best, other)):
            moved = np.roll(running, 1, axis=axis)
            running = (1.0 - chance) * running + chance * moved
        out = np.abs(lead) > boundary[epoch - 1]
        stopped[epoch - 1] = running[out].sum()
        wrong += running[out & (lead < 0)].sum()
        running[out] = 0.0
    wrong += running[lead < 0].sum() + running[lead == 0].sum() / 2.0
    rest = float(running.sum())
    stopped[-1] += rest
    pulls = 2.0 * np.arange(1, last + 1)
    mean = float(pulls @ stopped)
    return Reference(float(wrong), mean, float(pulls**2 @ stopped - mean**2) ** 0.5, rest, stopped)


EPOCHS = np.arange(1.0, 41.0)
BOUNDARIES = {
    "dbcare": DBCARE(Risk.misidentification(0.005), arms=2, sigma=0.5).tables.boundary[1:],
    "confidence": TwoArmConfidence(0.1, sigma=0.4, max_pulls=80).tables.boundary[1:],
    "narrow": 0.5 * np.sqrt(EPOCHS),
    "whole numbers": np.floor(np.sqrt(EPOCHS)) + 1.0,
    "falling to 0": np.linspace(4.0, 0.0, 40),
    "always 0": np.zeros(40),
    "zigzag": 2.0 + 2.0 * np.cos(EPOCHS),
}


@pytest.mark.parametrize("name", BOUNDARIES)
def test_it_agrees_with_the_program_over_successes(name: str) -> None:
    boundary = BOUNDARIES[name]
    gaps = np.array([0.01, 0.2, 0.6, 0.95, 1.0])
    levels = (0.12, 0.51, 0.93)
    law = two_arm_bernoulli(make_tables(boundary), gaps, levels=levels)
    assert law.mass_defect < 1e-13
    for index, gap in enumerate(gaps):
        expected = reference(boundary, 0.5 + gap / 2.0, 0.5 - gap / 2.0)
        assert law.error[index] == pytest.approx(expected.error, rel=1e-12, abs=2e-15)
        assert law.regret[index] == pytest.approx(gap * expected.error, rel=1e-12, abs=2e-15)
        assert law.mean_pulls[index] == pytest.approx(expected.mean_pulls, rel=1e-13)
        assert law.deviation_pulls[index] == pytest.approx(expected.deviation_pulls, rel=1e-6, abs=1e-5)
        assert law.capped[index] == pytest.approx(expected.capped, rel=1e-12, abs=2e-15)
        reached = np.searchsorted(np.cumsum(expected.stopped), levels) + 1
        assert law.quantiles[index].tolist() == (2.0 * reached).tolist()


@pytest.mark.parametrize("name", BOUNDARIES)
@pytest.mark.parametrize(("best", "other"), [(0.9, 0.2), (0.31, 0.3), (1.0, 0.4), (0.7, 0.0), (1.0, 0.0)])
def test_any_pair_of_means_agrees_with_the_program(name: str, best: float, other: float) -> None:
    law = two_arm_bernoulli_pair(make_tables(BOUNDARIES[name]), best, other)
    expected = reference(BOUNDARIES[name], best, other)
    assert law.mass_defect < 1e-13
    assert law.error[0] == pytest.approx(expected.error, rel=1e-12, abs=2e-15)
    assert law.mean_pulls[0] == pytest.approx(expected.mean_pulls, rel=1e-13)
    assert law.capped[0] == pytest.approx(expected.capped, rel=1e-12, abs=2e-15)


@pytest.mark.parametrize(
    ("name", "risk", "values"),
    [
        ("dbcare-mi", MISIDENTIFICATION, (0.368899, 0.303973, 0.0333405)),
        ("dbcare-sr", SIMPLE_REGRET, (0.0416045, 0.0359654, 0.0276382)),
    ],
)
def test_six_risks_computed_by_another_program(name: str, risk: Risk, values: tuple[float, float, float]) -> None:
    law = two_arm_bernoulli(PAPER_POLICIES[name].tables, [0.05, 0.1, 0.3])
    assert law.risk(risk) == pytest.approx(values, rel=2e-6)


@pytest.mark.parametrize("name", PAPER_POLICIES)
def test_mass_is_conserved_for_every_gap_of_the_paper(name: str) -> None:
    tables = PAPER_POLICIES[name].tables
    law = two_arm_bernoulli(tables, PAPER_GAPS)
    assert law.mass_defect < 1e-10
    for index in (0, 20, 39):
        half = PAPER_GAPS[index] / 2.0
        alone = two_arm_bernoulli_pair(tables, 0.5 + half, 0.5 - half)
        assert law.error[index] == pytest.approx(alone.error[0], rel=1e-8, abs=1e-18)
        assert law.mean_pulls[index] == pytest.approx(alone.mean_pulls[0], rel=1e-11)


def test_without_a_boundary_the_pulls_are_fixed() -> None:
    """The gaps go far beyond what one pass under the smallest can serve."""
    gaps = np.array([0.0, 0.01, 0.1, 0.5, 0.9, 0.999999, 1.0])
    law = two_arm_bernoulli(make_tables(np.full(2000, np.inf)), gaps)
    expected = [bernoulli_error(2000, (1.0 + gap) / 2.0, (1.0 - gap) / 2.0) for gap in gaps[1:]]
    np.testing.assert_allclose(law.error[1:], expected, rtol=1e-9, atol=1e-25)
    np.testing.assert_allclose(law.mean_pulls, 4000.0, rtol=1e-11)
    np.testing.assert_allclose(law.capped, 1.0, rtol=1e-11)
    assert law.mass_defect < 1e-10


def test_a_policy_that_assumes_a_much_larger_sigma() -> None:
    law = two_arm_bernoulli(Racing(2, 0.1, sigma=10.0).tables, [0.001, 0.1, 0.5, 0.9, 0.99, 1.0])
    assert law.mass_defect < 1e-10
    assert np.all(np.diff(law.mean_pulls) <= 1e-5)


def test_a_tie_lasts_until_the_last_epoch() -> None:
    """b = 0 stops when either arm first leads; two arms that always succeed never lead."""
    law = two_arm_bernoulli_pair(make_tables(np.zeros(9)), 1.0, 1.0, levels=(0.5,))
    assert law.mean_pulls.tolist() == law.quantiles[0].tolist() == [18.0]
    assert law.capped.tolist() == [1.0]
    assert law.error.tolist() == law.regret.tolist() == [0.0]
    law = two_arm_bernoulli(make_tables(np.zeros(9)), 0.2)
    assert law.capped[0] == pytest.approx(0.48**9, rel=1e-13)
    assert law.error[0] == pytest.approx(0.16 / 0.52 * (1.0 - 0.48**9) + 0.48**9 / 2.0, rel=1e-13)


def test_zero_epochs_are_a_guess() -> None:
    assert two_arm_bernoulli(make_tables([]), [0.0, 0.5]).error.tolist() == [0.0, 0.5]
    assert two_arm_bernoulli_pair(make_tables([]), 0.5, 0.2).error.tolist() == [0.5]


def test_invalid_arguments_are_rejected() -> None:
    tables = PAPER_POLICIES["dbcare-sr"].tables
    with pytest.raises(InvalidValueError, match=r"between 0 and 1 and be finite but got 1\.5"):
        two_arm_bernoulli(tables, [0.1, 1.5])
    with pytest.raises(InvalidValueError, match="`best` must lie between 0 and 1"):
        two_arm_bernoulli_pair(tables, 1.1, 0.5)
    with pytest.raises(InvalidValueError, match=r"`best` must not be below `other` but got 0\.4 and 0\.5"):
        two_arm_bernoulli_pair(tables, 0.4, 0.5)
