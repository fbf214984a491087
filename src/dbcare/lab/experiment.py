"""An experiment as data: settings, policies and costs, and the points that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dbcare.lab.contenders import Contender
from dbcare.lab.points import Point
from dbcare.policies.build import PolicyFacts
from dbcare.policies.policy import Policy
from dbcare.policies.registry import build_from_facts
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Loss, Risk


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
