"""What the paper says of its experiments, as checks that can fail.

A claim looks at the panels of an experiment and gives a verdict for each, with the figures behind it. That one policy
is worse than another must hold at the near ends of their means +- 2 standard errors; that something is never exceeded
fails only where it is exceeded by more than these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dbcare.lab.curves import Curve, Panel
from dbcare.policies.look import PolicyKind
from dbcare.risk import Loss

FACTOR = 2.0  # "sub-optimal": this many times DBCARE's risk
NEAR = 8.0  # "within a constant factor" of the oracle
FLAT = 2.0  # a risk that varies by no more is called flat

COMPETITORS = (PolicyKind.FIXED_BUDGET, PolicyKind.FIXED_CONFIDENCE, PolicyKind.OTHER)  # of DBCARE

Finding = tuple[bool, tuple[str, ...]]  # whether a claim holds in a panel, and the figures behind it


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in one panel, and why."""

    panel: str
    holds: bool
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """A statement, where it comes from, and how it is checked in a panel; silent where it says nothing.

    `gaps`: it is about a range of gaps, and says nothing along another axis, or of fewer than 3.
    """

    text: str
    source: str
    check: Callable[[Panel], Finding | None]
    gaps: bool = False
    ours: bool = False  # about our own policies, not the paper's

    def verdicts(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One for each panel that the claim speaks of."""
        for panel in panels:
            speaks = not self.gaps or (panel.axis == "gap" and len(panel.x) >= 3)
            found = self.check(panel) if speaks else None
            if found is not None:
                yield Verdict(panel.heading, *found)


def competitors_fail_somewhere(panel: Panel) -> Finding | None:
    """The largest ratio of each competitor's risk to DBCARE's is at least FACTOR."""
    return against_competitors(panel, FACTOR)


def never_dominated(panel: Panel) -> Finding | None:
    """DBCARE is better than each competitor somewhere."""
    return against_competitors(panel, 1.0)


def against_competitors(panel: Panel, factor: float) -> Finding | None:
    """Each competitor's risk exceeds `factor` times DBCARE's somewhere."""
    ours = dbcare_of(panel)
    rivals = panel.by_kind(*COMPETITORS)
    if ours is None or not rivals:
        return None
    ratios = {label: curve.low / ours.high for label, curve in rivals.items()}
    listed = [
        f"{label}: up to {np.max(ratio):.3g} times DBCARE's risk, at {panel.x[np.argmax(ratio)]:.3g}"
        for label, ratio in ratios.items()
    ]
    return all(bool(np.max(ratio) > factor) for ratio in ratios.values()), tuple(listed)


def near_oracle(panel: Panel) -> Finding | None:
    """DBCARE has at most NEAR times the oracle's risk."""
    ours, oracle = dbcare_of(panel), next(iter(panel.by_policy("known-gap-oracle").values()), None)
    if ours is None or oracle is None:
        return None
    ratio = ours.risk / oracle.risk
    ends = [f"{ratio[end]:.3g} times the oracle's risk at {panel.x[end]:.3g}" for end in (0, -1)]
    anywhere = f"at most {np.max(ratio):.3g} times, at {panel.x[np.argmax(ratio)]:.3g}"
    return bool(np.all(ours.low <= NEAR * oracle.high)), (*ends, anywhere)


def flat_below(panel: Panel) -> Finding | None:
    """Over the smallest quarter of the gaps DBCARE's risk varies by a factor of at most FLAT."""
    ours = dbcare_of(panel)
    if ours is None:
        return None
    few = max(2, len(panel.x) // 4)
    variation = {
        label: float(np.max(curve.risk[:few]) / np.min(curve.risk[:few]))
        for label, curve in panel.by_kind(PolicyKind.PAPER, PolicyKind.FIXED_CONFIDENCE).items()
    }
    span = f"between gaps of {panel.x[0]:.3g} and {panel.x[few - 1]:.3g}"
    listed = [f"{label}: varies by a factor of {factor:.3g} {span}" for label, factor in variation.items()]
    return bool(np.max(ours.high[:few]) <= FLAT * np.min(ours.low[:few])), tuple(listed)


def halving_not_monotone(panel: Panel) -> Finding | None:
    """The simple-regret risk of Sequential Halving with the larger budget first grows with the gap, then falls."""
    halving = list(panel.by_policy("sequential-halving").items())
    if panel.loss is not Loss.SIMPLE_REGRET or not halving:
        return None
    label, curve = max(halving, key=lambda each: float(each[1].pulls[0]))
    peak = int(np.argmax(curve.risk))
    inside = bool(curve.low[peak] > curve.high[0] and curve.low[peak] > curve.high[-1])
    ends = f"{curve.risk[0]:.4g} and {curve.risk[-1]:.4g} at the ends"
    return inside, (f"{label}: {curve.risk[peak]:.4g} at gap {panel.x[peak]:.3g}, {ends}",)


def confidence_worst_at_small_gaps(panel: Panel) -> Finding | None:
    """Fixed confidence has its largest risk at the smallest gap, up to noise."""
    curves = panel.by_kind(PolicyKind.FIXED_CONFIDENCE)
    if not curves:
        return None
    listed = [
        f"{label}: {curve.risk[0]:.4g} at the smallest gap, at most {np.max(curve.risk):.4g}"
        for label, curve in curves.items()
    ]
    return all(bool(np.max(curve.low) <= curve.high[0]) for curve in curves.values()), tuple(listed)


def fail_where_said(panel: Panel) -> Finding | None:
    """Each competitor is at its worst, against DBCARE, in the third of the range of gaps that the paper names."""
    ours = dbcare_of(panel)
    halving = sorted(panel.by_policy("sequential-halving").items(), key=lambda each: float(each[1].pulls[0]))
    if ours is None or len(halving) < 2:
        return None
    said = {halving[0][0]: 1, halving[-1][0]: 2} | dict.fromkeys(panel.by_kind(PolicyKind.FIXED_CONFIDENCE), 0)
    thirds = ("small", "moderate", "large")
    holds, listed = True, []
    for label, expected in said.items():
        worst = float(panel.x[np.argmax(panel.curves[label].risk / ours.risk)])
        third = min(2, int(3.0 * (worst - panel.x[0]) / (panel.x[-1] - panel.x[0])))
        holds = holds and third == expected
        listed.append(f"{label}: worst at {worst:.3g}, {thirds[third]} (said: {thirds[expected]})")
    return holds, tuple(listed)


def between_bounds(panel: Panel) -> Finding | None:
    """Lower bound <= DBCARE's risk <= its guarantee, everywhere."""
    ours = dbcare_of(panel)
    if ours is None:
        return None
    if not np.all(np.isfinite(panel.upper)):
        return None
    above, below = ours.risk / panel.lower, panel.upper / ours.risk
    return bool(np.all(ours.high >= panel.lower) and np.all(ours.low <= panel.upper)), (
        f"the risk is {np.min(above):.3g} to {np.max(above):.3g} times the lower bound",
        f"the guarantee is {np.min(below):.3g} to {np.max(below):.3g} times the risk",
    )


def pulls_within_lemma(panel: Panel) -> Finding | None:
    """DBCARE's mean pulls are at most the lemma's bound (plus one epoch, as epochs are whole)."""
    ours = dbcare_of(panel)
    if ours is None:
        return None
    share = ours.pulls / panel.pulls
    return bool(np.all(share <= 1.0)), (f"at most {np.max(share):.1%} of the bound",)


def dbcare_of(panel: Panel) -> Curve | None:
    """The curve of DBCARE, if the experiment has one."""
    return next(iter(panel.by_policy("dbcare").values()), None)


CLAIMS: dict[str, Claim] = {
    "competitors-fail-somewhere": Claim(
        f"Each competitor is at least {FACTOR:g} times as bad as DBCARE somewhere.",
        'Section 4: they "necessarily have some region of gaps where they perform sub-optimally"',
        competitors_fail_somewhere,
    ),
    "fail-where-said": Claim(
        "A small budget fails at moderate gaps, a large budget at large gaps, fixed confidence at small gaps.",
        "Section 4, simulation studies",
        fail_where_said,
        gaps=True,
    ),
    "never-dominated": Claim(
        "No competitor is at least as good as DBCARE everywhere.",
        'Section 4: "no other method uniformly outperforms" DBCARE',
        never_dominated,
    ),
    "near-oracle": Claim(
        f"DBCARE is within a constant factor, here {NEAR:g}, of the oracle at every gap.",
        'Section 4: "uniformly good performance across all" gaps',
        near_oracle,
        gaps=True,
    ),
    "flat-below": Claim(
        f"DBCARE's risk is flat as the gap goes to 0: it varies by less than a factor of {FLAT:g}.",
        "Section 2: below the transition the risk is governed by the budget",
        flat_below,
        gaps=True,
    ),
    "halving-not-monotone": Claim(
        "The simple-regret risk of Sequential Halving with a large budget rises and falls with the gap.",
        "Fig. 2",
        halving_not_monotone,
        gaps=True,
    ),
    "confidence-worst-at-small-gaps": Claim(
        "Fixed confidence is at its worst at the smallest gap.",
        "Section 4, Figs. 2, 4 and 5",
        confidence_worst_at_small_gaps,
        gaps=True,
    ),
    "between-bounds": Claim(
        "DBCARE's risk lies between the lower bound and DBCARE's guarantee.", "Theorems 1 to 4", between_bounds
    ),
    "pulls-within-lemma": Claim("DBCARE's mean pulls stay under the lemma's bound.", "Lemma 4", pulls_within_lemma),
}
