"""A study inside a real evaluation by inspect_ai, with inspect's own mock model."""

import gc
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import inspect_ai
import pytest
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate

import dbcare
from dbcare.errors import InvalidValueError
from dbcare.integrations.inspect import StudyStopping

RATES: dict[str, Any] = {"weak": 0.3, "strong": 0.9, "middle": 0.6}
QUESTIONS = 30


def make_dataset() -> Any:
    samples = [Sample(id=f"q{place}", input=f"Question {place}?", target="yes") for place in range(QUESTIONS)]
    return MemoryDataset(samples)


def make_model(arm: str, failures: dict[str, int]) -> Any:
    """Return a mock model that is right on a known share of the questions, whatever order they come in.

    It fails as often as `failures` says on the questions named there.
    """

    def answer(messages: list[Any], *_: Any) -> Any:
        if failures.get(messages[-1].text, 0) > 0:
            failures[messages[-1].text] -= 1
            raise RuntimeError("the model is away")
        chance = random.Random(f"{arm} {messages[-1].text}").random()
        output = ModelOutput.from_content("mockllm/model", "yes" if chance < RATES[arm] else "no")
        output.usage = ModelUsage()  # so that nothing is downloaded to count tokens
        return output

    return get_model("mockllm/model", custom_outputs=answer)


def evaluate(
    study: dbcare.Study,
    folder: Path,
    *,
    epochs: int = 1,
    max_tasks: int = 3,
    failures: dict[str, int] | None = None,
    run: dict[str, Any] | None = None,
    **options: Any,
) -> list[Any]:
    """Evaluate all arms, the strong one with `failures`; `run` are options of inspect's own."""
    stopping = StudyStopping(study, **options)
    tasks = [
        inspect_ai.Task(
            name=arm,
            dataset=make_dataset(),
            solver=generate(),
            scorer=match(),
            model=make_model(arm, failures if failures and arm == "strong" else {}),
            early_stopping=stopping.for_arm(arm),
            epochs=epochs,
        )
        for arm in RATES
    ]
    logs: list[Any] = inspect_ai.eval(
        tasks,
        max_tasks=max_tasks,
        max_samples=QUESTIONS,
        log_dir=str(folder),
        display="none",
        log_realtime=False,
        **(run or {}),
    )
    return logs


@pytest.fixture
def study(tmp_path: Path) -> Iterator[dbcare.Study]:
    """A study; inspect's unclosed streams are collected here, where warnings about them are ignored."""
    names = [f"q{place}" for place in range(QUESTIONS)]
    storage = f"sqlite:///{tmp_path}/inspect.db"
    yield dbcare.create_study("inspect", list(RATES), price=0.01, value=20, blocks=names, storage=storage)
    gc.collect()


@pytest.mark.filterwarnings("ignore")
def test_only_the_samples_that_the_study_asks_for_are_run(study: dbcare.Study, tmp_path: Path) -> None:
    logs = evaluate(study, tmp_path)
    choice = study.recommendation()
    assert choice.final
    assert choice.arm == "strong"
    asked = {(row.arm, row.block): row.reward for row in study.trials()}
    assert len(asked) < 3 * QUESTIONS
    for arm, log in zip(RATES, logs, strict=True):
        assert log.status == "success"
        run = {str(sample.id): sample for sample in log.samples or []}
        assert set(run) == {block for name, block in asked if name == arm}
        for block, sample in run.items():
            right = sample.scores["match"].value == "C"
            assert asked[arm, block] == float(right)
        stops = log.results.early_stopping
        assert len(stops.early_stops) == QUESTIONS - len(run)
        assert stops.metadata["final"] is True


@pytest.mark.filterwarnings("ignore")
def test_a_task_that_fails_ends_the_others_and_the_next_run_goes_on(study: dbcare.Study, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RATES, "weak", "no number")  # so that its model raises
        logs = evaluate(study, tmp_path)
    statuses = dict(zip(RATES, (log.status for log in logs), strict=True))
    assert statuses == {"weak": "error", "strong": "success", "middle": "success"}
    assert not study.recommendation().final
    told = {(row.arm, row.block): row.reward for row in study.trials() if row.status == "told"}
    assert {log.status for log in evaluate(study, tmp_path)} == {"success"}
    assert study.recommendation().arm == "strong"
    assert told.items() <= {(row.arm, row.block): row.reward for row in study.trials()}.items()


