"""What is told, what it costs, and the trials on record."""

from __future__ import annotations

import csv
import json
import math
import tempfile
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from dbcare.errors import AlreadyToldError, InvalidRewardError, InvalidValueError
from dbcare.testing.studies.checks import COST, Checks, asked, close, refused


class Telling(Checks):
    """An outcome stands once it is told; every trial told or failed is charged, unless it is said to be free."""

    def test_told_twice(self) -> None:
        """The same again changes nothing; anything else is refused."""
        study = self.study()
        trial = asked(study)
        study.tell(trial, 0.25)
        study.tell(trial, 0.25)
        study.tell(trial.id, 0.25)
        words = refused(AlreadyToldError, lambda: study.tell(trial, 0.5))
        assert words == "Trial 1 must keep its first outcome, 0.25, but got 0.5."
        assert refused(AlreadyToldError, lambda: study.tell(trial, failed=True)).endswith("but got failed.")
        assert close(study.status().spent, COST)

    def test_a_failed_trial_may_be_free(self) -> None:
        """And it stays failed."""
        study = self.study()
        one, other = study.ask(2)
        study.tell(one, failed=True, charged=False)
        study.tell(other, failed=True)
        study.tell(other, failed=True)
        assert close(study.status().spent, COST)
        assert study.status().counted == 2
        refused(AlreadyToldError, lambda: study.tell(one, 1.0))

    def test_many_at_once_or_none(self) -> None:
        """One that is refused leaves none of the others behind."""
        study = self.study()
        trials = study.ask(3)
        words = refused(InvalidRewardError, lambda: study.tell_many([(trials[0], 1.0), (trials[1], math.nan)]))
        assert words == "Trial 2, of B: `reward` must be finite but got nan."
        assert study.status().waiting == 3
        study.tell_many((trial, 0.5) for trial in trials)
        assert study.status().counted == 3
        refused(AlreadyToldError, lambda: study.tell_many([(trials[0], 0.5), (trials[1], 0.0)]))
        study.tell_many([])

    def test_told_twice_in_one_batch(self) -> None:
        """As if one after the other, but all or none."""
        study = self.study()
        first, second, third = study.ask(3)
        study.tell_many([(first, 0.5), (second, 0.0), (first, 0.5)])
        assert study.status().counted == 2
        refused(AlreadyToldError, lambda: study.tell_many([(third, 0.5), (third, 0.25)]))
        assert [arm.trials for arm in study.status().arms] == [1, 1, 0]

    def test_prices_by_arm_in_money(self) -> None:
        """Each trial costs what its arm costs; an arm told, one failed, one free."""
        study = self.study(cost=None, price=[0.5, 2.0, 8.0], value=1000.0)
        one, other, third = study.ask(3)
        study.tell(one, 0.0)
        study.tell(other, failed=True)
        study.tell(third, failed=True, charged=False)
        assert close(study.status().spent, 2.5)
        assert close(study.recommendation().spent, 2.5)
        study.add([("C", 0.0)])
        assert close(study.status().spent, 10.5)

    def test_every_digit_is_kept(self) -> None:
        """Of rewards and of what follows from them."""
        study = self.study()
        values = [1 / 3, 0.1 + 0.2, -2.5e-17]
        study.tell_many(zip(study.ask(3), values, strict=True))
        assert [row.reward for row in study.trials()] == values
        assert [arm.mean for arm in study.status().arms] == values

    def test_trials_as_rows_and_files(self) -> None:
        """CSV and JSON lines, whole or not at all."""
        study = self.study()
        first, second, third = study.ask(3, worker="w,1")
        study.tell(first, 0.1 + 0.2)
        study.tell(third, failed=True)
        assert second.id == 2
        rows = study.trials()
        assert [(row.trial, row.arm, row.status, row.reward, row.counted) for row in rows] == [
            (1, "A", "told", 0.1 + 0.2, True),
            (2, "B", "asked", None, False),
            (3, "C", "failed", None, False),
        ]
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            with study.export(folder / "t.csv").open(newline="") as file:
                read = list(csv.DictReader(file))
            assert [float(row["reward"]) if row["reward"] else None for row in read] == [0.1 + 0.2, None, None]
            assert {row["worker"] for row in read} == {"w,1"}
            lines = study.export(folder / "t.jsonl").read_text().splitlines()
            assert [json.loads(line) for line in lines] == [asdict(row) for row in rows]
            words = refused(InvalidValueError, lambda: study.export(folder / "t.xls"))
            assert words == "`path` must be one of .csv, .jsonl, .parquet but got '.xls'."
            refused(FileNotFoundError, lambda: study.export(folder / "none" / "t.csv"))
            assert sorted(path.name for path in folder.iterdir()) == ["t.csv", "t.jsonl"]

    def test_trials_as_a_data_frame(self) -> None:
        """Of pandas or polars; without either it is refused."""
        study = self.study()
        study.tell(study.ask(2)[1], 0.1 + 0.2)
        if find_spec("pandas") is None and find_spec("polars") is None:
            assert "install one of them" in refused(InvalidValueError, study.to_dataframe)
            return
        frame = study.to_dataframe()
        assert list(frame["arm"]) == ["A", "B"]
        assert frame["reward"][1] == 0.1 + 0.2
