"""Our claims about our own policies, as checks that can fail, next to the paper's."""

from __future__ import annotations

import numpy as np

from dbcare.base.look import PolicyKind
from dbcare.lab.curves import Curve, Panel
from dbcare.lab.paper_claims import FACTOR, PAPER_CLAIMS, Claim, Finding, choose_errors, find_dbcare

NEAR_PART = 1.5  # a sampling that changes the risk by less than this factor hardly matters
WEIGHING = ("breakeven", "chick-frazier", "kg-star")  # stops that weigh costs


def check_below_dbcare(panel: Panel) -> Finding | None:
    """Check that neither of our policies has a larger risk than DBCARE anywhere."""
    theirs, ours = find_dbcare(panel), panel.by_kind(PolicyKind.OURS)
    if theirs is None or not ours:
        return None
    evidence = []
    for label, curve in ours.items():
        ratio = curve.risk / theirs.risk
        mean, worst = np.exp(np.mean(np.log(ratio))), int(np.argmax(ratio))
        evidence.append(
            f"{label}: {mean:.3g} times DBCARE's risk (geometric mean), at most {ratio[worst]:.3g} times, "
            f"at {panel.x[worst]:.3g}"
        )
    errors = choose_errors(*(curve.standard_error + theirs.standard_error for curve in ours.values()))
    below = [bool(np.all(curve.lower(errors) <= theirs.upper(errors))) for curve in ours.values()]
    return all(below), tuple(evidence)


def check_within_theorem(panel: Panel) -> Finding | None:
    """Check that BreakevenRacing's risk is within its bound wherever the bound is defined."""
    curve = next(iter(panel.by_policy("breakeven-racing").values()), None)
    defined = np.isfinite(panel.racing)
    if curve is None or not np.any(defined):
        return None
    share = (curve.risk / panel.racing)[defined]
    evidence = f"at most {np.max(share):.3g} of the bound, at {len(share)} of {len(panel.x)} points"
    errors = choose_errors(curve.standard_error[defined])
    return bool(np.all((curve.lower(errors) <= panel.racing)[defined])), (evidence,)


def check_near_sprt(panel: Panel) -> Finding | None:
    """Check that neither DBCARE nor our policies beat the SPRT that knows the gap, and how close they come."""
    sprt = next(iter(panel.by_policy("known-gap-sprt").values()), None)
    ours = panel.by_kind(PolicyKind.OURS, PolicyKind.PAPER)
    if sprt is None or not ours:
        return None
    evidence = []
    for label, curve in ours.items():
        ratio = curve.risk / sprt.risk
        evidence.append(f"{label}: {np.exp(np.mean(np.log(ratio))):.3g} times its risk (geometric mean)")
    errors = choose_errors(*(curve.standard_error + sprt.standard_error for curve in ours.values()))
    above = [bool(np.all(curve.upper(errors) >= sprt.lower(errors))) for curve in ours.values()]
    return all(above), tuple(evidence)


def check_sampling(panel: Panel) -> Finding | None:
    """Check that with Breakeven's stop, every sampling has about Breakeven's risk, as a geometric mean."""
    whole = find_breakeven(panel)
    pairs = {
        label: curve for label, curve in panel.by_policy("adaptive").items() if curve.options["stopping"] == "breakeven"
    }
    if whole is None or not pairs:
        return None
    ratios = {label: float(np.exp(np.mean(np.log(curve.risk / whole.risk)))) for label, curve in pairs.items()}
    # Errors of the logarithms at different points may have any correlation.
    noise = [np.mean(curve.standard_error / curve.risk + whole.standard_error / whole.risk) for curve in pairs.values()]
    errors = choose_errors(np.array(noise))
    near = [
        abs(np.log(ratio)) - errors * error <= np.log(NEAR_PART)
        for ratio, error in zip(ratios.values(), noise, strict=True)
    ]
    evidence = (f"{label}: {ratio:.3g} times Breakeven's risk (geometric mean)" for label, ratio in ratios.items())
    return all(near), tuple(evidence)


def check_stop(panel: Panel) -> Finding | None:
    """Check that with Breakeven's sampling, every stop for an error or a budget has a far larger risk somewhere."""
    whole = find_breakeven(panel)
    blind = {
        label: curve
        for label, curve in panel.by_policy("adaptive").items()
        if curve.options["sampling"] == "breakeven" and curve.options["stopping"] not in WEIGHING
    }
    if whole is None or not blind:
        return None
    evidence, far = [], []
    for label, curve in blind.items():
        errors = choose_errors(curve.standard_error + whole.standard_error)
        ratio = curve.lower(errors) / whole.upper(errors)
        worst = int(np.argmax(ratio))
        far.append(bool(ratio[worst] > FACTOR))
        evidence.append(f"{label}: at least {ratio[worst]:.3g} times Breakeven's risk, at {panel.x[worst]:.3g}")
    return all(far), tuple(evidence)


def find_breakeven(panel: Panel) -> Curve | None:
    """Return Breakeven's curve, if there is one."""
    return next(iter(panel.by_policy("breakeven").values()), None)


OUR_CLAIMS: dict[str, Claim] = {
    "below-dbcare": Claim(
        "The risks of Breakeven and BreakevenRacing are below DBCARE's at every point.",
        "measured, not proved; docs/explanation/breakeven.md",
        check_below_dbcare,
        ours=True,
    ),
    "within-theorem": Claim(
        "The risk of BreakevenRacing is within its theorem's bound at every point.",
        "docs/explanation/proofs.md; for Gaussian arms",
        check_within_theorem,
        ours=True,
    ),
    "near-sprt": Claim(
        "Neither DBCARE nor our policies beat the known-gap SPRT anywhere.",
        "Wald and Wolfowitz 1948, for policies that pull both arms equally often",
        check_near_sprt,
        ours=True,
    ),
    "sampling-hardly-matters": Claim(
        f"With Breakeven's stop, every sampling has Breakeven's risk up to a factor of {NEAR_PART:g} (geometric mean).",
        "measured, not proved; docs/explanation/rivals.md",
        check_sampling,
        ours=True,
    ),
    "stop-matters": Claim(
        f"With Breakeven's sampling, every stop for an error or a budget has over {FACTOR:g} times its risk somewhere.",
        "measured, not proved; docs/explanation/rivals.md",
        check_stop,
        ours=True,
    ),
}
ALL_CLAIMS = {**PAPER_CLAIMS, **OUR_CLAIMS}
