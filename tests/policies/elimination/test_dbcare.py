"""Algorithm 1 of the paper, step by step, on rewards written out by hand."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from dbcare.errors import GuessingIsBestWarning
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.elimination import NO_CAP, EliminationPolicy, EliminationTables
from dbcare.problem.risk import Loss, Risk
from tests.helpers.play_run import play, play_by

# Four arms, sigma = 0.1, c = 0.02: 1/(e c) = 18.394, so N*(4) = 4.60, N*(3) = 6.13, N*(2) = 9.20 and the last
# epochs are 5, 7, 10. delta = c/(1 + 2c ln 4 N*(2)) = 0.02/(1 + 1.386/2.718) = 0.013245, and
# e_n = sqrt(0.04/n * ln(4n/0.013245)):
FOUR = DBCARE(Risk.misidentification(0.02), arms=4, sigma=0.1)
FOUR_RADII = (0.47793, 0.35787, 0.30131, 0.26640, 0.24199, 0.22364, 0.20917, 0.19736, 0.18747, 0.17903)

# Two arms, simple regret, sigma = 0.08, c = 0.01: N*(2) = 1.5/e * 8^(2/3) = 0.55182 * 4 = 2.2073, the last epoch
# is 3. delta = 0.01/(1 + 0.02 * 2.2073) = 0.0095772, and e_n = sqrt(0.0256/n * ln(2n/0.0095772)):
TWO = DBCARE(Risk.simple_regret(0.01), arms=2, sigma=0.08)
TWO_RADII = (0.36979, 0.27793, 0.23443)


@pytest.mark.parametrize(
    ("policy", "delta", "limits", "radii"),
    [(FOUR, 0.013245, {4: 5, 3: 7, 2: 10}, FOUR_RADII), (TWO, 0.0095772, {2: 3}, TWO_RADII)],
)
def test_tables_by_hand(policy: DBCARE, delta: float, limits: dict[int, int], radii: tuple[float, ...]) -> None:
    """The radius depends on the initial K, even when fewer arms survive."""
    assert policy.delta == pytest.approx(delta, rel=4e-5)
    for survivors, last in limits.items():
        assert policy.epoch_limit(survivors) == policy.tables.last_epoch[survivors] == last
        for epoch, radius in enumerate(radii, start=1):
            assert policy.radius(epoch, survivors) == pytest.approx(radius, rel=3e-5)


@pytest.mark.parametrize("risk", [Risk.misidentification(1e-4), Risk.simple_regret(3e-5)])
@pytest.mark.parametrize("arms", [2, 7, 300])
def test_limits_for_each_number_of_survivors(risk: Risk, arms: int) -> None:
    """floor(N*(k)) + 1, with N*(k) = 1/(k e c) or (3/2e) (sigma/((k-1) c))^(2/3), one k at a time."""
    sigma = 0.37
    policy = DBCARE(risk, arms, sigma)
    limits = [0, 0]
    for k in range(2, arms + 1):
        if risk.loss is Loss.MISIDENTIFICATION:
            budget = 1.0 / (k * math.e * risk.single_cost)
        else:
            budget = 1.5 / math.e * (sigma / ((k - 1) * risk.single_cost)) ** (2.0 / 3.0)
        limits.append(math.floor(budget) + 1)
        assert policy.epoch_limit(k) == limits[k]
    assert policy.tables.last_epoch.tolist() == limits
    assert policy.max_pulls == sum(limits) + limits[2]


def test_four_arms_dropped_at_different_epochs() -> None:
    """Epoch by epoch; d is how far a mean is below the best.

    epoch  sums: arm 0  1    2    3    best   radius  d of 0  2     3
    1            0.8    0.6  0.5  0.4  0.8    0.478           0.3   0.4
    2            1.0    1.4  1.2  0.6  0.70   0.358   0.2     0.1   0.4 > 0.358: arm 3 is dropped, limit 5 -> 7
    3            1.5    2.1  1.8       0.70   0.301   0.2     0.1
    4            2.0    2.8  2.4       0.70   0.266   0.2     0.1
    5            2.5    3.5  3.0       0.70   0.242   0.2     0.1   four arms would stop here
    6            2.7    4.2  3.6       0.70   0.224   0.25 > 0.224: arm 0 is dropped, limit 7 -> 10
    7..10               7.0  7.2       0.72   0.179                 two arms stop at epoch 10, arm 2 ahead
    """
    rewards = [
        [0.8, 0.2, 0.5, 0.5, 0.5, 0.2],
        [0.6, 0.8, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7],
        [0.5, 0.7, 0.6, 0.6, 0.6, 0.6, 0.9, 0.9, 0.9, 0.9],
        [0.4, 0.2],
    ]
    run, asked = play(FOUR, rewards)
    assert asked == [[0, 1, 2, 3]] * 2 + [[0, 1, 2]] * 4 + [[1, 2]] * 4
    assert run.recommendation() == 2
    assert [str(event) for event in run.events] == [
        "arm 3 dropped at epoch 2: its mean is 0.4 below the best, the radius is 0.3579",
        "arm 0 dropped at epoch 6: its mean is 0.25 below the best, the radius is 0.2236",
    ]
    assert run.why() == (
        "stopped after 28 pulls: 2 arms remain and epoch 10 is the last that can pay for itself; "
        "arm 0 dropped at epoch 6: its mean is 0.25 below the best, the radius is 0.2236"
    )


def test_four_arms_with_none_dropped() -> None:
    """Means 0.2 apart stay within every radius down to epoch 5, the last for four arms."""
    run, asked = play_by(FOUR, lambda arm: 0.5 if arm == 2 else 0.3)
    assert asked == [[0, 1, 2, 3]] * 5
    assert run.recommendation() == 2
    assert run.events == []
    assert run.why() == "stopped after 20 pulls: 4 arms remain and epoch 5 is the last that can pay for itself"


def test_a_drop_in_the_last_epoch_prolongs_the_run() -> None:
    """At epoch 5 arm 1 falls from 0.2 to (4*0.2 + 0.5)/5 = 0.26 > 0.242 below: three arms continue to epoch 7."""
    run, asked = play(FOUR, [[0.5] * 7, [0.3, 0.3, 0.3, 0.3, 0.0], [0.5] * 7, [0.4] * 7])
    assert asked == [[0, 1, 2, 3]] * 5 + [[0, 2, 3]] * 2
    assert run.events[0].arm == 1
    assert run.recommendation() in {0, 2}


def test_three_of_four_arms_dropped_at_once() -> None:
    run, asked = play_by(FOUR, lambda arm: 1.0 if arm == 1 else 0.5)
    assert asked == [[0, 1, 2, 3]]
    assert run.recommendation() == 1
    assert {event.arm for event in run.events} == {0, 2, 3}
    assert {event.text for event in run.events} == {
        "dropped at epoch 1: its mean is 0.5 below the best, the radius is 0.4779"
    }
    assert run.why() == f"stopped after 4 pulls: only arm 1 remains; {run.events[-1]}"


def test_two_arms_separated_at_epoch_2() -> None:
    """Means 0.3 apart: within 0.370 at epoch 1, beyond 0.278 at epoch 2."""
    run, asked = play(TWO, [[0.5, 0.5], [0.2, 0.2]])
    assert asked == [[0, 1]] * 2
    assert run.recommendation() == 0
    assert run.why() == (
        "stopped after 4 pulls: only arm 0 remains; "
        "arm 1 dropped at epoch 2: its mean is 0.3 below the best, the radius is 0.2779"
    )


def test_two_arms_not_separated() -> None:
    """Means 0.2 apart stay within 0.234 at epoch 3, the last; the means of all epochs count."""
    run, asked = play(TWO, [[0.0, 0.5, 0.5], [0.2, 0.3, 0.4]])
    assert asked == [[0, 1]] * 3
    assert run.recommendation() == 0  # 1.0/3 against 0.9/3
    assert run.why() == "stopped after 6 pulls: 2 arms remain and epoch 3 is the last that can pay for itself"


@pytest.mark.parametrize(
    ("risk", "arms", "sigma", "epochs"),
    [
        (Risk.misidentification(1e-4), 2, 0.5, 1840),
        (Risk.simple_regret(1e-4), 2, 1.0, 257),
        (Risk.simple_regret(1e-4), 2, 0.5, 162),
        (Risk.simple_regret(1e-4), 8, 1.0, 70),
        (Risk.misidentification(1e-4), 8, 1.0, 460),
    ],
)
def test_epochs_of_a_run_without_drops(risk: Risk, arms: int, sigma: float, epochs: int) -> None:
    """floor(N*(K)) + 1, with N* worked out by hand from the paper's formulas."""
    run, asked = play_by(DBCARE(risk, arms=arms, sigma=sigma), lambda arm: 0.5)
    assert asked == [list(range(arms))] * epochs
    assert run.pulls == arms * epochs <= run.policy.max_pulls


