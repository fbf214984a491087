"""Fixed budget: Sequential Halving and Successive Rejects, round by round on rewards written out by hand."""

import math
from collections import Counter
from fractions import Fraction

import pytest

from dbcare.policies.planned import SequentialHalving, SuccessiveRejects
from tests.helpers.play_run import play, play_by


@pytest.mark.parametrize(
    ("arms", "budget", "schedule", "pulls"),
    [
        # R = 3: floor(25/15) = 1, keep 3; floor(25/9) = 2, keep 2; floor(25/6) = 4, keep 1: 5 + 6 + 8
        (5, 25, [(1, 3), (2, 2), (4, 1)], 19),
        # R = 1: half the budget per arm
        (2, 10, [(5, 1)], 10),
        (2, 11, [(5, 1)], 10),
        # R = 3: floor(40/24) = 1, floor(40/12) = 3, floor(40/6) = 6: 8 + 12 + 12
        (8, 40, [(1, 4), (3, 2), (6, 1)], 32),
        # R = 2: floor(9/6) = 1, keep 2; floor(9/4) = 2, keep 1: 3 + 4
        (3, 9, [(1, 2), (2, 1)], 7),
    ],
)
def test_halving_schedule(arms: int, budget: int, schedule: list[tuple[int, int]], pulls: int) -> None:
    policy = SequentialHalving(arms, budget)
    assert policy.schedule == schedule
    run, _ = play_by(policy, float)
    assert run.pulls == policy.max_pulls == pulls
    assert run.recommendation() == arms - 1


# Four arms, budget 16: two pulls each, the best two stay, four pulls each.
BOTH_RANKINGS = [
    [10.0, 10.0, 1.0, 1.0, 1.0, 1.0],  # round means 10, 1; all 24/6 = 4
    [5.0, 5.0, 2.0, 2.0, 2.0, 2.0],  # round means 5, 2; all 18/6 = 3
    [4.0, 4.0],
    [0.0, 9.0],  # 4.5
]


@pytest.mark.parametrize(("ranking", "recommended"), [("round", 1), ("all", 0)])
def test_the_two_rankings_of_halving_differ(ranking: str, recommended: int) -> None:
    run, asked = play(SequentialHalving(4, 16, ranking), BOTH_RANKINGS)
    assert asked == [[0, 1, 2, 3]] * 2 + [[0, 1]] * 4
    assert run.recommendation() == recommended
    other = 1 - recommended
    assert {event.arm for event in run.events[:-1]} == {2, 3}
    assert str(run.events[-1]) == f"arm {other} dropped at the end of round 2: it is not among the best 1 of 2"
    assert run.why() == f"stopped after 16 pulls: all pulls planned in advance have been made; {run.events[-1]}"


def test_the_original_ranking_is_the_default() -> None:
    assert SequentialHalving(4, 16) == SequentialHalving(4, 16, "round")


@pytest.mark.parametrize(
    ("arms", "budget", "totals"),
    [
        # L = 1/2 + 1/2 = 1: n_1 = ceil(9/2)
        (2, 11, [5]),
        # L = 4/3: n_k = ceil(8/4), ceil(8/(8/3)) = 2, 3
        (3, 11, [2, 3]),
        # L = 19/12: n_k = 19/(19/12 * 4), .../3, .../2 = 3, 4, 6 exactly
        (4, 23, [3, 4, 6]),
        # L = 107/60 = 1.7833: 95/L = 53.27; /5 = 10.7, /4 = 13.3, /3 = 17.8, /2 = 26.6
        (5, 100, [11, 14, 18, 27]),
        # 107/L = 60: 12, 15, 20, 30 exactly
        (5, 112, [12, 15, 20, 30]),
    ],
)
def test_rejects_phases_by_hand(arms: int, budget: int, totals: list[int]) -> None:
    """n_k = ceil((n - K)/(L (K + 1 - k))), L = 1/2 + 1/2 + ... + 1/K (Audibert, Bubeck and Munos 2010, Figure 3).

    Each phase drops the arm with the smallest mean, so that arm k - 1 has n_k pulls and the last arm n_{K-1}.
    """
    run, asked = play_by(SuccessiveRejects(arms, budget), float)
    assert Counter(arm for turn in asked for arm in turn) == {arm: totals[min(arm, arms - 2)] for arm in range(arms)}
    assert [event.arm for event in run.events] == list(range(arms - 1))
    assert run.pulls == run.policy.max_pulls == sum(totals) + totals[-1] <= budget
    assert run.recommendation() == arms - 1


