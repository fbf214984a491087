"""How policies look in figures: what kind of policy it is decides the dashes, and each has colors it prefers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError

# The colors of Okabe and Ito, distinct for any color vision (with their yellow darkened).
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#8C7A00", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
PALETTE = (BLUE, ORANGE, RED, SKY, GREEN, PURPLE, YELLOW)
VIOLET = "#5E2CA5"  # reserved for our own policies, which also have markers


class PolicyKind(StrEnum):
    """The family of a policy, which decides what it is compared with and its dashes in figures.

    Examples
    --------
    >>> from dbcare.policies import PolicyKind
    >>> str(PolicyKind.FIXED_BUDGET)
    'fixed budget'
    """

    PAPER = "paper"  # DBCARE itself
    OURS = "ours"  # not in the paper
    FIXED_BUDGET = "fixed budget"
    FIXED_CONFIDENCE = "fixed confidence"
    COST_AWARE = "cost-aware"  # weighs costs, but is neither the paper's nor ours
    YARDSTICK = "yardstick"  # knows what nobody knows, or nothing at all
    OTHER = "other"  # a policy that someone else registered


DASHES = {
    PolicyKind.FIXED_BUDGET: "--",
    PolicyKind.FIXED_CONFIDENCE: "-.",
    PolicyKind.YARDSTICK: ":",
}


@dataclass(frozen=True)
class Look:
    """The colors a policy prefers, in order, and its marker, which may be hollow; without a marker, a plain line.

    Parameters
    ----------
    colors : tuple of str
        Colors that figures try first, such as "#0072B2".
    marker : str
        A marker of matplotlib, such as "o"; empty for a plain line.
    hollow : bool
        Whether the marker is drawn hollow.

    Examples
    --------
    >>> from dbcare.policies import Look
    >>> Look(("#009E73",), "^").marker
    '^'
    """

    colors: tuple[str, ...] = ()
    marker: str = ""
    hollow: bool = False

    def __post_init__(self) -> None:
        colors = tuple(checks.items("colors", self.colors, "a sequence of colors"))
        for name, value in (("marker", self.marker), *(("colors", color) for color in colors)):
            if not isinstance(value, str):
                raise InvalidValueError(f"`{name}` must be of type str but got {show(value)}.")
        checks.set_fields(self, colors=colors, hollow=checks.flag("hollow", self.hollow))


PLAIN = Look()
