"""Replays of logged data, compared with the policy stepped by hand, and with all orders of a small log."""

import math
import random
import statistics
from collections import Counter
from itertools import permutations, product
from typing import Any

import pytest
from scipy.stats import binom

import dbcare
from dbcare.errors import InvalidValueError
from dbcare.replay.replay import compute_savings

RATES = {"A": 0.10, "B": 0.16, "C": 0.12}
MONEY: dict[str, Any] = {"price": 0.5, "value": 20_000}


def make_log(trials: int, seed: int = 5) -> list[tuple[str, float]]:
    """Return a log of trials of random arms."""
    chance = random.Random(seed)
    names = [chance.choice("ABC") for _ in range(trials)]
    return [(name, float(chance.random() < RATES[name])) for name in names]


def step_by_hand(log: list[tuple[str, float]], policy: dbcare.Policy, sign: float = 1.0) -> tuple[list[int], int, bool]:
    """Return the number of rewards used per arm, the choice, and whether the policy stopped; arms as in the log."""
    names = list(dict.fromkeys(name for name, _ in log))
    queues = [[sign * reward for name, reward in log if name == wanted] for wanted in names]
    used = [0] * len(names)
    run = policy.start(seed=0)
    while (arm := run.ask()) is not None and used[arm] < len(queues[arm]):
        run.tell(queues[arm][used[arm]])
        used[arm] += 1
    return used, run.recommendation(), arm is None


@pytest.mark.parametrize("name", ["breakeven", "breakeven-racing", "dbcare"])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_replay_does_what_the_policy_does(name: str, direction: str) -> None:
    log = make_log(6_000)
    risk = dbcare.Risk.simple_regret(**MONEY)
    policy: dbcare.Policy = {
        "breakeven": dbcare.Breakeven(risk, 3, 0.5, bound=1.0, largest_sigma=0.5),
        "breakeven-racing": dbcare.BreakevenRacing(risk, 3, 0.5),
        "dbcare": dbcare.DBCARE(risk, 3, 0.5, bound=1.0),
    }[name]
    used, chosen, stopped = step_by_hand(log, policy, 1.0 if direction == "maximize" else -1.0)
    assert stopped
    replay = dbcare.replay_log(log, **MONEY, binary=True, policy=name, direction=direction)
    assert [arm.used for arm in replay.arms] == used
    assert replay.recommendation.arm == replay.arms[chosen].name
    assert replay.stopped
    assert replay.recommendation.final
    assert replay.logged == 6_000
    assert replay.spent == pytest.approx(0.5 * sum(used))
    assert replay.best == ("B" if direction == "maximize" else "A")
    means = {arm: sum(r for name, r in log if name == arm) / sum(name == arm for name, _ in log) for arm in RATES}
    assert {arm.name: arm.mean for arm in replay.arms} == pytest.approx(means)
    apart = abs(means[replay.best] - means[replay.recommendation.arm])
    assert replay.forgone == pytest.approx(apart * 20_000)
    assert replay.saved == pytest.approx(0.5 * (6_000 - sum(used)) - apart * 20_000)


def test_a_log_that_is_too_short() -> None:
    log = make_log(300)
    policy = dbcare.Breakeven(dbcare.Risk.simple_regret(price=0.5, value=1e6), 3, 0.5, bound=1.0, largest_sigma=0.5)
    used, chosen, stopped = step_by_hand(log, policy)
    assert not stopped
    replay = dbcare.replay_log(log, price=0.5, value=1e6, binary=True)
    assert [arm.used for arm in replay.arms] == used
    wanted = next(arm for arm in replay.arms if arm.name == replay.wanted)
    assert wanted.used == wanted.logged
    assert replay.recommendation.arm == replay.arms[chosen].name
    assert not replay.recommendation.final
    text = str(replay)
    assert text.startswith("Would still be running in all 20 orders: the log is too short for a decision; spent ")
    assert f"it wanted more of {wanted.name} than the {wanted.logged} trials logged." in text
    assert "aved" not in text


