"""What a live study refuses, and how it says so; nothing is changed by what is refused."""

import math
from typing import Any

import pytest
from studies import study_of

from dbcare.errors import InvalidRewardError, InvalidValueError, StudyNotFoundError
from dbcare.live.create import create_study

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"arms": ["A"]}, "`arms` must be 2 or more different names"),
    ({"arms": ["A", "A"]}, "`arms` must be 2 or more different names"),
    ({"arms": "AB"}, "`arms` must be a sequence of names but got 'AB'"),
    ({"arms": ["A", ""]}, "`arms` must be a text of 1 to 200 printable characters but got ''"),
    ({"price": -1.0}, "`price` must be positive but got -1.0"),
    ({"value": 0.0}, "`value` must be positive but got 0.0"),
    ({"price": None}, "`cost`, or both `price` and `value`, must be given"),
    ({"risk": "regret"}, "`risk` must be one of misidentification, simple_regret but got 'regret'"),
    ({"policy": "ucb"}, "`policy` must be one of breakeven, breakeven-racing, dbcare but got 'ucb'"),
    ({"direction": "up"}, "`direction` must be one of maximize, minimize but got 'up'"),
    ({"bounds": (1.0, 0.0), "sigma": None}, "`bounds` must be two numbers, the lower one first, but got 1 and 0"),
    ({"sigma": None}, "`bound` must be given for simple regret where sigma is unknown"),
    ({"sigma": None, "policy": "dbcare"}, "`sigma` must be known here but got None; Breakeven does without"),
    ({"binary": True}, "`binary` must stand without sigma and bounds but got sigma=0.5"),
    ({"max_spend": 0.0}, "`max_spend` must be positive but got 0.0"),
    ({"timeout_reward": 2.0, "bounds": (0.0, 1.0)}, "`timeout_reward` must lie within the bounds 0 to 1 but got 2"),
    ({"name": ""}, "`name` must be a text of 1 to 200 printable characters but got ''"),
    ({"name": "a/b"}, "`name` must have no slash, and not be . or .., but got 'a/b'"),
    ({"name": "a\0b"}, "`name` must be a text of 1 to 200 printable characters but got 'a\\x00b'"),
    ({"name": "x" * 10_000}, "`name` must be a text of 1 to 200 printable characters"),
    ({"storage": 3}, "`storage` must be an address such as sqlite:///ads.db but got 3"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_refused_when_created(change: dict[str, Any], words: str) -> None:
    settings: dict[str, Any] = {"name": "new", "arms": ["A", "B"], "price": 0.4, "value": 20_000, "sigma": 0.5} | change
    with pytest.raises(InvalidValueError) as caught:
        create_study(**settings)
    assert str(caught.value).startswith(words)


def test_refused_when_told() -> None:
    study = study_of(sigma=None, bounds=(0.0, 1.0))
    trial = study.ask()
    for reward, words in (
        (1.5, "`reward` must lie within the bounds 0 to 1 but got 1.5"),
        (math.nan, "`reward` must be finite"),
        ("many", "`reward` must be a real number but got 'many'"),
    ):
        with pytest.raises(InvalidRewardError, match=f"Trial 1, of A: {words}"):
            study.tell(1, reward)  # type: ignore[arg-type]
    with pytest.raises(StudyNotFoundError, match="`trial` must be one of the 1 that were asked but got 7"):
        study.tell(7, 0.5)
    with pytest.raises(InvalidValueError, match="Either `reward` or failed=True must be given"):
        study.tell(1)
    for lease in ("soon", "5", "-3s", 0.0):
        with pytest.raises(InvalidValueError, match="`lease` must be"):
            study.ask(lease=lease)
    assert trial is not None
    study.tell(trial, True)
    assert study.status().arms[0].mean == 1.0


def test_refused_otherwise() -> None:
    study = study_of()
    study.ask(2)
    for attempt, words in (
        (lambda: study.retire("D"), "`arm` must be one of A, B, C but got 'D'"),
        (lambda: study.retire("A", ""), "`reason` must be a text of 1 to 1000 printable characters but got ''"),
        (lambda: study.stop("line\nbreak"), "`reason` must be a text"),
        (lambda: study.add([("A", 0.0), ("D", 0.0)]), "`arm` must be one of A, B, C but got 'D'"),
        (lambda: study.add([("A", 0.0), ("B", math.inf)]), "`reward` must be finite but got inf"),
        (lambda: study.ask(0), "`n` must be at least 1 but got 0"),
        (lambda: study.ask(worker=""), "`worker` must be a text"),
        (lambda: study.ask(timeout_reward=math.nan), "`timeout_reward` must be finite but got nan"),
        (lambda: study.tell(0, 1.0), "`trial` must be at least 1 but got 0"),
        (lambda: study.tell("1", 1.0), "`trial` must be a real number but got '1'"),  # type: ignore[arg-type]
        (lambda: study.tell_many([(1, None)]), "`reward` of trial 1 must be a real number but got None"),  # type: ignore[list-item]
    ):
        with pytest.raises(InvalidValueError) as caught:
            attempt()
        assert str(caught.value).startswith(words)
    status = study.status()
    assert (status.asked, status.counted, status.waiting) == (2, 0, 2)
