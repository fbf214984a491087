"""Policies that pull a fixed sequence of arms and blocks, whatever the rewards."""

from typing import Any

from dbcare.policies import CustomPolicy, Rule
from dbcare.policies.rule import BlockRule, State

PULLS, LEAD = 0, 1  # places in the state: pulls made, and how far arm 0 is ahead of the others


def _init(state: State, tables: Any, tie: int) -> None:
    state[PULLS] = 0.0
    state[LEAD] = 0.0


def _tell(state: State, tables: Any, arm: int, reward: float) -> None:
    state[PULLS] += 1.0
    state[LEAD] += reward if arm == 0 else -reward


def _recommend(state: State, tables: Any) -> int:
    return 0 if state[LEAD] > 0.0 else 1


def _tell_block(state: State, tables: Any, arm: int, block: int, reward: float, cost: float) -> None:
    _tell(state, tables, arm, reward)


def _send_block(state: State, tables: Any, arm: int, block: int) -> None:
    return


def _ask_by_rounds(state: State, tables: Any) -> int:
    arms, blocks = tables
    return int(state[PULLS]) % arms if state[PULLS] < arms * blocks else -1


def _round(state: State, tables: Any, arm: int) -> int:
    return int(state[PULLS]) // int(tables[0])


def _ask_by_arms(state: State, tables: Any) -> int:
    arms, blocks = tables
    return int(state[PULLS]) // blocks if state[PULLS] < arms * blocks else -1


def _next_of_pool(state: State, tables: Any, arm: int) -> int:
    return int(state[PULLS]) % int(tables[1])


def _ask_interpreted(state: State, tables: Any) -> int:
    chosen: int = {"arm": _ask_by_rounds(state, tables), "why": None}["arm"]  # type: ignore[assignment]  # an int
    return chosen


def _no_block(state: State, tables: Any, arm: int) -> int:
    return -1 if state[PULLS] >= 4.0 else 0


def _miss(state: State, tables: Any, arm: int, block: int, cost: float) -> None:
    _send_block(state, tables, arm, block)


LATE: dict[str, Any] = {"tell_block": _tell_block, "send_block": _send_block, "miss": _miss}
ROUNDS = BlockRule(_init, _ask_by_rounds, _tell, _recommend, block=_round, **LATE)
POOL = BlockRule(_init, _ask_by_arms, _tell, _recommend, block=_next_of_pool, **LATE)
INTERPRETED_ROUNDS = BlockRule(_init, _ask_interpreted, _tell, _recommend, block=_round, **LATE)
ENDING_BLOCKS = BlockRule(_init, _ask_by_rounds, _tell, _recommend, block=_no_block, **LATE)
INTERPRETED_ENDING_BLOCKS = BlockRule(_init, _ask_interpreted, _tell, _recommend, block=_no_block, **LATE)
WITHOUT_BLOCKS = Rule(_init, _ask_by_rounds, _tell, _recommend)


def make_fixed_policy(rule: Rule, arms: int, blocks: int) -> CustomPolicy:
    """Return a policy that pulls each arm in each block: block by block, or arm by arm if the rule is POOL."""
    return CustomPolicy(arms, rule, tables=(arms, blocks), state_size=2, max_pulls=arms * blocks)
