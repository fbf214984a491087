"""Sampling in rounds of two pulls: the leader, then the challenger that was chosen with it."""

from collections.abc import Callable
from typing import Any

from dbcare.policies.adaptive.parts import OWN_SECTION, AdaptiveProblem, AdaptiveTables, SamplingPart
from dbcare.policies.breakeven_state import LEADER, section
from dbcare.policies.rule import State

THEN = OWN_SECTION  # the first number of this section: 1 + the other arm of a round that is under way, else 0


def sample_pairs(
    challenger: Callable[[State, Any], int],
    numbers: Callable[[AdaptiveProblem], Any],
    *,
    needs: tuple[str, ...],
    is_bernoulli: bool = False,
) -> SamplingPart:
    """Return the part that pulls the leader and its challenger in turn."""

    def choose(state: State, tables: AdaptiveTables) -> int:
        then = int(state[section(tables.cost, THEN)])
        return then - 1 if then > 0 else int(state[LEADER])

    def note(state: State, tables: AdaptiveTables, arm: int, pulls: int) -> None:
        then = section(tables.cost, THEN)
        for _ in range(min(pulls, 2)):  # more of the same arm change nothing
            if state[then] == 0:
                leader, other = int(state[LEADER]), challenger(state, tables)
                if arm == leader:
                    state[then] = 1 + other
                elif arm == other:  # rewards of a live study may arrive in any order
                    state[then] = 1 + leader
            elif arm == state[then] - 1:
                state[then] = 0

    return SamplingPart(choose, numbers, needs, note=note, sections=1, round_pulls=2, is_bernoulli=is_bernoulli)
