"""The paper's claims about its experiments, as checks that can fail.

A claim is judged in each panel of an experiment, and the verdict comes with its evidence in numbers. A claim that one
policy is worse than another must hold even if both risks are some standard errors closer to each other; a claim that a
bound is never exceeded fails only if it is exceeded by more than some standard errors.

Points of a curve may share runs, so their errors may have any correlation. A single comparison at 2 standard errors
errs with probability Phi(-2) = 2.3%, or less. Where the best or the worst of n comparisons decides, each gets a share
of 2.3%/n (Bonferroni), which keeps the total below 2.3% whatever the correlation. A claim that needs evidence at every
point errs only if the point that refutes it does: 2 standard errors remain enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from dbcare.lab.curves import Curve, Floats, Panel
from dbcare.policies.look import PolicyKind
from dbcare.risk import Loss

FACTOR = 2.0  # "sub-optimal" means at least this many times DBCARE's risk
NEAR = 8.0  # our constant in "within a constant factor" of the oracle
FLAT = 2.0  # a risk that varies by at most this factor counts as flat
ERRORS = 2.0  # standard errors that a single comparison allows for

COMPETITORS = (PolicyKind.FIXED_BUDGET, PolicyKind.FIXED_CONFIDENCE, PolicyKind.OTHER)  # of DBCARE

Finding = tuple[bool, tuple[str, ...]]  # whether a claim holds in a panel, and the evidence


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in one panel, with the evidence."""

    panel: str
    holds: bool
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """A statement, its source, and how it is checked in a panel; None if it does not apply there.

    `gaps`: the claim is about a range of gaps, so it does not apply along another axis or to fewer than 3 gaps.
    """

    text: str
    source: str
    check: Callable[[Panel], Finding | None]
    gaps: bool = False
    ours: bool = False  # about our own policies, not the paper's

    def judge(self, panels: Sequence[Panel]) -> Iterator[Verdict]:
        """Yield one verdict per panel that the claim applies to."""
        for panel in panels:
            applies = not self.gaps or (panel.axis == "gap" and len(panel.x) >= 3)
            finding = self.check(panel) if applies else None
            if finding is not None:
                yield Verdict(panel.heading, *finding)


def choose_errors(*standard_errors: Floats) -> float:
    """Return how many standard errors to allow for if any one of these comparisons decides; exact ones cannot err."""
    noisy = sum(int(np.count_nonzero(errors)) for errors in standard_errors)
    return ERRORS if noisy <= 1 else float(-ndtri(ndtr(-ERRORS) / noisy))


def check_competitors_fail(panel: Panel) -> Finding | None:
    """Check that each competitor's risk exceeds FACTOR times DBCARE's somewhere."""
    return compare_with_competitors(panel, FACTOR)


def check_never_dominated(panel: Panel) -> Finding | None:
    """Check that DBCARE beats each competitor somewhere."""
    return compare_with_competitors(panel, 1.0)


def compare_with_competitors(panel: Panel, factor: float) -> Finding | None:
    """Check that each competitor's risk exceeds `factor` times DBCARE's somewhere."""
    ours = find_dbcare(panel)
    rivals = panel.by_kind(*COMPETITORS)
    if ours is None or not rivals:
        return None
    # Every competitor must fail, so none of them adds to the chance that another does by luck.
    ratios = {}
    for label, curve in rivals.items():
        errors = choose_errors(curve.standard_error + ours.standard_error)
        ratios[label] = curve.lower(errors) / ours.upper(errors)
    evidence = [
        f"{label}: at least {np.max(ratio):.3g} times DBCARE's risk, at {panel.x[np.argmax(ratio)]:.3g}"
        for label, ratio in ratios.items()
    ]
    return all(bool(np.max(ratio) > factor) for ratio in ratios.values()), tuple(evidence)