def test_delta_matches_the_paper() -> None:
    assert DBCARE(Risk.misidentification(1e-4), arms=2).delta == pytest.approx(7.31e-5, rel=1e-3)
    eight = DBCARE(Risk.simple_regret(1e-4), arms=8)
    assert eight.delta == pytest.approx(3.5e-8, rel=0.02)
    assert DBCARE(eight.risk, arms=8, confidence="corrected").delta == pytest.approx(7.8e-5, rel=0.01)


def test_max_pulls_can_be_reached() -> None:
    """last(2) + last(2) + last(3) + last(4) = 10 + 10 + 7 + 5, if each arm is dropped in the last epoch allowed."""
    rewards = [[0.5] * 10, [0.5] * 9 + [-1.5], [0.5] * 6 + [-2.0], [0.5] * 4 + [-2.0]]
    run, asked = play(FOUR, rewards)
    assert asked == [[0, 1, 2, 3]] * 5 + [[0, 1, 2]] * 2 + [[0, 1]] * 3
    assert run.pulls == FOUR.max_pulls == 32
    assert run.recommendation() == 0


@dataclass(frozen=True)
class ExactBoundary(EliminationPolicy):
    """At most two epochs, with boundaries on the sums that are exact in floating point."""

    arms: int
    boundary: tuple[float, float] = (0.5, 1.0)
    risk = None

    @property
    def tables(self) -> EliminationTables:
        return EliminationTables(
            boundary=np.array([0.0, *self.boundary]),
            row=np.zeros(self.arms + 1, dtype=np.int64),
            last_epoch=np.full(self.arms + 1, 2),
            max_pulls=NO_CAP,
        )

    @property
    def max_pulls(self) -> int:
        return 2 * self.arms