@pytest.mark.parametrize(
    ("stated", "sigma", "limits"),
    [
        ({"baseline": 0.1, "sigma_pulls": 3.0}, 0.3, {"sigma_pulls": 3.0, "bound": 1.0, "largest_sigma": 0.5}),
        ({"sigma": 0.3, "sigma_pulls": math.inf}, 0.3, {"sigma_pulls": math.inf}),
        ({}, None, {}),
    ],
)
def test_the_spread_is_stated_as_for_a_study(stated: Any, sigma: float | None, limits: dict[str, Any]) -> None:
    """Or not at all: it is then learned. Prices go by the names of the arms, which the log has in another order."""
    log = make_log(6_000)
    names = list(dict.fromkeys(name for name, _ in log))
    prices = {"A": 0.5, "B": 0.75, "C": 1.0}
    risk = dbcare.Risk.simple_regret(price=[prices[name] for name in names], value=20_000)
    used, chosen, _ = step_by_hand(log, dbcare.Breakeven(risk, 3, sigma, **limits))
    replay = dbcare.replay_log(log, price=prices, value=20_000, **stated)
    assert [arm.used for arm in replay.arms] == used
    assert replay.recommendation.arm == names[chosen]
    assert replay.spent == pytest.approx(sum(prices[arm.name] * arm.used for arm in replay.arms))
    assert ("so it was learned from them" in str(replay)) == (not stated)


def test_only_the_order_within_an_arm_matters() -> None:
    log = make_log(4_000)
    names = list(dict.fromkeys(name for name, _ in log))
    arm_by_arm = [(name, reward) for wanted in names for name, reward in log if name == wanted]
    backwards = [(name, reward) for wanted in names for name, reward in log[::-1] if name == wanted]

    def used(observations: list[tuple[str, float]]) -> list[int]:
        return [arm.used for arm in dbcare.replay_log(observations, **MONEY, binary=True).arms]

    assert used(arm_by_arm) == used(log)
    assert used(backwards) != used(log)


