"""Units that come back: each sees one arm and counts once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from dbcare.errors import AlreadyToldError, InvalidValueError
from dbcare.studies.trial import Trial
from tests.suites.studies.checks import NAMES, Checks, ask_one, catch_error

THREADS = 8


class Units(Checks):
    """A unit that comes back gets the trial it has; others are not affected."""

    def test_a_unit_gets_the_trial_it_has(self) -> None:
        """It is the same trial while it is open, and afterwards too, whatever characters the unit has."""
        for unit in ("user-7", " \N{SNOWMAN} "):
            study = self.make_study()
            first = ask_one(study, unit=unit, worker="w")
            assert (first.id, first.unit, first.told) == (1, unit, False)
            assert ask_one(study, unit=unit, lease=None) == first
            assert ask_one(study, unit="another").id == 2
            study.tell(first, 0.5)
            assert ask_one(study, unit=unit) == replace(first, told=True)
            assert study.ask(1, unit=unit) == [replace(first, told=True)]
            assert study.status().asked == 2
            study.tell(ask_one(study, unit=unit), 0.5)
            message = catch_error(AlreadyToldError, partial(study.tell, first, 1.0))
            assert message == f"Trial 1 is already recorded as 0.5 but got 1.0. Unit {unit!r} was counted already."
            rows = [(row.trial, row.unit, row.reward) for row in study.trials()]
            assert rows == [(1, unit, 0.5), (2, "another", None)]

    def test_a_unit_may_have_the_name_of_a_key(self) -> None:
        """A key and a unit of the same name have nothing to do with each other, nor have reasons and descriptions."""
        study = self.make_study()
        study.describe("unit: user-7")
        keyed = ask_one(study, key="user-7")
        unit = ask_one(study, unit="user-7")
        assert (keyed.id, unit.id) == (1, 2)
        assert ask_one(study, key="user-7") == keyed
        assert ask_one(study, unit="user-7") == unit
        assert (keyed.unit, next(study.trials()).unit) == (None, None)

    def test_a_unit_whose_trial_failed_gets_a_new_one(self) -> None:
        """While there is none, it sees the arm it had."""
        study = self.make_study()
        first = ask_one(study, unit="user-7")
        study.tell(first, failed=True)
        study.pause()
        assert ask_one(study, unit="user-7") == replace(first, told=True)
        study.resume()
        second = ask_one(study, unit="user-7")
        assert (second.id, second.told) == (2, False)
        study.tell(second, 0.5)
        assert ask_one(study, unit="user-7") == replace(second, told=True)
        assert study.status().asked == 2

    def test_a_unit_whose_trial_expired_gets_a_new_one(self) -> None:
        """It does unless the trial counts as a reward, or was told after all."""
        study = self.make_study(max_ahead=10)
        for unit in ("gone", "late"):
            ask_one(study, lease=self.lease_seconds, unit=unit)
        zero = ask_one(study, lease=self.lease_seconds, unit="zero", timeout_reward=0.0)
        self.wait_for_expiry()
        assert ask_one(study, unit="zero") == replace(zero, told=True)
        study.tell(2, 1.0)
        late = ask_one(study, unit="late")
        assert (late.id, late.told) == (2, True)
        again = ask_one(study, unit="gone")
        assert (again.id, again.told) == (4, False)

    def test_a_study_that_hands_out_no_trials_still_knows_its_units(self) -> None:
        """Paused or stopped, it gives a unit the arm it had, and a new unit nothing."""
        study = self.make_study()
        told, waiting = ask_one(study, unit="told"), ask_one(study, unit="waiting")
        study.tell(told, 0.5)
        for end in (study.pause, study.stop):
            end()
            assert study.ask(unit="told") == replace(told, told=True)
            assert study.ask(unit="waiting") == waiting
            assert study.ask(unit="new") is None
        assert study.status().asked == 2

    def test_a_unit_of_a_retired_arm_gets_a_new_trial(self) -> None:
        """It is one of another arm; once the study has stopped, there is none."""
        study = self.make_study(max_ahead=10)
        told, waiting = ask_one(study, unit="told"), ask_one(study, unit="waiting")
        study.tell(told, 0.5)
        study.retire(told.arm)
        again = ask_one(study, unit="told")
        assert (again.id, again.told) == (3, False)
        assert again.arm != told.arm
        study.retire(waiting.arm)
        study.stop()
        assert study.ask(unit="waiting") is None

    def test_a_unit_that_asks_many_times_at_once_gets_one_trial(self) -> None:
        """Eight threads ask for the same unit."""
        study = self.make_study(max_ahead=100)
        received: list[Trial | None] = []
        threads = [
            threading.Thread(target=lambda: received.append(study.ask(unit="user-7", lease=None)))
            for _ in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert received == [Trial(1, "A", None, "user-7", tag=next(study.trials()).tag)] * THREADS
        assert study.status().asked == 1

    def test_a_unit_asks_for_one_trial_without_a_key(self) -> None:
        """Anything else is refused, and nothing is asked."""
        study = self.make_study()
        for arguments, expected in (
            ({"n": 2, "unit": "user-7"}, "`n` must be 1 for a `unit` but got 2."),
            ({"unit": "user-7", "key": "k"}, "Pass `key` or `unit`, not both, but got 'k' and 'user-7'."),
            ({"unit": ""}, "`unit` must be a string of 1 to 200 printable characters but got ''."),
            ({"unit": "u" * 201}, "`unit` must be a string of 1 to 200 printable characters but got "),
            ({"unit": "a\nb"}, "`unit` must be a string of 1 to 200 printable characters but got 'a\\nb'."),
        ):
            message = catch_error(InvalidValueError, partial(ask_one, study, **arguments))
            assert message.startswith(expected)
        assert study.status().asked == 0

    def test_units_run_ahead_without_a_limit(self) -> None:
        """More than twice the number of workers may be pending: a hundred units get a trial each."""
        study = self.make_study()
        trials = [ask_one(study, unit=f"user-{number}", lease=None) for number in range(100)]
        assert [trial.id for trial in trials] == list(range(1, 101))
        assert study.ask() is None  # others still wait
        study.set_max_ahead(101)
        assert [study.ask(unit="one more") is None, study.ask(unit="too many") is None] == [False, True]
        assert (study.settings.max_ahead, study.status().max_ahead) == (None, 101)
        waiting = self.make_study(timeout_reward=0.0)
        assert len(waiting.ask(100)) == 100

    def test_every_unit_is_assigned_an_arm(self) -> None:
        """Its own trial's, a new one's, or the winner's; while the study is paused, the fallback or the control."""
        study = self.make_study(control="C")
        first = study.assign("user-7", "B", lease="2d")
        assert (first.reason, first.problem) == ("new trial", None)
        assert first.trial == study.ask(unit="user-7")
        assert study.assign("user-7") == replace(first, reason="own trial")
        study.pause()
        assert study.assign("user-7", "B").arm == first.arm
        new = [study.assign("user-8", fallback) for fallback in ("B", None)]
        assert [(found.arm, found.reason) for found in new] == [("B", "fallback"), ("C", "control")]
        study.resume()
        study.add((name, 10.0 * (name == "B") + 0.1 * number) for number in range(5) for name in NAMES)
        study.tell(unit="user-7", reward=0.0)
        study.stop()
        assert [study.assign(unit, "A").arm for unit in ("user-7", "user-8")] == [first.arm, "B"]
        assert study.assign("user-8").reason == "winner"

    def test_the_outcome_of_a_unit_is_told(self) -> None:
        """Once; a unit without a trial, or whose trial was given back, has none."""
        study = self.make_study()
        trial = study.assign("user-7", lease=None).trial
        assert trial is not None
        assert [study.tell(unit="user-7", reward=0.5) for _ in range(2)] == [True, True]
        assert study.tell(unit="user-8", reward=0.5) is False
        message = catch_error(AlreadyToldError, lambda: study.tell(unit="user-7", reward=1.0))
        assert "Unit 'user-7' was counted already." in message
        given_back = study.assign("user-9", lease=None).trial
        assert given_back is not None
        study.tell(given_back, failed=True, charged=False)
        assert study.tell(unit="user-9", reward=1.0) is False
        study.pause()
        assert study.assign("user-9", "A").reason == "fallback"  # perhaps it never saw its arm
        study.resume()
        assert study.assign("user-9", lease=None).reason == "new trial"
        assert study.tell(unit="user-9", failed=True, reason="left") is True
        rows = [(row.trial, row.unit, row.reward, row.reason) for row in study.trials()]
        assert rows == [(1, "user-7", 0.5, None), (2, "user-9", None, None), (3, "user-9", None, "left")]

    def test_an_assignment_that_makes_no_sense(self) -> None:
        """A study without an arm to show says so."""
        study = self.make_study()
        study.pause()
        tell: Callable[..., object] = study.tell
        for attempt, expected in (
            (
                lambda: study.assign("u"),
                "There is no arm for unit 'u': the study has no trial for it now, and it has no",
            ),
            (lambda: study.assign("u", "D"), "`fallback` must be one of A, B, C but got 'D'"),
            (lambda: study.assign("u", "A", 0.0), "`within` must be positive but got 0.0."),
            (lambda: study.assign(""), "`unit` must be a string of 1 to 200 printable characters but got ''."),
            (lambda: tell(reward=1.0), "Pass either `trial` or `unit` but got None and None."),
            (lambda: tell(1, 1.0, unit="u"), "Pass either `trial` or `unit` but got 1 and 'u'."),
            (lambda: study.set_max_ahead(0), "`max_ahead` must be at least 1 but got 0."),
        ):
            assert catch_error(InvalidValueError, attempt).startswith(expected), expected
