"""What the calls of a comparison have cost, and what those under way are expected to cost."""

from __future__ import annotations

from dataclasses import dataclass, field

ROUNDING = 1.0 + 1e-9  # sums of prices may exceed the budget by this much


@dataclass(eq=False)
class TrialMeter:
    """What one trial under way is expected to cost, what it has cost so far, and what its answers have cost."""

    expected: float
    spent: float = 0.0
    answered: int = 0
    answered_price: float = 0.0

    def note_answer(self) -> None:
        """Note that a question has been answered and scored; the first that is not ends the trial."""
        self.answered += 1
        self.answered_price = self.spent


@dataclass
class Meter:
    """Adds up all calls, also those that fail.

    Parameters
    ----------
    prices : dict
        Stated price of a call by arm, the judge's included.
    limit : float or None
        Budget, in money.
    spent : float
        What was spent before, by a run that this one continues.
    """

    prices: dict[str, float]
    limit: float | None
    spent: float = 0.0
    _open: list[TrialMeter] = field(default_factory=list)
    _totals: dict[str, tuple[float, int]] = field(default_factory=dict)

    def expect(self, arm: str) -> float:
        """Return the mean price of an arm's answered and scored questions; the stated price before there are any."""
        total, questions = self._totals.get(arm, (0.0, 0))
        return total / questions if questions else self.prices[arm]

    def begin(self, arm: str, questions: int) -> TrialMeter:
        """Reserve what a trial is expected to cost."""
        trial = TrialMeter(self.expect(arm) * questions)
        self._open.append(trial)
        return trial

    def add(self, trial: TrialMeter, price: float) -> None:
        """Add the price of a call."""
        trial.spent += price
        self.spent += price

    def end(self, trial: TrialMeter, arm: str) -> None:
        """Release what was reserved."""
        self._open.remove(trial)
        total, before = self._totals.get(arm, (0.0, 0))
        self._totals[arm] = total + trial.answered_price, before + trial.answered

    def reserve_retry(self, trial: TrialMeter, price: float) -> bool:
        """Reserve the price of another attempt; return whether the budget allows it."""
        if not self.can_afford(price):
            return False
        trial.expected += price
        return True

    def can_afford(self, price: float) -> bool:
        """Return whether another call stays within the budget, if all trials under way cost what is expected."""
        if self.limit is None:
            return True
        reserved = sum(max(0.0, trial.expected - trial.spent) for trial in self._open)
        return self.spent + reserved + price <= self.limit * ROUNDING
