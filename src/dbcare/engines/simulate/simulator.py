"""A simulator: a compiled kernel bound to its arguments, with scratch memory per thread."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.policies.policy import Policy


class KernelBlock:
    """Runs a compiled kernel in one thread, with its own scratch memory."""

    def __init__(self, policy: Policy, scratch: int, run: Callable[..., None]) -> None:
        self.state, self.work = np.zeros(policy.state_size), np.zeros(scratch)
        self.run = run

    def __call__(self, outcomes: Outcomes, first: int) -> None:
        """Fill all of `outcomes`, starting with run number `first`."""
        self.run(first, self.state, self.work, outcomes)

    @property
    def effort(self) -> float:
        """Work done so far, if the kernel counts it."""
        return float(self.work[-1])


@dataclass(frozen=True)
class Simulator:
    """An engine bound to a policy and a bandit; `block()` returns a function that fills outcomes in one thread."""

    engine: str
    block: Callable[[], Any]
    guarantee: str
    checkpoint: int = 0
    charged: bool = False  # whether it adds up the cost of the pulls in each run
    tallied_arms: int = 0  # arms whose pulls and sums it records, or 0
    parallel: bool = True
    interpreted: str = ""  # why the policy could not be compiled; empty if it was

    def start_blocks(self, threads: int, caps: int | None = None) -> list[Any]:
        """Return a block for each thread; compiling, if it is needed at all, happens here and not in all of them."""
        blocks = [self.block() for _ in range(threads if self.parallel else 1)]
        blocks[0](self.allocate(0, caps), 0)
        return blocks

    def allocate(self, runs: int, caps: int | None = None) -> Outcomes:
        """Allocate the outcomes of so many runs, at each of `caps` caps if given."""
        return Outcomes.empty(
            runs, control=self.checkpoint > 0, charged=self.charged, caps=caps, tallied_arms=self.tallied_arms
        )
