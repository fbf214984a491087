"""What the paper says of its experiments, as checks that can fail.

A claim looks at the panels of an experiment and gives a verdict for each, with the figures behind it. Monte Carlo
error counts against it: risks are compared at the far ends of their mean +- 2 standard errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dbcare.lab.curves import Curve, Floats, Panel
from dbcare.risk import Loss

FACTOR = 2.0  # "sub-optimal": this many times DBCARE's risk
NEAR = 8.0  # "within a constant factor" of the oracle
FLAT = 0.25  # the steepest slope, on log-log axes, that is called flat

COMPETITORS = ("sequential-halving", "successive-rejects", "uniform", "racing", "two-arm-confidence")
CONFIDENCE = ("racing", "two-arm-confidence")


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in one panel, and why."""

    panel: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class Claim:
    """A statement, where it comes from, and how it is checked in a panel; silent where it says nothing."""

    text: str
    source: str
    check: Callable[[Panel], tuple[bool, str] | None]

    def verdicts(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """One for each panel that the claim speaks of."""
        for panel in panels:
            found = self.check(panel)
            if found is not None:
                yield Verdict(panel.heading, *found)


def competitors_fail_somewhere(panel: Panel) -> tuple[bool, str] | None:
    """The largest ratio of each competitor's risk to DBCARE's is at least FACTOR."""
    ours = dbcare_of(panel)
    worst = {
        label: float(np.max(curve.low / ours.high)) for label, curve in panel.by_policy(*COMPETITORS).items() if ours
    }
    return judged(worst, lambda ratio: ratio >= FACTOR, "up to {} times DBCARE's risk")


def never_dominated(panel: Panel) -> tuple[bool, str] | None:
    """DBCARE is better than each competitor somewhere."""
    ours = dbcare_of(panel)
    worst = {
        label: float(np.max(curve.low / ours.high)) for label, curve in panel.by_policy(*COMPETITORS).items() if ours
    }
    return judged(worst, lambda ratio: ratio > 1.0, "up to {} times DBCARE's risk")


def near_oracle(panel: Panel) -> tuple[bool, str] | None:
    """At the smallest and at the largest gap DBCARE has at most NEAR times the oracle's risk."""
    ours, oracle = dbcare_of(panel), next(iter(panel.by_policy("known-gap-oracle").values()), None)
    if ours is None or oracle is None:
        return None
    ratio = ours.risk / oracle.risk
    ends = {f"at {panel.x[end]:.3g}": float(ratio[end]) for end in (0, -1)}
    holds, evidence = judged(ends, lambda each: each <= NEAR, "{} times the oracle's risk") or (False, "")
    return holds, f"{evidence}; at most {np.max(ratio):.3g} times anywhere"


def flat_below(panel: Panel) -> tuple[bool, str] | None:
    """The mean log-log slope of DBCARE's risk over the smallest tenth of the gaps is at most FLAT."""
    ours = dbcare_of(panel)
    if ours is None:
        return None
    last = max(1, len(panel.x) // 10)
    slope = float(np.log(ours.risk[last] / ours.risk[0]) / np.log(panel.x[last] / panel.x[0]))
    return abs(slope) <= FLAT, f"log-log slope {slope:+.2f} from gap {panel.x[0]:.3g} to {panel.x[last]:.3g}"


def halving_not_monotone(panel: Panel) -> tuple[bool, str] | None:
    """The simple-regret risk of Sequential Halving with the larger budget first grows with the gap, then falls."""
    halving = list(panel.by_policy("sequential-halving").items())
    if panel.loss is not Loss.SIMPLE_REGRET or not halving:
        return None
    label, curve = max(halving, key=lambda each: float(each[1].pulls[0]))
    peak = int(np.argmax(curve.risk))
    inside = bool(curve.low[peak] > curve.high[0] and curve.low[peak] > curve.high[-1])
    ends = f"{curve.risk[0]:.4g} and {curve.risk[-1]:.4g} at the ends"
    return inside, f"{label}: {curve.risk[peak]:.4g} at gap {panel.x[peak]:.3g}, {ends}"


def confidence_worst_at_small_gaps(panel: Panel) -> tuple[bool, str] | None:
    """Fixed confidence has its largest risk at the smallest gap, up to noise."""
    share = {label: float(np.max(curve.low) / curve.high[0]) for label, curve in panel.by_policy(*CONFIDENCE).items()}
    return judged(share, lambda ratio: ratio <= 1.0, "largest risk {} of that at the smallest gap")


def fail_where_said(panel: Panel) -> tuple[bool, str] | None:
    """Each competitor is at its worst, against DBCARE, in the third of the (logarithmic) axis that the paper names."""
    ours = dbcare_of(panel)
    halving = sorted(panel.by_policy("sequential-halving").items(), key=lambda each: float(each[1].pulls[0]))
    if ours is None or len(halving) < 2:
        return None
    said = {halving[0][0]: 1, halving[-1][0]: 2} | dict.fromkeys(panel.by_policy(*CONFIDENCE), 0)
    thirds = ("small", "moderate", "large")
    holds, parts = True, []
    for label, expected in said.items():
        peak = int(np.argmax(panel.curves[label].risk / ours.risk))
        third = min(2, 3 * peak // len(panel.x))
        holds = holds and third == expected
        parts.append(f"{label}: worst at {panel.x[peak]:.3g}, {thirds[third]} (said: {thirds[expected]})")
    return holds, "; ".join(parts)


def between_bounds(panel: Panel) -> tuple[bool, str] | None:
    """Lower bound <= DBCARE's risk <= its guarantee, everywhere."""
    ours = dbcare_of(panel)
    if ours is None:
        return None
    above, below = ours.risk / panel.lower, panel.upper / ours.risk
    holds = bool(np.all(ours.high >= panel.lower) and np.all(ours.low <= panel.upper))
    return (
        holds,
        f"{np.min(above):.3g} to {np.max(above):.3g} times the lower bound; guarantee {_span(below)} times the risk",
    )


def pulls_within_lemma(panel: Panel) -> tuple[bool, str] | None:
    """DBCARE's mean pulls are at most the lemma's bound (plus one epoch, as epochs are whole)."""
    ours = dbcare_of(panel)
    if ours is None:
        return None
    share = ours.pulls / panel.pulls
    return bool(np.all(share <= 1.0)), f"at most {np.max(share):.1%} of the bound"


def dbcare_of(panel: Panel) -> Curve | None:
    """The curve of DBCARE, if the experiment has one."""
    return next(iter(panel.by_policy("dbcare").values()), None)


def judged(figures: dict[str, float], good: Callable[[float], bool], text: str) -> tuple[bool, str] | None:
    """Whether all figures are good; the evidence lists each."""
    if not figures:
        return None
    listed = "; ".join(f"{label}: {text.format(f'{value:.3g}')}" for label, value in figures.items())
    return all(good(value) for value in figures.values()), listed


def _span(values: Floats) -> str:
    return f"{np.min(values):.3g} to {np.max(values):.3g}"


CLAIMS: dict[str, Claim] = {
    "competitors-fail-somewhere": Claim(
        f"Each fixed-budget and fixed-confidence competitor is at least {FACTOR:g} times as bad as DBCARE somewhere.",
        'Section 4: they "necessarily have some region of gaps where they perform sub-optimally"',
        competitors_fail_somewhere,
    ),
    "fail-where-said": Claim(
        "A small budget fails at moderate gaps, a large budget at large gaps, fixed confidence at small gaps.",
        "Section 4, simulation studies",
        fail_where_said,
    ),
    "never-dominated": Claim(
        "No competitor is at least as good as DBCARE everywhere.",
        'Section 4: "no other method uniformly outperforms" DBCARE',
        never_dominated,
    ),
    "near-oracle": Claim(
        f"DBCARE is within a constant factor, here {NEAR:g}, of the oracle at both ends.",
        'Section 4: "uniformly good performance across all" gaps',
        near_oracle,
    ),
    "flat-below": Claim(
        f"DBCARE's risk is flat as the gap goes to 0 (log-log slope within {FLAT:g}).",
        "Section 2: below the transition the risk is governed by the budget",
        flat_below,
    ),
    "halving-not-monotone": Claim(
        "The simple-regret risk of Sequential Halving with a large budget rises and falls with the gap.",
        "Fig. 2",
        halving_not_monotone,
    ),
    "confidence-worst-at-small-gaps": Claim(
        "Fixed confidence is at its worst at the smallest gap.",
        "Section 4, Figs. 2, 4 and 5",
        confidence_worst_at_small_gaps,
    ),
    "between-bounds": Claim(
        "DBCARE's risk lies between the lower bound and DBCARE's guarantee.", "Theorems 1 to 4", between_bounds
    ),
    "pulls-within-lemma": Claim("DBCARE's mean pulls stay under the lemma's bound.", "Lemma 4", pulls_within_lemma),
}
