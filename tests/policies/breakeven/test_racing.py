"""BreakevenRacing: its tables against root finding, its decisions by hand, its risk against a prototype and DBCARE."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from dbcare import DBCARE, Bandit, BreakevenRacing, Risk, evaluate, evaluate_grid
from dbcare.errors import InvalidValueError
from dbcare.problem.risk import Loss
from dbcare.theory import normal

STUDIES_PAGE = Path(__file__).parents[3] / "docs" / "studies.md"


def test_gaussian_losses_match_their_integrals() -> None:
    for z in (0.0, 0.7, 3.0):
        excess, _ = quad(lambda x, z=z: (x - z) * norm.pdf(x), z, 12.0, epsabs=0.0)
        assert float(normal.expected_excess(z)) == pytest.approx(excess, rel=1e-9)
        assert float(normal.upper_tail(z)) == pytest.approx(norm.sf(z), rel=1e-12)


def test_inverses_are_correct_and_0_where_there_is_none() -> None:
    z = np.array([1e-3, 0.5, 2.0, 6.0, 12.0, 36.0])
    assert normal.upper_tail_inverse(norm.sf(z)) == pytest.approx(z, rel=1e-9)
    assert normal.expected_excess_inverse(normal.expected_excess(z)) == pytest.approx(z, rel=1e-8)
    assert float(normal.expected_excess_inverse(1e-320)) == 37.0
    assert normal.upper_tail_inverse([0.5, 0.7]).tolist() == [0.0, 0.0]
    assert normal.expected_excess_inverse([normal.PSI_AT_0, 3.0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("survivors", [2, 3, 5])
@pytest.mark.parametrize("epoch", [1, 4, 15])
def test_the_radius_is_where_loss_and_share_of_the_spend_are_equal(survivors: int, epoch: int) -> None:
    """The radius is sigma sqrt(2/n) z with Q(z) = c n k/(k-1), or sigma sqrt(2/n) Psi(z) = c n k/(k-1)."""
    cost, sigma = 1e-3, 0.7
    share = cost * epoch * survivors / (survivors - 1)
    scale = sigma * math.sqrt(2.0 / epoch)
    error = BreakevenRacing(Risk.misidentification(cost), 5, sigma)
    assert error.radius(epoch, survivors) == pytest.approx(scale * norm.isf(share), rel=1e-9)
    regret = BreakevenRacing(Risk.simple_regret(cost), 5, sigma)
    root = brentq(lambda z: scale * (norm.pdf(z) - z * norm.sf(z)) - share, 0.0, 10.0, xtol=1e-14)
    assert regret.radius(epoch, survivors) == pytest.approx(scale * root, rel=1e-9)


@pytest.mark.parametrize(
    "policy",
    [
        BreakevenRacing(Risk.misidentification(2e-3), 40, 0.7),
        BreakevenRacing(Risk.misidentification(0.3), 7, 0.7),  # a share above 1/2 from the first epoch on
        BreakevenRacing(Risk.simple_regret(2e-3), 12, 0.7),
    ],
)
def test_rows_for_each_number_of_survivors(policy: BreakevenRacing) -> None:
    """The same bits as from the formula for one k at a time: each row has epochs 0 to T // k."""
    rows, limits = [], []
    for k in range(2, policy.arms + 1):
        epochs = np.arange(1.0, policy.max_pulls // k + 1)
        share = policy.cost * epochs * k / (k - 1.0)
        if policy.risk.loss is Loss.MISIDENTIFICATION:
            z = normal.upper_tail_inverse(share)
        else:
            z = normal.expected_excess_inverse(share * np.sqrt(epochs / 2.0) / policy.sigma)
        rows.append([0.0, *(policy.sigma * np.sqrt(2.0 * epochs) * z)])
        limits.append(next((n for n, b in enumerate(rows[-1]) if n > 0 and b == 0.0), len(epochs)))
    assert policy.tables.boundary.tobytes() == np.concatenate(rows).tobytes()
    assert policy.tables.row.tolist() == [0, 0, *np.cumsum([0, *map(len, rows[:-1])])]
    assert policy.tables.last_epoch.tolist() == [0, 0, *limits]


def test_the_cap_is_the_papers_budget() -> None:
    """T = K (floor(N*(K)) + 1): N*(8) = 459.8 for misidentification at c = 1e-4."""
    assert BreakevenRacing(Risk.misidentification(1e-4), 8).max_pulls == 8 * 460
    assert BreakevenRacing(Risk.simple_regret(1e-4), 8).max_pulls == 8 * 70


def test_decisions_by_hand() -> None:
    """c = 0.01, sigma = 1, three arms; epoch 1: s = 0.015, radius sqrt(2) * 2.1701 = 3.069."""
    policy = BreakevenRacing(Risk.misidentification(0.01), 3)
    assert policy.radius(1, 3) == pytest.approx(math.sqrt(2.0) * 2.1701, rel=1e-4)
    run = policy.start(seed=1)
    for reward in (3.0, 0.0, -0.1):  # an arm 3.1 behind is dropped, one 3.0 behind is not
        run.tell(reward)
    assert [event.arm for event in run.events] == [2]
    # Epoch 2 with two arms: s = 0.04, radius 1 * 1.7507; both stay, as their means are 1.6 apart.
    assert policy.radius(2, 2) == pytest.approx(1.7507, rel=1e-4)
    run.tell(0.2)
    run.tell(0.0)
    assert run.ask() is not None
    # Epoch 3: s = 0.06, radius sqrt(2/3) * 1.5548 = 1.2695; one is dropped, as their means are 4.2/3 - 0 = 1.4 apart.
    run.tell(1.0)
    run.tell(0.0)
    assert run.ask() is None
    assert run.recommendation() == 0


def test_at_a_boundary_of_0_only_the_leader_stays() -> None:
    """Simple regret, two arms: no positive root once 2 c n^(3/2) >= sigma / sqrt(pi)."""
    cost = 1e-3
    policy = BreakevenRacing(Risk.simple_regret(cost), 2)
    last = math.ceil((1.0 / (2.0 * cost * math.sqrt(math.pi))) ** (2.0 / 3.0))
    assert int(policy.tables.last_epoch[2]) == last
    assert policy.radius(last, 2) == 0.0
    run = policy.start(seed=1)
    for epoch in range(1, last + 1):
        run.tell(0.001 if epoch == last else 0.0)
        run.tell(0.0)
    assert run.ask() is None
    assert run.recommendation() == 0
    assert run.pulls == 2 * last
    tied = policy.start(seed=1)
    while tied.ask() is not None:
        tied.tell(0.0)
    assert tied.pulls == 2 * last
    assert "2 arms remain, too close to separate" in tied.why()


def test_one_more_epoch_follows_a_late_drop() -> None:
    """3 arms may continue longer than 2: a drop after the limit for 2 is followed by one more epoch."""
    policy = BreakevenRacing(Risk.simple_regret(1e-3), 100)
    limits = policy.tables.last_epoch
    late = int(limits[2]) + 2
    assert late < limits[3]
    run = policy.start(seed=1)
    for arm in range(100):
        run.tell(0.0 if arm < 3 else -100.0)
    while len(run.events) == 97:
        asked = run.ask()
        epoch = (run.pulls - 100) // 3 + 2
        run.tell(-100.0 if asked == 2 and epoch == late else 0.0)
    assert run.pulls == 100 + 3 * (late - 1)
    assert run.ask() == 0
    run.tell(1.0)
    run.tell(0.0)
    assert run.ask() is None
    assert run.recommendation() == 0


def test_the_risk_matches_a_prototype() -> None:
    """An independent simulation of c = 1e-4, sigma = 1, gap 0.2 (misidentification) gave 0.0368 +- 0.0002."""
    risk = Risk.misidentification(1e-4)
    assert evaluate(BreakevenRacing(risk, 2), Bandit.two_arm(0.2)).risk == pytest.approx(0.0368, abs=5 * 0.0002)


@pytest.mark.parametrize("risk", [Risk.misidentification(1e-4), Risk.simple_regret(1e-4)])
def test_the_two_arm_risk_is_a_third_of_dbcares(risk: Risk) -> None:
    gaps = np.geomspace(0.05, 2.0, 40)
    ours = evaluate_grid(BreakevenRacing(risk, 2), gaps).risk(risk)
    ratio = ours / evaluate_grid(DBCARE(risk, 2, bound=2.0), gaps).risk(risk)
    assert np.exp(np.mean(np.log(ratio))) < 0.34
    assert ratio.max() < 1.0


def test_bad_input() -> None:
    with pytest.raises(InvalidValueError, match="`risk` must be a Risk"):
        BreakevenRacing(0.1, 2)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidValueError, match="`cost` must be the same for all arms"):
        BreakevenRacing(Risk.misidentification([0.1, 0.2]), 2)
    with pytest.raises(InvalidValueError, match="`sigma` must be positive"):
        BreakevenRacing(Risk.misidentification(0.1), 2, sigma=0.0)


@pytest.mark.parametrize(("risk", "smallest"), [(Risk.simple_regret, "7.89e-11"), (Risk.misidentification, "1.84e-08")])
def test_the_smallest_cost_is_the_documented_one(risk: Callable[[float], Risk], smallest: str) -> None:
    """For two arms and sigma = 1, as the page on studies says."""
    assert BreakevenRacing(risk(1.01 * float(smallest)), 2).cost == 1.01 * float(smallest)
    with pytest.raises(InvalidValueError, match=f"`cost` must be at least {smallest} for 2 arms at sigma 1"):
        BreakevenRacing(risk(0.99 * float(smallest)), 2)
    assert smallest.replace("e-0", "e-") in STUDIES_PAGE.read_text()
