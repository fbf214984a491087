"""Breakeven's two parts: the score that chooses an arm, and the break-even point of loss and spend."""

from typing import Any

from dbcare.policies.adaptive.parts import AdaptiveProblem, AdaptiveTables, SamplingPart, StoppingPart
from dbcare.policies.breakeven_rule import choose as choose_by_loss
from dbcare.policies.breakeven_rule import decide as decide_by_loss
from dbcare.policies.breakeven_state import DEVIATION, LEADER, LOSS, RIVAL, SPENT, section
from dbcare.policies.rule import State
from dbcare.policies.wording import Wording
from dbcare.problem.risk import Risk


def no_numbers(problem: AdaptiveProblem) -> Any:
    """Return nothing: what is read is in `AdaptiveTables.losses`."""
    return ()


def choose(state: State, tables: AdaptiveTables) -> int:
    """Return the arm whose next pull removes the most loss per unit of cost."""
    return choose_by_loss(state, tables.losses)


def decide(state: State, tables: AdaptiveTables) -> None:
    """Stop once the largest expected loss is no more than the spend."""
    if state[section(tables.cost, LOSS) + int(state[RIVAL])] <= state[SPENT]:
        decide_by_loss(state, tables.losses)


def describe(state: State, tables: AdaptiveTables, wording: Wording, risk: Risk | None) -> str:
    """Explain in one clause how the largest loss compares with the spend."""
    assert risk is not None
    if state[DEVIATION] == 0.0:
        return "the rewards do not vary yet, so their spread is unknown"
    loss = risk.money(state[section(tables.cost, LOSS) + int(state[RIVAL])], wording.currency)
    return (
        f"against {wording.arm(int(state[RIVAL]))}, {wording.arm(int(state[LEADER]))} is expected to lose {loss}, and "
        f"{risk.money(state[SPENT], wording.currency)} has been spent"
    )


SAMPLING = SamplingPart(choose, no_numbers, needs=("risk",), weighs_losses=True)
STOPPING = StoppingPart(decide, no_numbers, describe, needs=("risk",), weighs_losses=True)
