"""What a study reports about itself."""

from __future__ import annotations

import math
import time
import uuid
from dataclasses import fields
from typing import Any

import numpy as np

from dbcare.errors import InvalidValueError
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES
from dbcare.problem.risk import Loss
from dbcare.studies.results.status import ArmStatus, Recommendation, Status
from tests.suites.studies.checks import NAMES, Checks, ask_one, catch_error, draw_rewards, is_close, works_in_epochs


class Reporting(Checks):
    """Recommendation, status, history and explanations, with arms by name and amounts in money."""

    def test_a_new_study_knows_nothing(self) -> None:
        """Every report of a study without trials is empty."""
        name = f"brand new \N{SNOWMAN} %2F?# {uuid.uuid4()}"
        study = self.make_study(name=name)
        assert study.name == study.status().name == name
        assert study.settings.arms == NAMES
        status, choice = study.status(), study.recommendation()
        assert status.arms == tuple(ArmStatus(name, 0, None, None, None, 0, None) for name in NAMES)
        known = (study.name, "running", status.arms, 0, 0, 0, 0, None, 0.0, None, status.reason, ())
        assert status.created is not None
        assert abs(status.created - time.time()) < 600.0
        assert status == Status(*known, created=status.created, created_by=status.created_by)
        nothing = ("No rewards have been counted, so nothing is recommended.",)
        assert choice == Recommendation(None, None, None, None, 0.0, status.reason, False, "undecided", nothing)
        assert (study.history(), study.explain(), study.pending(), list(study.trials())) == ([], [], [], [])
        assert study.check() == 0

    def test_settings_are_those_it_was_created_with(self) -> None:
        """Every option comes back as it was passed, with amounts of money in units of the loss."""
        settings = self.make_study(
            arms=["left", "right"],
            cost=None,
            price={"right": 1.0, "left": 0.5},
            value=50.0,
            sigma=None,
            bounds=(-1.0, 3.0),
            sigma_pulls=3.0,
            cap=2.0,
            direction="minimize",
            max_spend=25.0,
            max_ahead=7,
            timeout_reward=0.5,
            currency="EUR",
            seed=11,
        ).settings
        assert (settings.arms, settings.cost, settings.value) == (("left", "right"), (0.01, 0.02), 50.0)
        assert (settings.sigma, settings.bounds, settings.direction) == (None, (-1.0, 3.0), "minimize")
        assert (settings.sigma_pulls, settings.cap) == (3.0, 2.0)
        assert (settings.max_spend, settings.max_ahead, settings.timeout_reward) == (0.5, 7, 0.5)
        assert (settings.currency, settings.seed, settings.policy) == ("EUR", 11, DEFAULT_POLICY)

    def test_the_spread_is_stated_in_any_way(self) -> None:
        """Policies that learn are given the likely standard deviation, others one that is never too small."""
        both = {"sigma": 0.3, "bounds": (0.0, 4.0)}
        ways: list[tuple[dict[str, Any], float, float]] = [  # the statement, the likely deviation, the largest
            ({"sigma": 0.3}, 0.3, 0.3),
            ({"sigma": 0.3, "sigma_pulls": math.inf}, 0.3, 0.3),
            ({"sigma": None, "baseline": 0.1}, 0.3, 0.5),
            ({"sigma": None, "bounds": (-1.0, 3.0)}, 2.0, 2.0),
            (both, 0.3, 0.3),
            ({"sigma": None, "binary": True}, 0.5, 0.5),
        ]
        for statement, likely, certain in ways:
            settings = self.make_study(**statement).settings
            assert all(getattr(settings, name) == value for name, value in statement.items())
            for policy in (name for name in self.policies if "sigma" in POLICIES[name].options):
                built: Any = self.make_study(**statement, policy=policy).settings.built_policy
                learns = "sigma_pulls" in POLICIES[policy].options
                assert is_close(built.sigma, likely if learns else certain), f"{policy}: {statement}"

    def test_the_spread_may_be_unknown(self) -> None:
        """With either loss, a study without any statement learns the spread, and ends."""
        for risk in Loss:
            study = self.make_study(sigma=None, risk=str(risk), cost=0.02)
            assert not study.settings.spread.is_stated
            draw = draw_rewards(2, gap=2.0)
            for _ in range(1_000):
                trial = study.ask()
                if trial is None:
                    break
                study.tell(trial, draw(trial.arm))
            assert study.should_stop()
            assert study.recommendation().arm == NAMES[-1]

    def test_a_description_is_shown_and_can_be_edited(self) -> None:
        """It is part of the status, and None without one."""
        study = self.make_study(description="Which page sells best?")
        assert study.status().description == "Which page sells best?"
        study.describe("Which page sells best \N{SNOWMAN} in winter?")
        assert study.status().description == "Which page sells best \N{SNOWMAN} in winter?"
        for wrong in ("", "x" * 501, "two\nlines"):
            message = catch_error(InvalidValueError, lambda wrong=wrong: study.describe(wrong))  # type: ignore[misc]  # binds the value
            assert message.startswith("`description` must be a string of 1 to 500 printable characters")
        study.describe(None)
        assert study.status().description is None
        assert self.make_study().status().description is None

    def test_sentences_name_the_arms(self) -> None:
        """Explanations and reasons use the names of arms, not their numbers."""
        for policy in self.policies:
            study = self.make_study(policy=policy, cost=1e-2, risk="misidentification")
            if not works_in_epochs(study):
                continue
            while (trial := study.ask()) is not None:
                study.tell(trial, 100.0 * NAMES.index(trial.arm))
            assert study.explain()[0].startswith("A dropped at epoch 1: its mean is 200 below the best")
            assert (study.status().arms[0].left or "").startswith("dropped at epoch 1")
        breakeven = self.make_study(arms=["left", "right"], cost=None, price=0.4, value=20_000, sigma=0.5)
        breakeven.tell_many((trial, 3.0 if trial.arm == "left" else 0.0) for trial in breakeven.ask(2))
        assert "left leads. Choosing it now is expected to lose " in breakeven.status().reason

    def test_recommendation_and_status_agree(self) -> None:
        """What is said of the chosen arm is the same in both, and adds up."""
        for means in ((0.0, 0.3), (0.0, 0.0)):
            study = self.make_study(arms=["A", "B"], cost=1e-4, control="A")
            generator = np.random.default_rng(1)
            while (trial := study.ask()) is not None:
                study.tell(trial, float(generator.normal(means["AB".index(trial.arm)], 1.0)))
            choice, status = study.recommendation(), study.status()
            chosen = next(arm for arm in status.arms if arm.name == choice.arm)
            for name in {field.name for field in fields(choice)} & {field.name for field in fields(chosen)}:
                assert getattr(choice, name) == getattr(chosen, name), name
            assert (choice.spent, choice.expected_loss) == (status.spent, status.expected_loss)
            assert choice.reason == status.reason == study.explain()[-1]
            assert abs(sum(arm.probability_best or 0.0 for arm in status.arms) - 1.0) < 1e-3
            assert choice.final
            assert str(choice) == f"{choice.arm} (final, {choice.verdict}): {choice.reason}"

    def test_means_and_intervals(self) -> None:
        """Among arms that look alike, the 95% interval is at least 1.96 standard errors to either side.

        The stated sigma, which is 1, counts as six rewards beside those of both arms. With few rewards there is none.
        """
        study = self.make_study()
        study.add([("A", 1.0), ("A", 3.0), ("B", 5.0)])
        first, second, third = study.status().arms
        assert (first.trials, first.mean, second.mean) == (2, 2.0, 5.0)
        assert [arm.interval for arm in (first, second, third)] == [None, None, None]
        assert (third.mean, third.estimate, third.expected_loss) == (None, None, None)
        study = self.make_study(arms=["A", "B"])
        study.add([("A", 1.0), ("B", 3.0), ("A", 3.0), ("B", 1.0)] * 5)
        for arm in study.status().arms:
            assert arm.interval is not None
            assert arm.mean == 2.0
            variance = (6.0 * 1.0**2 + 20.0) / (6.0 + 20.0 - 2.0)  # 20 squared deviations of 1 beside the guess
            assert is_close(arm.interval[1] - 2.0, 1.959963984540054 * math.sqrt(variance / 10.0))

    def test_nothing_is_recommended_before_any_data(self) -> None:
        """A study whose policy guesses keeps the control."""
        study = self.make_study(arms=["A", "B"])
        assert study.recommendation().arm is None
        guess = self.make_study(arms=["A", "B", "C"], cost=0.4, sigma=None, binary=True, control="B")
        assert guess.should_stop()
        assert (guess.recommendation().arm, guess.recommendation().verdict) == ("B", "keep the control")

    def test_history_ends_where_spend_meets_the_expected_loss(self) -> None:
        """Before the last point, the loss that the policy weighs is larger than the spend."""
        study = self.make_study(arms=["A", "B"], cost=0.01)
        draw = draw_rewards(1, gap=0.1)
        while (trial := study.ask()) is not None:
            study.tell(trial, draw(trial.arm))
        history = study.history()
        assert [point.rewards for point in history] == sorted({point.rewards for point in history})
        assert all((point.policy_loss or math.inf) > point.spent for point in history[:-1])
        assert history[-1].expected_loss == study.recommendation().expected_loss
        assert history[-1].policy_loss == study.status().policy_loss
        assert (history[-1].policy_loss or 0.0) <= history[-1].spent
        assert [point.at for point in history] == sorted(point.at or 0.0 for point in history)
        assert is_close(history[-1].spent, study.status().spent)

    def test_a_contradicted_assumption_is_noted(self) -> None:
        """Rewards that spread by five times sigma give one note."""
        study = self.make_study()
        draw = np.random.default_rng(6)
        study.add((NAMES[turn % 3], float(draw.normal(0.0, 5.0))) for turn in range(60))
        assert [note.partition(",")[0] for note in study.status().notes] == ["rewards have a standard deviation of 5"]

    def test_workers_and_times_are_recorded(self) -> None:
        """A row says who asked for the trial, when it was asked and told, and when its lease ends."""
        study = self.make_study()
        study.tell(ask_one(study, worker="shop 3"), 1.0)
        (row,) = study.trials()
        assert row.worker == "shop 3"
        assert row.asked <= (row.answered or "") < (row.expires or "")
