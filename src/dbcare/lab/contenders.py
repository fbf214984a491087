"""Policies that take part in an experiment: each by name, with its options, and where it takes part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbcare.base import checks
from dbcare.errors import InvalidValueError
from dbcare.policies.build import refuse_unknown
from dbcare.problem.bandits import Bandit
from dbcare.problem.rewards import Bernoulli, Gaussian, Reward
from dbcare.problem.risk import Loss

OWN_KEYS = ("policy", "runs", "group", "only")  # of a policy's table; all others are options of the policy
ONLY_KEYS = ("max_arms", "rewards", "losses")
REWARDS: dict[str, type[Reward]] = {"gaussian": Gaussian, "binary": Bernoulli}


@dataclass(frozen=True)
class Only:
    """Where a policy takes part: with up to so many arms, with one kind of rewards, under some losses."""

    max_arms: int | None = None
    rewards: str | None = None  # a key of REWARDS
    losses: tuple[Loss, ...] = tuple(Loss)

    def allows(self, bandit: Bandit, loss: Loss) -> bool:
        """Return whether the policy takes part on a bandit, under a loss."""
        few = self.max_arms is None or len(bandit.arms) <= self.max_arms
        kind = Reward if self.rewards is None else REWARDS[self.rewards]
        return few and loss in self.losses and all(isinstance(arm, kind) for arm in bandit.arms)


EVERYWHERE = Only()


@dataclass(frozen=True)
class Contender:
    """A policy by name, with the options that the problem does not determine."""

    policy: str
    options: Mapping[str, Any]
    runs: int | None = None  # fewer than the experiment's, for a slow policy
    group: str = ""  # whose figures it is in; without one, it is in the figures of all groups
    only: Only = EVERYWHERE


def parse_contenders(tables: Any, runs: int) -> dict[str, Contender]:
    """Parse the tables `policies.LABEL` of an experiment with so many runs per point."""
    if not isinstance(tables, Mapping) or not tables:
        raise InvalidValueError("`policies` must be one or more tables, such as [policies.DBCARE].")
    contenders = {}
    for label, table in tables.items():
        name = f"policies.{label}"
        if not isinstance(table, Mapping) or "policy" not in table:
            raise InvalidValueError(f"`{name}` must be a table that names its policy.")
        options = {key: value for key, value in table.items() if key not in OWN_KEYS}
        own_runs = checks.whole(f"{name}.runs", table.get("runs", runs), at_least=2)
        if own_runs > runs:
            raise InvalidValueError(
                f"`{name}.runs` must be at most {runs}, the experiment's number of runs, but got {own_runs}."
            )
        contenders[label] = Contender(
            str(table["policy"]),
            options,
            own_runs if own_runs < runs else None,
            check_text(f"{name}.group", table.get("group", "")),
            _parse_only(f"{name}.only", table.get("only", {})),
        )
    return contenders


def _parse_only(name: str, table: Any) -> Only:
    if not isinstance(table, Mapping):
        raise InvalidValueError(f"`{name}` must be a table, such as {{ max_arms = 8 }}, but got {table!r}.")
    refuse_unknown(f"Keys of {name}", table, ONLY_KEYS)
    return Only(
        max_arms=checks.whole(f"{name}.max_arms", table["max_arms"], at_least=2) if "max_arms" in table else None,
        rewards=checks.one_of(f"{name}.rewards", table["rewards"], REWARDS) if "rewards" in table else None,
        losses=parse_losses(f"{name}.losses", table.get("losses", list(Loss))),
    )


def parse_losses(name: str, value: Any) -> tuple[Loss, ...]:
    """Parse one or several names of losses."""
    return tuple(Loss(checks.one_of(name, loss, list(Loss))) for loss in as_list(name, value))


def as_list(name: str, value: Any, *, empty: bool = False) -> list[Any]:
    """Return a list as it is, or a single value as a list."""
    if value == [] and not empty:
        raise InvalidValueError(f"`{name}` must have at least one value but got none.")
    return value if isinstance(value, list) else [value]


def check_text(name: str, value: Any) -> str:
    """Refuse what is not a text."""
    if not isinstance(value, str):
        raise InvalidValueError(f"`{name}` must be a text but got {value!r}.")
    return value
