"""What a study says of itself."""

from __future__ import annotations

import math
import uuid

import numpy as np

from dbcare.live.report import ArmStatus, Recommendation, Status
from dbcare.testing.studies.checks import NAMES, Checks, asked, close, rewards


class Words(Checks):
    """Recommendation, status, history and reasons, with the arms by name and amounts in money."""

    def test_a_study_that_has_just_begun(self) -> None:
        """Knows nothing, and says so."""
        name = f"just begun \N{SNOWMAN} %2F?# {uuid.uuid4()}"
        study = self.study(name=name)
        assert study.name == study.status().name == name
        assert study.settings.arms == NAMES
        status, choice = study.status(), study.recommendation()
        assert status.arms == tuple(ArmStatus(name, 0, None, None, None, 0, None) for name in NAMES)
        assert status == Status(study.name, "running", status.arms, 0, 0, 0, 0, None, 0.0, None, status.reason, ())
        assert choice == Recommendation(choice.arm, None, None, None, 0.0, status.reason, False, "undecided")
        assert (study.history(), study.explain(), study.pending(), study.trials()) == ([], [], [], [])
        assert study.check() == 0

    def test_what_it_was_made_with(self) -> None:
        """Comes back as it was given."""
        settings = self.study(
            arms=["left", "right"],
            cost=None,
            price=[0.5, 1.0],
            value=50.0,
            sigma=None,
            bounds=(-1.0, 3.0),
            direction="minimize",
            max_spend=25.0,
            max_ahead=7,
            timeout_reward=0.5,
            unit="EUR",
            seed=11,
        ).settings
        assert (settings.arms, settings.cost, settings.value) == (("left", "right"), (0.01, 0.02), 50.0)
        assert (settings.sigma, settings.bounds, settings.direction) == (None, (-1.0, 3.0), "minimize")
        assert (settings.max_spend, settings.max_ahead, settings.timeout_reward) == (0.5, 7, 0.5)
        assert (settings.unit, settings.seed, settings.policy) == ("EUR", 11, "breakeven")

    def test_words_have_names(self) -> None:
        """Of arms, not their numbers."""
        study = self.study(policy="breakeven-racing", cost=1e-2, risk="misidentification")
        while (trial := study.ask()) is not None:
            study.tell(trial, 100.0 * NAMES.index(trial.arm))
        assert study.explain()[0].startswith("A dropped at epoch 1: its mean is 200 below the best")
        assert (study.status().arms[0].left or "").startswith("dropped at epoch 1")
        breakeven = self.study(arms=["left", "right"], cost=None, price=0.4, value=20_000, sigma=0.5)
        breakeven.tell_many((trial, 3.0 if trial.arm == "left" else 0.0) for trial in breakeven.ask(2))
        assert "left leads; the strongest rival, right, has an expected loss of" in breakeven.status().reason

    def test_a_clear_winner_and_a_tie(self) -> None:
        """Verdicts, and the fields of a recommendation, those of the status."""
        for means, verdict in (((0.0, 5.0), "clear winner"), ((0.0, 0.0), "too close to be worth more")):
            study = self.study(arms=["A", "B"], cost=0.02)
            generator = np.random.default_rng(1)
            while (trial := study.ask()) is not None:
                study.tell(trial, float(generator.normal(means["AB".index(trial.arm)], 1.0)))
            choice, status = study.recommendation(), study.status()
            chosen = status.arms["AB".index(choice.arm)]
            assert choice.verdict == verdict
            assert (choice.mean, choice.interval) == (chosen.mean, chosen.interval)
            assert (choice.spent, choice.expected_loss) == (status.spent, status.expected_loss)
            assert choice.reason == status.reason == study.explain()[-1]
            assert choice.final
            assert str(choice) == f"{choice.arm} (final, {verdict}): {choice.reason}"

    def test_means_and_intervals(self) -> None:
        """Of 95%; sigma is 1, and a sample that spreads by more is believed."""
        study = self.study()
        study.add([("A", 1.0), ("A", 3.0), ("B", 5.0)])
        first, second, third = study.status().arms
        assert (first.trials, first.mean, second.mean) == (2, 2.0, 5.0)
        assert (third.mean, third.interval) == (None, None)
        assert first.interval is not None
        assert second.interval is not None
        assert close(second.interval[1] - 5.0, 1.959963984540054)
        low, high = first.interval
        assert close(low + high, 4.0)
        assert close(high - 2.0, 1.959963984540054)  # the quantile times the standard error, 1

    def test_how_it_went(self) -> None:
        """Spending rises until it meets the expected loss."""
        study = self.study(arms=["A", "B"], cost=0.01)
        draw = rewards(1, apart=0.1)
        while (trial := study.ask()) is not None:
            study.tell(trial, draw(trial.arm))
        history = study.history()
        assert [point.rewards for point in history] == sorted({point.rewards for point in history})
        assert all((point.expected_loss or math.inf) > point.spent for point in history[:-1])
        assert history[-1].expected_loss == study.recommendation().expected_loss
        assert (history[-1].expected_loss or 0.0) <= history[-1].spent
        assert close(history[-1].spent, study.status().spent)

    def test_data_against_what_was_stated(self) -> None:
        """Are noted."""
        study = self.study()
        draw = np.random.default_rng(6)
        study.add((NAMES[turn % 3], float(draw.normal(0.0, 5.0))) for turn in range(60))
        assert [note[:20] for note in study.status().notes] == ["rewards spread by 5,"]

    def test_a_worker_is_on_record(self) -> None:
        """With the times at which its trial was asked, would expire, and was answered."""
        study = self.study()
        study.tell(asked(study, worker="shop 3"), 1.0)
        (row,) = study.trials()
        assert row.worker == "shop 3"
        assert row.asked <= (row.answered or "") < (row.expires or "")
