"""Plans with a time scale, a run that must wait, and an arm in use today."""

import math
from typing import Any

import pytest

from dbcare import Bandit, Breakeven, Risk, evaluate, plan
from dbcare.base.times import format_duration, spell_duration
from dbcare.errors import InvalidValueError
from dbcare.policies import Uniform

BASE: dict[str, Any] = {"price": 0.4, "value": 20_000, "sigma": 0.5, "gaps": [0.02, 0.2], "runs": 400, "seed": 2}


def test_durations_are_observations_divided_by_those_of_a_day() -> None:
    planned, plain = plan(3, **BASE, per_day=50), plan(3, **BASE)
    assert "days" not in plain.records()[0]
    for row, other, outlook in zip(planned.records(), plain.records(), planned.outlooks, strict=True):
        assert row.pop("days") == outlook.observations / 50
        assert row.pop("days_95") == outlook.evaluation.pulls.quantiles[0.95] / 50
        assert row == other
    longest = planned.of("breakeven")[0]
    assert longest.observations == max(outlook.observations for outlook in planned.of("breakeven"))
    assert planned.advice[-1] == (
        f"At 50 observations a day, a run takes about {longest.observations / 50:.2g} days at a gap of 0.02, where it "
        f"takes longest; in 95% of runs at most {longest.days_95:.2g} days."
    )
    assert " days " in str(planned).splitlines()[2]
    assert " days " not in str(plain).splitlines()[2]
    assert planned.to_dict()["per_day"] == 50.0


@pytest.mark.parametrize(
    ("seconds", "short", "long"),
    [
        (0.2, "0 s", "0.2 seconds"),
        (59.0, "59 s", "59 seconds"),
        (60.0, "1 min", "1 minute"),
        (9_000.0, "2 h", "2.5 hours"),
        (86_400.0 * 9.96, "10 d", "10 days"),
        (86_400.0 * 1_234, "1234 d", "1,234 days"),
    ],
)
def test_durations_as_people_read_them(seconds: float, short: str, long: str) -> None:
    assert (format_duration(seconds), spell_duration(seconds)) == (short, long)


def test_waiting_is_planned_and_priced() -> None:
    """Against `evaluate` of the same policy, and the difference of the two totals."""
    waiting, free = plan(3, **BASE, not_before=600), plan(3, **BASE)
    risk = Risk.simple_regret(price=0.4, value=20_000)
    for gap, outlook in zip((0.02, 0.2), waiting.of("breakeven"), strict=True):
        assert outlook.policy == Breakeven(risk, 3, 0.5, not_before=600)
        expected = evaluate(outlook.policy, Bandit.one_sparse(3, gap, 0.5), runs=400, seed=2)
        assert outlook.total_loss == 20_000 * expected.risk
        assert outlook.observations >= 600
    assert [outlook.record() for outlook in waiting.without_waiting] == [
        outlook.record() for outlook in free.of("breakeven")
    ]
    assert waiting.left_out == {"dbcare": "it cannot be told not to stop before a number of observations"}
    # The test needs 2 (0.5 * 2.8016 / 0.2)^2 = 98.1 observations of each arm, but has to make 200.
    assert waiting.of("fixed-size-test")[1].policy == Uniform(3, 200)
    assert free.of("fixed-size-test")[1].policy == Uniform(3, 99)
    more = waiting.of("breakeven")[1].total_loss - free.of("breakeven")[1].largest_loss
    assert more > 100.0
    priced = next(
        sentence for sentence in waiting.advice if sentence.startswith("Not stopping before 600 observations")
    )
    assert f"costs up to {more:,.2f} more at " in priced
    assert waiting.max_spend is not None
    assert waiting.max_spend >= 0.4 * 600
    assert "--not-before 600" in str(waiting.create_command)
    assert "not_before=600" in str(waiting.create_call)
    assert plan(3, **BASE, not_before=0).to_dict() == free.to_dict()


def test_waiting_can_be_given_as_a_duration() -> None:
    days = plan(3, **BASE, not_before="14d", per_day=50)
    assert days.records() == plan(3, **BASE, not_before=700, per_day=50).records()
    assert plan(3, **BASE, not_before="36h", per_day=50.2).setting.not_before == math.ceil(1.5 * 50.2)


