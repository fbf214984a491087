"""An engine bound to a question: a compiled kernel with its arguments, and scratch memory for each thread."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dbcare.engines.outcomes import Outcomes
from dbcare.policies.policy import Policy


class KernelBlock:
    """Runs of a compiled kernel, with scratch memory of its own, for one thread."""

    def __init__(self, policy: Policy, scratch: int, run: Callable[..., None]) -> None:
        self.state, self.work = np.zeros(policy.state_size), np.zeros(scratch)
        self.run = run

    def __call__(self, outcomes: Outcomes, first: int) -> None:
        """Fill all of `outcomes`, beginning with run number `first`."""
        self.run(first, self.state, self.work, outcomes)

    @property
    def effort(self) -> float:
        """Work done so far, where the kernel counts it."""
        return float(self.work[-1])


@dataclass(frozen=True)
class Simulator:
    """An engine bound to a question; `block()` gives a filler of outcomes for one thread."""

    engine: str
    block: Callable[[], Any]
    guarantee: str
    checkpoint: int = 0
    charged: bool = False  # whether it adds up what the pulls of each run cost
    parallel: bool = True
    interpreted: str = ""  # why the policy could not be compiled, if it could not
