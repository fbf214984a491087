"""How a study ends or pauses: by its limits, by hand, or because arms are retired."""

from __future__ import annotations

from dbcare.errors import InvalidValueError
from tests.suites.studies.checks import COST, NAMES, Checks, ask_one, catch_error, is_close


class Ending(Checks):
    """A stopped study hands out no trials; what is told afterwards is only recorded."""

    def test_max_spend_stops_a_study(self) -> None:
        """It stops before a trial that would exceed the limit, which is in money if there is a value."""
        for settings, amounts in (
            ({"max_spend": 5 * COST}, "0.005 of 0.005"),
            ({"cost": None, "price": 0.4, "value": 400.0, "max_spend": 2.0}, "2.00 USD of 2.00 USD"),
        ):
            study = self.make_study(**settings)
            count = 0
            while (trial := study.ask()) is not None:
                study.tell(trial, 0.0)
                count += 1
            assert count == 5
            assert study.should_stop()
            reason = f"another trial would exceed max_spend: {amounts} has been spent"
            assert study.recommendation().reason == reason

    def test_an_expensive_arm_beyond_max_spend_stops_a_study(self) -> None:
        """A cheap arm could still be afforded, but the policy needs the expensive one."""
        study = self.make_study(arms=["A", "B"], cost=[1e-2, 1e-1], max_spend=0.25)
        while (trial := study.ask()) is not None:
            study.tell(trial, 0.0)
        assert study.should_stop()
        assert study.status().spent <= 0.25

    def test_pause_resume_stop(self) -> None:
        """A paused study accepts outcomes; a stopped one stays stopped."""
        study = self.make_study()
        trial = ask_one(study)
        study.pause()
        assert study.ask() is None
        assert not study.should_stop()
        assert study.status().state == "paused"
        study.tell(trial, 1.0)
        study.resume()
        assert study.status().state == "running"
        late = ask_one(study)
        study.stop("the campaign is over")
        assert study.ask() is None
        assert study.ask(5) == []
        assert study.should_stop()
        assert study.status().state == "stopped"
        assert study.explain() == ["the campaign is over"]
        assert study.recommendation().final
        study.tell(late, 0.5)
        assert list(study.trials())[1].reward == 0.5
        study.resume()
        assert study.should_stop()

    def test_rewards_after_a_stop_by_hand_change_nothing(self) -> None:
        """They are recorded and charged, and the recommendation stays."""
        study = self.make_study(arms=["A", "B"])
        study.add([("A", 1.0), ("B", 0.0)])
        late = study.ask(2)
        study.stop("enough")
        before = study.recommendation()
        study.tell_many((trial, 9.0 if trial.arm == "B" else -9.0) for trial in late)
        after = study.recommendation()
        assert (after.arm, after.mean) == (before.arm, before.mean) == ("A", 1.0)
        status = study.status()
        assert is_close(status.spent, 4 * COST)
        assert (status.rewards, status.late, [arm.late for arm in status.arms]) == (2, 2, [1, 1])
        assert is_close(status.late_cost, 2 * COST)
        assert [row.status for row in study.trials()] == ["told"] * 4

    def test_rewards_after_the_policy_stops_are_told_apart(self) -> None:
        """What was asked before the stop and told after it is charged, and not among the rewards counted."""
        study = self.make_study(arms=["A", "B"], cost=None, price=[0.5, 2.0], value=20.0, max_ahead=10)
        pending = [trial for _ in range(10) if (trial := study.ask()) is not None]
        for trial in pending:
            study.tell(trial, 5.0 if trial.arm == "A" else 0.0)
        assert study.should_stop()
        status = study.status()
        assert status.rewards + status.late == status.counted == len(pending)
        assert 0 < status.late < len(pending)
        assert f"stopped after {status.rewards} trials" in status.reason
        assert is_close(status.late_cost, sum(arm.late * {"A": 0.5, "B": 2.0}[arm.name] for arm in status.arms))
        counted = sum(arm.trials * {"A": 0.5, "B": 2.0}[arm.name] for arm in status.arms)
        assert is_close(status.spent, counted + status.late_cost)

    def test_retiring_the_winner_reopens_the_study(self) -> None:
        """It continues until only one arm is left, which cannot be retired."""
        study = self.make_study(cost=1e-2)
        while (trial := study.ask()) is not None:
            study.tell(trial, {"A": 0.0, "B": 0.1, "C": 9.0}[trial.arm])
        assert study.recommendation().arm == "C"
        assert study.recommendation().verdict == "leads, but has few rewards"
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
            message = catch_error(InvalidValueError, lambda arm=arm: study.retire(arm))  # type: ignore[misc]  # binds the value
            assert message == f"`arm` must be an active arm (A) and not the only one but got {arm!r}."

    def test_rewards_of_a_retired_arm_are_recorded_and_charged(self) -> None:
        """The arm is not asked for again."""
        study = self.make_study()
        trials = study.ask(3)
        study.retire("A")
        study.tell_many(zip(trials, (5.0, 0.0, 1.0), strict=True))
        assert is_close(study.status().spent, 3 * COST)
        assert study.recommendation().arm == "C"
        assert {trial.arm for trial in study.ask(10)} == set(NAMES[1:])
