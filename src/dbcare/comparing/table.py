"""The arms of a comparison as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbcare.base.numbers import Money, format_chance, round_together
from dbcare.studies.results.status import ArmStatus

HEADINGS = ("arm", "answered", "failed", "mean score", "estimate", "95% interval", "best", "price of a question")
UNKNOWN = "-"


@dataclass(frozen=True)
class ComparedArm:
    """An arm of a comparison.

    Parameters
    ----------
    status : ArmStatus
        What its scores say; with clusters, `trials` counts clusters.
    questions : int
        Questions that it was asked.
    price : float
        Mean price of a question, all its calls included.
    failed : int
        Questions of these that it has no answer to.

    Examples
    --------
    >>> from dbcare import compare
    >>> arms = {"short": lambda question: 0.5, "long": lambda question: 0.75}
    >>> comparison = compare(arms, range(20), price={"short": 0.01, "long": 0.02}, value=100, progress=False)
    >>> [(line.status.name, line.price) for line in comparison.arms]
    [('short', 0.01), ('long', 0.02)]
    """

    status: ArmStatus
    questions: int
    price: float
    failed: int = 0

    def cells(self, currency: str | None) -> tuple[str, ...]:
        """Return the arm's cells under HEADINGS."""
        arm = self.status
        estimate, interval = UNKNOWN, UNKNOWN
        if arm.estimate is not None and arm.interval is not None:
            estimate, low, high = round_together(arm.estimate, *arm.interval, digits=3)
            interval = f"{low} to {high}"
        return (
            arm.name,
            f"{self.questions - self.failed:,}",
            f"{self.failed:,}",
            UNKNOWN if arm.mean is None else f"{arm.mean:.4g}",
            estimate,
            interval,
            UNKNOWN if arm.probability_best is None else format_chance(arm.probability_best),
            str(Money(self.price, currency)),
        )


def format_lines(arms: Sequence[ComparedArm], currency: str | None) -> list[str]:
    """Return the table as lines of text, aligned."""
    rows = [HEADINGS, *(arm.cells(currency) for arm in arms)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
