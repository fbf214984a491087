"""What happens when a study is run with a function."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from dbcare.errors import InvalidValueError, TrialsFailedError
from dbcare.studies.trial import Priced, Trial
from tests.suites.studies.checks import Checks, ask_one, catch_error, is_close

REWARDS = {"A": 0.0, "B": 0.4, "C": 1.0}


class Running(Checks):
    """`run` asks, measures and tells until the study stops, with any number of workers, and in blocks."""

    def test_a_function_is_run_until_the_study_stops(self) -> None:
        """With one worker, the trials and the result are those of a loop by hand."""
        by_hand, run = (self.make_study(cost=0.01) for _ in range(2))
        while not by_hand.should_stop():
            trial = ask_one(by_hand)
            by_hand.tell(trial, REWARDS[trial.arm])
        choice = run.run(lambda trial: REWARDS[trial.arm], progress=False)
        assert choice == run.recommendation() == by_hand.recommendation()
        assert choice.final
        assert [(row.arm, row.reward) for row in run.trials()] == [(row.arm, row.reward) for row in by_hand.trials()]

    def test_several_workers_measure_at_the_same_time(self) -> None:
        """Three calls meet at a barrier, which fewer would wait for in vain; each worker has a name of its own."""
        study = self.make_study(cost=0.01, max_ahead=3)
        meeting = threading.Barrier(3)
        threads = set()

        def measure(trial: Trial) -> float:
            if trial.id <= 3:
                meeting.wait(60.0)
            threads.add(threading.get_ident())
            return REWARDS[trial.arm]

        assert study.run(measure, workers=3, progress=False).arm == "C"
        assert len(threads) == 3
        assert len({row.worker for row in study.trials()}) == 3
        assert study.status().waiting == 0

    def test_a_run_waits_for_others(self) -> None:
        """While another worker holds the only trial that may be pending, and while the study is paused."""
        study = self.make_study(cost=0.01, max_ahead=1)
        other = ask_one(study)
        results = []
        thread = threading.Thread(
            target=lambda: results.append(study.run(lambda trial: REWARDS[trial.arm], progress=False))
        )
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        assert study.status().asked == 1
        study.pause()
        study.tell(other, REWARDS[other.arm])
        thread.join(0.3)
        assert thread.is_alive()
        assert study.status().asked == 1
        study.resume()
        thread.join(60.0)
        assert [choice.arm for choice in results] == ["C"]

    def test_failures_are_told_with_their_reason(self) -> None:
        """An exception, a wrong type and a reward out of bounds: failed trials, which are charged and replaced."""
        study = self.make_study(cost=0.01, sigma=None, bounds=(0.0, 1.0))
        outcomes: dict[int, Any] = {1: RuntimeError("no\nconnection"), 2: "high", 3: 7.0}

        def measure(trial: Trial) -> Any:
            outcome = outcomes.get(trial.id, REWARDS[trial.arm])
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        study.run(measure, progress=False)
        first = list(study.trials())[:3]
        assert [row.status for row in first] == ["failed"] * 3
        assert first[0].reason == "RuntimeError: no connection"
        assert first[1].reason == "`reward` must be a real number but got 'high'."
        assert first[2].reason is not None
        assert "but got 7" in first[2].reason
        assert {row.reason for row in study.trials() if row.status == "told"} == {None}
        assert (study.status().failed, study.status().state) == (3, "stopped")
        assert is_close(study.status().failed_cost, 0.03)

    def test_prices_are_reported(self) -> None:
        """A function may return what its call cost."""
        study = self.make_study(cost=0.01)
        study.run(lambda trial: Priced(REWARDS[trial.arm], 0.25), progress=False)
        assert {row.price for row in study.trials()} == {0.25}
        assert is_close(study.status().spent, 0.25 * study.status().asked)

    def test_coroutine_functions_are_run(self) -> None:
        """Each worker has an event loop of its own."""
        study = self.make_study(cost=0.01)

        async def measure(trial: Trial) -> float:
            return REWARDS[trial.arm]

        assert study.run(measure, workers=2, progress=False).arm == "C"

    def test_an_arm_that_always_fails_ends_the_run(self) -> None:
        """Its trials cost money; the study can go on with a correct function."""
        study = self.make_study(cost=0.001)
        causes: list[ValueError] = []

        def measure(trial: Trial) -> float:
            if trial.arm == "B":
                causes.append(ValueError(f"number {len(causes) + 1}"))
                raise causes[-1]
            return REWARDS[trial.arm]

        message = catch_error(TrialsFailedError, lambda: study.run(measure, max_failures=3, progress=False))
        assert message == (
            "Arm 'B' failed 3 times in a row, the last time with 'ValueError: number 3'; "
            "correct that and run the study again."
        )
        assert (study.status().waiting, study.status().failed) == (0, 3)
        assert study.run(lambda trial: REWARDS[trial.arm], progress=False).arm == "C"

    def test_rounds_and_pools_are_run(self) -> None:
        """Each trial has its block, and no arm gets one twice."""
        for blocks in ({"rounds": True}, {"blocks": [f"question {number}" for number in range(30)]}):
            study = self.make_study(cost=0.001, sigma=None, **blocks)
            seen: list[Any] = []

            def measure(trial: Trial, seen: list[Any] = seen) -> float:
                seen.append((trial.arm, trial.block))
                return REWARDS[trial.arm] + int(str(trial.block).rpartition(" ")[2]) % 7

            assert study.run(measure, workers=3, progress=False).arm == "C"
            assert len(set(seen)) == len(seen)
            assert None not in {block for _, block in seen}

    def test_wrong_arguments_of_a_run_are_refused(self) -> None:
        """Before anything is asked."""
        study = self.make_study()
        attempts: dict[str, dict[str, Any]] = {
            "`function` must be a function of a trial but got 'measure'.": {"function": "measure"},
            "`workers` must be": {"workers": 0},
            "`max_failures` must be": {"max_failures": 0},
            "`lease` must be": {"lease": "soon"},
            "`progress` must be": {"progress": "no"},
        }
        for message, wrong in attempts.items():
            options: dict[str, Any] = {"function": lambda _trial: 0.0, **wrong}
            assert catch_error(InvalidValueError, partial(study.run, **options)).startswith(message)
        assert study.status().asked == 0

    def test_a_reason_is_for_failures(self) -> None:
        """A reason comes back with the trial; without a failure, it is refused, and so are long ones."""
        study = self.make_study()
        first, second = study.ask(2)
        study.tell(first, failed=True, reason="the server was down")
        study.tell(first, failed=True)  # repeating the outcome is harmless
        message = catch_error(InvalidValueError, lambda: study.tell(second, 1.0, reason="none"))
        assert message == "`reason` requires failed=True but got 'none'."
        catch_error(InvalidValueError, lambda: study.tell(second, failed=True, reason="x" * 1001))
        assert [row.reason for row in study.trials()] == ["the server was down", None]
