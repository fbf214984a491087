"""Progress of a study that is being run: a bar and a line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dbcare.base.numbers import Money
from dbcare.errors import StudyError
from dbcare.studies.results.status import Recommendation, Status
from dbcare.studies.study import StudyReports

SECONDS_BETWEEN_UPDATES = 1.0  # on a terminal; the figures take a few milliseconds
SECONDS_BETWEEN_LINES = 10.0
BAR_WIDTH = 20  # characters


class StudyProgress:
    """Shows what was spent, how many rewards there are, who leads, and what choosing the leader may lose.

    The bar is full where the study stops: when what was spent reaches what the policy weighs, or the budget.

    Parameters
    ----------
    study : StudyReports
        The study.
    console : Console
        Where to print.
    limit : float, optional
        Budget, in money. Default: the study's own.
    noun : str
        What blocks of a pool are called, in the plural.
    """

    def __init__(
        self, study: StudyReports, console: Console, *, limit: float | None = None, noun: str = "blocks"
    ) -> None:
        own = study.settings.max_spend
        self._study = study
        self._limit = own * (study.settings.value or 1.0) if limit is None and own is not None else limit
        self._noun = noun
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._interval = SECONDS_BETWEEN_LINES if self._live is None else SECONDS_BETWEEN_UPDATES
        self._latest = time.monotonic()

    def __enter__(self) -> StudyProgress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        if not isinstance(error, StudyError):  # the storage may be out of reach
            self.say(self.describe(*self._study.snapshot()))

    def say(self, sentence: str) -> None:
        """Print a line that stays."""
        self._console.print(Text(sentence), soft_wrap=True)

    def show(self, sentences: list[str]) -> None:
        """Print sentences, and update the line."""
        for sentence in sentences:
            self.say(sentence)
        self.update()

    def update(self) -> None:
        """Show the present state, unless that was done just now."""
        now = time.monotonic()
        if now - self._latest < self._interval:
            return
        self._latest = now
        status, choice = self._study.snapshot()
        line = self.describe(status, choice)
        if self._live is None:
            self.say(line)
            return
        share = self._measure_share(status)
        if share is not None:
            grid = Table.grid(padding=(0, 1))
            grid.add_row(ProgressBar(total=1.0, completed=share, width=BAR_WIDTH), Text(line))
        self._live.update(Text(line) if share is None else grid, refresh=True)

    def describe(self, status: Status, choice: Recommendation) -> str:
        """Return the present state in a line."""
        currency = self._study.settings.currency
        spent = str(Money(choice.spent, currency))
        if self._limit is not None:
            spent += f" of {Money(self._limit, currency)}"
        counted = "1 reward" if status.rewards == 1 else f"{status.rewards:,} rewards"
        if status.blocks is not None:
            counted = f"{status.blocks_used or 0:,} of {status.blocks:,} {self._noun}"
        parts = [f"{spent} spent", counted]
        if status.state == "paused":
            parts.append("paused")
        if choice.arm is not None:
            parts.append(f"{choice.arm} {'chosen' if choice.final else 'leads'}")
        if choice.expected_loss is not None:
            parts.append(f"expected loss {Money(choice.expected_loss, currency)}")
        return f"{self._study.name}: {', '.join(parts)}"

    def _measure_share(self, status: Status) -> float | None:
        """Return what share of the way to its stop a study has gone; None if nobody knows."""
        limits = [limit for limit in (status.policy_loss, self._limit) if limit is not None]
        if not limits:
            return None
        return min(1.0, status.spent / limit) if (limit := min(limits)) > 0.0 else 1.0
