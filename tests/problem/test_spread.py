"""The spread of the rewards: one statement, what follows from it, and how a study describes it."""

import math
from typing import Any

import pytest

from dbcare.errors import InvalidRewardError, InvalidValueError
from dbcare.problem.spread import Spread
from dbcare.studies.results.words import describe_rewards, explain_learning
from dbcare.studies.settings import Settings

MONEY: dict[str, Any] = {"price": 0.5, "value": 1_000.0, "currency": "EUR"}


@pytest.mark.parametrize(
    ("statement", "guess", "certain", "limits"),
    [
        ({}, None, None, None),
        ({"sigma": 3.0}, 3.0, 3.0, None),
        ({"baseline": 0.1}, 0.3, 0.5, (0.0, 1.0)),  # sqrt(0.1 * 0.9), and at most 1/2
        ({"binary": True}, 0.5, 0.5, (0.0, 1.0)),
        ({"bounds": (-1, 5)}, 3.0, 3.0, (-1.0, 5.0)),
        ({"bounds": (-1, 5), "sigma": 0.2}, 0.2, 0.2, (-1.0, 5.0)),
    ],
)
def test_what_follows_from_a_statement(
    statement: dict[str, Any], guess: float | None, certain: float | None, limits: tuple[float, float] | None
) -> None:
    spread = Spread(**statement)
    assert spread.guess == (None if guess is None else pytest.approx(guess, rel=1e-15))
    assert (spread.certain, spread.range, spread.is_stated) == (certain, limits, bool(statement))
    assert spread.width == (None if limits is None else limits[1] - limits[0])
    assert spread.largest == (None if limits is None else (limits[1] - limits[0]) / 2.0)
    assert spread.sigma_pulls == 6.0


@pytest.mark.parametrize(
    ("statement", "beginning"),
    [
        ({"baseline": 0.0}, "`baseline` must lie strictly between 0 and 1 but got 0.0."),
        ({"baseline": 1.0}, "`baseline` must lie strictly between 0 and 1 but got 1.0."),
        ({"baseline": math.nan}, "`baseline` must be finite but got nan."),
        (
            {"baseline": 0.1, "sigma": 1.0},
            "State the spread of the rewards in one way but got sigma=1 and base",
        ),
        ({"baseline": 0.1, "bounds": (0, 2)}, "State the spread of the rewards in one way but got bounds=0,2 and base"),
        ({"baseline": 0.1, "binary": True}, "State the spread of the rewards in one way but got baseline=0.1 and bin"),
        ({"binary": True, "sigma": 0.5}, "State the spread of the rewards in one way but got sigma=0.5 and binary"),
        ({"sigma": -1.0}, "`sigma` must be positive but got -1.0."),
        ({"bounds": (1, 0)}, "`bounds` must be two numbers, the lower one first, but got 1 and 0."),
        ({"sigma": 1.0, "sigma_pulls": 0}, "`sigma_pulls` must be positive but got 0.0."),
        ({"sigma": 1.0, "sigma_pulls": -math.inf}, "`sigma_pulls` must be finite but got -inf."),
        ({"sigma": 1.0, "sigma_pulls": math.nan}, "`sigma_pulls` must be finite but got nan."),
        (
            {"sigma_pulls": math.inf},
            "`sigma_pulls` is the weight of a stated spread, and none is stated: state one, or leave it out; got inf.",
        ),
        (
            {"sigma_pulls": 3},
            "`sigma_pulls` is the weight of a stated spread, and none is stated: state one, or leave it out; got 3.",
        ),
    ],
)
def test_statements_that_cannot_be(statement: dict[str, Any], beginning: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        Spread(**statement)
    assert str(caught.value).startswith(beginning)


def test_rewards_outside_their_range_are_refused() -> None:
    for spread, reward in ((Spread(baseline=0.1), 0.5), (Spread(bounds=(0, 2), sigma=1.0), 2.5)):
        with pytest.raises(InvalidRewardError, match=f"but got {reward}"):
            spread.check_reward("reward", reward)
    Spread(sigma=1.0).check_reward("reward", 100.0)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ({}, "spread learned from them"),
        ({"cap": 500}, "spread learned from them, capped at 500"),
        ({"binary": True}, "0 or 1"),
        ({"baseline": 0.04}, "0 or 1, usually about 4%"),
        ({"baseline": 0.045, "sigma_pulls": 3}, "0 or 1, usually about 4.5% (a guess worth 3 rewards)"),
        ({"sigma": 0.5}, "standard deviation about 0.5 (a guess)"),
        ({"sigma": 0.5, "sigma_pulls": 3}, "standard deviation about 0.5 (a guess worth 3 rewards)"),
        ({"sigma": 0.5, "sigma_pulls": math.inf}, "standard deviation 0.5 (known for certain)"),
        ({"sigma": 0.5, "policy": "dbcare"}, "standard deviation 0.5"),
        ({"bounds": (-1, 5)}, "-1 to 5"),
        ({"bounds": (0, 5), "sigma": 0.5, "cap": 3}, "0 to 5, standard deviation about 0.5 (a guess), capped at 3"),
    ],
)
def test_rewards_in_words(statement: dict[str, Any], words: str) -> None:
    assert describe_rewards(Settings.from_options(["A", "B"], **MONEY, **statement)) == words


def test_what_is_promised_if_the_spread_is_learned() -> None:
    """A wrong choice cannot lose more than its value, so that limits spending; a gap has no limit."""
    learned = "Nothing is stated about the spread of the rewards, so the study learns it from them."

    def explain(**options: Any) -> str | None:
        return explain_learning(Settings.from_options(["A", "B"], **MONEY, **options), "--max-spend")

    assert explain(sigma=1.0) is None
    assert explain() == f"{learned} No limit on spending is promised unless you set --max-spend."
    assert explain(max_spend=20) == f"{learned} It stops before it spends more than 20.00 EUR, pending trials aside."
    limited = explain(risk="misidentification") or ""
    amount = float(
        limited.removeprefix(f"{learned} It stops before it spends more than ").removesuffix(
            " EUR, pending trials aside."
        )
    )
    assert 500.0 <= amount < 510.0  # half the value, which is what a coin flip loses, and a few trials
