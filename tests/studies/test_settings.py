"""Studies that do not stop before a number of rewards, or a date."""

import json
from typing import Any

import pytest

from dbcare.errors import InvalidValueError
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.ledger import Ledger, restore, summarize
from dbcare.studies.settings import Settings
from tests.helpers.memory_studies import create_memory_study

HOUR = 3_600.0


def follow(ledger: Ledger, trials: int, start: float = 0.0) -> Ledger:
    """Ask and tell a trial per hour, with rewards that make A the clear winner."""
    for _ in range(trials):
        arm = ledger.next_arm()
        if arm is None:
            return ledger
        number = ledger.asked + 1
        at = start + HOUR * ledger.asked
        ledger.apply(Event(EventKind.ASKED, at, number, arm))
        ledger.apply(Event(EventKind.TOLD, at + 60.0, number, arm, 5.0 * (arm == 0) + 0.1 * (number % 3)))
    return ledger


def make_settings(not_before: int | str | None, **others: Any) -> Settings:
    return Settings(("A", "B"), 1e-3, sigma=0.5, not_before=not_before, **others)


def test_a_number_of_rewards() -> None:
    """A clear winner would end it after a few; then it takes exactly as many as it must, and no more."""
    free = follow(Ledger(make_settings(None)), 100)
    assert free.rewards < 10
    held = follow(Ledger(make_settings(40)), 100)
    assert (held.rewards, held.state) == (40, "stopped")
    assert held.decision.recommended == 0
    # Until then, it chooses as it would have.
    for statistics, other in zip(held.statistics, free.statistics, strict=True):
        assert statistics.trials >= other.trials


def test_a_date() -> None:
    """With a trial an hour, the first reward after two days, which is that of the 49th trial, ends it."""
    ledger = follow(Ledger(make_settings("2d")), 200)
    assert (ledger.rewards, ledger.state) == (49, "stopped")
    shifted = follow(Ledger(make_settings("2d")), 200, start=1e9)
    assert shifted.rewards == 49  # counted from its own first trial
    assert follow(Ledger(make_settings("90m")), 200).rewards < 10


@pytest.mark.parametrize("not_before", [30, "30h"])
def test_a_summary_in_between_changes_nothing(not_before: int | str) -> None:
    whole = follow(Ledger(make_settings(not_before)), 100)
    half = follow(Ledger(make_settings(not_before)), 20)
    again = restore(half.settings, json.loads(json.dumps(summarize(half))))
    one, other = summarize(follow(again, 100)), summarize(whole)
    assert {**one, "losses": None} == {**other, "losses": None}  # which depend on when somebody asked


@pytest.mark.parametrize("not_before", [3, "1h"])
def test_a_study_that_waits_does_not_guess(not_before: int | str) -> None:
    guess = Settings(("A", "B"), 0.5, binary=True)
    assert Ledger(guess).stopped is not None
    waits = Ledger(Settings(("A", "B"), 0.5, binary=True, not_before=not_before))
    assert waits.stopped is None
    assert waits.recommended is None


def test_a_budget_or_a_person_may_still_stop_it() -> None:
    study = create_memory_study(not_before=1_000, max_spend=0.01, cost=1e-3)
    for trial in iter(study.ask, None):
        study.tell(trial, 1.0)
    assert "another trial would exceed max_spend" in study.recommendation().reason
    study = create_memory_study(not_before="14d")
    study.add([("A", 9.0), ("B", 0.0), ("C", 0.0)] * 5)
    assert not study.should_stop()
    assert "; no stop before 20" in study.status().reason
    study.stop("done")
    assert study.recommendation().reason == "done"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"not_before": "0s"}, "`not_before` must be more than 0 and at most ten years but got '0s'"),
        ({"not_before": "99999999d"}, "`not_before` must be more than 0 and at most ten years"),
        ({"not_before": -1}, "`not_before` must be at least 0 but got -1"),
        ({"not_before": "soon"}, "`not_before` must be a duration such as .*, or a number of trials, but got 'soon'"),
        (
            {"not_before": 10, "policy": "dbcare"},
            "requires a policy that can wait, such as breakeven, but got 'dbcare'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        create_memory_study(**options)
