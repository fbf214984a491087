"""Progress of a comparison: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from dbcare.live.study import Study
from dbcare.money import Money

SECONDS_BETWEEN_UPDATES = 1.0  # on a terminal; the figures take a few milliseconds
SECONDS_BETWEEN_LINES = 10.0


class ComparisonProgress:
    """Shows what was spent, how many questions were asked, who leads, and what choosing the leader may lose."""

    def __init__(self, study: Study, noun: str, limit: float | None, console: Console) -> None:
        self._study = study
        self._noun = noun  # of blocks
        self._limit = limit  # budget, in money
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._interval = SECONDS_BETWEEN_LINES if self._live is None else SECONDS_BETWEEN_UPDATES
        self._latest = time.monotonic()

    def __enter__(self) -> ComparisonProgress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        self._console.print(Text(self.describe()), soft_wrap=True)

    def update(self) -> None:
        """Show the present state, unless that was done just now."""
        now = time.monotonic()
        if now - self._latest < self._interval:
            return
        self._latest = now
        if self._live is not None:
            self._live.update(Text(self.describe()), refresh=True)
        else:
            self._console.print(Text(self.describe()), soft_wrap=True)

    def describe(self) -> str:
        """Return the present state in a line."""
        settings, status, choice = self._study.settings, self._study.status(), self._study.recommendation()
        spent = str(Money(choice.spent, settings.currency))
        if self._limit is not None:
            spent += f" of {Money(self._limit, settings.currency)}"
        parts = [f"{spent} spent", f"{status.blocks_used or 0:,} of {status.blocks or 0:,} {self._noun}"]
        if choice.arm is not None:
            parts.append(f"{choice.arm} {'chosen' if choice.final else 'leads'}")
        if choice.expected_loss is not None:
            parts.append(f"expected loss {Money(choice.expected_loss, settings.currency)}")
        return f"{self._study.name}: {', '.join(parts)}"
