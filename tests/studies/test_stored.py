"""What a live study is built on: summaries, stores, data frames. `StudySuite` checks what it promises."""

import json
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dbcare.errors import AlreadyToldError, DbcareError, InvalidValueError, StaleTrialError, StudyNotFoundError
from dbcare.replay.replay import replay_log
from dbcare.studies.api import create_study
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.ledger import RECENT_TRIALS, SPARE_LEASES, Ledger, restore, summarize
from dbcare.studies.record.sync import EVENTS_PER_SUMMARY
from dbcare.studies.results.words import describe_uncounted
from dbcare.studies.settings import Settings
from dbcare.studies.show.export import TrialRow
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.stores.open import open_store
from dbcare.studies.stores.sql.store import SqlStore
from dbcare.studies.trial import Trial
from tests.helpers.memory_studies import create_memory_study
from tests.suites.studies.checks import NAMES, draw_rewards


def test_a_summary_equals_the_replay() -> None:
    """It does at any time, and after a round trip through JSON."""
    settings = Settings(arms=NAMES, cost=1e-6, sigma=1.0)
    ledger, draw = Ledger(settings), draw_rewards(1, gap=0.0)
    generator = np.random.default_rng(1)
    for step in range(60):
        arm = ledger.next_arm()
        if arm is not None:
            ledger.apply(Event(EventKind.ASKED, float(step), ledger.asked + 1, arm, worker="w"))
        waiting = [number for number, trial in ledger.open.items() if trial.status is EventKind.ASKED]
        number = waiting[generator.integers(len(waiting))]
        ledger.apply(Event(EventKind.TOLD, float(step), number, reward=draw(NAMES[ledger.open[number].arm])))
        copy = restore(settings, json.loads(json.dumps(summarize(ledger), allow_nan=False)))
        assert summarize(copy) == summarize(ledger)
        assert copy.next_arm() == ledger.next_arm()


def test_a_description_is_not_a_setting() -> None:
    """Loading with another one is fine and changes nothing; the latest one survives summaries and replays."""
    store = MemoryStore()
    options: dict[str, Any] = {"arms": NAMES, "cost": 1e-7, "sigma": 1.0, "storage": store, "load_if_exists": True}
    study = create_study("s", description="first", **options)
    assert create_study("s", description="another", **options).status().description == "first"
    assert create_study("s", **options).status().description == "first"
    study.describe("second")
    draw = draw_rewards(2, gap=0.0)
    for _ in range(EVENTS_PER_SUMMARY):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, draw(trial.arm))
    with store.session("s", write=False) as session:
        summary = session.summary()
    assert summary is not None
    assert summary[1]["description"] == "second"
    assert StoredStudy(store, "s").status().description == "second"
    study.retire("A")
    assert StoredStudy(store, "s").status().description == "second"
    assert study.check() > EVENTS_PER_SUMMARY


