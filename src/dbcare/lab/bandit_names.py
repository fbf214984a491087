"""Policies and bandits by name, for the command line and for experiments described as data.

A policy is asked for by its name and its own options; what the problem fixes (arms, sigma, the risk) is filled in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from dbcare import validation
from dbcare.bandit import Bandit
from dbcare.engines.best_sprt import BestSPRT
from dbcare.errors import InvalidValueError
from dbcare.policies.breakeven import Breakeven
from dbcare.policies.breakeven_racing import BreakevenRacing
from dbcare.policies.dbcare import DBCARE
from dbcare.policies.fixed import Guess, KnownGapOracle, Uniform
from dbcare.policies.halving import SequentialHalving, SuccessiveRejects
from dbcare.policies.policy import Policy
from dbcare.policies.racing import Racing, TwoArmConfidence
from dbcare.rewards import Bernoulli
from dbcare.risk import Risk

POLICIES: dict[str, Callable[..., Policy]] = {
    "dbcare": DBCARE,
    "breakeven": Breakeven,
    "breakeven-racing": BreakevenRacing,
    "racing": Racing,
    "two-arm-confidence": TwoArmConfidence,
    "sequential-halving": SequentialHalving,
    "successive-rejects": SuccessiveRejects,
    "uniform": Uniform,
    "known-gap-oracle": KnownGapOracle,
    "known-gap-sprt": BestSPRT,
    "guess": Guess,
}


BANDITS: dict[str, Callable[..., Bandit]] = {
    "gaussian": Bandit.gaussian,
    "bernoulli": Bandit.bernoulli,
    "two-arm": Bandit.two_arm,
    "two-arm-bernoulli": Bandit.two_arm_bernoulli,
    "one-sparse": Bandit.one_sparse,
    "linear-decay": Bandit.linear_decay,
    "drug-binary": Bandit.drug_binary,
    "drug-leveled": Bandit.drug_leveled,
}


@dataclass(frozen=True)
class Problem:
    """What a policy may be told: the bandit's size, scale and smallest gap, the risk, and the B of simple regret."""

    bandit: Bandit
    risk: Risk
    bound: float

    @property
    def known(self) -> dict[str, Any]:
        """Values for the parameters that policies share."""
        arms = len(self.bandit.arms)
        return {
            "risk": self.risk,
            "arms": arms,
            "sigma": self.bandit.sigma,
            "bound": self.bound,
            "gap": self.bandit.smallest_gap,
            "family": "bernoulli" if isinstance(self.bandit.arms[0], Bernoulli) else "gaussian",
            # The paper's safeguard on fixed confidence; one pull of each is always allowed.
            "max_pulls": max(arms, round(min(10.0 / min(self.risk.costs(arms)), 1e15))),
        }


def policy_by_name(name: str, problem: Problem, options: dict[str, Any]) -> Policy:
    """The policy called `name` for `problem`; an unknown name or option is an error that lists what exists.

    Where a policy takes a budget, `budget_per_arm` may be given instead. A name such as `module:function` calls a
    function of your own, which may take any of what the problem knows beside its options.
    """
    make = _imported(name) if ":" in name else POLICIES[validation.one_of("policy", name, POLICIES)]
    taken = inspect.signature(make).parameters
    own = [option for option in taken if option not in problem.known or option in ("max_pulls", "bound", "sigma")]
    if "budget" in taken:
        own.append("budget_per_arm")
    refuse_unknown(f"Options of {name}", options, own)
    given = {option: value for option, value in problem.known.items() if option in taken} | options
    if "budget_per_arm" in given:
        if "budget" in given:
            raise InvalidValueError(f"{name} must be given one of budget and budget_per_arm but got both.")
        given["budget"] = validation.whole("budget_per_arm", given.pop("budget_per_arm"), at_least=1) * given["arms"]
    _require_all(name, taken, given)
    policy = make(**given)
    if not isinstance(policy, Policy):
        raise InvalidValueError(f"{name} must return a Policy but got {policy!r}.")
    return policy


def _imported(name: str) -> Callable[..., Policy]:
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as failure:
        raise InvalidValueError(
            f"`policy` must name a function that can be imported but got {name}: {failure}."
        ) from None
    if not callable(found):
        raise InvalidValueError(f"`policy` must name a function but got {name}, which is {found!r}.")
    return cast(Callable[..., Policy], found)


def bandit_by_name(name: str, options: dict[str, Any]) -> Bandit:
    """The bandit called `name`; an unknown name or option is an error that lists what exists."""
    validation.one_of("bandit", name, BANDITS)
    make = BANDITS[name]
    taken = inspect.signature(make).parameters
    refuse_unknown(f"Options of {name}", options, [option for option in taken if option != "bound"])
    _require_all(name, taken, options)
    return make(**options)


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse any of `given` that is not `known`, listing what is."""
    listed = list(known)
    for each in given:
        if each not in listed:
            raise InvalidValueError(f"{what} must be among {', '.join(listed) or 'none'} but got {each!r}.")


def _require_all(name: str, taken: Mapping[str, inspect.Parameter], given: Mapping[str, Any]) -> None:
    missing = [
        option
        for option, parameter in taken.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and option not in given
    ]
    if missing:
        raise InvalidValueError(f"{name} must be given {', '.join(missing)} but got {', '.join(given) or 'nothing'}.")
