"""How a policy is built from what may be known of a problem."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import import_module
from typing import Any, cast

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError
from dbcare.policies.policy import Policy
from dbcare.policies.rule import Rule
from dbcare.problem.bandits import Bandit, ScoreTable
from dbcare.problem.rewards import Bernoulli
from dbcare.problem.risk import Risk
from dbcare.problem.spread import Spread

MAX_CAP_PULLS = 1e15


@dataclass(frozen=True)
class PolicyFacts:
    """The risk, the number of arms, the spread of the rewards, and what else is known.

    `bound` is the largest possible difference of two means, by default the width of the rewards' range; `gap` that
    between the two best arms, and `family` the rewards' distribution; None where nobody knows. Only yardsticks and
    simulations know the gap. `not_before` is the number of pulls before which a run must not stop, if there is one.
    `pool` is the number of blocks that arms share, if that is limited, and `only_these_blocks` whether the decision is
    about these very blocks rather than about more like them.
    """

    risk: Risk
    arms: int
    spread: Spread
    bound: float | None = None
    gap: float | None = None
    family: str | None = None
    not_before: int | None = None
    pool: int | None = None
    only_these_blocks: bool | None = None

    @classmethod
    def from_bandit(cls, bandit: Bandit, risk: Risk, bound: float | None = None) -> PolicyFacts:
        """Return what a simulation of `bandit` knows; `bound` defaults to the spread of its means, at least 1."""
        pool = bandit.blocks if isinstance(bandit, ScoreTable) else None
        return cls(
            risk,
            len(bandit.arms),
            _know_spread(bandit),
            max(bandit.spread, 1.0) if bound is None else bound,
            bandit.smallest_gap,
            "bernoulli" if isinstance(bandit.arms[0], Bernoulli) else "gaussian",
            pool=pool,
            only_these_blocks=None if pool is None else True,
        )

    @property
    def max_pulls(self) -> int:
        """The paper's cap on fixed confidence, 10 / cost, but at least one pull per arm."""
        return max(self.arms, round(min(10.0 / min(self.risk.costs(self.arms)), MAX_CAP_PULLS)))

    def known(self, *, learns: bool = False) -> dict[str, Any]:
        """Return the values by parameter; an unknown sigma is passed on as None, other unknown values are left out.

        A policy that `learns` the spread is given the likely sigma, any other one that is never too small.
        """
        values = {
            "risk": self.risk,
            "arms": self.arms,
            "sigma_pulls": self.spread.sigma_pulls,
            "largest_sigma": self.spread.largest,
            "bound": self.spread.width if self.bound is None else self.bound,
            "gap": self.gap,
            "family": self.family,
            "not_before": self.not_before,
            "max_pulls": self.max_pulls,
            "pool": self.pool,
            "only_these_blocks": self.only_these_blocks,
        }
        sigma = self.spread.guess if learns else self.spread.certain
        return {name: value for name, value in values.items() if value is not None} | {"sigma": sigma}


def _know_spread(bandit: Bandit) -> Spread:
    """Return what a simulation knows about the spread: that rewards are 0 or 1, or sigma and the range, if any."""
    if all(isinstance(arm, Bernoulli) for arm in bandit.arms):
        return Spread(binary=True)
    outcomes = [arm.outcomes for arm in bandit.arms if hasattr(arm, "outcomes")]
    if len(outcomes) < len(bandit.arms):
        return Spread(sigma=bandit.sigma)
    values = [value for arm_values, _ in outcomes for value in arm_values]
    return Spread(sigma=bandit.sigma, bounds=(min(values), max(values)))


# Parameters that a problem fills, and those of them that an option may replace.
OVERRIDABLE = (
    "sigma", "sigma_pulls", "largest_sigma", "bound", "max_pulls", "not_before", "pool", "only_these_blocks",
)  # fmt: skip
FACTS = ("risk", "arms", "gap", "family", *OVERRIDABLE)
PARAMETERS = {
    "init": ("state", "tables", "tie"),
    "ask": ("state", "tables"),
    "tell": ("state", "tables", "arm", "reward"),
    "recommend": ("state", "tables"),
    "send": ("state", "tables", "arm", "pulls"),
    "block": ("state", "tables", "arm"),
    "tell_block": ("state", "tables", "arm", "block", "reward", "cost"),
    "miss": ("state", "tables", "arm", "block", "cost"),
    "send_block": ("state", "tables", "arm", "block"),
    "end_round": ("state", "tables"),
}


def import_factory(path: str) -> Callable[..., Policy]:
    """Import a policy's class or function from `module:name`."""
    module, _, name = path.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise InvalidValueError(f"`policy` must have the form module:function but got {show(path)}.")
    try:
        factory = getattr(import_module(module), name)
    except (ImportError, AttributeError) as failure:
        raise InvalidValueError(f"Cannot import the policy {path}: {failure}.") from None
    if not callable(factory):
        raise InvalidValueError(f"`policy` must name a function but got {path}, which is {show(factory)}.")
    return cast(Callable[..., Policy], factory)


