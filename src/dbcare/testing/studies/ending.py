"""How a study ends or is held up: by its limits, by hand, by arms that are withdrawn."""

from __future__ import annotations

from dbcare.errors import InvalidValueError
from dbcare.testing.studies.checks import COST, NAMES, Checks, asked, close, refused


class Ending(Checks):
    """Once stopped, a study asks for nothing more; what is told after that is on record."""

    def test_max_spend_ends_a_study(self) -> None:
        """Before a trial that would go beyond it, in money where there is a value."""
        for money, words in (
            ({"max_spend": 5 * COST}, "0.005 of 0.005"),
            ({"cost": None, "price": 0.4, "value": 400.0, "max_spend": 2.0}, "2.00 USD of 2.00 USD"),
        ):
            study = self.study(**money)
            count = 0
            while (trial := study.ask()) is not None:
                study.tell(trial, 0.0)
                count += 1
            assert count == 5
            assert study.should_stop()
            said = f"another trial would exceed max_spend: {words} has been spent"
            assert study.recommendation().reason == said

    def test_a_dear_arm_that_is_beyond_max_spend_ends_a_study(self) -> None:
        """Though a cheap one would still be within it: the policy asks for what it needs."""
        study = self.study(arms=["A", "B"], cost=[1e-2, 1e-1], max_spend=0.25)
        while (trial := study.ask()) is not None:
            study.tell(trial, 0.0)
        assert study.should_stop()
        assert study.status().spent <= 0.25

    def test_pause_resume_stop(self) -> None:
        """A paused study takes answers; a stopped one stays so."""
        study = self.study()
        trial = asked(study)
        study.pause()
        assert study.ask() is None
        assert not study.should_stop()
        assert study.status().state == "paused"
        study.tell(trial, 1.0)
        study.resume()
        assert study.status().state == "running"
        late = asked(study)
        study.stop("the campaign is over")
        assert study.ask() is None
        assert study.ask(5) == []
        assert study.should_stop()
        assert study.status().state == "stopped"
        assert study.explain() == ["the campaign is over"]
        assert study.recommendation().final
        study.tell(late, 0.5)
        assert study.trials()[1].reward == 0.5
        study.resume()
        assert study.should_stop()

    def test_answers_after_a_stop_by_hand_change_nothing(self) -> None:
        """They are on record and charged, but what was recommended stays."""
        study = self.study(arms=["A", "B"])
        study.add([("A", 1.0), ("B", 0.0)])
        late = study.ask(2)
        study.stop("enough")
        before = study.recommendation()
        study.tell_many((trial, 9.0 if trial.arm == "B" else -9.0) for trial in late)
        after = study.recommendation()
        assert (after.arm, after.mean) == (before.arm, before.mean) == ("A", 1.0)
        assert close(study.status().spent, 4 * COST)
        assert [row.status for row in study.trials()] == ["told"] * 4

    def test_retiring_the_winner_opens_the_race_again(self) -> None:
        """Until only one is left, which stays."""
        study = self.study(cost=1e-2)
        while (trial := study.ask()) is not None:
            study.tell(trial, {"A": 0.0, "B": 0.1, "C": 9.0}[trial.arm])
        assert study.recommendation().arm == "C"
        assert study.recommendation().verdict == "clear winner"
        spent = study.status().spent
        study.retire("C", "out of stock")
        assert study.status().spent == spent
        assert not study.should_stop()
        assert study.status().arms[2].left == "retired: out of stock"
        assert "C was retired: out of stock" in study.explain()
        while (trial := study.ask()) is not None:
            assert trial.arm != "C"
            study.tell(trial, {"A": 0.0, "B": 0.1}[trial.arm])
        assert study.recommendation().arm == "B"
        study.retire("B")
        assert study.should_stop()
        assert study.recommendation().arm == "A"
        assert study.recommendation().verdict == "only one left"
        assert study.explain()[-1] == "only A is left"
        for arm in ("A", "B"):
            words = refused(InvalidValueError, lambda arm=arm: study.retire(arm))  # type: ignore[misc]
            assert words.startswith("`arm` must be one of those left, A, and not the last")

    def test_answers_of_a_retired_arm_are_recorded_and_charged(self) -> None:
        """And it is not asked for any more."""
        study = self.study()
        trials = study.ask(3)
        study.retire("A")
        study.tell_many(zip(trials, (5.0, 0.0, 1.0), strict=True))
        assert close(study.status().spent, 3 * COST)
        assert study.recommendation().arm == "C"
        assert {trial.arm for trial in study.ask(10)} == set(NAMES[1:])
