"""All upper bounds that the paper proves, for the instances of a panel: what a report checks measured risks against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dbcare.errors import InvalidValueError
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.planned import KnownGapOracle
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Loss
from dbcare.theory import budgets, elimination, upper

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Guarantee:
    """A proven upper bound along the axis on a policy's risk, or on its expected loss alone; NaN where undefined."""

    policy: str  # its registered name
    statement: str  # where the paper proves it
    values: Floats
    of_loss: bool = False


def list_guarantees(
    loss: Loss,
    bandits: Sequence[Bandit],
    costs: Floats,
    dbcare: Sequence[DBCARE] | None,
    oracle: Sequence[KnownGapOracle] | None,
) -> tuple[Guarantee, ...]:
    """List the bounds of DBCARE and of the oracle along an axis, as far as they take part.

    A bound for the worst instance of a class holds for each of its instances, and a bound for the sigma that a policy
    was built with holds where that of the rewards is smaller.
    """
    others = np.array([sorted(bandit.gaps)[1:] for bandit in bandits])
    found: list[Guarantee] = []
    if oracle is not None:
        found += _list_for_oracle(loss, others[:, 0], costs, np.array([policy.sigma for policy in oracle]))
    if dbcare is not None:
        hardness = np.array([bandit.complexity for bandit in bandits])
        found += _list_for_dbcare(loss, others, hardness, costs, dbcare)
    return tuple(found)


def _list_for_oracle(loss: Loss, gaps: Floats, costs: Floats, sigmas: Floats) -> list[Guarantee]:
    number = 2 if loss is Loss.SIMPLE_REGRET else 1
    bounds = [
        Guarantee("known-gap-oracle", f"Proposition {number}", np.asarray(upper.oracle(loss, gaps, costs, sigmas))),
        Guarantee(
            "known-gap-oracle",
            f"proof of Proposition {number}",
            np.asarray(upper.oracle_curve(loss, gaps, costs, sigmas)),
        ),
    ]
    if loss is Loss.SIMPLE_REGRET:
        any_gap = np.asarray(upper.oracle_minimax(costs, sigmas))
        bounds.append(Guarantee("known-gap-oracle", "Proposition 2, any gap", any_gap))
    return bounds


def _list_for_dbcare(
    loss: Loss, others: Floats, hardness: Floats, costs: Floats, policies: Sequence[DBCARE]
) -> list[Guarantee]:
    arms, regret, preset = others.shape[1] + 1, loss is Loss.SIMPLE_REGRET, policies[0].confidence
    theorem, lemma = ("Theorem 4", "Lemma 7, corrected,") if regret else ("Theorem 2", "Lemma 6")
    sigmas, bounds, deltas = np.array([(policy.sigma, policy.bound, policy.delta) for policy in policies]).T
    found: list[Guarantee] = []

    def add(statement: str, compute: Callable[..., Any], *columns: Floats, of_loss: bool = False) -> None:
        found.append(Guarantee("dbcare", statement, _compute_where_defined(compute, columns), of_loss))

    def bound_loss(gaps: Floats, cost: Floats, sigma: Floats, bound: Floats, delta: Floats) -> Any:
        undecided = elimination.undecided_arms(loss, gaps, cost, sigma, bound=bound, preset=preset)
        if regret:
            budget = budgets.epoch_budget(loss, np.maximum(undecided, 2), cost, sigma)
            return elimination.regret_of_choice(budget, undecided, sigma) + bound * delta
        return elimination.wrong_choice(loss, gaps, cost, sigma, bound=bound, preset=preset).sum(axis=-1) + delta

    gaps = others[:, 0]
    if arms == 2 and preset == "paper":  # the corollaries' delta
        add(
            f"corollary of {theorem}",
            lambda g, c, s, b: upper.two_arm(loss, g, c, s, bound=b),
            gaps,
            costs,
            sigmas,
            bounds,
        )
        add("its proof", lambda g, c, s, b: upper.two_arm_curve(loss, g, c, s, bound=b), gaps, costs, sigmas, bounds)
        if regret:
            add("the corollary, any gap", upper.two_arm_minimax, costs, sigmas)
    elif regret:
        add(
            theorem,
            lambda h, g, c, s, b: upper.simple_regret(h, g, arms, c, s, bound=b),
            hardness, gaps, costs, sigmas, bounds,
        )  # fmt: skip
        add(f"{theorem}, any gaps", lambda c, s: upper.simple_regret_minimax(arms, c, s), costs, sigmas)
    else:
        add(theorem, lambda h, c, s: upper.misidentification(h, arms, c, s), hardness, costs, sigmas)
    statement = f"{lemma} and Lemma 5, without the cost of pulls"
    add(statement, bound_loss, others, costs, sigmas, bounds, deltas, of_loss=True)
    return found


def _compute_where_defined(compute: Callable[..., Any], columns: Sequence[Floats]) -> Floats:
    """Compute a bound at all points, or point by point with NaN where the cost is too high for it to be defined."""
    try:
        return np.asarray(compute(*columns), dtype=np.float64)
    except InvalidValueError:
        if len(columns[0]) == 1:
            return np.array([np.nan])
    points = range(len(columns[0]))
    return np.concatenate([_compute_where_defined(compute, [each[[place]] for each in columns]) for place in points])
