"""Invalid arguments: a study refuses them, says why, and stays as it was."""

from __future__ import annotations

import math
from typing import Any

from dbcare.errors import InvalidRewardError, InvalidValueError, StudyExistsError, StudyNotFoundError
from dbcare.studies.study import Study
from tests.suites.studies.checks import Checks, ask_one, catch_error

# Arguments of `create_study`, and how the message about them begins.
INVALID: list[tuple[dict[str, Any], str]] = [
    ({"arms": ["A"]}, "`arms` must be 2 or more different names"),
    ({"arms": ["A", "A"]}, "`arms` must be 2 or more different names"),
    ({"arms": "AB"}, "`arms` must be a sequence of names but got 'AB'"),
    ({"arms": ["A", ""]}, "`arms` must be a string of 1 to 200 printable characters but got ''"),
    ({"price": -1.0}, "`price` must be positive but got -1.0"),
    ({"price": math.nan}, "`price` must be finite but got nan"),
    ({"value": 0.0}, "`value` must be positive but got 0.0"),
    ({"price": None}, "Pass `cost`, or both `price` and `value`, but got price=None"),
    ({"risk": "regret"}, "`risk` must be one of misidentification, simple_regret but got 'regret'"),
    ({"direction": "up"}, "`direction` must be one of maximize, minimize but got 'up'"),
    ({"bounds": (1.0, 0.0), "sigma": None}, "`bounds` must be two numbers, the lower one first, but got 1 and 0"),
    ({"sigma": None, "policy": "dbcare"}, "`sigma` is required here"),
    ({"binary": True}, "State the spread of the rewards in one way"),
    ({"sigma": None, "baseline": 1.0}, "`baseline` must lie strictly between 0 and 1 but got 1.0"),
    ({"sigma": None, "bounds": (0.0, 2.0), "baseline": 0.1}, "State the spread of the rewards in one way"),
    ({"sigma_pulls": 0.0}, "`sigma_pulls` must be positive but got 0.0"),
    ({"sigma_pulls": math.inf, "sigma": None}, "`sigma_pulls` is the weight of a stated spread, and none is stated"),
    ({"bounds": (0.0, 5.0), "cap": 5.0}, "`cap` must lie between the bounds 0 and 5 but got 5"),
    ({"binary": True, "sigma": None, "cap": 0.5}, "`cap` is for rewards that vary widely, not for rewards of 0 or 1"),
    ({"price": {"A": 0.4}}, "`price` must have an entry for each arm but got none for 'B'"),
    ({"value": [1.0, 2.0]}, "`value` must be one number but got [1.0, 2.0]; if arms differ in value, multiply"),
    ({"max_spend": 0.0}, "`max_spend` must be positive but got 0.0"),
    ({"timeout_reward": 2.0, "bounds": (0.0, 1.0)}, "`timeout_reward` must lie within the bounds 0 to 1 but got 2"),
    ({"blocks": ["q1", "q2", "q1"]}, "`blocks` must be different names but got 'q1' twice."),
    ({"blocks": ["q1", ""]}, "`blocks` must be a string of 1 to 200 printable characters but got ''"),
    ({"blocks": "q1"}, "`blocks` must be a number of blocks or a sequence of names but got 'q1'"),
    ({"blocks": 1}, "`blocks` must be at least 2 but got 1"),
    ({"blocks": 100_001}, "`blocks` must be at most 100000 but got 100001"),
    (
        {"blocks": 100_000, "arms": [f"arm {number}" for number in range(11)]},
        "`blocks` times arms must be at most 1,000,000 but got 100,000 times 11",
    ),
    ({"blocks": 5, "rounds": True}, "Pass `rounds` or `blocks`, not both, but got blocks=5"),
    ({"blocks": 5, "policy": "dbcare"}, "`blocks` requires a policy that compares arms within blocks"),
    ({"rounds": True, "policy": "dbcare"}, "`rounds` requires a policy that compares arms within blocks"),
    ({"rounds": True, "arms": [f"arm {number}" for number in range(101)]}, "`arms` must be at most 100 for rounds"),
    ({"only_these_blocks": True}, "`only_these_blocks` requires `blocks`."),
    ({"name": ""}, "`name` must be a string of 1 to 200 printable characters but got ''"),
    ({"name": "a/b"}, "`name` must not contain a slash, or be . or .., but got 'a/b'"),
    ({"name": "a\0b"}, "`name` must be a string of 1 to 200 printable characters but got 'a\\x00b'"),
    ({"name": "x" * 10_000}, "`name` must be a string of 1 to 200 printable characters"),
]