def name_question(study: dbcare.Study, number: int) -> tuple[str, str]:
    """Return the block that arms get as their third or so, and the text of its sample."""
    block = study.settings.block_names.name(number)
    return block, f"Question {block[1:]}?"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("at_once", [1, 8])
def test_a_failed_sample_goes_without_once_its_lease_expires(study: dbcare.Study, tmp_path: Path, at_once: int) -> None:
    block, text = name_question(study, 2)
    logs = evaluate(study, tmp_path, failures={text: 1}, run={"fail_on_error": False}, lease=2.0, at_once=at_once)
    assert {log.status for log in logs} == {"success"}
    assert study.recommendation().arm == "strong"
    assert study.recommendation().final
    assert [(row.arm, row.block, row.status) for row in study.trials() if row.reward is None] == [
        ("strong", block, "expired")
    ]


@pytest.mark.filterwarnings("ignore")
def test_a_sample_that_inspect_retries_counts(study: dbcare.Study, tmp_path: Path) -> None:
    block, text = name_question(study, 2)
    failures = {text: 1}
    logs = evaluate(study, tmp_path, failures=failures, run={"retry_on_error": 2})
    assert failures == {text: 0}
    assert {log.status for log in logs} == {"success"}
    assert study.recommendation().final
    (row,) = [row for row in study.trials() if (row.arm, row.block) == ("strong", block)]
    assert row.status == "told"


@pytest.mark.filterwarnings("ignore")
def test_a_dataset_without_some_of_the_blocks_is_refused(study: dbcare.Study, tmp_path: Path) -> None:
    logs = evaluate(study, tmp_path, run={"limit": 6})
    assert {log.status for log in logs} == {"error"}
    message = logs[0].error.message
    assert "must have a sample for each of the study's 30 blocks but has none for 'q" in message
    assert list(study.trials()) == []


def test_one_waiting_sample_looks_for_expired_leases(study: dbcare.Study) -> None:
    """All samples of three tasks wait for two and a half seconds, in which the study is asked twice, not 180 times."""
    study.pause()
    asked = 0

    class CountedStudy:
        """The study, with its asks counted."""

        def __getattr__(self, name: str) -> Any:
            nonlocal asked
            asked += name == "ask"
            return getattr(study, name)

    async def wait() -> None:
        stopping = StudyStopping(CountedStudy())  # type: ignore[arg-type]  # passes everything on
        for arm in RATES:
            stopping.start(arm, [f"q{place}" for place in range(QUESTIONS)])
        with anyio.move_on_after(2.5):
            async with anyio.create_task_group() as group:
                for arm in RATES:
                    for place in range(QUESTIONS):
                        group.start_soon(stopping.wait_for, (arm, f"q{place}"))

    anyio.run(wait)
    assert 2 <= asked <= 4


@pytest.mark.filterwarnings("ignore")
def test_epochs_are_refused(study: dbcare.Study, tmp_path: Path) -> None:
    logs = evaluate(study, tmp_path, epochs=2)
    assert {log.status for log in logs} == {"error"}
    assert "`epochs` must be 1" in logs[0].error.message


@pytest.mark.filterwarnings("ignore")
def test_tasks_one_after_another_are_refused(study: dbcare.Study, tmp_path: Path) -> None:
    logs = evaluate(study, tmp_path, max_tasks=1, start_seconds=1.5)
    assert "error" in {log.status for log in logs}
    assert "in one eval with max_tasks=3 and max_samples=30" in next(log for log in logs if log.error).error.message


def test_a_study_without_blocks_is_refused() -> None:
    study = dbcare.create_study("inspect without blocks", ["A", "B"], cost=0.01, sigma=1.0)
    with pytest.raises(InvalidValueError, match="`study` must have blocks"):
        StudyStopping(study)
    dbcare.delete_study("inspect without blocks")


def test_the_tool_is_not_loaded_unless_asked_for() -> None:
    code = "import sys, dbcare, dbcare.integrations; print('inspect_ai' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(dbcare.__file__).parents[1])}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout == "False\n"
