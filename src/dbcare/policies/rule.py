"""The form of every decision rule: plain functions over one flat state.

A state is a flat sequence of numbers: a list in runs stepped by hand and in live studies, a float64 array in the
simulator, which compiles the functions. They use only indexing and arithmetic, so both make the same decisions.

init(state, tables, tie)          fill the state; `tie` in 1..TIE_MODULUS-1 seeds tie-breaking
ask(state, tables) -> arm         return the arm to pull next, or STOP; only reads
tell(state, tables, arm, reward)  count one reward of the arm that was asked for
recommend(state, tables) -> arm   return the arm to choose if there are no more pulls; only reads

A rule that accepts rewards of any arm at any time has a fifth function, for live studies whose rewards arrive late:

send(state, tables, arm)          count a pull whose reward is pending: `ask` chooses as if it had arrived

`tables` is a named tuple of numbers and arrays that never change; policies that share a rule differ in their tables.
The functions never draw rewards and never see the true means.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

STOP = -1

# Ties are broken by the "minimal standard" generator of Park and Miller (1988). Its products stay below 2^53, so that
# Python lists and float64 arrays hold the same sequence.
TIE_MODULUS = 2147483647
TIE_MULTIPLIER = 48271


class State(Protocol):
    """A list of numbers or a float64 array."""

    def __getitem__(self, index: int, /) -> Any: ...
    def __setitem__(self, index: int, value: Any, /) -> None: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Rule:
    """A decision rule, written once for both the simulator and live use.

    Parameters
    ----------
    init, ask, tell, recommend : callable
        The four functions, as the module's docstring describes them.
    send : callable, optional
        For rules that take rewards of any arm at any time.

    Examples
    --------
    >>> from dbcare import Rule, Uniform
    >>> isinstance(Uniform(arms=2, pulls=3).rule, Rule)
    True
    """

    init: Callable[[State, Any, int], None]
    ask: Callable[[State, Any], int]
    tell: Callable[[State, Any, int, float], None]
    recommend: Callable[[State, Any], int]
    send: Callable[[State, Any, int], None] | None = None


def pick(tie: float, choices: int) -> int:
    """Return one of 0..choices-1, uniformly over the states of the tie-breaking generator."""
    return int(tie * choices / TIE_MODULUS)


def next_tie(tie: float) -> float:
    """Return the generator's next state."""
    return tie * TIE_MULTIPLIER % TIE_MODULUS
