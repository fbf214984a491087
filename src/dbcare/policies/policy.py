"""What every policy is: a value object that carries a rule, its tables and a bound on its pulls."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.policies import rounds
from dbcare.policies.rounds import ALIVE, ROUND, RoundRule
from dbcare.policies.rule import TIE_MODULUS, Rule, State
from dbcare.policies.run import Run, RunEvent
from dbcare.risk import Risk


class Policy(ABC):
    """A decision rule with its tables; those that ship are values: equal fields make equal policies."""

    arms: int
    rule: Rule
    risk: Risk | None  # the risk the policy was made for, if it was made for one

    @property
    @abstractmethod
    def tables(self) -> Any:
        """The numbers that the rule reads."""

    @property
    @abstractmethod
    def state_size(self) -> int:
        """How many numbers a state holds."""

    @property
    @abstractmethod
    def max_pulls(self) -> int:
        """The most pulls the policy can ever make."""

    @property
    def largest_spread(self) -> float:
        """The largest difference of two means that the policy was made for."""
        return math.inf

    @property
    def largest_reward(self) -> float:
        """The largest size of a reward that the rule can reckon with."""
        return math.inf

    def start(self, seed: int = 0) -> Run:
        """A new run, stepped by hand; `seed` breaks ties."""
        generator = np.random.default_rng(validation.whole("seed", seed, at_least=0))
        return Run.fresh(self, int(generator.integers(1, TIE_MODULUS)))

    def resume(self, snapshot: dict[str, Any]) -> Run:
        """The run that `Run.snapshot` described."""
        return Run.restored(self, snapshot)

    def events(self, before: State, after: State) -> list[RunEvent]:
        """What one reward changed that a person would want to know, such as an arm dropped."""
        return []

    def why_stopped(self, state: State) -> str:
        """In one clause, why no more is pulled."""
        return "the policy asks for no more pulls"

    def progress(self, state: State) -> str:
        """In one clause, how far a run has come."""
        return "running"


class RoundPolicy(Policy):
    """A policy that pulls all survivors equally often, round by round."""

    rule: RoundRule

    @property
    def state_size(self) -> int:
        return rounds.state_size(self.arms)

    def progress(self, state: State) -> str:
        return f"round {int(state[ROUND]) + 1}, {int(state[ALIVE])} of {self.arms} arms left"

    def events(self, before: State, after: State) -> list[RunEvent]:
        arms = rounds.arms_offset(after)
        survivors = int(before[ALIVE])
        return [
            RunEvent(int(after[arms + slot]), self.why_dropped(before, after, slot))
            for slot in range(int(after[ALIVE]), survivors)
        ]

    @abstractmethod
    def why_dropped(self, before: State, after: State, slot: int) -> str:
        """In one clause with its numbers, why the arm now at `slot` was dropped."""


class CustomPolicy(Policy):
    """A policy of your own: a rule of four functions, and what they read.

    The functions must be plain Python that uses indexing and arithmetic (see `dbcare.policies.rule`); the simulator
    compiles them where it can.
    """

    def __init__(
        self,
        arms: int,
        rule: Rule,
        *,
        tables: Any,
        state_size: int,
        max_pulls: int,
        risk: Risk | None = None,
        name: str = "custom",
    ) -> None:
        for what, value, kind in (("rule", rule, Rule), ("risk", risk, Risk | None)):
            if not isinstance(value, kind):
                raise InvalidValueError(f"`{what}` must be a {what.capitalize()} but got {value!r}.")
        self.name = name
        self.arms = validation.whole("arms", arms, at_least=2)
        self.rule = rule
        self.risk = risk
        self._tables = tables
        self._state_size = validation.whole("state_size", state_size, at_least=1)
        self._max_pulls = validation.whole("max_pulls", max_pulls, at_least=0)

    def __repr__(self) -> str:
        return f"CustomPolicy({self.name!r}, arms={self.arms}, max_pulls={self.max_pulls})"

    @property
    def tables(self) -> Any:
        return self._tables

    @property
    def state_size(self) -> int:
        return self._state_size

    @property
    def max_pulls(self) -> int:
        return self._max_pulls
