"""What a study refuses, and how it says so; nothing is changed by what is refused."""

from __future__ import annotations

import math
from typing import Any

from dbcare.errors import InvalidRewardError, InvalidValueError, StudyExistsError, StudyNotFoundError
from dbcare.live.study import Study
from dbcare.testing.studies.checks import Checks, asked, refused

# Arguments of `create_study`, and how the refusal begins.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"arms": ["A"]}, "`arms` must be 2 or more different names"),
    ({"arms": ["A", "A"]}, "`arms` must be 2 or more different names"),
    ({"arms": "AB"}, "`arms` must be a sequence of names but got 'AB'"),
    ({"arms": ["A", ""]}, "`arms` must be a string of 1 to 200 printable characters but got ''"),
    ({"price": -1.0}, "`price` must be positive but got -1.0"),
    ({"price": math.nan}, "`price` must be finite but got nan"),
    ({"value": 0.0}, "`value` must be positive but got 0.0"),
    ({"price": None}, "`cost`, or both `price` and `value`, must be given"),
    ({"risk": "regret"}, "`risk` must be one of misidentification, simple_regret but got 'regret'"),
    ({"policy": "ucb"}, "`policy` must be one of breakeven, breakeven-racing, dbcare but got 'ucb'"),
    ({"direction": "up"}, "`direction` must be one of maximize, minimize but got 'up'"),
    ({"bounds": (1.0, 0.0), "sigma": None}, "`bounds` must be two numbers, the lower one first, but got 1 and 0"),
    ({"sigma": None}, "`bound` must be given for simple regret where sigma is unknown"),
    ({"sigma": None, "policy": "dbcare"}, "`sigma` is required here; Breakeven accepts None"),
    ({"binary": True}, "`binary` must stand without sigma and bounds but got sigma=0.5"),
    ({"max_spend": 0.0}, "`max_spend` must be positive but got 0.0"),
    ({"timeout_reward": 2.0, "bounds": (0.0, 1.0)}, "`timeout_reward` must lie within the bounds 0 to 1 but got 2"),
    ({"name": ""}, "`name` must be a string of 1 to 200 printable characters but got ''"),
    ({"name": "a/b"}, "`name` must have no slash, and not be . or .., but got 'a/b'"),
    ({"name": "a\0b"}, "`name` must be a string of 1 to 200 printable characters but got 'a\\x00b'"),
    ({"name": "x" * 10_000}, "`name` must be a string of 1 to 200 printable characters"),
]


class Refusals(Checks):
    """Errors say what must hold and what was given."""

    def test_refused_when_created(self) -> None:
        """Whatever cannot be meant."""
        fine: dict[str, Any] = {"arms": ["A", "B"], "cost": None, "price": 0.4, "value": 20_000, "sigma": 0.5}
        for change, words in WRONG:
            said = refused(InvalidValueError, lambda change=change: self.study(**fine | change))  # type: ignore[misc]
            assert said.startswith(words), f"{change} must be refused with {words!r} but got {said!r}"

    def test_created_twice(self) -> None:
        """The first one stays."""
        study = self.study()
        asked(study)
        refused(StudyExistsError, lambda: self.study(name=study.name))
        assert study.status().asked == 1

    def test_refused_when_told(self) -> None:
        """Naming trial and arm; the trial still waits for its reward."""
        study = self.study(sigma=None, bounds=(0.0, 1.0))
        trial = asked(study)
        wrong: list[tuple[Any, str]] = [
            (1.5, "`reward` must lie within the bounds 0 to 1 but got 1.5."),
            (math.nan, "`reward` must be finite but got nan."),
            ("many", "`reward` must be a real number but got 'many'."),
        ]
        for reward, words in wrong:
            said = refused(InvalidRewardError, lambda reward=reward: study.tell(trial, reward))  # type: ignore[misc]
            assert said == f"Trial 1, of A: {words}"
            said = refused(InvalidRewardError, lambda reward=reward: study.tell(1, reward))  # type: ignore[misc]
            assert said.startswith("Trial 1")
            assert said.endswith(words)
        said = refused(StudyNotFoundError, lambda: study.tell(7, 0.5))
        assert said == "`trial` must be one of the 1 that were asked but got 7."
        assert study.status().waiting == 1
        study.tell(trial, True)
        assert study.status().arms[0].mean == 1.0

    def test_refused_otherwise(self) -> None:
        """Arguments that cannot be meant."""
        study = self.study()
        study.ask(2)
        for attempt, words in _attempts(study):
            said = refused(InvalidValueError, attempt)
            assert said.startswith(words), f"{words!r} was expected but got {said!r}"
        status = study.status()
        assert (status.asked, status.counted, status.waiting, status.state) == (2, 0, 2, "running")


def _attempts(study: Study) -> list[tuple[Any, str]]:
    anything: Any = study  # what types would refuse
    return [
        (lambda: study.retire("D"), "`arm` must be one of A, B, C but got 'D'"),
        (lambda: study.retire(""), "`arm` must be one of A, B, C but got ''"),
        (lambda: study.retire("A", ""), "`reason` must be a string of 1 to 1000 printable characters but got ''"),
        (lambda: study.stop("line\nbreak"), "`reason` must be a string"),
        (lambda: study.add([("A", 0.0), ("D", 0.0)]), "`arm` must be one of A, B, C but got 'D'"),
        (lambda: study.add([("A", 0.0), ("B", math.inf)]), "`reward` must be finite but got inf"),
        (lambda: study.ask(0), "`n` must be at least 1 but got 0"),
        (lambda: anything.ask("two"), "`n` must be a real number but got 'two'"),
        (lambda: study.ask(worker=""), "`worker` must be a string"),
        (lambda: study.ask(key=""), "`key` must be a string"),
        (lambda: study.ask(timeout_reward=math.nan), "`timeout_reward` must be finite but got nan"),
        *((lambda lease=lease: study.ask(lease=lease), "`lease` must be") for lease in ("soon", "5", "-3s", 0.0)),
        (lambda: study.tell(1), "Either `reward` or failed=True must be given but got None and False."),
        (lambda: study.tell(1, 0.0, failed=True), "Either `reward` or failed=True must be given but got 0.0 and True."),
        (lambda: study.tell(0, 1.0), "`trial` must be at least 1 but got 0"),
        (lambda: anything.tell("1", 1.0), "`trial` must be a real number but got '1'"),
        (lambda: anything.tell_many([(1, None)]), "`reward` of trial 1 must be a real number but got None"),
    ]
