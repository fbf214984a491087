"""Progress of a sweep: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dbcare.lab.results import Record

SECONDS_BETWEEN_LINES = 5.0


class SweepProgress:
    """Shows the experiment of the latest pass, finished points, engine, pulls so far and the time remaining."""

    def __init__(self, console: Console, points: int, experiments: Mapping[str, str]) -> None:
        self.console = console
        self.total = points
        self.experiments = experiments  # names, by key of a pass
        self.points = 0
        self.pulls = 0
        self.start = self.last_line = time.monotonic()
        self.live: Progress | None = None
        if console.is_terminal and points > 0:
            self.live = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("points  {task.fields[state]}"),
                TimeElapsedColumn(),
                TextColumn("remaining"),
                TimeRemainingColumn(),
                console=console,
            )
            self.task = self.live.add_task("starting", total=points, state="")

    def __enter__(self) -> SweepProgress:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def update(self, record: Record) -> None:
        """Show that a pass is finished."""
        self.points += len(record.results)
        self.pulls += record.pulls_simulated
        name = self.experiments[record.key]
        state = f"{record.engine}  {self.pulls:.2g} pulls"
        if self.live is not None:
            self.live.update(self.task, completed=self.points, description=name, state=state)
            return
        now = time.monotonic()
        if now - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = now
            left = (now - self.start) * (self.total - self.points) / self.points
            done = f"{self.points:,} of {self.total:,} points"
            self.console.print(f"{done}, {name}, {state}, about {left:.0f} s remaining")
