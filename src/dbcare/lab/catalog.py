"""Policies by name, for the command line and for experiments described as data.

A policy is asked for by its name and its own options; what the problem fixes (arms, sigma, the risk) is filled in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dbcare.bandit import Bandit
from dbcare.errors import InvalidValueError
from dbcare.policies.dbcare import DBCARE
from dbcare.policies.fixed import Guess, KnownGapOracle, Uniform
from dbcare.policies.halving import SequentialHalving, SuccessiveRejects
from dbcare.policies.policy import Policy
from dbcare.policies.racing import Racing, TwoArmConfidence
from dbcare.risk import Risk

POLICIES: dict[str, Callable[..., Policy]] = {
    "dbcare": DBCARE,
    "racing": Racing,
    "two-arm-confidence": TwoArmConfidence,
    "sequential-halving": SequentialHalving,
    "successive-rejects": SuccessiveRejects,
    "uniform": Uniform,
    "known-gap-oracle": KnownGapOracle,
    "guess": Guess,
}


@dataclass(frozen=True)
class Problem:
    """What a policy may be told: the bandit's size, scale and smallest gap, and the risk."""

    bandit: Bandit
    risk: Risk

    @property
    def known(self) -> dict[str, Any]:
        """Values for the parameters that policies share."""
        return {
            "risk": self.risk,
            "arms": len(self.bandit.arms),
            "sigma": self.bandit.sigma,
            "bound": max(self.bandit.spread, 1.0),
            "gap": self.bandit.smallest_gap,
            "max_pulls": round(10 / self.risk.single_cost),  # the paper's safeguard on fixed confidence
        }


def policy_by_name(name: str, problem: Problem, options: dict[str, Any]) -> Policy:
    """The policy called `name` for `problem`; an unknown name or option is an error that lists what exists."""
    if name not in POLICIES:
        raise InvalidValueError(f"`policy` must be one of {', '.join(POLICIES)} but got {name!r}.")
    make = POLICIES[name]
    taken = inspect.signature(make).parameters
    own = [option for option in taken if option not in problem.known or option in ("max_pulls", "bound", "sigma")]
    unknown = [option for option in options if option not in own]
    if unknown:
        raise InvalidValueError(f"Options of {name} must be among {', '.join(own) or 'none'} but got {unknown[0]!r}.")
    given = {option: value for option, value in problem.known.items() if option in taken} | options
    missing = [
        option for option, parameter in taken.items() if parameter.default is parameter.empty and option not in given
    ]
    if missing:
        raise InvalidValueError(f"{name} must be given {', '.join(missing)} but got {options or 'no options'}.")
    return make(**given)