def test_opening_a_study_starts_from_its_summary() -> None:
    """A summary that does not follow from the events is found by `check`."""
    store = MemoryStore()
    store.create("s", Settings(arms=NAMES, cost=1e-7, sigma=1.0).to_dict(), 0.0)
    study, draw = StoredStudy(store, "s"), draw_rewards(2, gap=0.0)
    for _ in range(EVENTS_PER_SUMMARY):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, draw(trial.arm))
    with store.session("s", write=False) as session:
        assert session.summary() is not None
    again = StoredStudy(store, "s")
    assert again.status().arms == study.status().arms
    assert again.recommendation() == study.recommendation()
    again.check()
    with store.session("s", write=True) as session:
        position, plain = session.summary() or (0, {})
        session.save_summary(position, {**plain, "spent": 0.0})
    with pytest.raises(DbcareError, match="The summary of study 's' does not follow from its events: spent differs"):
        again.check()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_and_parquet(tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are of pandas, or of polars if pandas is missing."""
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pandas", None)
    study = create_memory_study()
    trials = study.ask(3)
    study.tell(trials[0], 0.1 + 0.2)
    frame = study.to_dataframe()
    assert type(frame).__module__.startswith(library)
    assert list(frame["arm"]) == list(NAMES)
    assert frame["reward"][0] == 0.1 + 0.2
    table = import_module(library).read_parquet(study.export(tmp_path / "t.parquet"))
    assert list(table["status"]) == ["told", "asked", "asked"]
    assert list(table.columns) == list(TrialRow.__dataclass_fields__)


def test_a_data_frame_needs_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    study = create_memory_study()
    for library in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(InvalidValueError, match=f"Data frames of {library} require it: pip install {library}"):
            study.to_dataframe(library)
    with pytest.raises(InvalidValueError, match="Data frames require pandas, polars or pyarrow; install one of them"):
        study.to_dataframe()


def test_a_study_that_was_deleted_and_recreated_must_be_loaded_again() -> None:
    store = MemoryStore()
    settings = Settings(arms=NAMES, cost=1e-3, sigma=1.0).to_dict()
    store.create("s", settings, 0.0)
    study = StoredStudy(store, "s")
    study.ask()
    store.delete("s")
    with pytest.raises(StudyNotFoundError, match="Study 's' not found"):
        study.ask()
    store.create("s", settings, 0.0)
    with pytest.raises(StudyNotFoundError, match="Study 's' was deleted and re-created; load it again"):
        study.ask()
    assert StoredStudy(store, "s").status().asked == 0


def test_a_storage_is_an_address_or_a_store() -> None:
    with pytest.raises(
        InvalidValueError, match=r"`storage` must be a Store or an address such as sqlite:///ads\.db but got 3"
    ):
        create_study("new", ["A", "B"], cost=1e-3, sigma=1.0, storage=3)  # type: ignore[arg-type]  # wrong on purpose


def test_a_restored_backup_is_noticed(tmp_path: Path) -> None:
    """An open study continues from the backup; in a new file, a study of the same name is a different one."""
    file, backup = tmp_path / "s.db", tmp_path / "backup.db"
    study = create_study("s", NAMES, cost=1e-9, sigma=1.0, storage=f"sqlite:///{file}")
    study.add((name, 0.5) for name in NAMES * 2)
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    study.add((name, 0.5) for name in NAMES * 3)
    for suffix in ("-wal", "-shm"):
        Path(f"{file}{suffix}").unlink(missing_ok=True)
    backup.replace(file)
    assert study.status().counted == 6
    study.add((name, 0.5) for name in NAMES)
    assert study.status().counted == 9
    assert study.check() == 18
    for path in tmp_path.iterdir():
        path.unlink()
    other = SqlStore(f"sqlite:///{file}")
    other.create("s", Settings(arms=("X", "Y"), cost=1e-9, sigma=1.0).to_dict(), 0.0)
    with pytest.raises(StudyNotFoundError, match="Study 's' was deleted and re-created; load it again"):
        study.ask()
    other.close()
    open_store(f"sqlite:///{file}").close()


def test_a_summary_that_cannot_be_read_is_ignored() -> None:
    """It may have been written by another version; the events say everything."""
    store = MemoryStore()
    store.create("s", Settings(arms=NAMES, cost=1e-9, sigma=1.0).to_dict(), 0.0)
    study = StoredStudy(store, "s")
    study.add((name, 0.5) for name in NAMES * EVENTS_PER_SUMMARY)
    for change in ({"run": None}, None):
        with store.session("s", write=True) as session:
            position, plain = session.summary() or (0, {})
            assert position >= 6 * EVENTS_PER_SUMMARY
            session.save_summary(position, plain | {"decision": change} if change else {})
        again = StoredStudy(store, "s")
        assert again.status().arms == study.status().arms
        assert again.ask() is not None


def test_workers_that_ask_for_one_unit_at_once_get_one_trial(tmp_path: Path) -> None:
    """Each has opened the study for itself, so only the database keeps them apart."""
    address = f"sqlite:///{tmp_path / 's.db'}"
    create_study("s", NAMES, cost=1e-9, sigma=1.0, storage=address, max_ahead=1_000)
    stores = [SqlStore(address) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for unit in ("one", "two", "three"):
            trials = list(threads.map(lambda store, unit=unit: StoredStudy(store, "s").ask(unit=unit), stores))
            assert len({trial.id for trial in trials if trial is not None}) == 1
            assert None not in trials
    assert StoredStudy(stores[0], "s").status().asked == 3
    for store in stores:
        store.close()


@pytest.mark.parametrize(
    ("observations", "settings", "verdict"),
    [
        ([], {}, "stopped without data"),
        ([("A", -9.0)], {}, "leads, but has few rewards"),
        ([("A", 1.0), ("B", 0.0)] * 40, {"sigma": None, "binary": True}, "leads, but has few rewards"),
        ([("A", 0.30), ("A", 0.31), ("B", 0.10), ("B", 0.11)], {"sigma": 0.5}, "leads, but has few rewards"),
    ],
)
def test_no_chance_is_stated_while_little_is_known(
    observations: list[tuple[str, float]], settings: dict[str, Any], verdict: str
) -> None:
    study = create_memory_study(arms=("A", "B"), cost=1e-9, **settings)
    study.add(observations)
    study.stop("the budget was cut")
    choice = study.recommendation()
    assert choice.verdict == verdict
    assert (choice.probability_best, choice.interval, choice.estimate) == (None, None, None)


def test_equal_arms_rarely_beat_the_control() -> None:
    """One does in at most 5% of all cases: more than 16 of 80 then have a chance below 1e-6."""
    beaten = 0
    for seed in range(80):
        study = create_memory_study(arms=("A", "B"), cost=4e-3, seed=seed, control="A")
        draw = draw_rewards(seed, gap=0.0)
        while (trial := study.ask()) is not None:
            study.tell(trial, draw(trial.arm))
        beaten += study.recommendation().verdict == "beats the control"
    assert beaten <= 16


def test_workers_are_forgotten_after_a_while() -> None:
    """A new name for every ask must not raise the limit of pending trials without end."""
    study = create_memory_study(cost=1e-12)
    for number in range(600):
        trial = study.ask(worker=f"process {number}")
        assert trial is not None
        study.tell(trial, 0.1 * (number % 7))
    assert len(study.ask(5_000, worker="last")) <= 2 * RECENT_TRIALS


def test_a_trial_of_another_study_is_refused() -> None:
    one, other = create_memory_study(arms=("red", "blue")), create_memory_study(arms=("left", "right"))
    trial = one.ask()
    assert trial is not None
    other.ask()
    with pytest.raises(StaleTrialError, match=rf"Trial 1 with the tag '{trial.tag}' is not in this study"):
        other.tell(trial, 1.0)
    other.tell(Trial(1, "red", None), 1.0)  # negative control: without a tag, only the number is known


def test_binary_rewards_are_0_or_1() -> None:
    study = create_memory_study(sigma=None, binary=True)
    study.ask()
    with pytest.raises(InvalidValueError, match=r"`reward` must be 0 or 1 but got 0\.37"):
        study.tell(1, 0.37)


def test_a_failed_trial_stays_charged() -> None:
    study = create_memory_study()
    study.ask()
    with pytest.raises(InvalidValueError, match="`charged` must be True or False but got None"):
        study.tell(1, failed=True, charged=None)  # type: ignore[call-overload]  # wrong on purpose
    study.tell(1, failed=True)
    with pytest.raises(AlreadyToldError, match="Trial 1 is already recorded as failed but got failed and free"):
        study.tell(1, failed=True, charged=False)


def test_leases_of_told_trials_are_forgotten() -> None:
    """A busy study does not grow with the trials asked, and a pending trial still expires when its lease ends."""
    ledger = Ledger(Settings(arms=NAMES, cost=1e-15, sigma=1.0))
    for number in range(1, 3 * SPARE_LEASES):
        arm = ledger.next_arm()
        assert arm is not None
        ledger.apply(Event(EventKind.ASKED, 1.0, number, arm, expires=100.0))
        assert (100.0, number) in ledger._leases
        assert len(ledger._leases) <= SPARE_LEASES + 2
        if number < 3 * SPARE_LEASES - 1:
            ledger.apply(Event(EventKind.TOLD, 2.0, number, arm, 0.5))
    assert ledger.overdue(100.0, ()) == [number]


@pytest.mark.parametrize("lease", [1e12, "99999d", timedelta(days=4000), "3٣m", "m", "-1s"])
def test_invalid_leases(lease: Any) -> None:
    with pytest.raises(InvalidValueError, match="`lease` must be"):
        create_memory_study().ask(lease=lease)


def test_threads_that_open_one_address_share_its_store(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'shared.db'}"
    with ThreadPoolExecutor(8) as threads:
        stores = list(threads.map(lambda place: open_store(place, create=True), [address] * 16))
    assert len({id(store) for store in stores}) == 1
    stores[0].close()


def test_unknown_options_are_named() -> None:
    """Also those that only a study has, where data are replayed."""
    with pytest.raises(InvalidValueError, match=r"Options of a study must be among price, .* but got 'polcy'"):
        Settings.from_options(NAMES, cost=0.01, polcy="x")  # type: ignore[call-arg]  # wrong on purpose
    with pytest.raises(InvalidValueError, match=r"Options of a replay must be among price, .* but got 'max_spend'"):
        replay_log([("A", 1.0), ("B", 0.0)], cost=0.01, sigma=1.0, max_spend=1.0)  # type: ignore[call-arg]  # wrong on purpose


def test_a_summary_may_word_its_events_differently() -> None:
    """`check` compares numbers, not sentences: those may change with the version."""
    store = MemoryStore()
    store.create("s", Settings(arms=NAMES, cost=1e-3, sigma=1.0, policy="dbcare").to_dict(), 0.0)
    study = StoredStudy(store, "s")
    study.add((NAMES[number % 3], 5.0 * (number % 3)) for number in range(30))
    with store.session("s", write=True) as session:
        ledger = Ledger.replay(study.settings, (event for _, event in session.events_after(0)))
        plain = summarize(ledger)
        assert plain["decision"]["run"]["events"]
        plain["decision"]["run"]["events"][0]["text"] = "left at epoch 1"
        session.save_summary(60, plain)
    assert study.check() == 60
    with store.session("s", write=True) as session:
        plain["decision"]["run"]["events"][0]["arm"] += 1
        session.save_summary(60, plain)
    with pytest.raises(DbcareError, match="decision differs"):
        study.check()


def test_charges_without_effect_are_told_apart() -> None:
    """Leases that expire after the stop are not called answers."""
    status = create_memory_study().status()
    assert describe_uncounted(status, "EUR") == []
    late = replace(status, late=1_953, late_cost=97.65)
    assert describe_uncounted(late, "EUR") == ["1,953 answered after the stop (97.65 EUR)"]
    expired = replace(late, late_expired=1_900, failed=2, failed_cost=0.1)
    assert describe_uncounted(expired, "EUR") == [
        "1,953 after the stop: 53 answered, 1,900 expired (97.65 EUR)",
        "2 failed and charged (0.1 EUR)",
    ]
