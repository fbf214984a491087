"""A study that hands out nothing says so, with the number of refused asks and the remedy."""

import time

import pytest

import dbcare
from dbcare.studies.record.events import EventKind
from dbcare.studies.results.doubts import STALL_SECONDS
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.study import Study
from tests.helpers.memory_studies import create_memory_study

NAMES = ["A", "B", "C"]


def refuse(study: Study, times: int) -> None:
    for _ in range(times):
        assert study.ask() is None


def count_events(store: MemoryStore, name: str, kind: EventKind) -> list[int | None]:
    with store.session(name, write=False) as session:
        return [event.number for _, event in session.events_after(0) if event.kind is kind]


def test_a_shop_without_units_is_told_about_its_limit() -> None:
    """Six of 7,498 visitors get a trial, as in a shop that was seen to stand still."""
    store = MemoryStore()
    study = dbcare.create_study("shop", NAMES, cost=1e-9, sigma=1.0, storage=store)
    for worker in ("w1", "w2", "w3", "w1", "w2", "w3"):
        assert study.ask(worker=worker) is not None
    assert study.status().notes == ()
    refuse(study, 7_492)
    recorded = count_events(store, "shop", EventKind.REFUSED)
    assert recorded == [10 * 2 ** max(0, place - 1) for place in range(len(recorded))]
    total = sum(number or 0 for number in recorded)
    assert 7_492 / 2 < total <= 7_492
    expected = (
        f"at least {total:,} asks got no trial: 6 trials are pending, and no more than 6 may be; if rewards take long, "
        "raise this limit, max_ahead, to the number of trials that are asked while one reward is on its way"
    )
    assert study.status().notes == (expected,)
    assert StoredStudy(store, "shop").status().notes == (expected,)  # other processes see it, too
    assert study.check() == 6 + len(recorded)

    study.set_max_ahead(5_000)
    assert study.status().notes == ()
    assert len(study.ask(100)) == 100
    assert study.status().activities[-1].note == "pending trials, to 5,000"
    again = dbcare.create_study("shop", NAMES, cost=1e-9, sigma=1.0, storage=store, load_if_exists=True)
    assert again.status().max_ahead == 5_000
    study.set_max_ahead(None)
    assert again.ask() is None


def test_a_policy_that_waits_is_named() -> None:
    study = create_memory_study(policy="dbcare", cost=1e-3, sigma=1.0, max_ahead=100)
    while study.ask() is not None:
        pass
    pending = study.status().waiting
    refuse(study, 10 * pending)
    (note,) = [note for note in study.status().notes if "asks got no trial" in note]
    assert f"{pending} trials are pending, and DBCARE needs their rewards to choose the next arm" in note
    study.tell_many((number, 0.0) for number in range(1, pending + 1))
    assert not any("asks got no trial" in note for note in study.status().notes)


def test_a_budget_that_may_be_used_up() -> None:
    study = create_memory_study(cost=0.1, sigma=1.0, max_spend=0.25)
    assert len(study.ask(3)) == 2
    refuse(study, 100)
    (note,) = study.status().notes
    assert "2 trials are pending, and may use up the budget" in note


@pytest.mark.parametrize("state", ["paused", "stopped"])
def test_a_study_that_is_not_running_needs_no_note(state: str) -> None:
    """Negative control: it says so anyway."""
    study = create_memory_study(cost=1e-9)
    study.pause() if state == "paused" else study.stop()
    refuse(study, 100)
    assert (study.status().state, study.status().notes) == (state, ())


def test_workers_that_poll_are_no_stall() -> None:
    """Negative control: as long as most asks bring a trial, nothing is noted."""
    study = create_memory_study(cost=1e-9, max_ahead=3)
    for number in range(1, 200):
        study.ask(3)
        refuse(study, 1)
        for pending in study.pending():
            study.tell(pending.trial, 0.1 * (number % 3))
    study.ask(3)
    assert not any("asks got no trial" in note for note in study.status().notes)


class Clock:
    """A clock that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_800_000_000.0
        monkeypatch.setattr(time, "time", lambda: self.now)


def list_stall_notes(study: Study) -> list[str]:
    return [note for note in study.status().notes if "no trial has been handed out" in note]


def test_one_lost_worker_is_noted_and_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker dies with one trial; the other gets a few more, and then nothing until the lease ends."""
    clock, store = Clock(monkeypatch), MemoryStore()
    study = dbcare.create_study("lost", NAMES, cost=1e-9, sigma=1.0, storage=store)
    lost = study.ask(worker="dead")
    assert lost is not None
    while (trial := study.ask(worker="alive")) is not None:
        study.tell(trial, 0.5)
    clock.now += STALL_SECONDS - 1.0
    assert study.ask(worker="alive") is None
    assert list_stall_notes(study) == []
    clock.now += 61.0
    assert study.ask(worker="alive") is None
    (note,) = list_stall_notes(study)
    assert note == (
        "no trial has been handed out for 6 min, although somebody asked: 1 trial has no answer, the oldest, trial 1 "
        "of worker dead, for 6 min; its lease ends in 24 min. If nobody will answer, give such trials up, at no "
        "charge: on the study's page, by `dbcare give-up`, or by `give_up`"
    )
    assert StoredStudy(store, "lost").status().notes == study.status().notes  # other processes see it, too
    events = study.check()
    for _ in range(8):
        assert study.ask(worker="alive") is None
    assert study.check() == events  # refusals are not recorded one by one

    assert study.give_up(worker="dead") == 1
    assert list_stall_notes(study) == []
    assert study.ask(worker="alive") is not None


def test_a_stall_is_noted_however_many_asks_were_refused_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refusals are recorded when they double; the first of a new stall is recorded nevertheless."""
    clock = Clock(monkeypatch)
    study = create_memory_study(cost=1e-9, max_ahead=1)
    study.ask()
    refuse(study, 1_000)
    study.tell(1, 0.5)
    assert study.ask(lease=None) is not None
    clock.now += STALL_SECONDS
    assert list_stall_notes(study) == []  # negative control: nobody has asked since
    refuse(study, 1)
    (note,) = list_stall_notes(study)
    assert "its lease never ends" in note


def test_added_observations_do_not_end_a_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    study = create_memory_study(cost=1e-9, max_ahead=1)
    study.ask()
    clock.now += STALL_SECONDS
    study.add([("A", 0.5)])
    refuse(study, 1)
    assert len(list_stall_notes(study)) == 1


def test_trials_that_have_expired_count_as_agreed_when_others_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    study = create_memory_study(cost=1e-9, max_ahead=10, timeout_reward=0.0)
    study.ask(2, lease="1m")
    clock.now += 61.0
    study.ask(lease="1m")
    assert study.give_up() == 1
    assert [(row.status, row.reward, row.reason) for row in study.trials()] == [
        ("expired", 0.0, None),
        ("expired", 0.0, None),
        ("failed", None, "given up"),
    ]


def test_trials_are_given_up_by_age(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    study = create_memory_study(cost=1e-9, max_ahead=10)
    study.ask(3, worker="w1")
    clock.now += 600.0
    study.ask(2, worker="w2")
    assert study.give_up(older_than="11m") == 0
    assert study.give_up([1, 4], older_than="10m") == 1
    assert study.give_up(worker="w2", older_than="10m") == 0
    assert study.give_up(older_than=600) == 2
    assert [trial.trial for trial in study.pending() if not trial.told] == [4, 5]