@pytest.mark.parametrize("arms", [2, 3, 4, 5, 7, 8, 13, 32, 40])
def test_rejects_phases_in_exact_fractions(arms: int) -> None:
    """Rounding never adds a pull if the formula gives a whole number, and the budget is never exceeded."""
    scale = Fraction(1, 2) + sum(Fraction(1, rank) for rank in range(2, arms + 1))
    for budget in range(arms + 1, arms + 800):
        totals = [math.ceil(Fraction(budget - arms) / (scale * (arms + 1 - phase))) for phase in range(1, arms)]
        policy = SuccessiveRejects(arms, budget)
        assert [pulls for pulls, _ in policy.schedule] == [b - a for a, b in zip([0, *totals], totals, strict=False)]
        assert policy.max_pulls <= budget


def test_rejects_rank_all_rewards_so_far() -> None:
    """K = 3, n = 11: 2 pulls per arm, arm 2 is dropped; then arm 0 has (9 + 9 + 0)/3 = 6, arm 1 (5 + 5 + 7)/3."""
    run, asked = play(SuccessiveRejects(3, 11), [[9.0, 9.0, 0.0], [5.0, 5.0, 7.0], [0.0, 0.0]])
    assert asked == [[0, 1, 2], [0, 1, 2], [0, 1]]
    assert run.recommendation() == 0


def test_a_phase_without_pulls_still_drops_an_arm() -> None:
    """K = 4, n = 5: n_k = ceil(12/76), ceil(12/57), ceil(12/38) = 1, 1, 1: one pull per arm decides all phases."""
    run, asked = play_by(SuccessiveRejects(4, 5), lambda arm: -float(arm))
    assert asked == [[0, 1, 2, 3]]
    assert run.recommendation() == 0
    assert {event.arm for event in run.events} == {1, 2, 3}


@pytest.mark.parametrize("ranking", ["round", "all"])
def test_ties_between_dropped_and_kept_arms_are_broken_uniformly(ranking: str) -> None:
    """Of eight equal arms four are kept, so each stays in half of the runs.

    Its count in 400 runs has mean 200 and standard deviation at most 10, and lies outside 200 +- 60 with probability
    below 2 exp(-2 * 400 * 0.15^2) = 3e-8 (Hoeffding).
    """
    policy = SequentialHalving(8, 24, ranking)
    kept: Counter[int] = Counter()
    for seed in range(400):
        run = policy.start(seed=seed)
        for _ in range(8):
            run.tell(0.0)
        kept.update({*range(8)} - {event.arm for event in run.events})
    assert kept.total() == 400 * 4
    assert all(140 < kept[arm] < 260 for arm in range(8))


@pytest.mark.parametrize("ranking", ["round", "all"])
def test_recommendations_break_ties_uniformly_after_a_drop(ranking: str) -> None:
    """Two of four equal arms are dropped at random; the recommendation must not depend on which.

    Over the seeds each arm has a chance of 1/4; its count in 1600 runs lies outside 400 +- 120 with probability below
    2 exp(-2 * 1600 * 0.075^2) = 3e-8 (Hoeffding).
    """
    policy = SequentialHalving(4, 8, ranking)
    counts: Counter[int] = Counter()
    for seed in range(1600):
        run = policy.start(seed=seed)
        for _ in range(4):
            run.tell(0.0)
        counts[run.recommendation()] += 1
    assert all(280 < counts[arm] < 520 for arm in range(4)), counts


def test_the_reason_for_waiting_names_the_round() -> None:
    run = SequentialHalving(4, 16).start()
    for _ in range(9):
        run.tell(0.0)
    assert run.why() == f"waiting for pull 10, of arm {run.ask()} (round 2, 2 of 4 arms left)"