class Refusals(Checks):
    """Messages say what must hold and what was passed instead."""

    def test_invalid_settings(self) -> None:
        """No study is created with an invalid setting."""
        valid: dict[str, Any] = {"arms": ["A", "B"], "cost": None, "price": 0.4, "value": 20_000, "sigma": 0.5}
        for change, beginning in INVALID:
            settings = valid | change
            message = catch_error(InvalidValueError, lambda settings=settings: self.make_study(**settings))  # type: ignore[misc]  # a lambda with a default
            assert message.startswith(beginning), f"{change}: {beginning!r} was expected but got {message!r}"

    def test_an_unknown_policy(self) -> None:
        """The message lists the policies that can be used; there may be more than those that ship."""
        message = catch_error(InvalidValueError, lambda: self.make_study(policy="no such policy"))
        assert message.startswith("`policy` must be one of ")
        assert message.endswith(" but got 'no such policy'.")
        assert all(policy in message for policy in self.policies)

    def test_a_name_that_is_taken(self) -> None:
        """The first study stays as it was."""
        study = self.make_study()
        ask_one(study)
        catch_error(StudyExistsError, lambda: self.make_study(name=study.name))
        assert study.status().asked == 1

    def test_invalid_rewards(self) -> None:
        """The message names trial and arm, and the trial still waits for its reward."""
        study = self.make_study(sigma=None, bounds=(0.0, 1.0))
        trial = ask_one(study)
        invalid: list[tuple[Any, str]] = [
            (1.5, "`reward` must lie within the bounds 0 to 1 but got 1.5."),
            (math.nan, "`reward` must be finite but got nan."),
            ("many", "`reward` must be a real number but got 'many'."),
        ]
        for reward, reason in invalid:
            message = catch_error(InvalidRewardError, lambda reward=reward: study.tell(trial, reward))  # type: ignore[misc]  # a lambda with a default
            assert message == f"Trial 1, of A: {reason}"
            message = catch_error(InvalidRewardError, lambda reward=reward: study.tell(1, reward))  # type: ignore[misc]  # a lambda with a default
            assert message.startswith("Trial 1")
            assert message.endswith(reason)
        message = catch_error(StudyNotFoundError, lambda: study.tell(7, 0.5))
        assert message == "There is no trial 7; trials asked so far: 1."
        assert study.status().waiting == 1
        study.tell(trial, True)
        assert study.status().arms[0].mean == 1.0

    def test_invalid_arguments_of_methods(self) -> None:
        """The study stays as it was."""
        study = self.make_study()
        study.ask(2)
        for attempt, beginning in _list_attempts(study):
            message = catch_error(InvalidValueError, attempt)
            assert message.startswith(beginning), f"{beginning!r} was expected but got {message!r}"
        status = study.status()
        assert (status.asked, status.counted, status.waiting, status.state) == (2, 0, 2, "running")


def _list_attempts(study: Study) -> list[tuple[Any, str]]:
    """Return calls with invalid arguments, and how the message about each begins."""
    untyped: Any = study  # for arguments of the wrong type
    return [
        (lambda: study.retire("D"), "`arm` must be one of A, B, C but got 'D'"),
        (lambda: study.retire(""), "`arm` must be one of A, B, C but got ''"),
        (lambda: study.retire("A", ""), "`reason` must be a string of 1 to 1000 printable characters but got ''"),
        (lambda: study.stop("line\nbreak"), "`reason` must be a string"),
        (lambda: study.add([("A", 0.0), ("D", 0.0)]), "`arm` must be one of A, B, C but got 'D'"),
        (lambda: study.add([("A", 0.0), ("B", math.inf)]), "`reward` must be finite but got inf"),
        (lambda: study.ask(0), "`n` must be at least 1 but got 0"),
        (lambda: untyped.ask("two"), "`n` must be a real number but got 'two'"),
        (lambda: study.ask(worker=""), "`worker` must be a string"),
        (lambda: study.ask(key=""), "`key` must be a string"),
        (lambda: study.ask(timeout_reward=math.nan), "`timeout_reward` must be finite but got nan"),
        *((lambda lease=lease: study.ask(lease=lease), "`lease` must be") for lease in ("soon", "5", "-3s", 0.0)),
        (lambda: study.tell(1), "Pass either `reward` or failed=True but got None and False."),
        (lambda: study.tell(1, 0.0, failed=True), "Pass either `reward` or failed=True but got 0.0 and True."),
        (lambda: study.tell(0, 1.0), "`trial` must be at least 1 but got 0"),
        (lambda: untyped.tell("1", 1.0), "`trial` must be a real number but got '1'"),
        (lambda: untyped.tell_many([(1, None)]), "`reward` of trial 1 must be a real number but got None"),
    ]
