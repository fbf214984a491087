"""Trials that nobody answers in time, and asking again."""

from __future__ import annotations

import time
from datetime import timedelta

from dbcare.testing.studies.checks import COST, Checks, asked, close


class Leases(Checks):
    """A trial that is not told within its lease is replaced, or counts as its time-out reward."""

    def run_out(self) -> None:
        """Wait until leases of a moment have run out."""
        time.sleep(1.2 * self.moment)

    def test_a_lease_that_runs_out_is_replaced(self) -> None:
        """What comes too late is on record and paid for, and counts for nothing."""
        study = self.study()
        slow = asked(study, lease=self.moment)
        study.tell_many((trial, 0.0) for trial in study.ask(2))
        assert study.status().counted == 0
        self.run_out()
        replacement = asked(study)
        assert replacement.arm == slow.arm
        assert study.status().counted == 3
        for _ in range(2):
            study.tell(slow, 9.0)
            assert study.status().arms[0].trials == 0
            assert close(study.status().spent, 3 * COST)
        study.tell(replacement, 0.5)
        assert study.status().arms[0].mean == 0.5
        rows = [(row.status, row.reward, row.late) for row in study.trials()]
        assert rows == [("expired", None, 9.0), ("told", 0.0, None), ("told", 0.0, None), ("told", 0.5, None)]

    def test_a_late_answer_counts_as_long_as_it_was_not_replaced(self) -> None:
        """Here, as long as the study is paused."""
        for replaced in (False, True):
            study = self.study()
            first, second = asked(study, lease=None), asked(study, lease=self.moment)
            self.run_out()
            if not replaced:
                study.pause()
            assert (study.ask() is not None) == replaced  # notices that the second has expired
            study.tell(second, 4.0)
            study.tell(first, 0.0)
            assert [arm.trials for arm in study.status().arms] == [1, 0 if replaced else 1, 0]

    def test_a_timeout_may_be_a_reward(self) -> None:
        """A visitor who never buys is a 0."""
        study = self.study(timeout_reward=0.0, sigma=None, binary=True)
        trials = study.ask(3, lease=self.moment)
        study.tell(trials[1], 1)
        self.run_out()
        study.ask()
        status = study.status()
        assert [(arm.trials, arm.mean) for arm in status.arms] == [(1, 0.0), (1, 1.0), (1, 0.0)]
        assert study.recommendation().arm == "B"
        assert close(status.spent, 3 * COST)
        study.tell(trials[0], 1)  # too late: it has counted as 0, and was charged then
        status = study.status()
        assert (status.arms[0].trials, status.arms[0].mean) == (1, 0.0)
        assert close(status.spent, 3 * COST)
        first = study.trials()[0]
        assert (first.status, first.reward, first.late) == ("expired", 0.0, 1.0)

    def test_a_timeout_of_one_ask_may_be_a_reward(self) -> None:
        """The others are replaced as ever."""
        study = self.study(sigma=None, bounds=(0.0, 1.0))
        study.ask(2, lease=self.moment, timeout_reward=0.25)
        third = asked(study, lease=self.moment)
        self.run_out()
        assert [trial.arm for trial in study.ask(1)] == [third.arm]
        assert [arm.mean for arm in study.status().arms] == [0.25, 0.25, None]

    def test_leases_in_words_and_numbers(self) -> None:
        """In seconds since 1970, when the lease ends."""
        study = self.study(max_ahead=10)
        before = time.time()
        leases = {"90s": 90.0, "2h": 7200.0, "1d": 86400.0, 45.0: 45.0, timedelta(minutes=3): 180.0}
        for lease, seconds in leases.items():
            expires = asked(study, lease=lease).expires
            assert expires is not None
            assert before + seconds <= expires <= time.time() + seconds
        assert asked(study, lease=None).expires is None
        assert 1700.0 < (asked(study).expires or 0.0) - before <= 1860.0

    def test_asking_again_with_the_same_key(self) -> None:
        """Gives the same trials, told or not; whatever the key is written in."""
        for key in ("request 7", " \N{SNOWMAN} "):
            study = self.study()
            trials = study.ask(2, key=key)
            assert study.ask(2, key=key) == trials
            study.tell(trials[0], 0.5)
            assert study.ask(1, key=key) == trials
            assert study.ask(key=key) == trials[0]
            assert [trial.id for trial in study.ask(1, key="another")] == [3]
            assert study.status().asked == 3

    def test_what_is_pending(self) -> None:
        """Trials not counted, in the order asked, with their age and what is left of their lease."""
        study = self.study(arms=["A", "B"])
        first, second = study.ask(2, lease="1m", worker="w \N{SNOWMAN}")
        study.tell(second, 1.0)
        pending = study.pending()
        assert [(each.trial, each.arm, each.worker, each.told) for each in pending] == [
            (first.id, "A", "w \N{SNOWMAN}", False),
            (second.id, "B", "w \N{SNOWMAN}", True),
        ]
        assert 0.0 <= pending[0].age < 30.0
        assert 30.0 < (pending[0].left or 0.0) <= 60.0
        assert 0.0 <= (study.status().oldest or -1.0) < 30.0
        study.tell(first, 0.0)
        assert study.pending() == []
