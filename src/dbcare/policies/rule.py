"""The form of every decision rule: plain functions over one flat state.

A state is a flat sequence of numbers: a list in runs stepped by hand and in live studies, a float64 array in the
simulator, which compiles the functions. They use only indexing and arithmetic, so both make the same decisions.

init(state, tables, tie)          fill the state; `tie` in 1..TIE_MODULUS-1 seeds tie-breaking
ask(state, tables) -> arm         return the arm to pull next, or STOP; only reads
tell(state, tables, arm, reward)  count one reward of the arm that was asked for
recommend(state, tables) -> arm   return the arm to choose if there are no more pulls; only reads

A rule that accepts rewards of any arm at any time has a fifth function, for live studies whose rewards arrive late:

send(state, tables, arm, pulls)   count pulls of an arm whose rewards are pending: `ask` chooses as if they had arrived

A rule whose pulls belong to blocks that arms share, such as a question that several of them answer, is a `BlockRule`.

`tables` is a named tuple of numbers and arrays that never change; policies that share a rule differ in their tables.
The functions never draw rewards and never see the true means.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

STOP = -1

# Ties are broken by the "minimal standard" generator of Park and Miller (1988). Its products stay below 2^53, so that
# Python lists and float64 arrays hold the same sequence.
TIE_MODULUS = 2147483647
TIE_MULTIPLIER = 48271

INDEX_BITS = 2**31 - 1


class State(Protocol):
    """A list of numbers or a float64 array."""

    def __getitem__(self, index: int, /) -> Any: ...
    def __setitem__(self, index: int, value: Any, /) -> None: ...
    def __len__(self) -> int: ...


class Calls(StrEnum):
    """How often a run calls a function of its rule; engines compile by it (`engines.kernels.compile`)."""

    SELDOM = "seldom"  # once per run, or where something happens
    EACH_PULL = "each pull"


@dataclass(frozen=True)
class Rule:
    """A decision rule, written once for both the simulator and live use.

    Parameters
    ----------
    init, ask, tell, recommend : callable
        The four functions, as the module's docstring describes them.
    send : callable, optional
        For rules that take rewards of any arm at any time.
    seldom : tuple of callables
        Functions that these call only where something happens, such as one that decides at the end of a round. Engines
        compile them once, instead of copying them into the functions that call them.

    Examples
    --------
    >>> from dbcare.policies import Rule, Uniform
    >>> isinstance(Uniform(arms=2, pulls=3).rule, Rule)
    True
    """

    init: Callable[[State, Any, int], None]
    ask: Callable[[State, Any], int]
    tell: Callable[[State, Any, int, float], None]
    recommend: Callable[[State, Any], int]
    send: Callable[[State, Any, int, int], None] | None = None
    seldom: tuple[Callable[..., Any], ...] = field(default=(), kw_only=True)

    @property
    def calls(self) -> dict[Callable[..., Any], Calls]:
        """How often a run calls the functions that simulators compile."""
        return {
            **dict.fromkeys((self.ask, self.tell), Calls.EACH_PULL),
            **dict.fromkeys((self.init, self.recommend, *self.seldom), Calls.SELDOM),
        }


@dataclass(frozen=True)
class BlockRule(Rule):
    """A rule that compares arms within blocks: questions, folds, or moments that all arms of a round share.

    Blocks are numbered from 0, and an arm is pulled at most once per block. `tell` counts a reward in the block that
    `block` returns for its arm; the other functions are for live studies, whose rewards arrive late and out of order.

    Parameters
    ----------
    block : callable
        block(state, tables, arm) returns the block of the arm's next pull, or STOP if it has none left; only reads.
    tell_block : callable
        tell_block(state, tables, arm, block, reward, cost) counts a reward in a block, and what the pull cost.
    miss : callable
        miss(state, tables, arm, block, cost) notes that a pull gave no reward, and what it cost anyway; the arm is not
        pulled in that block again.
    send_block : callable, optional
        send_block(state, tables, arm, block) counts a pull whose reward is pending, as `Rule.send` does: for rules
        that decide after every reward.
    end_round : callable, optional
        end_round(state, tables) ends the current block and decides: for rules that work round by round. All arms of
        the round are told or missed first.

    Examples
    --------
    >>> from dbcare import BreakevenRounds, Risk
    >>> rule = BreakevenRounds(Risk.simple_regret(0.01), arms=2).rule
    >>> rule.end_round is not None
    True
    """

    block: Callable[[State, Any, int], int] = field(kw_only=True)
    tell_block: Callable[[State, Any, int, int, float, float], None] = field(kw_only=True)
    miss: Callable[[State, Any, int, int, float], None] = field(kw_only=True)
    send_block: Callable[[State, Any, int, int], None] | None = field(default=None, kw_only=True)
    end_round: Callable[[State, Any], None] | None = field(default=None, kw_only=True)


def pick(tie: float, choices: int) -> int:
    """Return one of 0..choices-1, uniformly over the states of the tie-breaking generator."""
    return int(tie * choices / TIE_MODULUS)


def next_tie(tie: float) -> float:
    """Return the generator's next state."""
    return tie * TIE_MULTIPLIER % TIE_MODULUS


def index(number: float) -> int:
    """Return a whole number from 0 to INDEX_BITS, rounded down.

    The mask shows a compiler that it is not negative, so that indexing need not count from the end of an array, and
    loops over arms can use vector instructions.
    """
    return int(number) & INDEX_BITS
