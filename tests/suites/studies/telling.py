"""Outcomes, what they cost, and the trials on record."""

from __future__ import annotations

import csv
import json
import math
import tempfile
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dbcare.base.frames import open_frame
from dbcare.errors import AlreadyToldError, InvalidRewardError, InvalidValueError, StaleTrialError
from tests.suites.studies.checks import COST, Checks, ask_one, catch_error, is_close


class Telling(Checks):
    """An outcome stands once it is told; every trial that is told or fails is charged, unless a failure is free."""

    def test_repeating_an_outcome_is_harmless(self) -> None:
        """A different outcome for the same trial is refused."""
        study = self.make_study()
        trial = ask_one(study)
        study.tell(trial, 0.25)
        study.tell(trial, 0.25)
        study.tell(trial.id, 0.25)
        message = catch_error(AlreadyToldError, lambda: study.tell(trial, 0.5))
        assert message == "Trial 1 is already recorded as 0.25 but got 0.5."
        assert catch_error(AlreadyToldError, lambda: study.tell(trial, failed=True)).endswith("but got failed.")
        assert is_close(study.status().spent, COST)

    def test_a_trial_of_another_copy_is_refused(self) -> None:
        """A trial has a random tag; one with another tag, or that is not stored, is neither told nor failed."""
        study = self.make_study()
        first, second = study.ask(2)
        stale = [replace(first, tag="00000000"), replace(second, id=3)]
        for trial in stale:
            message = catch_error(StaleTrialError, partial(study.tell, trial, 0.5))
            assert message.startswith(f"Trial {trial.id} with the tag {trial.tag!r} is not in this study")
            assert "restored from a backup" in message
            catch_error(StaleTrialError, partial(study.tell, trial, failed=True))
            catch_error(StaleTrialError, partial(study.tell_many, [(second, 0.5), (trial, 0.5)]))
        assert study.status().waiting == 2
        study.tell(first, 0.25)
        catch_error(StaleTrialError, lambda: study.tell(replace(first, tag="00000000"), 0.25))
        study.tell(first, 0.25)
        study.tell(2, 0.5)  # a bare number is not compared
        assert [row.tag for row in study.trials()] == [first.tag, second.tag]
        assert first.tag != second.tag

    def test_a_failed_trial_may_be_free(self) -> None:
        """A trial that failed stays failed."""
        study = self.make_study()
        one, other = study.ask(2)
        study.tell(one, failed=True, charged=False)
        study.tell(other, failed=True)
        study.tell(other, failed=True)
        assert is_close(study.status().spent, COST)
        status = study.status()
        assert (status.counted, status.rewards, status.failed) == (2, 0, 1)
        assert is_close(status.failed_cost, COST)
        catch_error(AlreadyToldError, lambda: study.tell(one, 1.0))

    def test_many_rewards_are_told_all_or_none(self) -> None:
        """If one is refused, none of the others is recorded."""
        study = self.make_study()
        trials = study.ask(3)
        message = catch_error(InvalidRewardError, lambda: study.tell_many([(trials[0], 1.0), (trials[1], math.nan)]))
        assert message == "Trial 2, of B: `reward` must be finite but got nan."
        assert study.status().waiting == 3
        study.tell_many((trial, 0.5) for trial in trials)
        assert study.status().counted == 3
        catch_error(AlreadyToldError, lambda: study.tell_many([(trials[0], 0.5), (trials[1], 0.0)]))
        study.tell_many([])

    def test_a_trial_may_occur_twice_in_a_batch(self) -> None:
        """Outcomes apply one after the other, but all or none."""
        study = self.make_study()
        first, second, third = study.ask(3)
        study.tell_many([(first, 0.5), (second, 0.0), (first, 0.5)])
        assert study.status().counted == 2
        catch_error(AlreadyToldError, lambda: study.tell_many([(third, 0.5), (third, 0.25)]))
        assert [arm.trials for arm in study.status().arms] == [1, 1, 0]

    def test_prices_per_arm_in_money(self) -> None:
        """Each trial costs its arm's price, whether it is told or fails, unless the failure is free."""
        study = self.make_study(cost=None, price=[0.5, 2.0, 8.0], value=1000.0)
        one, other, third = study.ask(3)
        study.tell(one, 0.0)
        study.tell(other, failed=True)
        study.tell(third, failed=True, charged=False)
        assert is_close(study.status().spent, 2.5)
        assert is_close(study.recommendation().spent, 2.5)
        study.add([("C", 0.0)])
        assert is_close(study.status().spent, 10.5)

    def test_a_trial_may_report_its_price(self) -> None:
        """What it cost takes the place of the arm's price, also if it failed; a repeated outcome has the same one."""
        study = self.make_study(cost=None, price=[0.5, 2.0, 8.0], value=1000.0)
        one, other, third = study.ask(3)
        study.tell(one, 0.0, price=0.013)
        study.tell(one, 0.0, price=0.013)
        study.tell(other, failed=True, price=0.25)
        study.tell(third, 0.0)
        status = study.status()
        assert is_close(status.spent, 8.263)
        assert is_close(status.failed_cost, 0.25)
        assert [row.price for row in study.trials()] == [0.013, 0.25, None]
        assert is_close(study.history()[-1].spent, 8.013)
        message = catch_error(AlreadyToldError, lambda: study.tell(one, 0.0, price=0.02))
        assert message == "Trial 1 is already recorded as 0.0 at 0.013 USD but got 0.0 at 0.02 USD."
        message = catch_error(AlreadyToldError, lambda: study.tell(third, 0.0, price=8.0))
        assert message == "Trial 3 is already recorded as 0.0 but got 0.0 at 8.00 USD."
        without_value = self.make_study()
        without_value.tell(ask_one(without_value), 0.0, price=0.25)
        assert is_close(without_value.status().spent, 0.25)

    def test_prices_of_many_rewards(self) -> None:
        """Told together, each reward may have a price."""
        study = self.make_study(cost=None, price=[0.5, 2.0, 8.0], value=1000.0)
        one, other = study.ask(2)
        study.tell_many([(one, 0.5, 0.125), (other, 0.25, None)])
        assert [row.price for row in study.trials()] == [0.125, None]
        message = catch_error(InvalidValueError, lambda: study.tell_many([(one, 0.5, -1.0)]))
        assert "-1" in message

    def test_invalid_prices(self) -> None:
        """The message names trial and arm, and the trial still waits for its outcome."""
        study = self.make_study()
        trial = ask_one(study)
        for price, reason in (
            (-0.5, "`price` must not be negative but got -0.5."),
            (math.nan, "`price` must be finite but got nan."),
            (math.inf, "`price` must be finite but got inf."),
        ):
            for outcome in ({"reward": 1.0}, {"failed": True}):
                message = catch_error(
                    InvalidValueError,
                    lambda price=price, outcome=outcome: study.tell(trial, price=price, **outcome),  # type: ignore[misc]  # a lambda with defaults
                )
                assert message == f"Trial 1, of A: {reason}"
        message = catch_error(InvalidValueError, lambda: study.tell(trial, failed=True, charged=False, price=0.5))
        assert message == "`price` requires charged=True but got 0.5 and charged=False."
        assert (study.status().waiting, study.status().spent) == (1, 0.0)

    def test_the_budget_expects_trials_to_cost_what_they_did(self) -> None:
        """Trials that cost a quarter of the stated price leave room for four times as many."""
        study = self.make_study(arms=["A", "B"], max_spend=8 * COST, max_ahead=1)
        count = 0
        while (trial := study.ask()) is not None:
            study.tell(trial, 0.5, price=COST / 4)
            count += 1
        assert count == 32
        assert study.should_stop()

    def test_rewards_keep_every_digit(self) -> None:
        """The means keep every digit too."""
        study = self.make_study()
        values = [1 / 3, 0.1 + 0.2, -2.5e-17]
        study.tell_many(zip(study.ask(3), values, strict=True))
        assert [row.reward for row in study.trials()] == values
        assert [arm.mean for arm in study.status().arms] == values

    def test_trials_as_rows_and_files(self) -> None:
        """Files in CSV and JSON Lines are written whole or not at all."""
        study = self.make_study()
        first, second, third = study.ask(3, worker="w,1")
        study.tell(first, 0.1 + 0.2)
        study.tell(third, failed=True)
        assert second.id == 2
        rows = list(study.trials())
        assert [(row.trial, row.arm, row.status, row.reward, row.counted) for row in rows] == [
            (1, "A", "told", 0.1 + 0.2, True),
            (2, "B", "asked", None, False),
            (3, "C", "failed", None, False),
        ]
        with tempfile.TemporaryDirectory() as path:
            folder = Path(path)
            with study.export(folder / "t.csv").open(newline="") as file:
                table = list(csv.DictReader(file))
            assert [float(row["reward"]) if row["reward"] else None for row in table] == [0.1 + 0.2, None, None]
            assert {row["worker"] for row in table} == {"w,1"}
            lines = study.export(folder / "t.jsonl").read_text().splitlines()
            assert [json.loads(line) for line in lines] == [asdict(row) for row in rows]
            message = catch_error(InvalidValueError, lambda: study.export(folder / "t.xls"))
            assert message == "`path` must be one of .csv, .jsonl, .parquet but got '.xls'."
            catch_error(FileNotFoundError, lambda: study.export(folder / "none" / "t.csv"))
            assert sorted(file.name for file in folder.iterdir()) == ["t.csv", "t.jsonl"]

    def test_trials_as_a_data_frame(self) -> None:
        """The data frame is of any of three libraries, as far as they are installed; without them, that is refused."""
        study = self.make_study()
        study.tell(study.ask(2)[1], 0.1 + 0.2)
        for library in ("pandas", "polars", "pyarrow"):
            if find_spec(library) is None:
                assert "pip install" in catch_error(InvalidValueError, partial(study.to_dataframe, library))
                continue
            frame = study.to_dataframe(library)
            assert type(frame).__module__.startswith(library)
            cells = {name: open_columns(frame)[name] for name in ("arm", "reward", "late", "asked", "counted")}
            assert cells["arm"] == ["A", "B"]
            assert cells["reward"][1] == 0.1 + 0.2
            assert [at.timestamp() for at in cells["asked"]] == [
                datetime.fromisoformat(row.asked).timestamp() for row in study.trials()
            ]
        message = catch_error(InvalidValueError, lambda: study.to_dataframe("excel"))
        assert message == "`library` must be one of pandas, polars, pyarrow but got 'excel'."

    def test_observations_from_a_data_frame(self) -> None:
        """`add` and `tell_many` take data frames of any of three libraries, with their columns in any order."""
        for library in ("pandas", "polars", "pyarrow"):
            if find_spec(library) is None:
                continue
            make: Any = import_module(library).table if library == "pyarrow" else import_module(library).DataFrame
            study = self.make_study(max_ahead=9)
            study.add(make({"reward": [0.5, 0.25], "page": ["x", "y"], "arm": ["A", "B"]}))
            first, second = study.ask(2)
            told = make({"trial": [first.id, second.id], "price": [None, 0.5], "reward": [1.5, 2.5]})
            study.tell_many(told)
            rows = [(row.reward, row.price) for row in study.trials()]
            assert rows == [(0.5, None), (0.25, None), (1.5, None), (2.5, 0.5)]
            unnamed = make({"arm": ["A"], "revenue": [0.5]})
            message = catch_error(InvalidValueError, partial(study.add, unnamed))
            assert message == "`observations` has no column 'reward'; rename one of its columns: arm, revenue."


def open_columns(frame: Any) -> dict[str, list[Any]]:
    """Return the cells of a data frame by column."""
    columns = open_frame(frame)
    assert columns is not None
    return columns.read(columns.names)
