"""What the checks of studies share: a study of three arms, rewards for it, and how errors are looked at."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dbcare.live.study import Study
from dbcare.live.trial import Trial

NAMES = ("A", "B", "C")
COST = 1e-3


class Checks:
    """Makes studies; subclasses define `make`.

    `moment` is a time in seconds in which a handful of calls are surely done: leases that are to run out last as long.
    `repeats` is how often checks that have chance in them are repeated, each time with another seed.
    """

    moment: ClassVar[float] = 0.05
    repeats: ClassVar[int] = 1

    def make(self, **settings: Any) -> Study:
        """A new study, with these arguments of `create_study`; the name is always given."""
        raise NotImplementedError("define `make` in a subclass")

    def study(self, **settings: Any) -> Study:
        """A new study of three arms, unless something else is said."""
        usual = {"name": f"study {uuid.uuid4()}", "arms": list(NAMES), "cost": COST, "sigma": 1.0}
        return self.make(**usual | settings)


def rewards(seed: int, apart: float = 0.4) -> Callable[[str], float]:
    """Gaussian rewards, each arm better than the one before."""
    generator = np.random.default_rng(seed)
    return lambda arm: float(generator.normal(apart * NAMES.index(arm), 1.0))


def asked(study: Study, **how: Any) -> Trial:
    """A trial that must be there."""
    trial: Trial | None = study.ask(**how)
    assert trial is not None, f"{study} had no trial to give"
    return trial


def refused(kind: type[Exception], attempt: Callable[[], object]) -> str:
    """The words of the error that `attempt` must raise."""
    try:
        attempt()
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was expected but nothing was raised")


def close(one: float | None, other: float) -> bool:
    """Equal up to rounding."""
    return one is not None and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
