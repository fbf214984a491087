"""An experiment: which policies meet which bandits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dbcare.base import checks
from dbcare.errors import InvalidValueError
from dbcare.lab.experiments.passes import Point
from dbcare.policies.build import PolicyFacts, refuse_unknown
from dbcare.policies.policy import Policy
from dbcare.policies.registry import build_from_facts
from dbcare.problem.bandits import Bandit
from dbcare.problem.rewards import Bernoulli, Gaussian, Reward
from dbcare.problem.risk import Loss, Risk

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


@dataclass(frozen=True)
class Setting:
    """One column of an experiment's figure: bandits and costs along the axis, and the B that DBCARE gets."""

    title: str
    x: tuple[float, ...]
    bandits: tuple[Bandit, ...]
    costs: tuple[float, ...]
    bound: float


@dataclass(frozen=True)
class PaperFigure:
    """The figure of an experiment as the paper has it: fewer policies, so many plots per row, perhaps fewer gaps."""

    columns: int
    leave_out: tuple[str, ...] = ()  # labels of policies that are not in the paper
    largest: Mapping[Loss, float] = field(default_factory=dict)  # where its axis ends under a loss


@dataclass(frozen=True)
class Variant:
    """Another choice where the source leaves one open: the same points with our choice and with that one."""

    choice: str
    ours: str
    alternative: str
    base: Experiment
    changed: Experiment


@dataclass(frozen=True)
class Experiment:
    """Policies compared along an axis, in one or more settings, under one or both losses."""

    name: str
    title: str
    axis: str
    settings: tuple[Setting, ...]
    contenders: Mapping[str, Contender]  # by label in figures
    losses: tuple[Loss, ...]
    runs: int
    seed: int
    source: str = ""  # where the paper describes it
    decisions: tuple[str, ...] = ()  # what the source leaves open, and what we chose
    claims: tuple[str, ...] = ()  # names in `our_claims.ALL_CLAIMS`
    baselines: tuple[str, ...] = ()  # labels of the policies by whose risk the heat tables divide
    paper_figure: PaperFigure | None = None
    variants: tuple[Variant, ...] = ()

    def build_policy(self, label: str, setting: Setting, loss: Loss, place: int) -> Policy:
        """Build the policy called `label` at one place on the axis."""
        contender = self.contenders[label]
        risk = Risk(loss, setting.costs[place])
        facts = PolicyFacts.from_bandit(setting.bandits[place], risk, setting.bound)
        return build_from_facts(contender.policy, facts, contender.options)

    def count_runs(self, label: str) -> int:
        """Return the number of runs per point of a policy."""
        own = self.contenders[label].runs
        return self.runs if own is None else min(own, self.runs)  # with `quick`, the experiment has fewer

    @property
    def groups(self) -> list[str]:
        """The groups that have figures of their own; a single one without a name if no policy has a group."""
        named = dict.fromkeys(contender.group for contender in self.contenders.values() if contender.group)
        return list(named) or [""]

    def list_labels(self, group: str) -> list[str]:
        """List the policies in the figures of a group: its own, and those without a group."""
        return [label for label, contender in self.contenders.items() if contender.group in (group, "")]

    @cached_property
    def curves(self) -> dict[tuple[Loss, int, str], list[Point]]:
        """The points of each curve along the axis, by loss, index of the setting, and label."""
        return {
            (loss, number, label): [
                Point(self.build_policy(label, setting, loss, place), bandit, cost, self.count_runs(label), self.seed)
                for place, (bandit, cost) in enumerate(zip(setting.bandits, setting.costs, strict=True))
            ]
            for loss in self.losses
            for number, setting in enumerate(self.settings)
            for label, contender in self.contenders.items()
            if contender.only.allows(setting.bandits[0], loss)
        }

    @property
    def points(self) -> list[Point]:
        """All points of all curves and variants; points shared by two of them occur twice."""
        own = [point for curve in self.curves.values() for point in curve]
        return own + [point for variant in self.variants for point in variant.changed.points]