def test_waiting_can_save_or_make_no_difference() -> None:
    """A low rate taken for certain, with a best arm that is far better: stopping at once errs far too often."""
    options: dict[str, Any] = {"cost": 1e-4, "baseline": 0.05, "gaps": 0.5, "policies": "breakeven", "runs": 2_000}
    short = plan(20, **options, sigma_pulls=math.inf, not_before=2)
    assert short.advice[-1] == "Not stopping before 2 observations makes no clear difference to the total loss."
    planned = plan(20, **options, sigma_pulls=math.inf, not_before=150)
    [waiting], [free] = planned.of("breakeven"), planned.without_waiting
    assert waiting.total_loss + 5 * (waiting.standard_error + free.standard_error) < free.total_loss
    assert planned.advice[-1].startswith("Not stopping before 150 observations saves up to ")


def test_a_control_is_kept() -> None:
    """Keeping it loses the whole gap, for certain; all other figures stay."""
    planned, plain = plan(["old", "new", "newer"], **BASE, control="new"), plan(["old", "new", "newer"], **BASE)
    for outlook in planned.of("decide-now"):
        assert (outlook.chance_wrong, outlook.observations, outlook.standard_error) == (1.0, 0.0, 0.0)
        assert outlook.total_loss == pytest.approx(20_000 * outlook.gap)
    assert [outlook.record() for outlook in planned.of("breakeven")] == [
        outlook.record() for outlook in plain.of("breakeven")
    ]
    assert plain.of("decide-now")[0].chance_wrong == pytest.approx(2 / 3)
    text = " ".join(str(planned).split())
    assert " keep new " in text
    assert "decide now" not in text
    assert "than keeping new" in planned.advice[0]
    assert planned.advice[1].startswith(
        "If new is the best itself, keeping it loses nothing, and Breakeven loses up to "
    )
    assert "If new is the best itself by the gap, an experiment spends as much, and chooses wrongly as often" in text
    assert planned.if_control_best == ()
    assert {row["label"] for row in planned.to_dict()["rows"] if row["policy"] == "decide-now"} == {"keep new"}
    assert "--control new" in str(planned.create_command)
    assert "control='new'" in str(planned.create_call)


def test_the_best_arm_is_never_the_control() -> None:
    """It matters if arms have prices of their own: here only the first one is dear."""
    options: dict[str, Any] = {"price": [4.0, 0.4, 0.4], "value": 20_000, "sigma": 0.5, "gaps": 0.1, "runs": 2_000}
    first, second = (plan(3, **options, control=name, policies="breakeven").outlooks[0] for name in ("A", "B"))
    risk = Risk.simple_regret(price=[4.0, 0.4, 0.4], value=20_000)
    policy = Breakeven(risk, 3, 0.5)
    for outlook, means in ((first, [0.0, 0.1, 0.0]), (second, [0.1, 0.0, 0.0])):
        assert outlook.total_loss == 20_000 * evaluate(policy, Bandit.gaussian(means, 0.5), runs=2_000).risk


def test_more_arms_than_letters_are_named_as_in_the_study() -> None:
    options: dict[str, Any] = {"cost": 1e-3, "sigma": 1.0, "gaps": 0.5, "policies": "decide-now"}
    assert plan(40, **options, control="arm7").outlooks[0].chance_wrong == 1.0
    with pytest.raises(InvalidValueError, match="`control` requires the names of the arms but got `arms` 101, which"):
        plan(101, **options, control="arm7")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"control": "D"}, "`control` must be one of A, B, C but got 'D'."),
        ({"not_before": "14d"}, "`per_day` is required for a duration but got `not_before` 14d without it."),
        (
            {"not_before": "14", "per_day": 3},
            '`not_before` must be a duration such as "90s", "30m", "2h", "1d" or "2w", or a number of observations, '
            "but got '14'.",
        ),
        ({"not_before": 1.5}, "`not_before` must be a whole number but got 1.5."),
        ({"per_day": -1}, "`per_day` must be positive but got -1.0."),
        (
            {"not_before": 5, "policies": "dbcare"},
            "`policies` cannot include dbcare: it cannot be told not to stop before a number of observations.",
        ),
    ],
)
def test_what_cannot_be_planned(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        plan(3, **(BASE | changes))
    assert str(refused.value) == message
