"""The planner: figures match `evaluate`, test sizes match the textbook, and its sentences follow from them."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from scipy import stats

from dbcare import DBCARE, Bandit, Breakeven, Policy, Risk, evaluate, plan
from dbcare.base.numbers import Money
from dbcare.errors import InvalidValueError
from dbcare.planner.outlook import Outlook
from dbcare.planner.plan import Plan
from dbcare.planner.words import format_percent
from dbcare.policies import Guess, Uniform

Z = float(stats.norm.isf(0.025) + stats.norm.isf(0.2))


def find(planned: Plan, policy: str, gap: float) -> Outlook:
    return next(outlook for outlook in planned.of(policy) if outlook.gap == gap)


def test_figures_match_evaluate_for_gaussian_rewards() -> None:
    planned = plan(3, price=0.5, value=1_000, sigma=0.8, gaps=[0.4, 0.1], runs=400, seed=5)
    risk = Risk.simple_regret(price=0.5, value=1_000)
    assert planned.gaps == (0.1, 0.4)
    assert planned.policies == ("breakeven", "dbcare", "fixed-size-test", "best-fixed-size", "decide-now")
    for gap in planned.gaps:
        bandit = Bandit.gaussian([gap, 0.0, 0.0], 0.8)
        test = find(planned, "fixed-size-test", gap).policy
        assert test == Uniform(3, math.ceil(2 * 0.8**2 * Z**2 / gap**2))
        policies: dict[str, Policy] = {
            "breakeven": Breakeven(risk, 3, 0.8),
            "dbcare": DBCARE(risk, 3, 0.8),
            "decide-now": Guess(3),
        }
        for name, policy in policies.items():
            expected = evaluate(policy, bandit, risk, runs=400, seed=5)
            outlook = find(planned, name, gap)
            assert outlook.policy == policy
            assert outlook.observations == expected.pulls.mean
            assert outlook.chance_wrong == expected.error
            assert outlook.total_loss == 1_000 * expected.risk
            assert outlook.standard_error == 1_000 * expected.standard_error
            assert outlook.spend == pytest.approx(0.5 * expected.pulls.mean, rel=1e-12)
            assert outlook.evaluation.engine == expected.engine


def test_figures_match_evaluate_for_rates() -> None:
    planned = plan(2, cost=1e-3, baseline=0.2, risk="misidentification", gaps=0.3, runs=300, seed=2)
    risk = Risk.misidentification(1e-3)
    bandit = Bandit.bernoulli([0.5, 0.2])
    policies: dict[str, Policy] = {
        "breakeven": Breakeven(risk, 2, 0.4, bound=1.0, largest_sigma=0.5),  # sqrt(0.2 * 0.8)
        "dbcare": DBCARE(risk, 2, 0.5),
        "fixed-size-test": Uniform(2, 39),  # see test_the_size_of_a_test_of_two_rates
        "decide-now": Guess(2),
    }
    for name, policy in policies.items():
        expected = evaluate(policy, bandit, risk, runs=300, seed=2)
        assert find(planned, name, 0.3).policy == policy
        assert find(planned, name, 0.3).total_loss == pytest.approx(expected.risk, rel=1e-12)
        assert find(planned, name, 0.3).chance_wrong == pytest.approx(expected.error, rel=1e-12)


@pytest.mark.parametrize(
    ("stated", "gap", "bandit", "pulls"),
    [
        ({"binary": True}, 0.2, Bandit.bernoulli([0.6, 0.4, 0.4]), 97),
        ({"binary": True}, 1.0, Bandit.bernoulli([1.0, 0.0, 0.0]), 2),
        ({"bounds": (-1.0, 3.0)}, 0.5, Bandit.gaussian([0.5, 0.0, 0.0], 2.0), 252),
        ({"bounds": (-1.0, 3.0), "sigma": 0.7}, 0.5, Bandit.gaussian([0.5, 0.0, 0.0], 0.7), 31),
    ],
)
def test_what_is_simulated(stated: dict[str, Any], gap: float, bandit: Bandit, pulls: int) -> None:
    """Rates around 1/2, or half the range as the standard deviation; sizes of tests by hand from the formulas."""
    planned = plan(3, cost=1e-3, gaps=gap, policies=["dbcare", "fixed-size-test"], runs=200, seed=3, **stated)
    risk = Risk.simple_regret(1e-3)
    sigma, width = stated.get("sigma", bandit.sigma), 1.0 if stated.get("binary") else 4.0
    ours = DBCARE(risk, 3, sigma, bound=width)
    assert find(planned, "dbcare", gap).policy == ours
    assert find(planned, "dbcare", gap).total_loss == evaluate(ours, bandit, risk, runs=200, seed=3).risk
    assert find(planned, "fixed-size-test", gap).policy == Uniform(3, pulls)


@pytest.mark.parametrize("arms", [2, 5])
def test_deciding_now_loses_a_share_of_the_gap(arms: int) -> None:
    regret = plan(arms, price=0.4, value=20_000, sigma=0.5, gaps=[0.02, 0.5], policies="decide-now", runs=10)
    error = plan(arms, price=0.4, value=20_000, sigma=0.5, gaps=0.5, policies="decide-now", risk="misidentification")
    for outlook in regret.outlooks:
        assert outlook.total_loss == pytest.approx((1 - 1 / arms) * outlook.gap * 20_000)
        assert (outlook.observations, outlook.spend, outlook.standard_error) == (0.0, 0.0, 0.0)
    assert error.outlooks[0].total_loss == pytest.approx((1 - 1 / arms) * 20_000)


@pytest.mark.parametrize("gap", [0.03, 0.5, 1.7])
def test_the_fixed_size_test_is_the_smallest_with_its_power(gap: float) -> None:
    """Against the power function itself, not the formula solved for n; the wrong tail of 0.05/2 is negligible."""
    planned = plan(2, cost=1e-4, sigma=1.3, gaps=gap, policies=["fixed-size-test"])
    policy = planned.outlooks[0].policy
    assert isinstance(policy, Uniform)

    def power(pulls: int) -> float:
        return float(stats.norm.cdf(gap / (1.3 * math.sqrt(2 / pulls)) - stats.norm.isf(0.025)))

    assert power(policy.pulls) >= 0.8
    assert policy.pulls == 1 or power(policy.pulls - 1) < 0.8
    wrong = stats.norm.sf(gap * math.sqrt(policy.pulls / 2) / 1.3)
    assert planned.outlooks[0].chance_wrong == pytest.approx(float(wrong), rel=1e-9)
    assert planned.outlooks[0].observations == 2 * policy.pulls


@pytest.mark.parametrize(("rate", "gap", "pulls"), [(0.1, 0.05, 686), (0.2, 0.3, 39), (0.02, 0.01, 3_826)])
def test_the_size_of_a_test_of_two_rates(rate: float, gap: float, pulls: int) -> None:
    """Against the power function: the difference of two rates over its standard error under equal rates."""
    policy = plan(2, cost=1e-4, baseline=rate, gaps=gap, policies="fixed-size-test").outlooks[0].policy
    assert policy == Uniform(2, pulls)
    best, mean = rate + gap, rate + gap / 2

    def power(pulls: int) -> float:
        critical = stats.norm.isf(0.025) * math.sqrt(2 * mean * (1 - mean) / pulls)
        return float(stats.norm.sf(critical, gap, math.sqrt((rate * (1 - rate) + best * (1 - best)) / pulls)))

    assert power(pulls - 1) < 0.8 <= power(pulls)


def test_different_prices_leave_dbcare_out() -> None:
    prices = [0.5, 1.0, 3.0]
    planned = plan(3, price=prices, value=500, sigma=1.0, gaps=0.5, runs=500, seed=1)
    assert planned.policies == ("breakeven", "fixed-size-test", "best-fixed-size", "decide-now")
    assert "DBCARE is left out: it needs the same price for all arms." in " ".join(str(planned).split())
    bandit = Bandit.gaussian([0.5, 0.0, 0.0])
    risk = Risk.simple_regret(price=prices, value=500)
    expected = evaluate(Breakeven(risk, 3, 1.0), bandit, runs=500, seed=1)
    outlook = find(planned, "breakeven", 0.5)
    assert outlook.total_loss == 500 * expected.risk
    assert outlook.spend == pytest.approx(500 * (expected.risk - expected.simple_regret))
    test = find(planned, "fixed-size-test", 0.5)
    assert test.spend == pytest.approx(63 * sum(prices))  # 2 Z^2 / 0.25 = 62.8
    # Charged pull by pull instead of at the mean price: the same spend, other draws.
    charged = evaluate(Uniform(3, 63), bandit, risk, runs=20_000, seed=3)
    tolerance = 5 * math.hypot(500 * charged.standard_error, test.standard_error)
    assert test.total_loss == pytest.approx(500 * charged.risk, abs=tolerance)


def test_a_price_too_low_for_dbcare_leaves_it_out() -> None:
    planned = plan(2, price=1e-3, value=1e6, sigma=0.5, risk="misidentification", gaps=1.0, runs=50)
    assert planned.left_out.keys() == {"dbcare"}
    assert "DBCARE is left out: `cost` must allow at most 50,000,000 epochs" in " ".join(str(planned).split())


def test_gaps_beyond_those_dbcare_is_made_for_leave_it_out_there() -> None:
    """A study without bounds runs DBCARE with a largest gap of 1, so a plan must not show it with another."""
    planned = plan(2, cost=1e-2, sigma=1.0, gaps=[0.5, 1.0, 2.0], runs=500)
    assert [outlook.gap for outlook in planned.of("dbcare")] == [0.5, 1.0]
    note = "it assumes gaps of at most 1 unless the range of rewards is stated"
    assert planned.left_out == {"dbcare": note}
    assert f"DBCARE is left out at some gaps: {note}." in " ".join(str(planned).split())
    assert str(planned).count("*") == 4  # one star per section, and its explanation
    everywhere = plan(2, cost=1e-2, sigma=1.0, bounds=(-3.0, 3.0), gaps=[0.5, 1.0, 2.0], runs=50)
    assert [outlook.gap for outlook in everywhere.of("dbcare")] == [0.5, 1.0, 2.0]
    with pytest.raises(InvalidValueError, match=f"`policies` cannot include dbcare: {note}"):
        plan(2, cost=1e-2, sigma=1.0, gaps=2.0, policies="dbcare")


def test_cost_is_price_over_value() -> None:
    money = plan(2, price=2.0, value=1_000, sigma=1.0, gaps=0.5, runs=200)
    units = plan(2, cost=2e-3, sigma=1.0, gaps=0.5, runs=200)
    for one, other in zip(money.outlooks, units.outlooks, strict=True):
        assert one.total_loss == pytest.approx(1_000 * other.total_loss)
        assert one.spend == pytest.approx(1_000 * other.spend)
    assert str(units).startswith("2 arms, sigma 1; an observation costs 0.002 units of reward\n")
    assert str(money).startswith("2 arms, sigma 1; an observation costs 2, a unit of reward is worth 1,000\n")
    assert "units of the loss" in str(units)
    assert "units of the loss" not in str(money)


@pytest.mark.parametrize(
    ("rewards", "gaps"),
    [
        ({"sigma": 0.5}, (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)),
        ({"sigma": 0.5, "bounds": (0.0, 0.2)}, (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)),
        ({"bounds": (-0.5, 0.5)}, (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)),
        ({"binary": True}, (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)),
        ({"baseline": 0.5}, (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)),
        ({"baseline": 0.04}, (0.002, 0.005, 0.01, 0.02, 0.05)),
        ({"baseline": 0.001}, (0.00005, 0.0001, 0.0002, 0.0005, 0.001)),
        ({"baseline": 0.8}, (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)),
    ],
)
def test_default_gaps_cover_the_range(rewards: dict[str, Any], gaps: tuple[float, ...]) -> None:
    assert plan(2, cost=1e-3, policies="decide-now", **rewards).gaps == gaps


def test_the_default_runs_are_reproducible() -> None:
    one, again = (plan(2, cost=2e-2, baseline=0.3, gaps=[0.4, 0.5], seed=4, threads=width) for width in (1, 2))
    assert one.runs is None
    assert one.records() == again.records()
    assert one.records() != plan(2, cost=2e-2, baseline=0.3, gaps=[0.4, 0.5], seed=5).records()


def test_a_stated_rate_is_safe_if_the_best_arm_is_far_better() -> None:
    """Within 4 times what the largest sigma, 1/2, loses; if taken for certain, it is not. By 5 s.e.: 1 in 3e6."""
    far: dict[str, Any] = {"arms": 20, "cost": 1e-4, "baseline": 0.05, "gaps": 0.5, "policies": "breakeven"}
    learned, trusted = (plan(**far, sigma_pulls=weight, runs=4_000, seed=1).outlooks[0] for weight in (6.0, math.inf))
    risk = Risk.simple_regret(1e-4)
    known = Breakeven(risk, 20, 0.5, sigma_pulls=math.inf, bound=1.0, largest_sigma=0.5)
    bounded = evaluate(known, Bandit.bernoulli([0.55] + [0.05] * 19), runs=4_000, seed=1)
    assert learned.total_loss + 5 * learned.standard_error < 4 * bounded.risk
    assert trusted.total_loss - 5 * trusted.standard_error > 4 * bounded.risk


def test_advice_does_not_claim_more_than_the_runs_show() -> None:
    """Two runs are far too few to compare policies, or to say that no choice is wrong."""
    planned = plan(2, price=0.02, value=5_000, baseline=0.5, gaps=[0.2, 0.4], runs=2)
    assert planned.advice[0] == "It is too close to call at every gap shown."
    assert "<84.2%" in str(planned)  # (1 - 0.025^(1/2)): the exact 95% limit after no error in two runs


def test_a_test_of_two_rates_near_1_is_quick() -> None:
    """About 1e8 observations per arm."""
    planned = plan(2, price=0.02, value=5_000, baseline=0.999, gaps=1e-5, policies=["fixed-size-test", "decide-now"])
    first = planned.of("fixed-size-test")[0]
    assert first.observations > 1e8
    assert first.evaluation.engine == "exact"
    assert first.chance_wrong == pytest.approx(stats.norm.sf(stats.norm.isf(0.025) + stats.norm.isf(0.2)), rel=0.05)


def test_advice_says_where_experimenting_pays() -> None:
    planned = plan(5, price=0.4, value=20_000, sigma=0.5, gaps=[0.01, 0.1, 0.5], runs=8_000)
    worth, against, spending = planned.advice
    assert worth.startswith("Experimenting pays at gaps from 0.1 to 0.5: Breakeven loses up to ")
    more = find(planned, "breakeven", 0.01).total_loss - find(planned, "decide-now", 0.01).total_loss
    assert worth.endswith(f"It does not pay at a gap of 0.01, where it loses up to {more:,.2f} more.")
    shares = [
        100.0 * (1.0 - find(planned, "breakeven", gap).total_loss / find(planned, "best-fixed-size", gap).total_loss)
        for gap in planned.gaps
    ]
    assert shares[0] < 0.0 < shares[1] < shares[2]
    assert against == (
        f"Breakeven loses {shares[1]:.0f}% to {shares[2]:.0f}% less than the best fixed size, which is told the gap, "
        f"at gaps from 0.1 to 0.5. The best fixed size loses {100.0 / (1.0 - 100.0 / shares[0]):.0f}% less at a gap of "
        "0.01."
    )
    most = Breakeven(Risk.simple_regret(price=0.4, value=20_000), 5, 0.5).max_spend
    assert planned.max_spend == 20_000 * most
    usual = 0.4 * max(outlook.evaluation.pulls.quantiles[0.95] for outlook in planned.of("breakeven"))
    assert spending == (
        f"Breakeven never spends more than {20_000 * most:,.0f} if trials are made one at a time, whatever the truth; "
        f"at the gaps shown it spends at most {usual:,.2f} in 95% of runs."
    )


def test_advice_without_a_limit_on_spending() -> None:
    """A policy that learns the spread of unbounded rewards promises none, in words and in JSON."""
    planned = plan(2, price=0.4, value=100.0, sigma=0.5, gaps=0.5, runs=20)
    learns = Breakeven(Risk.simple_regret(price=0.4, value=100.0), 2, sigma=None)
    assert learns.max_spend == math.inf
    outlooks = [
        replace(outlook, policy=learns) if outlook.name == "breakeven" else outlook for outlook in planned.outlooks
    ]
    unlimited = replace(planned, outlooks=tuple(outlooks))
    assert unlimited.max_spend == math.inf
    assert unlimited.advice[-1].startswith("No limit on what Breakeven spends is known in advance; at the gaps shown ")
    assert "inf" not in str(unlimited)
    assert json.loads(json.dumps(unlimited.to_dict(), allow_nan=False))["max_spend"] is None
    assert planned.to_dict()["max_spend"] == planned.max_spend


def test_advice_says_when_the_best_size_is_better() -> None:
    """Told the gap, a test needs one pull per arm; Breakeven makes more if the stated sigma counts for little."""
    planned = plan(2, price=0.15, value=30.0, sigma=0.5, sigma_pulls=1, gaps=[0.3, 3.0], runs=4_000)
    sized = planned.of("best-fixed-size")
    assert sized[1].observations == 2.0
    worse = [
        one.gap for one, test in zip(planned.of("breakeven"), sized, strict=True)
        if one.total_loss > test.total_loss + 2 * (one.standard_error + test.standard_error)
    ]  # fmt: skip
    assert worse == [3.0]
    assert " The best fixed size loses " in planned.advice[1]
    assert planned.advice[1].endswith("% less at a gap of 3.")


def test_advice_says_when_to_decide_now() -> None:
    """If one pull per arm costs more than a guess can lose at all, or than it loses at the gaps compared."""
    hopeless = plan(2, price=3_000, value=2_000, baseline=0.3, gaps=[0.1, 0.5], runs=100)
    assert hopeless.max_spend == 0.0
    assert hopeless.advice == (
        "Experimenting is not worth it at all: decide now. One observation of each arm would cost 6,000, "
        "and a choice without data loses no more.",
        "Breakeven spends nothing.",
    )
    small = plan(3, price=1.0, value=100, sigma=1.0, gaps=[0.001, 0.01], runs=1_000)
    assert small.advice[0].startswith("Experimenting is not worth it at any of these gaps: decide now. Breakeven would")
    assert plan(3, price=1.0, value=100, sigma=1.0, gaps=0.01, policies="decide-now").advice == ()


def test_the_text_fits_and_numbers_are_plain() -> None:
    planned = plan(5, price=0.4, value=20_000, sigma=0.5)
    lines = str(planned).splitlines()
    assert max(map(len, lines[:-2])) <= 80  # the last two are to be copied whole
    assert lines[-3:] == ["Run it with Breakeven:", f"  {planned.create_command}", f"  {planned.create_call}"]
    assert "\x1b" not in str(planned)
    assert str(planned).count("*") == len(planned.gaps) + 1  # one star per section, and its explanation
    plain = json.loads(json.dumps(planned.to_dict()))
    assert [
        {name: row[name] for name in record} for row, record in zip(plain["rows"], planned.records(), strict=True)
    ] == (planned.records())
    assert [row["gap"] for row in plain["rows"] if row["is_lowest"]] == list(planned.gaps)
    assert plain["max_spend"] == planned.max_spend
    assert plain["prices"] == [pytest.approx(0.4)] * 5
    assert str(Money(1_234_567.8, "")) == "1,234,568"
    assert (str(Money(999.99, "")), str(Money(999.996, ""))) == ("999.99", "1,000")
    assert (str(Money(2.5e-5, "USD")), Money(2.5e-5, "USD").stated()) == ("0.000025 USD", "0.000025 USD")
    assert (Money(2e12, "VND").stated(), Money(2e12, "VND").rough()) == (2 * ("2,000,000,000,000 VND",))
    assert (str(Money(2.5e-5, None)), str(Money(math.inf, "USD"))) == ("2.5e-05", "inf USD")
    assert [format_percent(share) for share in (0.0, 0.0123, 0.99996, 1.0)] == ["<0.1%", "1.2%", ">99.9%", "100.0%"]


def test_a_wide_table_is_not_truncated() -> None:
    text = str(plan(2, price=1e6, value=1e12, sigma=0.5, gaps=[0.0012345], runs=20))
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert "0.0012345" in text


def test_plot(tmp_path: Path) -> None:
    planned = plan(3, price=1.0, value=1_000, baseline=0.2, gaps=[0.05, 0.2, 0.21], runs=50)
    png, svg, pdf = (tmp_path / "new" / f"plan.{kind}" for kind in ("png", "svg", "PDF"))
    for path in (png, svg, pdf):
        planned.plot(path)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert pdf.read_bytes().startswith(b"%PDF")
    first = svg.read_bytes()
    planned.plot(str(svg))
    assert svg.read_bytes() == first
    with pytest.raises(InvalidValueError, match=r"`path` must be one of \.png, \.svg, \.pdf but got '\.doc'"):
        planned.plot(tmp_path / "plan.doc")


VALID: dict[str, Any] = {"arms": 3, "price": 0.4, "value": 100.0, "sigma": 0.5, "runs": 10}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"price": -1.0}, "`price` must be positive but got -1.0."),
        ({"price": [1.0, 2.0]}, "`price` must have one entry per arm (3) but got 2."),
        ({"value": 0}, "`value` must be positive but got 0.0."),
        ({"value": None}, "Pass `cost`, or both `price` and `value`, but got price=0.4, value=None."),
        ({"cost": 1e-3}, "Pass `cost`, or `price` and `value`, not both."),
        ({"arms": 1}, "`arms` must be at least 2 but got 1."),
        ({"sigma": 0.0}, "`sigma` must be positive but got 0.0."),
        (
            {"sigma": None},
            "A plan needs to know how much rewards vary: pass `sigma`, such as a quarter of the range that most "
            "rewards lie in, or `baseline`, `bounds` or `binary`; only a study can learn it.",
        ),
        (
            {"baseline": 0.1},
            "State the spread of the rewards in one way but got sigma=0.5 and baseline=0.1; only `sigma` and "
            "`bounds` go together.",
        ),
        ({"sigma": None, "baseline": 1.0}, "`baseline` must lie strictly between 0 and 1 but got 1.0."),
        ({"sigma_pulls": 0}, "`sigma_pulls` must be positive but got 0.0."),
        ({"bounds": (1.0, 0.0)}, "`bounds` must be two numbers, the lower one first, but got 1 and 0."),
        ({"price": {"A": 1.0, "B": 2.0}}, "`price` is given by name, so `arms` must be names, not 3."),
        ({"arms": ["A", "B"], "price": {"A": 1.0}}, "`price` must have an entry for each arm but got none for 'B'."),
        (
            {"arms": ["A", "B"], "price": {"A": 1, "B": 1, "C": 2}},
            "`price` has an entry for 'C', which is not an arm; the arms are A, B.",
        ),
        ({"arms": ["A", "A"]}, "`arms` must be 2 or more different names but got ['A', 'A']."),
        (
            {"arms": 10_000},
            "`arms` must be at most 500 for a plan, which simulates many runs, but got 10000; plan with 500 to see "
            "what to expect.",
        ),
        ({"arms": "AB"}, "`arms` must be a real number but got 'AB'."),
        ({"risk": "regret"}, "`risk` must be one of misidentification, simple_regret but got 'regret'."),
        ({"gaps": []}, "`gaps` must be at least one number but got none."),
        ({"gaps": [0.1, 0.0]}, "`gaps[1]` must be positive but got 0.0."),
        ({"gaps": "0.1"}, "`gaps` must be a real number but got '0.1'."),
        ({"gaps": object}, "`gaps` must be a number or several but got <class 'object'>."),
        (
            {"gaps": [0.5, 2.0], "bounds": (-1.0, 0.0)},
            "`gaps[1]` must be at most 1, as rewards lie between -1 and 0, but got 2.",
        ),
        (
            {"gaps": 1.5, "sigma": None, "binary": True},
            "`gaps` must be at most 1, as rewards lie between 0 and 1, but got 1.5.",
        ),
        (
            {"gaps": 0.95, "sigma": None, "baseline": 0.1},
            "`gaps` must be at most 0.9, as `baseline` is 0.1 and no rate exceeds 1, but got 0.95.",
        ),
        (
            {"gaps": 1e-8},
            "`gaps` must allow a fixed-size test of at most 1e+10 observations per arm but got 1e-08, "
            "which needs 3.9e+16; `policies` can leave the test out.",
        ),
        (
            {"policies": ["breakeven", "ucb"]},
            "`policies` must be one of breakeven, breakeven-racing, breakeven-rounds, dbcare, lucb, kl-lucb, lil-ucb, "
            "ugape, track-and-stop, eb-tci, chick-frazier, kg-star, fixed-size-test, best-fixed-size, "
            "decide-now but got 'ucb'.",
        ),
        ({"policies": []}, "`policies` must be at least one name but got none."),
        ({"policies": 3}, "`policies` must be names of policies but got 3."),
        (
            {"policies": ["dbcare"], "price": [1.0, 1.0, 2.0]},
            "`policies` cannot include dbcare: it needs the same price for all arms.",
        ),
        ({"runs": 0}, "`runs` must be at least 2 but got 0."),
        ({"seed": -1}, "`seed` must be at least 0 but got -1."),
    ],
)
def test_bad_input_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        plan(**(VALID | changes))
    assert str(refused.value) == message


def test_an_outlook_of_a_policy_that_was_not_compared() -> None:
    with pytest.raises(InvalidValueError, match="`policy` must be one of decide-now but got 'dbcare'"):
        plan(**VALID, policies="decide-now").of("dbcare")


def test_a_gap_that_fills_the_range() -> None:
    """It is accepted, although 0.9 + 0.1 and 1 - 0.9 are rounded."""
    assert plan(2, cost=1e-2, baseline=0.9, gaps=0.1, runs=20).gaps == (0.1,)
