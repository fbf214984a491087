"""The exact Gaussian engine against a different recursion, closed forms, and its own refinement.

The reference follows one drift at a time, without reweighting or symmetry, on Gauss-Legendre nodes between the two
boundaries; the mass that stops is the normal tail beyond them.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from dbcare.engines.exact import gaussian as exact_gaussian
from dbcare.engines.exact.gaussian import HALF, Walk, edge_table, two_arm_gaussian
from dbcare.engines.exact.law import gaussian_error
from dbcare.errors import EngineError, InvalidValueError
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.elimination import NO_CAP, EliminationTables
from dbcare.policies.elimination.racing import Racing, TwoArmConfidence
from dbcare.problem.risk import Risk

Floats = npt.NDArray[np.float64]

MISIDENTIFICATION = Risk.misidentification(1e-4)
SIMPLE_REGRET = Risk.simple_regret(1e-4)
PAPER_GAPS = np.geomspace(0.05, 2.0, 40)
PAPER_POLICIES = {
    "dbcare-mi": DBCARE(MISIDENTIFICATION, arms=2),
    "dbcare-sr": DBCARE(SIMPLE_REGRET, arms=2, bound=2.0),
    "confidence-0.1": TwoArmConfidence(0.1),
    "confidence-0.01": TwoArmConfidence(0.01),
}


def make_tables(boundary: npt.ArrayLike) -> EliminationTables:
    values = np.concatenate([[0.0], np.asarray(boundary, dtype=np.float64)])
    last = np.full(3, values.size - 1, dtype=np.int64)
    return EliminationTables(boundary=values, row=np.zeros(3, dtype=np.int64), last_epoch=last, max_pulls=NO_CAP)


def tail(x: Floats) -> Floats:
    return np.array([0.5 * math.erfc(value / math.sqrt(2.0)) for value in x])


class Reference(NamedTuple):
    error: float
    mean_pulls: float
    deviation_pulls: float
    capped: float
    stopped: Floats


def reference(boundary: Floats, gap: float, sigma: float, nodes: int = 200) -> Reference:
    scale = math.sqrt(2.0) * sigma
    drift = gap / scale
    legendre, masses = np.polynomial.legendre.leggauss(nodes)
    panels = np.concatenate([legendre - 1.0, legendre + 1.0]) / 2.0
    masses = np.concatenate([masses, masses]) / 2.0
    stopped = np.zeros(boundary.size)
    places, weights = np.zeros(1), np.ones(1)
    wrong = 0.0
    for index, limit in enumerate(boundary / scale):
        below = float(weights @ tail(limit + places + drift))
        stopped[index] = weights @ tail(limit - places - drift) + below
        wrong += below
        after = panels * min(limit, (index + 1) * drift + 10.0 * math.sqrt(index + 1.0))
        moves = after[:, None] - places[None, :] - drift
        weights = masses * (np.exp(-0.5 * moves**2) @ weights) * (after[-1] - after[0]) / (panels[-1] - panels[0])
        weights /= math.sqrt(2.0 * math.pi)
        places = after
    rest = float(weights.sum())
    wrong += float(weights[:nodes].sum())
    stopped[-1] += rest
    pulls = 2.0 * np.arange(1, boundary.size + 1)
    mean = float(pulls @ stopped)
    deviation = math.sqrt(max(float(pulls**2 @ stopped) - mean**2, 0.0))
    return Reference(wrong, mean, deviation, rest, stopped)


EPOCHS = np.arange(1.0, 31.0)
BOUNDARIES = {
    "dbcare": DBCARE(Risk.misidentification(0.006), arms=2, sigma=0.5).tables.boundary[1:],
    "confidence": TwoArmConfidence(0.1, max_pulls=60).tables.boundary[1:],
    "narrow": 0.4 * np.sqrt(EPOCHS),
    "falling to 0": 1.5 * np.sqrt(EPOCHS) * (30.0 - EPOCHS) / 29.0,
    "zigzag": 2.0 * np.sqrt(EPOCHS) * (1.0 + 0.9 * np.cos(2.0 * EPOCHS)),
    "jumps": np.where(EPOCHS % 7 == 0, 1.0, 30.0),
    "one epoch": np.array([0.7]),
}


@pytest.mark.parametrize("name", BOUNDARIES)
def test_it_agrees_with_the_gauss_legendre_recursion(name: str) -> None:
    boundary = BOUNDARIES[name]
    sigma = 0.8
    gaps = np.array([0.01, 0.1, 0.3, 1.0, 2.5, 5.0])
    levels = (0.1, 0.5, 0.9)
    law = two_arm_gaussian(make_tables(boundary), gaps, sigma, levels=levels)
    assert law.mass_defect < 1e-12
    for index, gap in enumerate(gaps):
        expected = reference(boundary, gap, sigma)
        assert law.error[index] == pytest.approx(expected.error, rel=1e-10, abs=1e-13)
        assert law.regret[index] == pytest.approx(gap * expected.error, rel=1e-10, abs=1e-13)
        assert law.mean_pulls[index] == pytest.approx(expected.mean_pulls, rel=1e-10)
        assert law.deviation_pulls[index] == pytest.approx(expected.deviation_pulls, rel=1e-6, abs=1e-6)
        assert law.capped[index] == pytest.approx(expected.capped, abs=1e-11)
        reached = np.searchsorted(np.cumsum(expected.stopped), levels) + 1
        assert law.quantiles[index].tolist() == (2.0 * reached).tolist()


@pytest.mark.parametrize("name", PAPER_POLICIES)
def test_mass_is_conserved_and_halving_the_step_changes_nothing(name: str) -> None:
    tables = PAPER_POLICIES[name].tables
    law = two_arm_gaussian(tables, PAPER_GAPS, 1.0)
    assert law.mass_defect < 1e-10
    finer = two_arm_gaussian(tables, PAPER_GAPS, 1.0, step=exact_gaussian.DEFAULT_STEP / 2.0)
    assert finer.mass_defect < 1e-10
    for risk in (MISIDENTIFICATION, SIMPLE_REGRET):
        np.testing.assert_allclose(law.risk(risk), finer.risk(risk), rtol=1e-8)
    np.testing.assert_allclose(law.error, finer.error, rtol=1e-6)
    np.testing.assert_allclose(law.capped, finer.capped, rtol=1e-8, atol=1e-12)


def test_a_coarse_step_is_detected() -> None:
    """The refinement test above can fail: at twice the step it would."""
    tables = PAPER_POLICIES["dbcare-sr"].tables
    coarse, fine = (two_arm_gaussian(tables, PAPER_GAPS, 1.0, step=step).risk(SIMPLE_REGRET) for step in (0.5, 0.25))
    assert np.max(np.abs(coarse / fine - 1.0)) > 1e-8


def test_moving_the_bulk_in_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = TwoArmConfidence(0.1, max_pulls=20_000).tables
    gaps = [0.0, 0.05, 0.2]
    blocks = two_arm_gaussian(tables, gaps, 1.0, levels=(0.5,))
    original = exact_gaussian._make_walk
    monkeypatch.setattr(exact_gaussian, "_make_walk", lambda *arguments: original(*arguments)._replace(span=10**9))
    steps = two_arm_gaussian(tables, gaps, 1.0, levels=(0.5,))
    assert blocks.mean_pulls.tolist() != steps.mean_pulls.tolist()
    np.testing.assert_allclose(blocks.error, steps.error, rtol=1e-10)
    np.testing.assert_allclose(blocks.mean_pulls, steps.mean_pulls, rtol=1e-12)
    np.testing.assert_allclose(blocks.capped, steps.capped, rtol=1e-11)
    np.testing.assert_allclose(blocks.quantiles, steps.quantiles)


def test_blocks_too_close_to_the_boundary_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: a bulk that reaches the boundary is stopped too late."""
    tables = TwoArmConfidence(0.1, max_pulls=20_000).tables
    correct = two_arm_gaussian(tables, 0.05, 1.0)
    original = exact_gaussian._make_walk

    def reckless(boundary: Floats, drifts: Floats, step: float) -> Walk:
        walk = original(boundary, drifts, step)
        kept = walk.span // 4
        return walk._replace(span=kept, fade=walk.fade[walk.span - kept : walk.span + kept + 1].copy())

    monkeypatch.setattr(exact_gaussian, "_make_walk", reckless)
    wrong = two_arm_gaussian(tables, 0.05, 1.0)
    assert abs(wrong.mean_pulls[0] / correct.mean_pulls[0] - 1.0) > 1e-9


