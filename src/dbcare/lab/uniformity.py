"""How uniformly good policies are: each one's worst ratio to the best at the same point, and where it is the best."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from dbcare.base.look import PolicyKind
from dbcare.lab.curves import Panel
from dbcare.lab.figures import Table
from dbcare.policies.registry import POLICIES

EXPLANATION = (
    "The largest ratio of a policy's risk to that of the best policy in the table at the same point, where that is, "
    "and at how many points the policy is the best. Policies that know the gap are left out. Estimates are compared "
    "as they are, without regard to their standard errors."
)


@dataclass(frozen=True)
class Uniformity:
    """How a policy compares with the best of several at each point of a panel."""

    worst: float  # the largest ratio of its risk to the smallest
    place: float  # on the axis, where it is that much larger
    best_at: int  # so many points
    points: int

    def __str__(self) -> str:
        worst = f"{self.worst:.3g}" if self.worst < 1_000.0 else f"{self.worst:,.0f}"
        return f"{worst} at {self.place:.3g}, best at {self.best_at} of {self.points}"


def rank(panel: Panel, labels: Collection[str]) -> dict[str, Uniformity]:
    """Compare the policies with these labels, other than yardsticks, in a panel; ties count for all of them."""
    curves = {
        label: curve
        for label, curve in panel.curves.items()
        if label in labels and POLICIES.kind(curve.policy) is not PolicyKind.YARDSTICK
    }
    if not curves:
        return {}
    least = np.min([curve.risk for curve in curves.values()], axis=0)
    standings = {}
    for label, curve in curves.items():
        ratio = curve.risk / least
        worst = int(np.argmax(ratio))
        standings[label] = Uniformity(
            float(ratio[worst]), float(panel.x[worst]), int(np.sum(curve.risk == least)), len(least)
        )
    return standings


def make_standings_table(panels: Sequence[Panel], labels: Collection[str]) -> Table:
    """Return a table of standings: one row per policy, one column per panel."""
    ranked = [rank(panel, labels) for panel in panels]
    policies = dict.fromkeys(label for standings in ranked for label in standings)
    rows = tuple(
        (label, *(str(standings[label]) if label in standings else "" for standings in ranked)) for label in policies
    )
    return Table(("policy", *(panel.heading for panel in panels)), rows)