def test_a_wrong_choice_costs_the_same_whatever_its_gap() -> None:
    """The risk is misidentification: a wrong choice costs 7; B is chosen though A has the best mean."""
    log = [("A", 0.0), ("B", 1.0)] * 8 + [("A", 1.0)] * 200 + [("B", 0.0)] * 200
    replay = dbcare.replay_log(log, price=0.5, value=7, risk="misidentification", binary=True)
    assert (replay.recommendation.arm, replay.best) == ("B", "A")
    assert replay.forgone == 7.0


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ([], "A log must have rewards of 2 or more arms but got those of none."),
        ([("A", 1.0)] * 3, "A log must have rewards of 2 or more arms but got those of 'A'."),
        ([("A", 1.0), ("B", 0.0), ("B", 3.0)], "`reward 2 of B` must be 0 or 1 but got 3."),
    ],
)
def test_logs_that_cannot_be_replayed(log: list[tuple[str, float]], message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        dbcare.replay_log(log, **MONEY, binary=True)
    assert str(caught.value) == message


SMALL = {"A": [0.9, 0.2, 0.6, 0.1], "B": [0.5, 0.0, 0.7, 0.4]}
SMALL_LOG = [(name, reward) for name, rewards in SMALL.items() for reward in rewards]
SMALL_OPTIONS: dict[str, Any] = {"price": {"A": 1.0, "B": 1.3}, "value": 90.0, "sigma": 0.5}


def enumerate_orders() -> Counter[tuple[str, tuple[int, ...], bool]]:
    """Count choice, trials used, and whether the log ran out, over all orders of the rewards of each arm."""
    policy = dbcare.Breakeven(dbcare.Risk.simple_regret(price=[1.0, 1.3], value=90.0), 2, 0.5)
    found: Counter[tuple[str, tuple[int, ...], bool]] = Counter()
    for first, second in product(permutations(SMALL["A"]), permutations(SMALL["B"])):
        log = [("A", reward) for reward in first] + [("B", reward) for reward in second]
        used, chosen, stopped = step_by_hand(log, policy)
        found["AB"[chosen], tuple(used), not stopped] += 1
    return found


def is_plausible(found: Counter[Any], expected: Counter[Any], orders: int) -> bool:
    """Return whether no frequency has a tail below 1e-8 in the exact binomial law that all orders give it."""
    for outcome, times in expected.items():
        law = binom(orders, times / sum(expected.values()))
        if min(law.cdf(found[outcome]), law.sf(found[outcome] - 1)) < 1e-8:
            return False
    return True


def test_random_orders_are_as_frequent_as_all_orders_have_them() -> None:
    """Seven outcomes with two tails each: the test fails by chance with a probability below 2e-7.

    Different prices leave no ties, which would be broken at random.
    """
    orders = 1_000
    replay = dbcare.replay_log(SMALL_LOG, orders=orders, **SMALL_OPTIONS)
    expected = enumerate_orders()
    assert (expected.total(), len(expected)) == (576, 7)
    outcomes = [(order.arm, order.used, order.wanted is not None) for order in replay.orders]
    assert set(outcomes) == set(expected)
    assert is_plausible(Counter(outcomes[1:]), expected, orders - 1)
    assert not is_plausible(Counter(outcomes[1:2] * (orders - 1)), expected, orders - 1)  # negative control
    assert replay.over_orders.ran_out == sum(ran_out for _, _, ran_out in outcomes)


def test_the_first_order_is_the_logs_own() -> None:
    """However many there are; the others follow from the seed."""
    log = make_log(3_000)
    alone = dbcare.replay_log(log, **MONEY, binary=True, orders=1)
    several = dbcare.replay_log(log, **MONEY, binary=True, orders=4)
    assert several.orders[:1] == alone.orders
    assert several.recommendation == alone.recommendation
    assert alone.orders[0].used == tuple(arm.used for arm in alone.arms)
    assert (alone.orders[0].spent, alone.orders[0].arm) == (alone.spent, alone.recommendation.arm)
    assert dbcare.replay_log(log, **MONEY, binary=True, orders=3).orders == several.orders[:3]
    assert dbcare.replay_log(log, **MONEY, binary=True, orders=4, seed=1).orders[1:] != several.orders[1:]
    assert len({order.used for order in several.orders}) == 4


def test_a_summary_is_that_of_the_orders() -> None:
    replay = dbcare.replay_log(make_log(3_000), **MONEY, binary=True, orders=25)
    total, orders = replay.over_orders, replay.orders
    assert total.orders == len(orders) == 25
    assert total.chosen == Counter(order.arm for order in orders)
    assert [arm.chosen for arm in replay.arms] == [total.chosen.get(arm.name, 0) for arm in replay.arms]
    spent = [0.5 * sum(order.used) for order in orders]
    means = {arm.name: arm.mean for arm in replay.arms}
    losses = [20_000 * (max(means.values()) - means[order.arm]) for order in orders]
    assert 0 < total.wrong == sum(loss > 0.0 for loss in losses)
    for mean, (low, high), amounts in (
        (total.spent, total.spent_range, spent),
        (total.loss, total.loss_range, losses),
    ):
        assert mean == pytest.approx(statistics.fmean(amounts))
        twentieths = statistics.quantiles(amounts, n=20, method="inclusive")
        assert (low, high) == pytest.approx((twentieths[0], twentieths[-1]))
    assert total.saved == pytest.approx(1_500.0 - statistics.fmean(spent) - statistics.fmean(losses))


def test_orders_follow_direction_and_cap() -> None:
    """Less is better of rewards as the opposite is of their opposites; capped rewards are as if logged so."""
    log = make_log(2_000)
    opposites = [(name, -reward) for name, reward in log]
    less = dbcare.replay_log(log, cost=1e-4, sigma=0.3, direction="minimize", orders=4)
    assert [order.used for order in less.orders] == [
        order.used for order in dbcare.replay_log(opposites, cost=1e-4, sigma=0.3, orders=4).orders
    ]
    doubled = [(name, 2.0 * reward) for name, reward in log]
    capped = dbcare.replay_log(doubled, cost=1e-4, sigma=0.3, cap=1.0, orders=4)
    assert [order.used for order in capped.orders] == [
        order.used for order in dbcare.replay_log(log, cost=1e-4, sigma=0.3, orders=4).orders
    ]
    assert capped.orders[1].used != less.orders[1].used


def test_the_headline_says_what_matters_most() -> None:
    log = make_log(3_000)
    right = dbcare.replay_log([pair for pair in log if pair[0] != "C"], **MONEY, binary=True)
    total = right.over_orders
    assert total.wrong * 2 < 20
    assert str(right).startswith(f"Would have chosen B in {total.chosen['B']} of 20 orders, spent ")
    assert f", expected loss {dbcare.problem.Money(total.loss, 'USD')}.\n" in str(right)
    certain = dbcare.replay_log([("A", 1.0), ("B", 0.0)] * 50, price=1, value=100, sigma=0.2, orders=3)
    assert str(certain).startswith("Would have chosen A in all 3 orders, spent 2.00 of 100.00 USD.\n")
    sum_of_it = "100.00 USD for the log - 2.00 USD spent - 0 USD lost by the choice = 98.00 USD."
    assert f"Saved on average: {sum_of_it}" in certain.sentences()


def test_what_rounding_leaves_is_not_saved() -> None:
    """The whole log was used in each of twenty orders, and the mean of what they spent is a bit too high or too low.

    Negative control: a millionth of a cent is saved.
    """
    for exact in (0.15, 0.2):
        for inexact in (math.nextafter(exact, 0.0), math.nextafter(exact, 1.0)):
            assert exact - inexact != 0.0
            assert compute_savings(exact, inexact, 0.0) == 0.0
    assert compute_savings(0.15, 0.15 - 1e-8, 0.0) == pytest.approx(1e-8)


def test_a_wrong_choice_is_said_first_and_counts_against_the_savings() -> None:
    """The rewards at the start mislead: B is chosen, A is better, by 192 to 8 of 200, and a unit is worth 2,000."""
    log = [("A", 0.0), ("B", 1.0)] * 8 + [("A", 1.0), ("B", 0.0)] * 192
    replay = dbcare.replay_log(log, price=0.5, value=2_000, sigma=0.1, orders=1)
    spent = 0.5 * replay.used
    assert 0.5 * 400 - spent - 0.92 * 2_000 < 0.0
    assert replay.saved == replay.over_orders.saved == pytest.approx(200.0 - spent - 1_840.0)
    text = str(replay)
    assert text.startswith(f"Would have chosen wrongly (B; the log's best arm is A), spent {spent:.2f} of 200.00 USD, ")
    assert f"A net loss: 200.00 USD for the log - {spent:.2f} USD spent - 1,840 USD lost by the choice = -1,64" in text
    assert "Saved" not in text


def test_arms_are_those_of_a_study_that_used_the_whole_log() -> None:
    """A study whose trials cost next to nothing does not stop before the log ends."""
    log = make_log(500)
    names = list(dict.fromkeys(name for name, _ in log))
    study = dbcare.create_study("whole log", names, cost=1e-12, sigma=0.4)
    study.add(log)
    replay = dbcare.replay_log(log, cost=0.01, sigma=0.4)
    assert replay.used < replay.logged
    for logged, arm in zip(replay.arms, study.status().arms, strict=True):
        assert (logged.status.name, logged.status.trials) == (arm.name, arm.trials) == (logged.name, logged.logged)
        assert logged.status.mean == pytest.approx(logged.mean)
        assert logged.status.interval == pytest.approx(arm.interval)
    dbcare.delete_study("whole log")


def test_notes_are_those_of_a_study() -> None:
    """On the whole log: drift, a rate that was stated wrongly; nothing on data as they should be."""
    assert dbcare.replay_log(make_log(3_000), **MONEY, baseline=0.12).notes == ()
    wrong = dbcare.replay_log(make_log(3_000), **MONEY, baseline=0.6, sigma_pulls=math.inf)
    assert wrong.notes == ()  # it spreads by less than that rate does
    low = dbcare.replay_log(make_log(3_000), **MONEY, baseline=0.01)
    assert "and a usual rate of 1% was stated" in low.notes[0]
    drift = [("A", float(day > 200)) for day in range(400)] + [("B", 0.5 + 0.1 * (-1) ** day) for day in range(400)]
    notes = dbcare.replay_log(drift, **MONEY, sigma=0.5).notes
    assert len(notes) == 1
    assert notes[0].startswith("A: its first 192 rewards have a mean of 0, the 208 after them 0.9")
    assert f"\nNote: {notes[0]}." in str(dbcare.replay_log(drift, **MONEY, sigma=0.5))


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        (0, "`orders` must be at least 1 but got 0."),
        (1.5, "`orders` must be a whole number but got 1.5."),
        (10_001, "`orders` must be at most 10000 but got 10001."),
    ],
)
def test_numbers_of_orders_that_are_refused(orders: Any, message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        dbcare.replay_log(make_log(30), **MONEY, binary=True, orders=orders)
    assert str(caught.value) == message
