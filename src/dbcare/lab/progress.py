"""Progress of a sweep: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from dbcare.lab.points import Pass
from dbcare.lab.results import Record
from dbcare.lab.sweep import Workers
from dbcare.lab.work_clock import WorkClock

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_UPDATES = 0.5  # of the live display


class SweepProgress:
    """Shows the experiment of the latest pass, the share of the work done, points, pulls, and the time remaining.

    `passes` are in the order in which `workers` start them.
    """

    def __init__(
        self, console: Console, passes: Sequence[Pass], experiments: Mapping[str, str], workers: Workers
    ) -> None:
        self.console = console
        self.total = sum(len(work.points) for work in passes)
        self.experiments = experiments  # names, by key of a pass
        self.workers = workers
        self.clock = WorkClock(passes)
        self.points = 0
        self.pulls = 0
        self.name = "starting"
        self.engine = ""
        self.lock = threading.Lock()  # passes finish on one thread, and another shows the time
        self.stopped = threading.Event()
        self.ticker = threading.Thread(target=self._tick, daemon=True)
        self.live: Progress | None = None
        if console.is_terminal and self.total > 0:
            self.live = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:.0f}%"),
                TextColumn("{task.fields[state]}"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[remaining]}"),
                console=console,
            )
            self.task = self.live.add_task(self.name, total=100, state="", remaining="")

    def __enter__(self) -> SweepProgress:
        if self.live is not None:
            self.live.start()
        self.clock.assign(self.workers.count, time.monotonic())
        if self.total > 0:
            self.ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stopped.set()
        if self.total > 0:
            self.ticker.join()
        if self.live is not None:
            self.live.stop()

    def update(self, record: Record) -> None:
        """Take note that a pass is finished."""
        with self.lock:
            self.clock.finish(record.key, time.monotonic())
            self.points += len(record.results)
            self.pulls += record.pulls_simulated
            self.name, self.engine = self.experiments[record.key], record.engine
        if self.live is not None:
            self.show()

    def show(self) -> None:
        """Show the state: update the display, or print a line."""
        with self.lock:
            now = time.monotonic()
            self.clock.assign(self.workers.count, now)
            percent = math.floor(100.0 * self.clock.compute_share())  # 100 only at the end
            remaining = self.clock.compute_remaining(now)
            name = self.name if self.workers.count > 0 else "connecting"
            state = ", ".join([f"{self.points:,} of {self.total:,} points", *self._describe_pulls()])
            time_left = "" if remaining is None else f"about {math.ceil(remaining)} s remaining"
            if self.live is not None:
                self.live.update(self.task, completed=percent, description=name, state=state, remaining=time_left)
            else:
                parts = [f"{percent}% done", name, state, *([time_left] if time_left else [])]
                self.console.print(", ".join(parts))

    def _describe_pulls(self) -> list[str]:
        return [f"{self.engine}, {self.pulls:.2g} pulls"] if self.engine else []

    def _tick(self) -> None:
        """Show the state from time to time, as passes may take long."""
        while not self.stopped.wait(SECONDS_BETWEEN_LINES if self.live is None else SECONDS_BETWEEN_UPDATES):
            self.show()
