"""Trials that expire, and asking again."""

from __future__ import annotations

import time
from datetime import timedelta

from dbcare.errors import AlreadyToldError, InvalidValueError, StudyNotFoundError
from tests.suites.studies.checks import COST, Checks, ask_one, catch_error, is_close


class Leases(Checks):
    """A trial that is not told within its lease is replaced, or counts as its timeout reward."""

    def test_an_expired_trial_is_replaced(self) -> None:
        """A reward that arrives too late is recorded and charged, but does not count."""
        study = self.make_study()
        slow = ask_one(study, lease=self.lease_seconds)
        study.tell_many((trial, 0.0) for trial in study.ask(2))
        assert study.status().counted == 0
        self.wait_for_expiry()
        replacement = ask_one(study)
        assert replacement.arm == slow.arm
        assert study.status().counted == 3
        for _ in range(2):
            study.tell(slow, 9.0)
            assert study.status().arms[0].trials == 0
            assert is_close(study.status().spent, 3 * COST)
            assert study.status().surplus == 1
            assert is_close(study.status().surplus_cost, COST)
        study.tell(replacement, 0.5)
        assert study.status().arms[0].mean == 0.5
        rows = [(row.status, row.reward, row.late) for row in study.trials()]
        assert rows == [("expired", None, 9.0), ("told", 0.0, None), ("told", 0.0, None), ("told", 0.5, None)]

    def test_a_late_reward_counts_if_the_trial_was_not_replaced(self) -> None:
        """A paused study replaces no trials."""
        for replaced in (False, True):
            study = self.make_study()
            first, second = ask_one(study, lease=None), ask_one(study, lease=self.lease_seconds)
            self.wait_for_expiry()
            if not replaced:
                study.pause()
            assert (study.ask() is not None) == replaced  # this is when the study notices that the second has expired
            study.tell(second, 4.0)
            study.tell(first, 0.0)
            assert [arm.trials for arm in study.status().arms] == [1, 0 if replaced else 1, 0]

    def test_trials_are_given_up_together(self) -> None:
        """They fail at no charge, all or none; what has an outcome stays, and repeating it is harmless."""
        study = self.make_study(max_ahead=6)
        lost, told = ask_one(study, worker="dead"), ask_one(study, worker="alive")
        study.tell(told, 0.5)
        study.ask(2, worker="dead")
        message = catch_error(StudyNotFoundError, lambda: study.give_up([1, 7]))
        assert message == "There is no trial 7; trials asked so far: 4."
        assert study.status().waiting == 3
        assert [study.give_up([2, 3]), study.give_up([2, 3])] == [1, 0]
        assert study.give_up(worker="alive") == study.give_up(older_than="1h") == 0
        assert [study.give_up(worker="dead"), study.give_up()] == [2, 0]
        status = study.status()
        assert (status.waiting, status.held, status.counted, status.rewards) == (0, 0, 4, 1)
        assert is_close(status.spent, COST)
        for row in study.trials():
            assert row.status == ("told" if row.trial == told.id else "failed")
            assert (row.reason or "").startswith("given up") == (row.trial != told.id)
        assert catch_error(AlreadyToldError, lambda: study.tell(lost, 0.5)).endswith("failed and free but got 0.5.")
        for attempt, beginning in (
            (lambda: study.give_up([0]), "`trials` must be at least 1 but got 0"),
            (lambda: study.give_up(worker=""), "`worker` must be a string"),
            (lambda: study.give_up(older_than="soon"), "`older_than` must be a duration"),
        ):
            assert catch_error(InvalidValueError, attempt).startswith(beginning)

    def test_an_expired_trial_may_count_as_a_reward(self) -> None:
        """A visitor who never buys counts as 0."""
        study = self.make_study(timeout_reward=0.0, sigma=None, binary=True)
        trials = study.ask(3, lease=self.lease_seconds)
        study.tell(trials[1], 1)
        self.wait_for_expiry()
        study.ask()
        status = study.status()
        assert [(arm.trials, arm.mean) for arm in status.arms] == [(1, 0.0), (1, 1.0), (1, 0.0)]
        assert study.recommendation().arm == "B"
        assert is_close(status.spent, 3 * COST)
        study.tell(trials[0], 1)  # too late: it has counted as 0 and been charged
        status = study.status()
        assert (status.arms[0].trials, status.arms[0].mean) == (1, 0.0)
        assert is_close(status.spent, 3 * COST)
        assert (status.surplus, status.late) == (0, 0)
        first = next(study.trials())
        assert (first.status, first.reward, first.late) == ("expired", 0.0, 1.0)

    def test_leases_that_expire_after_the_stop_are_told_apart_from_answers(self) -> None:
        study = self.make_study(timeout_reward=0.0, sigma=None, binary=True)
        trials = study.ask(3, lease=self.lease_seconds)
        study.stop()
        study.tell(trials[1], 1)
        self.wait_for_expiry()
        study.ask()  # this is when the study notices
        status = study.status()
        assert (status.rewards, status.late, status.late_expired) == (0, 3, 2)
        assert is_close(status.late_cost, 3 * COST)

    def test_a_timeout_reward_may_be_set_per_ask(self) -> None:
        """Trials of other asks are replaced as usual."""
        study = self.make_study(sigma=None, bounds=(0.0, 1.0))
        study.ask(2, lease=self.lease_seconds, timeout_reward=0.25)
        third = ask_one(study, lease=self.lease_seconds)
        self.wait_for_expiry()
        assert [trial.arm for trial in study.ask(1)] == [third.arm]
        assert [arm.mean for arm in study.status().arms] == [0.25, 0.25, None]

    def test_leases_as_texts_and_numbers(self) -> None:
        """A trial says when its lease ends, in seconds since 1970."""
        study = self.make_study(max_ahead=10)
        before = time.time()
        leases = {"90s": 90.0, "2h": 7200.0, "1d": 86400.0, 45.0: 45.0, timedelta(minutes=3): 180.0}
        for lease, seconds in leases.items():
            expires = ask_one(study, lease=lease).expires
            assert expires is not None
            assert before + seconds <= expires <= time.time() + seconds
        assert ask_one(study, lease=None).expires is None
        assert 1700.0 < (ask_one(study).expires or 0.0) - before <= 1860.0

    def test_asking_again_with_the_same_key(self) -> None:
        """The trials are the same, told or not, whatever characters the key has."""
        for key in ("request 7", " \N{SNOWMAN} "):
            study = self.make_study()
            trials = study.ask(2, key=key)
            assert study.ask(2, key=key) == trials
            study.tell(trials[0], 0.5)
            assert study.ask(1, key=key) == trials
            assert study.ask(key=key) == trials[0]
            assert [trial.id for trial in study.ask(1, key="another")] == [3]
            assert study.status().asked == 3

    def test_pending_trials_are_listed(self) -> None:
        """Trials not yet counted are listed in the order asked, with their age and the rest of their lease."""
        study = self.make_study(arms=["A", "B"])
        first, second = study.ask(2, lease="1m", worker="w \N{SNOWMAN}")
        study.tell(second, 1.0)
        pending = study.pending()
        assert [(trial.trial, trial.arm, trial.worker, trial.told) for trial in pending] == [
            (first.id, "A", "w \N{SNOWMAN}", False),
            (second.id, "B", "w \N{SNOWMAN}", True),
        ]
        assert 0.0 <= pending[0].age < 30.0
        assert 30.0 < (pending[0].left or 0.0) <= 60.0
        assert 0.0 <= (study.status().oldest or -1.0) < 30.0
        study.tell(first, 0.0)
        assert study.pending() == []
