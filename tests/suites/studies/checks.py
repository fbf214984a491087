"""Shared by the checks of studies: a study of three arms, rewards for it, and a check that a call is refused."""

from __future__ import annotations

import math
import re
import time
import uuid
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dbcare.base.look import PolicyKind
from dbcare.policies.registry import POLICIES
from dbcare.studies.study import Study
from dbcare.studies.trial import Trial

NAMES = ("A", "B", "C")
COST = 1e-3
REQUEST_ID = re.compile(r" \(Request [^()]+\)$")


class Checks:
    """Makes the studies to check; see `StudySuite` for the attributes."""

    lease_seconds: ClassVar[float] = 0.05
    repeats: ClassVar[int] = 1

    @property
    def policies(self) -> list[str]:
        """The policies that studies are checked with: the paper's and ours, which stop soon and take any risk."""
        return [name for name in POLICIES.live if POLICIES[name].kind in (PolicyKind.PAPER, PolicyKind.OURS)]

    def make(self, **settings: Any) -> Study:
        """Return a new study; `settings` are arguments of `create_study`, always with a name."""
        raise NotImplementedError("Define `make` in a subclass of StudySuite.")

    def make_study(self, **settings: Any) -> Study:
        """Make a study of three arms, unless the settings say otherwise."""
        defaults = {"name": f"study {uuid.uuid4()}", "arms": list(NAMES), "cost": COST, "sigma": 1.0}
        return self.make(**defaults | settings)

    def wait_for_expiry(self) -> None:
        """Wait until leases of `lease_seconds` have expired."""
        time.sleep(1.2 * self.lease_seconds)


def works_in_epochs(study: Study) -> bool:
    """Return whether the study's policy knows its next trials in advance, as those in epochs do."""
    policy = study.settings.built_policy
    return not study.settings.has_blocks and policy.upcoming(policy.start().state) is not None


def draw_rewards(seed: int, gap: float = 0.4) -> Callable[[str], float]:
    """Return a function that draws an arm's Gaussian rewards; each arm is better than the one before by `gap`."""
    generator = np.random.default_rng(seed)
    return lambda arm: float(generator.normal(gap * NAMES.index(arm), 1.0))


def ask_one(study: Study, **options: Any) -> Trial:
    """Ask for a trial, which must be available."""
    trial: Trial | None = study.ask(**options)
    assert trial is not None, f"{study} has no trial available"
    return trial


def catch_error(kind: type[Exception], attempt: Callable[[], object]) -> str:
    """Return the message of the error that `attempt` must raise, without the id of a request to a server."""
    try:
        attempt()
    except kind as error:
        return REQUEST_ID.sub("", str(error))
    raise AssertionError(f"{kind.__name__} was expected but nothing was raised")


def is_close(one: float | None, other: float) -> bool:
    """Return whether two numbers are equal up to rounding."""
    return one is not None and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