def check_near_oracle(panel: Panel) -> Finding | None:
    """Check that DBCARE's risk is at most NEAR times the oracle's."""
    ours, oracle = find_dbcare(panel), next(iter(panel.by_policy("known-gap-oracle").values()), None)
    if ours is None or oracle is None:
        return None
    ratio = ours.risk / oracle.risk
    ends = [f"{ratio[end]:.3g} times the oracle's risk at {panel.x[end]:.3g}" for end in (0, -1)]
    anywhere = f"at most {np.max(ratio):.3g} times, at {panel.x[np.argmax(ratio)]:.3g}"
    errors = choose_errors(ours.standard_error + oracle.standard_error)
    return bool(np.all(ours.lower(errors) <= NEAR * oracle.upper(errors))), (*ends, anywhere)


def check_flat_below(panel: Panel) -> Finding | None:
    """Check that DBCARE's risk varies by a factor of at most FLAT over the smallest quarter of the gaps."""
    ours = find_dbcare(panel)
    if ours is None:
        return None
    few = max(2, len(panel.x) // 4)
    variation = {
        label: float(np.max(curve.risk[:few]) / np.min(curve.risk[:few]))
        for label, curve in panel.by_kind(PolicyKind.PAPER, PolicyKind.FIXED_CONFIDENCE).items()
    }
    span = f"between gaps of {panel.x[0]:.3g} and {panel.x[few - 1]:.3g}"
    evidence = [f"{label}: varies by a factor of {factor:.3g} {span}" for label, factor in variation.items()]
    highest, lowest = float(np.max(ours.upper(ERRORS)[:few])), float(np.min(ours.lower(ERRORS)[:few]))
    if lowest > 0.0 and np.any(ours.standard_error[:few]):
        evidence.append(f"DBCARE within {ERRORS:g} standard errors: by a factor of at most {highest / lowest:.3g}")
    return highest <= FLAT * lowest, tuple(evidence)


def check_halving_not_monotone(panel: Panel) -> Finding | None:
    """Check that the simple-regret risk of Sequential Halving with the larger budget rises with the gap, then falls."""
    halving = list(panel.by_policy("sequential-halving").items())
    if panel.loss is not Loss.SIMPLE_REGRET or not halving:
        return None
    label, curve = max(halving, key=lambda item: float(item[1].pulls[0]))
    peak = int(np.argmax(curve.risk))
    errors = choose_errors(curve.standard_error)
    inside = bool(curve.lower(errors)[peak] > np.max(curve.upper(errors)[[0, -1]]))
    ends = f"{curve.risk[0]:.4g} and {curve.risk[-1]:.4g} at the ends"
    return inside, (f"{label}: {curve.risk[peak]:.4g} at gap {panel.x[peak]:.3g}, {ends}",)


def check_confidence_worst(panel: Panel) -> Finding | None:
    """Check that fixed confidence has its largest risk at the smallest gap, up to noise."""
    curves = panel.by_kind(PolicyKind.FIXED_CONFIDENCE)
    if not curves:
        return None
    evidence = [
        f"{label}: {curve.risk[0]:.4g} at the smallest gap, at most {np.max(curve.risk):.4g}"
        for label, curve in curves.items()
    ]
    errors = choose_errors(*(curve.standard_error + curve.standard_error[0] for curve in curves.values()))
    worst = [bool(np.max(curve.lower(errors)) <= curve.upper(errors)[0]) for curve in curves.values()]
    return all(worst), tuple(evidence)


def check_where_competitors_fail(panel: Panel) -> Finding | None:
    """Check that each competitor does worst, relative to DBCARE, in the third of the gaps that the paper names."""
    ours = find_dbcare(panel)
    halving = sorted(panel.by_policy("sequential-halving").items(), key=lambda item: float(item[1].pulls[0]))
    if ours is None or len(halving) < 2:
        return None
    expected_thirds = {halving[0][0]: 1, halving[-1][0]: 2}
    expected_thirds |= dict.fromkeys(panel.by_kind(PolicyKind.FIXED_CONFIDENCE), 0)
    thirds = ("small", "moderate", "large")
    holds, evidence = True, []
    third = np.minimum(2, (3.0 * (panel.x - panel.x[0]) / (panel.x[-1] - panel.x[0])).astype(int))
    for label, expected in expected_thirds.items():
        curve = panel.curves[label]
        inside = third == expected
        errors = choose_errors((curve.standard_error + ours.standard_error)[inside])
        with np.errstate(divide="ignore"):  # an infinite ratio refutes
            low, high = curve.lower(errors) / ours.upper(errors), curve.upper(errors) / ours.lower(errors)
        holds = holds and bool(np.max(low[inside], initial=0.0) > np.max(high[~inside]))
        worst = int(np.argmax(curve.risk / ours.risk))
        evidence.append(
            f"{label}: worst at {panel.x[worst]:.3g}, {thirds[third[worst]]} (the paper: {thirds[expected]})"
        )
    return holds, tuple(evidence)


def check_between_bounds(panel: Panel) -> Finding | None:
    """Check that lower bound <= DBCARE's risk <= its guarantee everywhere."""
    ours = find_dbcare(panel)
    if ours is None or not np.all(np.isfinite(panel.upper)):
        return None
    above, below = ours.risk / panel.lower, panel.upper / ours.risk
    errors = choose_errors(ours.standard_error, ours.standard_error)  # each point may exceed either bound
    return bool(np.all(ours.upper(errors) >= panel.lower) and np.all(ours.lower(errors) <= panel.upper)), (
        f"the risk is {np.min(above):.3g} to {np.max(above):.3g} times the lower bound",
        f"the guarantee is {np.min(below):.3g} to {np.max(below):.3g} times the risk",
    )


def check_pulls_within_lemma(panel: Panel) -> Finding | None:
    """Check that DBCARE's mean pulls are within the lemma's bound (plus one epoch, as epochs are whole)."""
    ours = find_dbcare(panel)
    if ours is None:
        return None
    share = ours.pulls / panel.pulls
    return bool(np.all(share <= 1.0)), (f"at most {np.max(share):.1%} of the bound",)


def find_dbcare(panel: Panel) -> Curve | None:
    """Return DBCARE's curve, if there is one."""
    return next(iter(panel.by_policy("dbcare").values()), None)


PAPER_CLAIMS: dict[str, Claim] = {
    "competitors-fail-somewhere": Claim(
        f"Each competitor's risk is at least {FACTOR:g} times DBCARE's somewhere.",
        'Section 4: they "necessarily have some region of gaps where they perform sub-optimally"',
        check_competitors_fail,
    ),
    "fail-where-said": Claim(
        "A small budget fails at moderate gaps, a large budget at large gaps, and fixed confidence at small gaps.",
        "Section 4, simulation studies",
        check_where_competitors_fail,
        gaps=True,
    ),
    "never-dominated": Claim(
        "No competitor is at least as good as DBCARE everywhere.",
        'Section 4: "no other method uniformly outperforms" DBCARE',
        check_never_dominated,
    ),
    "near-oracle": Claim(
        f"DBCARE is within a constant factor, here {NEAR:g}, of the oracle at every gap.",
        'Section 4: "uniformly good performance across all" gaps',
        check_near_oracle,
        gaps=True,
    ),
    "flat-below": Claim(
        f"DBCARE's risk is flat as the gap goes to 0: it varies by less than a factor of {FLAT:g}.",
        "Section 2: below the transition the risk is governed by the budget",
        check_flat_below,
        gaps=True,
    ),
    "halving-not-monotone": Claim(
        "The simple-regret risk of Sequential Halving with a large budget first rises with the gap, then falls.",
        "Fig. 2",
        check_halving_not_monotone,
        gaps=True,
    ),
    "confidence-worst-at-small-gaps": Claim(
        "Fixed confidence does worst at the smallest gap.",
        "Section 4, Figs. 2, 4 and 5",
        check_confidence_worst,
        gaps=True,
    ),
    "between-bounds": Claim(
        "DBCARE's risk lies between the lower bound and DBCARE's guarantee.", "Theorems 1 to 4", check_between_bounds
    ),
    "pulls-within-lemma": Claim(
        "DBCARE's mean number of pulls stays within the lemma's bound.", "Lemma 4", check_pulls_within_lemma
    ),
}
