"""What choices that a source leaves open change: the risks, and which verdicts flip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from dbcare.lab.claims import ALL_CLAIMS
from dbcare.lab.curves import Panel, make_panels
from dbcare.lab.experiments.experiment import Experiment, Variant
from dbcare.lab.experiments.passes import Point
from dbcare.lab.experiments.results import Result
from dbcare.lab.figures import Table

EXPLANATION = (
    "Each row repeats the experiment with another choice, at some of its points and partly with fewer runs. "
    "Verdicts with ours are those at the same points, so they may differ from those above."
)
COLUMNS = ("choice", "ours", "alternative", "the alternative's risk over ours", "verdicts that flip")
UNCHANGED = 1e-6  # a change of the risk by less is none: the exact engine's error


def make_sensitivity_table(experiment: Experiment, results: Mapping[Point, Result]) -> Table:
    """Return a table of an experiment's variants, each judged by the claims at the same points as our choice."""
    rows = []
    for variant in experiment.variants:
        before, after = (make_panels(side, results) for side in (variant.base, variant.changed))
        changes = "; ".join(list_changes(variant, before, after)) or "none"
        flips = ". ".join(list_flips(experiment.claims, before, after)) or "none"
        rows.append((variant.choice, variant.ours, variant.alternative, changes, flips))
    return Table(COLUMNS, tuple(rows))


def list_changes(variant: Variant, before: Iterable[Panel], after: Iterable[Panel]) -> Iterator[str]:
    """Yield, for each policy whose risk changes, the range of the factor over all points of all panels."""
    pairs = list(zip(before, after, strict=True))
    for label in variant.base.contenders:
        both = [(old.curves[label].risk, new.curves[label].risk) for old, new in pairs if label in old.curves]
        ratios = np.concatenate([new / old for old, new in both]) if both else np.ones(1)
        if np.any(np.abs(ratios - 1.0) > UNCHANGED):
            yield f"{label}: {ratios.min():.3g} to {ratios.max():.3g}"


def list_flips(claims: Iterable[str], before: Iterable[Panel], after: Iterable[Panel]) -> Iterator[str]:
    """Yield each claim about the paper's policies with the panels in which its verdict is another one."""
    olds, news = list(before), list(after)
    for claim in (ALL_CLAIMS[name] for name in claims):
        pairs = [] if claim.ours else list(zip(claim.judge(olds), claim.judge(news), strict=True))
        for change, held in (("fails now", True), ("holds now", False)):
            panels = [old.panel for old, new in pairs if old.holds is held and new.holds is not held]
            if panels:
                yield f"{claim.text.rstrip('.')}: {change} ({'; '.join(panels)})"