@pytest.mark.parametrize(
    ("first", "second", "epochs", "dropped"),
    [
        (0.5, 0.5, 2, []),  # at the radius in both epochs: kept
        (0.5, 0.5 + 2**-50, 2, [1]),  # slightly beyond it in epoch 2: dropped there
        (0.5 + 2**-50, 0.5, 1, [1]),
    ],
)
def test_an_arm_at_the_radius_is_kept(first: float, second: float, epochs: int, dropped: list[int]) -> None:
    run, asked = play(ExactBoundary(2), [[first, second], [0.0, 0.0]])
    assert asked == [[0, 1]] * epochs
    assert [event.arm for event in run.events] == dropped
    assert run.recommendation() == 0


def test_the_radius_is_measured_from_the_best_of_all_survivors() -> None:
    """Arm 2 leads with 1; arm 0, 0.5 below it, is kept; arms 1 and 3, further below, are dropped together."""
    run, asked = play(ExactBoundary(4), [[0.5, 0.0], [0.25], [1.0, 0.0], [0.0]])
    assert asked == [[0, 1, 2, 3], [0, 2]]
    assert {event.arm: event.text for event in run.events} == {
        1: "dropped at epoch 1: its mean is 0.75 below the best, the radius is 0.5",
        3: "dropped at epoch 1: its mean is 1 below the best, the radius is 0.5",
    }
    assert run.recommendation() == 2


