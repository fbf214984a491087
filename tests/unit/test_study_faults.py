"""The suite of studies finds what is wrong: studies with one fault each fail the check that is about it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dbcare import Study, create_study
from dbcare.errors import DbcareError
from dbcare.live.report import Status
from dbcare.live.stores.open import open_store
from dbcare.testing.study_suite import StudySuite


class TakesAnything(Study):
    def tell(self, trial: Any, reward: Any = None, *, failed: bool = False, charged: bool = True) -> None:
        try:
            super().tell(trial, reward, failed=failed, charged=charged)
        except DbcareError:
            return


class OneByOne(Study):
    def tell_many(self, answers: Any) -> None:
        for trial, reward in answers:
            self.tell(trial, reward)


class ForgetsKeys(Study):
    def ask(self, n: Any = None, lease: Any = "30m", worker: Any = None, **more: Any) -> Any:
        return super().ask(n, lease, worker, **more | {"key": None})


class WaitsForEver(Study):
    def ask(self, n: Any = None, lease: Any = "30m", worker: Any = None, **more: Any) -> Any:
        return super().ask(n, None, worker, **more)


class CountsCalls(Study):
    def status(self) -> Status:
        found = super().status()
        return replace(found, spent=found.asked * self.settings.costs[0])


class PausesNever(Study):
    def pause(self) -> None:
        return


FAULTS: list[tuple[type[Study], Callable[[StudySuite], None]]] = [
    (TakesAnything, StudySuite.test_told_twice),
    (TakesAnything, StudySuite.test_refused_when_told),
    (OneByOne, StudySuite.test_many_at_once_or_none),
    (ForgetsKeys, StudySuite.test_asking_again_with_the_same_key),
    (WaitsForEver, StudySuite.test_a_lease_that_runs_out_is_replaced),
    (WaitsForEver, StudySuite.test_a_timeout_may_be_a_reward),
    (CountsCalls, StudySuite.test_a_failed_trial_may_be_free),
    (CountsCalls, StudySuite.test_prices_by_arm_in_money),
    (PausesNever, StudySuite.test_pause_resume_stop),
]


def suite_of(kind: type[Study]) -> StudySuite:
    class Suite(StudySuite):
        def make(self, **settings: Any) -> Study:
            return kind(open_store(None), create_study(**settings).name)

    return Suite()


@pytest.mark.parametrize(("kind", "check"), FAULTS, ids=[f"{kind.__name__}-{check.__name__}" for kind, check in FAULTS])
def test_a_fault_is_found(kind: type[Study], check: Callable[[StudySuite], None]) -> None:
    with pytest.raises(AssertionError):
        check(suite_of(kind))
    check(suite_of(Study))
