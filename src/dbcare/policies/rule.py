"""The form in which every decision rule is written: plain functions over one flat state.

A state is a flat sequence of numbers: a list where a run is stepped by hand or live, a float64 array where the
simulator has compiled the functions. They use indexing and arithmetic only, so both give the same decisions.

init(state, tables, tie)          fill the state; `tie` in 1..TIE_MODULUS-1 seeds the breaking of ties
ask(state, tables) -> arm         the arm to pull next, or STOP; reads only
tell(state, tables, arm, reward)  count one reward of the arm that was asked
recommend(state, tables) -> arm   the arm to choose if nothing more is pulled; reads only

A rule that takes rewards of any arm at any time has a fifth, for live studies whose answers come late:

send(state, tables, arm)          count a pull whose reward is still out: `ask` chooses as if it were made

`tables` is a named tuple of numbers and arrays that never change: what makes one policy differ from another
of the same rule. The functions never draw rewards and never see the true means.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

STOP = -1

# Ties are broken by the "minimal standard" generator of Park and Miller (1988): its products stay below 2^53, so
# that lists of Python numbers and arrays of float64 hold the same sequence.
TIE_MODULUS = 2147483647
TIE_MULTIPLIER = 48271


class State(Protocol):
    """A list of numbers or a float64 array."""

    def __getitem__(self, index: int, /) -> Any: ...
    def __setitem__(self, index: int, value: Any, /) -> None: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Rule:
    """A decision rule, written once, for the simulator and for live use."""

    init: Callable[[State, Any, int], None]
    ask: Callable[[State, Any], int]
    tell: Callable[[State, Any, int, float], None]
    recommend: Callable[[State, Any], int]
    send: Callable[[State, Any, int], None] | None = None


def pick(tie: float, choices: int) -> int:
    """One of 0..choices-1, uniform over the seeds of the tie-breaking generator."""
    return int(tie * choices / TIE_MODULUS)


def next_tie(tie: float) -> float:
    """The generator's next state."""
    return tie * TIE_MULTIPLIER % TIE_MODULUS