def test_only_the_seed_breaks_ties() -> None:
    """Arms 1 and 3 tie: each is recommended for some seeds, no other arm for any, and always the same for a seed."""
    first, again = ([play_by(FOUR, lambda arm: 0.1 * (arm % 2), seed)[0] for seed in range(40)] for _ in range(2))
    recommended = [run.recommendation() for run in first]
    assert set(recommended) == {1, 3}
    assert recommended == [run.recommendation() for run in again]


def test_ties_in_sums_are_ties_in_means() -> None:
    """In floating point 0.1 + 0.2 and 0.3 do not tie, but 0.25 + 0.5 and 0.75 do."""
    tied = [play(ExactBoundary(2), [[0.25, 0.5], [0.5, 0.25]], seed)[0].recommendation() for seed in range(20)]
    assert set(tied) == {0, 1}


@pytest.mark.parametrize(
    ("risk", "arms"),
    [
        (Risk.misidentification(0.25), 2),  # c >= 1/4; N*(2) = 0.74
        (Risk.misidentification(0.1), 4),  # N*(4) = 1/(4 e 0.1) = 0.92
        (Risk.simple_regret(0.5), 2),  # N*(2) = 0.552 * 2^(2/3) = 0.88
        (Risk.misidentification(10.0), 2),  # delta = 10/(1 + 1/e) is above 1, so there is no radius
        (Risk.simple_regret(100.0), 8),
    ],
)
def test_guessing_is_best(risk: Risk, arms: int) -> None:
    """The policy is valid, warns at the caller's line, and runs one epoch."""
    with pytest.warns(GuessingIsBestWarning, match=f"one of {arms} arms without data") as caught:
        policy = DBCARE(risk, arms=arms)
    assert [warning.filename for warning in caught] == [__file__]
    run, asked = play_by(policy, lambda arm: float(arm == 1) * 1e-3)
    assert asked == [list(range(arms))]
    assert run.recommendation() == 1
    assert math.isfinite(policy.radius(1, arms))


def test_no_warning_if_a_pull_can_pay_for_itself() -> None:
    """N*(2) = 1/(2 e 0.18) = 1.02; warnings are errors in these tests."""
    assert DBCARE(Risk.misidentification(0.18), arms=2).epoch_limit(2) == 2


def test_equal_costs_per_arm() -> None:
    """They are like one cost (for different costs, see tests/policies/test_policy.py)."""
    assert DBCARE(Risk.misidentification([0.02] * 4), arms=4, sigma=0.1).max_pulls == FOUR.max_pulls


def test_what_the_radius_depends_on() -> None:
    """`bound` changes delta for simple regret only; sigma scales the radius."""
    risk = Risk.misidentification(0.02)
    assert DBCARE(risk, arms=4, sigma=0.1, bound=50.0).radius(3, 4) == FOUR.radius(3, 4)
    assert DBCARE(risk, arms=4, sigma=0.2).radius(3, 4) == pytest.approx(2 * FOUR.radius(3, 4), rel=1e-14)
    assert DBCARE(Risk.simple_regret(0.01), arms=2, sigma=0.08, bound=2.0).delta < TWO.delta


def test_equal_fields_make_equal_policies() -> None:
    assert DBCARE(Risk.misidentification(0.02), arms=4, sigma=0.1) == FOUR
    assert hash(DBCARE(Risk.misidentification(0.02), arms=4, sigma=0.1)) == hash(FOUR)
    assert FOUR != TWO