def test_without_a_boundary_the_pulls_are_fixed() -> None:
    """P(error) = Q(gap sqrt(n / (2 sigma^2))); the gaps go far beyond what one pass under the smallest can serve."""
    gaps = np.array([0.0, 0.01, 0.1, 1.0, 3.0, 30.0])
    law = two_arm_gaussian(make_tables(np.full(3000, np.inf)), gaps, 1.0)
    np.testing.assert_allclose(law.error[1:], gaussian_error(3000, gaps[1:], 1.0), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(law.capped, 1.0, rtol=1e-10)
    np.testing.assert_allclose(law.mean_pulls, 6000.0, rtol=1e-10)
    assert law.mass_defect < 1e-10


@pytest.mark.parametrize("gap", [4.0, 6.0, 10.0, 40.0, 1e3, 1e9])
def test_gaps_of_many_sigmas(gap: float) -> None:
    boundary = TwoArmConfidence(0.01, max_pulls=40).tables.boundary[1:]
    law = two_arm_gaussian(make_tables(boundary), [0.05, gap], 1.0)
    assert law.mass_defect < 1e-10
    expected = reference(boundary, min(gap, 100.0), 1.0)
    assert law.error[1] == pytest.approx(expected.error, rel=1e-8, abs=1e-15)
    assert law.mean_pulls[1] == pytest.approx(expected.mean_pulls, rel=1e-10)


def test_a_policy_that_assumes_a_much_larger_sigma() -> None:
    """Its boundary keeps runs going until the mass that matters for large gaps underflows in a pass for small ones."""
    law = two_arm_gaussian(Racing(2, 0.1, sigma=8.0, max_pulls=20_000).tables, np.geomspace(0.05, 4.0, 9), 1.0)
    assert law.mass_defect < 1e-10
    assert np.all(np.diff(law.mean_pulls) <= 1e-6)
    boundary = Racing(2, 0.1, sigma=8.0, max_pulls=20_000).tables.boundary
    crossing = np.flatnonzero(4.0 * np.arange(boundary.size) > boundary)[1]
    assert law.mean_pulls[-1] == pytest.approx(2.0 * crossing, rel=0.02)


def test_the_grid_equals_each_gap_alone() -> None:
    tables = PAPER_POLICIES["dbcare-sr"].tables
    gaps = [1.0, 0.0, 0.05, 1.0, 0.4]
    law = two_arm_gaussian(tables, gaps, 1.0, levels=(0.25,))
    for index, gap in enumerate(gaps):
        alone = two_arm_gaussian(tables, gap, 1.0, levels=(0.25,))
        assert law.error[index] == pytest.approx(alone.error[0], rel=1e-6, abs=1e-16)
        assert law.mean_pulls[index] == pytest.approx(alone.mean_pulls[0], rel=1e-12)
        assert law.quantiles[index] == alone.quantiles[0]


def test_only_the_ratio_of_sigma_to_the_boundary_matters() -> None:
    boundary = BOUNDARIES["narrow"]
    law = two_arm_gaussian(make_tables(boundary), 0.3, 1.0)
    scaled = two_arm_gaussian(make_tables(1e3 * boundary), 300.0, 1e3)
    assert scaled.error[0] == pytest.approx(law.error[0], rel=1e-12)


def test_a_tie_is_not_an_error() -> None:
    law = two_arm_gaussian(PAPER_POLICIES["dbcare-sr"].tables, 0.0, 1.0)
    assert law.error.tolist() == law.regret.tolist() == [0.0]
    assert law.mean_pulls[0] > 500.0


def test_zero_epochs_are_a_guess() -> None:
    law = two_arm_gaussian(make_tables([]), [0.0, 0.5], 1.0, levels=(0.5,))
    assert law.error.tolist() == [0.0, 0.5]
    assert law.mean_pulls.tolist() == [0.0, 0.0]
    assert law.quantiles.tolist() == [[0.0], [0.0]]


def test_the_cap_on_pulls_applies() -> None:
    tables = make_tables(np.full(10, 5.0))
    capped = two_arm_gaussian(tables._replace(max_pulls=7), 0.5, 1.0)
    assert capped.mean_pulls[0] == two_arm_gaussian(make_tables(np.full(3, 5.0)), 0.5, 1.0).mean_pulls[0]


@pytest.mark.parametrize("step", [0.25, 0.125])
def test_cut_weights_integrate_between_grid_points(step: float) -> None:
    """Integrate a normal law below b, for b anywhere between two points."""
    points = np.arange(-80, 81)
    density = np.exp(-0.5 * (step * points) ** 2) / math.sqrt(2.0 * math.pi)
    table = edge_table(HALF)
    for place in np.linspace(-3.0, 3.0, 37):
        cell = math.floor(place)
        first = cell - HALF + 1
        weights = np.array([(place - cell - 0.5) ** power for power in range(table.shape[0])]) @ table
        full = np.where(points < first, 1.0, 0.0)
        inside = (points >= first) & (points < first + 2 * HALF)
        full[inside] = weights[points[inside] - first]
        assert step * full @ density == pytest.approx(1.0 - tail(np.array([step * place]))[0], abs=1e-11)


@pytest.mark.parametrize(
    ("gaps", "message"),
    [
        (-0.1, "between 0 and inf and be finite but got -0.1"),
        ([0.1, math.nan], "but got nan"),
        ([math.inf], "but got inf"),
        ([], "flat list"),
        ([[0.1]], "flat list"),
    ],
)
def test_invalid_gaps_are_rejected(gaps: npt.ArrayLike, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        two_arm_gaussian(PAPER_POLICIES["dbcare-sr"].tables, gaps, 1.0)


def test_other_invalid_arguments_are_rejected() -> None:
    tables = PAPER_POLICIES["dbcare-sr"].tables
    with pytest.raises(InvalidValueError, match=r"`sigma` must be positive but got 0\.0"):
        two_arm_gaussian(tables, 0.1, 0.0)
    with pytest.raises(InvalidValueError, match=r"`step` must be at most 0\.5 but got 1\.0"):
        two_arm_gaussian(tables, 0.1, 1.0, step=1.0)
    with pytest.raises(InvalidValueError, match="`levels` must be in ascending order"):
        two_arm_gaussian(tables, 0.1, 1.0, levels=(0.5, 0.1))
    with pytest.raises(EngineError, match="tables for 3"):
        two_arm_gaussian(Racing(3, 0.1).tables, 0.1, 1.0)
