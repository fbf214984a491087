"""All upper bounds that the paper proves, for the instance of a point: what a report checks measured risks against."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dbcare.bandit import Bandit
from dbcare.errors import InvalidValueError
from dbcare.policies.dbcare import DBCARE
from dbcare.policies.fixed import KnownGapOracle
from dbcare.risk import Loss
from dbcare.theory import budgets, elimination, upper


@dataclass(frozen=True)
class Guarantee:
    """A proven upper bound along the axis on a policy's risk, or on its expected loss alone; NaN where undefined."""

    policy: str  # its registered name
    statement: str  # where the paper proves it
    values: npt.NDArray[np.float64]
    of_loss: bool = False


def list_guarantees(
    loss: Loss, bandit: Bandit, cost: float, policy: DBCARE | None, oracle: KnownGapOracle | None
) -> list[Guarantee]:
    """List the bounds of DBCARE and of the oracle at one instance and cost, as far as they take part.

    A bound for the worst instance of a class holds for each of its instances, and a bound for the sigma that a policy
    was built with holds where that of the rewards is smaller.
    """
    arms, gap = len(bandit.arms), bandit.smallest_gap
    regret = loss is Loss.SIMPLE_REGRET
    found: list[Guarantee] = []

    def add(name: str, statement: str, compute: Callable[[], Any], *, of_loss: bool = False) -> None:
        try:
            value = float(compute())
        except InvalidValueError:  # the cost is too high for the bound to be defined
            value = math.nan
        found.append(Guarantee(name, statement, np.array(value), of_loss))

    if oracle is not None:
        known, number = oracle.sigma, 2 if regret else 1
        add("known-gap-oracle", f"Proposition {number}", lambda: upper.oracle(loss, gap, cost, known))
        add("known-gap-oracle", f"proof of Proposition {number}", lambda: upper.oracle_curve(loss, gap, cost, known))
        if regret:
            add("known-gap-oracle", "Proposition 2, any gap", lambda: upper.oracle_minimax(cost, known))
    if policy is None:
        return found
    sigma, bound = policy.sigma, policy.bound
    others = sorted(bandit.gaps)[1:]
    theorem = "Theorem 4" if regret else "Theorem 2"

    def bound_loss() -> float:
        undecided = int(elimination.undecided_arms(loss, others, cost, sigma, bound=bound, preset=policy.confidence))
        if regret:
            budget = budgets.epoch_budget(loss, max(undecided, 2), cost, sigma)
            return float(elimination.regret_of_choice(budget, undecided, sigma)) + bound * policy.delta
        chances = elimination.wrong_choice(loss, others, cost, sigma, bound=bound, preset=policy.confidence)
        return float(chances.sum()) + policy.delta

    if arms == 2:
        add("dbcare", f"corollary of {theorem}", lambda: upper.two_arm(loss, gap, cost, sigma, bound=bound))
        add("dbcare", "its proof", lambda: upper.two_arm_curve(loss, gap, cost, sigma, bound=bound))
        if regret:
            add("dbcare", "the corollary, any gap", lambda: upper.two_arm_minimax(cost, sigma))
    elif regret:
        hardness = bandit.complexity
        add("dbcare", theorem, lambda: upper.simple_regret(hardness, gap, arms, cost, sigma, bound=bound))
        add("dbcare", f"{theorem}, any gaps", lambda: upper.simple_regret_minimax(arms, cost, sigma))
    else:
        add("dbcare", theorem, lambda: upper.misidentification(bandit.complexity, arms, cost, sigma))
    lemma = "Lemma 7, corrected," if regret else "Lemma 6"
    add("dbcare", f"{lemma} and Lemma 5, without the cost of pulls", bound_loss, of_loss=True)
    return found
