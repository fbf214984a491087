"""The stop of fixed-budget rules: after a given number of pulls."""

from typing import NamedTuple

from dbcare.policies.adaptive.parts import AdaptiveProblem, AdaptiveTables, StoppingPart
from dbcare.policies.breakeven_state import PULLS, STOPPED
from dbcare.policies.rule import State
from dbcare.policies.wording import Wording
from dbcare.problem.risk import Risk


class BudgetNumbers(NamedTuple):
    """The number of pulls."""

    budget: int


def decide(state: State, tables: AdaptiveTables) -> None:
    """Stop once the budget is used up."""
    if state[PULLS] >= tables.stopping.budget:
        state[STOPPED] = 1


def describe(state: State, tables: AdaptiveTables, wording: Wording, risk: Risk | None) -> str:
    """Explain in one clause how much of the budget is used."""
    return f"{int(state[PULLS])} of {wording.count(tables.stopping.budget)} are made"


def numbers(problem: AdaptiveProblem) -> BudgetNumbers:
    """Return the budget."""
    assert problem.budget is not None
    return BudgetNumbers(problem.budget)


STOPPING = StoppingPart(decide, numbers, describe, needs=("budget",))
