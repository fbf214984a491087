"""A study that hands out nothing says so, with the number of refused asks and the remedy."""

import pytest
from helpers.memory_studies import create_memory_study

import dbcare
from dbcare.live.events import EventKind
from dbcare.live.stored_study import StoredStudy
from dbcare.live.stores.memory import MemoryStore
from dbcare.live.study import Study

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