def find_parameters(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a factory."""
    try:
        return find_signature(factory).parameters
    except ValueError:  # a builtin that does not tell
        raise InvalidValueError(f"{show(factory)} must tell its parameters but does not.") from None


def find_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return a function's signature; those of functions and classes are remembered, as sweeps build many policies."""
    return _remember_signature(function) if isinstance(function, Hashable) else inspect.signature(function)


_remember_signature = lru_cache(maxsize=256)(inspect.signature)


def own_options(factory: Callable[..., Any]) -> list[str]:
    """Return the options that users may give: what no problem fixes, or what they may replace."""
    parameters = find_parameters(factory).values()
    taken = [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    own = [name for name in taken if name not in FACTS or name in OVERRIDABLE]
    return [*own, "budget_per_arm"] if "budget" in taken else own


def make_policy(name: str, factory: Callable[..., Policy], facts: Any, options: Mapping[str, Any]) -> Policy:
    """Call a factory with the facts and options it takes, and check what it returns.

    `facts` has a method `known` (`PolicyFacts`); a factory that takes `sigma_pulls` learns the spread, and is given the
    likely sigma. Where a policy takes a budget, `budget_per_arm` may be given instead.
    """
    taken = find_parameters(factory)
    refuse_unknown(f"Options of {name}", options, own_options(factory))
    known = facts.known(learns="sigma_pulls" in taken)
    arguments = {option: value for option, value in known.items() if option in taken} | dict(options)
    if "budget_per_arm" in arguments:
        if "budget" in arguments:
            raise InvalidValueError(f"Pass {name} either `budget` or `budget_per_arm`, not both.")
        per_arm = checks.whole("budget_per_arm", arguments.pop("budget_per_arm"), at_least=1)
        arguments["budget"] = per_arm * known["arms"]
    require_all(name, taken, arguments)
    if _is_shipped(factory) and _is_hashable(tuple(arguments.values())):
        return _build_once(name, factory, *((key, type(value), value) for key, value in arguments.items()))
    return _build(name, factory, arguments)


def _is_hashable(values: tuple[Any, ...]) -> bool:
    try:
        hash(values)
    except TypeError:
        return False
    return True


def _is_shipped(factory: Callable[..., Policy]) -> bool:
    """Return whether a factory is a class of this package, whose policies never change."""
    return isinstance(factory, type) and factory.__module__.startswith("dbcare.policies.")


def _build(name: str, factory: Callable[..., Policy], arguments: Mapping[str, Any]) -> Policy:
    policy = factory(**arguments)
    check_policy(name, policy)
    return policy


@lru_cache(maxsize=16)
def _build_once(name: str, factory: Callable[..., Policy], *arguments: tuple[str, type, Any]) -> Policy:
    """Build a policy that is likely to be asked for again: a sweep does so at every gap. True is not taken for 1."""
    return _build(name, factory, {key: value for key, _, value in arguments})


def check_factory(name: str, factory: Any) -> None:
    """Refuse what cannot build a policy: not callable, a class that is not complete, a rule of the wrong shape."""
    if not callable(factory):
        raise InvalidValueError(f"The source of {name} must be a Policy class or a function but got {show(factory)}.")
    if isinstance(factory, type):
        if not issubclass(factory, Policy):
            raise InvalidValueError(f"The source of {name} must be a subclass of Policy but got {show(factory)}.")
        if missing := sorted(getattr(factory, "__abstractmethods__", ())):
            raise InvalidValueError(
                f"{factory.__name__} cannot be registered as {name}: it lacks {', '.join(missing)}."
            )
        if isinstance(rule := inspect.getattr_static(factory, "rule", None), Rule):
            check_rule(name, rule)


def check_policy(name: str, policy: Any) -> None:
    """Refuse a policy that no engine could run."""
    if not isinstance(policy, Policy):
        raise InvalidValueError(f"{name} must return a Policy but got {show(policy)}.")
    if not isinstance(rule := getattr(policy, "rule", None), Rule):
        raise InvalidValueError(f"`rule` of {name} must be a Rule but got {show(rule)}.")
    check_rule(name, policy.rule)
    if not isinstance(policy.state_size, int) or policy.state_size < 1:
        raise InvalidValueError(f"`state_size` of {name} must be a positive integer but got {show(policy.state_size)}.")


def check_rule(name: str, rule: Rule) -> None:
    """Refuse a rule one of whose functions takes the wrong number of arguments."""
    for field in fields(rule):
        function = getattr(rule, field.name)
        if field.name not in PARAMETERS or (function is None and field.default is None):
            continue
        expected = PARAMETERS[field.name]
        wanted = f"`{field.name}` of {name} must be a function of ({', '.join(expected)})"
        if not callable(function):
            raise InvalidValueError(f"{wanted} but got {show(function)}.")
        try:
            signature = find_signature(function)
        except ValueError:  # a builtin that does not tell
            continue
        try:
            signature.bind(*expected)
        except TypeError:
            raise InvalidValueError(f"{wanted} but got one with {signature}.") from None


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse any of `given` that is not `known`, listing what is."""
    names = list(known)
    for name in given:
        if name not in names:
            raise InvalidValueError(f"{what} must be among {', '.join(names) or 'none'} but got {show(name)}.")


def require_all(name: str, taken: Mapping[str, inspect.Parameter], given: Mapping[str, Any]) -> None:
    """Refuse a call that lacks a parameter without a default."""
    missing = [
        option
        for option, parameter in taken.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and option not in given
    ]
    if missing:
        raise InvalidValueError(f"{name} requires {', '.join(missing)}.")
