"""Fixed confidence: radii by hand, the stop, and the cap on pulls."""

import math

import pytest

from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.racing import Racing, TwoArmConfidence
from dbcare.problem.risk import Risk
from tests.helpers.play_run import Turns, play, play_by


@pytest.mark.parametrize(
    ("epoch", "radius"),
    [
        (1, 3.68847),  # sqrt(4 ln(30)) = sqrt(4 * 3.401197)
        (2, 2.86159),  # sqrt(2 ln(60)) = sqrt(2 * 4.094345)
        (10, 1.51047),  # sqrt(0.4 ln(300)) = sqrt(0.4 * 5.703782)
    ],
)
def test_racing_radius(epoch: int, radius: float) -> None:
    """e_n = sqrt(4/n ln(3n/0.1)), whichever arms survive; twice the sigma, twice the radius."""
    for survivors in (2, 3):
        assert Racing(3, delta=0.1).radius(epoch, survivors) == pytest.approx(radius, rel=4e-6)
        assert Racing(3, delta=0.1, sigma=2.0).radius(epoch, survivors) == pytest.approx(2 * radius, rel=4e-6)


def test_racing_drops_like_dbcare_with_the_same_delta() -> None:
    """The same loop without N*: DBCARE stops at its limit of 5 epochs for four arms, racing continues."""
    limited = DBCARE(Risk.misidentification(0.02), arms=4, sigma=0.1)
    racing = Racing(4, delta=limited.delta, sigma=0.1, max_pulls=1000)
    means = (0.5, 0.35, 0.3, 0.0)  # 0.15 exceeds the radius at some epoch after 10
    assert play_by(limited, means.__getitem__)[1] == [[0, 1, 2, 3]] + [[0, 1, 2]] * 6
    run, asked = play_by(racing, means.__getitem__)
    assert asked[:7] == [[0, 1, 2, 3]] + [[0, 1, 2]] * 6
    assert [event.arm for event in run.events] == [3, 2, 1]
    assert run.recommendation() == 0
    assert run.why().startswith(f"stopped after {run.pulls} pulls: only arm 0 remains; arm 1 dropped at epoch ")


def test_three_arms_by_hand() -> None:
    """delta = 0.1, sigma = 1: radii 3.69, 2.86, 2.45 at epochs 1, 2, 3 (the third sqrt(4/3 ln 90) = 2.449).

    Means 4, 1.2, 0: arm 2 is 4 > 3.69 below at epoch 1, arm 1 is 2.8 < 2.86 below at epoch 2, 2.8 > 2.45 at epoch 3.
    """
    run, asked = play(Racing(3, delta=0.1), [[4.0] * 3, [1.2] * 3, [0.0]])
    assert asked == [[0, 1, 2], [0, 1], [0, 1]]
    assert run.why() == (
        "stopped after 7 pulls: only arm 0 remains; "
        "arm 1 dropped at epoch 3: its mean is 2.8 below the best, the radius is 2.449"
    )


@pytest.mark.parametrize(
    ("cap", "means", "asked"),
    [
        (10, (0.0, 0.0, 0.0), [[0, 1, 2]] * 3),  # a fourth epoch would make 12
        (9, (0.0, 0.0, 0.0), [[0, 1, 2]] * 3),
        (3, (0.0, 0.0, 0.0), [[0, 1, 2]]),
        (10, (9.0, 0.0, 9.0), [[0, 1, 2]] + [[0, 2]] * 3),  # 9 pulls; another epoch would make 11
        (11, (9.0, 0.0, 9.0), [[0, 1, 2]] + [[0, 2]] * 4),
    ],
)
def test_an_epoch_beyond_the_cap_is_not_started(cap: int, means: tuple[float, ...], asked: Turns) -> None:
    run, seen = play_by(Racing(3, delta=0.1, max_pulls=cap), means.__getitem__)
    assert seen == asked
    survivors = 3 - len(run.events)
    reason = f"{survivors} arms remain and another epoch would exceed the limit of {cap} pulls"
    assert run.why().startswith(f"stopped after {run.pulls} pulls: {reason}")
    assert means[run.recommendation()] == max(means)


def test_the_reason_names_the_cap_for_two_arms_too() -> None:
    run, asked = play_by(TwoArmConfidence(delta=0.1, max_pulls=7), lambda arm: 0.0)
    assert asked == [[0, 1]] * 3
    assert "another epoch would exceed the limit of 7 pulls" in run.why()


@pytest.mark.parametrize(
    ("rate", "epoch", "rate_value"),
    [
        # ln 100 = 4.605170, 3 ln ln 100 = 4.581540, 1.5 ln(1 + ln n) = 0 and 1.5 * 1.194706
        ("kaufmann", 1, 9.186710),
        ("kaufmann", 10, 10.978769),
        # ln((ln 2 + 1) * 100) = ln 169.3147, ln((ln 20 + 1) * 100) = ln 399.5732
        ("heuristic", 1, 5.131759),
        ("heuristic", 10, 5.990397),
        # ln 200 + 2 ln ln 1200 = 5.298317 + 2 * 1.958696, ln 2000 + 2 ln ln 12000 = 7.600902 + 2 * 2.239928
        ("union", 1, 9.215709),
        ("union", 10, 12.080759),
    ],
)
def test_two_arm_rates(rate: str, epoch: int, rate_value: float) -> None:
    """e_n = sqrt(4 sigma^2/n * rate) at delta = 0.01, sigma = 1/2."""
    policy = TwoArmConfidence(delta=0.01, sigma=0.5, rate=rate)
    assert policy.radius(epoch, 2) == pytest.approx(math.sqrt(rate_value / epoch), rel=1e-6)


@pytest.mark.parametrize(
    ("rate", "epochs"),
    [
        ("kaufmann", 5),  # e_4 = sqrt(1.0 * 10.4913) = 3.2390, e_5 = sqrt(0.8 * 10.6254) = 2.9155
        ("heuristic", 3),  # e_2 = sqrt(2.0 * 5.4749) = 3.3090, e_3 = sqrt(4/3 * 5.6318) = 2.7403
        ("union", 6),  # e_5 = sqrt(0.8 * 11.2343) = 2.9979, e_6 = sqrt(2/3 * 11.4581) = 2.7638
    ],
)
def test_two_arms_by_hand(rate: str, epochs: int) -> None:
    """Means 2.95 apart, delta = 0.01, sigma = 1."""
    run, asked = play_by(TwoArmConfidence(delta=0.01, rate=rate), lambda arm: 2.95 * arm)
    assert asked == [[0, 1]] * epochs
    assert run.recommendation() == 1
    assert run.events[0].arm == 0
    assert f"dropped at epoch {epochs}: its mean is 2.95 below the best" in run.why()


def test_the_proven_rate_is_the_default_up_to_a_tenth() -> None:
    assert TwoArmConfidence(delta=0.1) == TwoArmConfidence(delta=0.1, rate="kaufmann")
    assert TwoArmConfidence(delta=0.4, rate="heuristic").radius(1, 2) < TwoArmConfidence(delta=0.1).radius(1, 2)
