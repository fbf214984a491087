"""What we say of our own policies, as checks that can fail, beside the paper's claims."""

from __future__ import annotations

import numpy as np

from dbcare.lab.curves import Panel
from dbcare.lab.paper_claims import CLAIMS, Claim, Finding, dbcare_of
from dbcare.policies.look import PolicyKind


def below_dbcare(panel: Panel) -> Finding | None:
    """Neither of our policies has a larger risk than DBCARE anywhere."""
    theirs, ours = dbcare_of(panel), panel.by_kind(PolicyKind.OURS)
    if theirs is None or not ours:
        return None
    listed = []
    for label, curve in ours.items():
        ratio = curve.risk / theirs.risk
        mean, worst = np.exp(np.mean(np.log(ratio))), int(np.argmax(ratio))
        listed.append(
            f"{label}: {mean:.3g} times DBCARE's risk (geometric mean), at most {ratio[worst]:.3g} times, "
            f"at {panel.x[worst]:.3g}"
        )
    return all(bool(np.all(curve.low <= theirs.high)) for curve in ours.values()), tuple(listed)


def within_theorem(panel: Panel) -> Finding | None:
    """The risk of BreakevenRacing is at most its bound, wherever that is defined."""
    curve = next(iter(panel.by_policy("breakeven-racing").values()), None)
    defined = np.isfinite(panel.racing)
    if curve is None or not np.any(defined):
        return None
    share = (curve.risk / panel.racing)[defined]
    said = f"at most {np.max(share):.3g} of the bound, at {len(share)} of {len(panel.x)} points"
    return bool(np.all((curve.low <= panel.racing)[defined])), (said,)


def near_sprt(panel: Panel) -> Finding | None:
    """Neither DBCARE nor ours beat the SPRT that knows the gap; how near they come."""
    yardstick, ours = (
        next(iter(panel.by_policy("known-gap-sprt").values()), None),
        panel.by_kind(PolicyKind.OURS, PolicyKind.PAPER),
    )
    if yardstick is None or not ours:
        return None
    listed = []
    for label, curve in ours.items():
        ratio = curve.risk / yardstick.risk
        listed.append(f"{label}: {np.exp(np.mean(np.log(ratio))):.3g} times its risk (geometric mean)")
    return all(bool(np.all(curve.high >= yardstick.low)) for curve in ours.values()), tuple(listed)


OUR_CLAIMS: dict[str, Claim] = {
    "below-dbcare": Claim(
        "The risk of Breakeven and of BreakevenRacing is below DBCARE's at every point.",
        "measured, not proved; docs/explanation/breakeven.md",
        below_dbcare,
        ours=True,
    ),
    "within-theorem": Claim(
        "The risk of BreakevenRacing respects its theorem's bound at every point.",
        "docs/explanation/breakeven.md; for Gaussian arms",
        within_theorem,
        ours=True,
    ),
    "near-sprt": Claim(
        "Neither DBCARE nor our policies are better than the known-gap SPRT anywhere.",
        "Wald and Wolfowitz 1948, for policies that pull both arms equally often",
        near_sprt,
        ours=True,
    ),
}
ALL_CLAIMS = {**CLAIMS, **OUR_CLAIMS}
