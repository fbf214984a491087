"""`StudySuite` can fail: a study with one fault fails the check for that fault."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dbcare import Study, create_study
from dbcare.errors import DbcareError
from dbcare.studies.assignment import Assignment
from dbcare.studies.results.status import Status
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.open import open_store
from tests.suites.studies import StudySuite


class AcceptsAnything(StoredStudy):
    def tell(self, trial: Any = None, reward: Any = None, **options: Any) -> Any:
        try:
            return super().tell(trial, reward, **options)
        except DbcareError:
            return None


class TellsOneByOne(StoredStudy):
    def tell_many(self, outcomes: Any) -> None:
        for trial, reward in outcomes:
            self.tell(trial, reward)


class ForgetsKeys(StoredStudy):
    def ask(self, n: Any = None, lease: Any = "30m", worker: Any = None, **options: Any) -> Any:
        return super().ask(n, lease, worker, **options | {"key": None})


class ForgetsUnits(StoredStudy):
    def ask(self, n: Any = None, lease: Any = "30m", worker: Any = None, **options: Any) -> Any:
        return super().ask(n, lease, worker, **options | {"unit": None})


class RemembersUnitsOnly(StoredStudy):
    """Takes a unit for a key: it never gets a second trial, and does not know what became of the first."""

    def ask(self, n: Any = None, lease: Any = "30m", worker: Any = None, **options: Any) -> Any:
        return super().ask(n, lease, worker, key=options.pop("unit", None), **options)


class WaitsForever(StoredStudy):
    def ask(self, n: Any = None, lease: Any = "30m", worker: Any = None, **options: Any) -> Any:
        return super().ask(n, None, worker, **options)


class ChargesWhenAsked(StoredStudy):
    def status(self) -> Status:
        status = super().status()
        return replace(status, spent=status.asked * self.settings.costs[0])


class NeverPauses(StoredStudy):
    def pause(self) -> None:
        return


class HidesBlocks(StoredStudy):
    def ask(self, *arguments: Any, **options: Any) -> Any:
        found: Any = super().ask(*arguments, **options)
        return [replace(trial, block=None) for trial in found] if isinstance(found, list) else found


class IgnoresPrices(StoredStudy):
    def tell(self, trial: Any = None, reward: Any = None, **options: Any) -> Any:
        return super().tell(trial, reward, **options | {"price": None})


class DropsFastAnswers(StoredStudy):
    """Takes an answer that comes before an earlier trial's for a failure."""

    def tell(self, trial: Any = None, reward: Any = None, **options: Any) -> Any:
        first = next(pending.trial for pending in self.pending() if not pending.told)
        return super().tell(trial, reward, **options) if trial.id == first else super().tell(trial, failed=True)


class ForgetsTheWinner(StoredStudy):
    def assign(self, *arguments: Any, **options: Any) -> Assignment:
        found = super().assign(*arguments, **options)
        return replace(found, arm="A") if found.reason == "winner" else found


FAULTS: list[tuple[type[StoredStudy], Callable[[StudySuite], None]]] = [
    (AcceptsAnything, StudySuite.test_repeating_an_outcome_is_harmless),
    (AcceptsAnything, StudySuite.test_invalid_rewards),
    (TellsOneByOne, StudySuite.test_many_rewards_are_told_all_or_none),
    (ForgetsKeys, StudySuite.test_asking_again_with_the_same_key),
    (ForgetsUnits, StudySuite.test_a_unit_that_asks_many_times_at_once_gets_one_trial),
    (RemembersUnitsOnly, StudySuite.test_a_unit_whose_trial_failed_gets_a_new_one),
    (ForgetsUnits, StudySuite.test_units_run_ahead_without_a_limit),
    (ForgetsTheWinner, StudySuite.test_every_unit_is_assigned_an_arm),
    (WaitsForever, StudySuite.test_an_expired_trial_is_replaced),
    (WaitsForever, StudySuite.test_an_expired_trial_may_count_as_a_reward),
    (ChargesWhenAsked, StudySuite.test_a_failed_trial_may_be_free),
    (ChargesWhenAsked, StudySuite.test_prices_per_arm_in_money),
    (NeverPauses, StudySuite.test_pause_resume_stop),
    (HidesBlocks, StudySuite.test_rounds_are_handed_out_as_a_whole),
    (IgnoresPrices, StudySuite.test_a_trial_may_report_its_price),
    (IgnoresPrices, StudySuite.test_reported_prices_are_what_the_policy_weighs),
    (DropsFastAnswers, StudySuite.test_any_order_of_telling_gives_the_same_decisions),
]


def make_suite(kind: type[StoredStudy]) -> StudySuite:
    """Return the suite for studies of a class."""

    class Suite(StudySuite):
        def make(self, **settings: Any) -> Study:
            return kind(open_store(None), create_study(**settings).name)

    return Suite()


@pytest.mark.parametrize(("kind", "check"), FAULTS, ids=[f"{kind.__name__}-{check.__name__}" for kind, check in FAULTS])
def test_every_fault_is_found(kind: type[StoredStudy], check: Callable[[StudySuite], None]) -> None:
    with pytest.raises(AssertionError):
        check(make_suite(kind))
    check(make_suite(StoredStudy))
