"""How far a sweep is, and how long the rest will take."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from statistics import median
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from dbcare.lab.experiments.passes import Pass
from dbcare.lab.experiments.results import Record
from dbcare.lab.experiments.sweep import Workers
from dbcare.lab.experiments.work_estimates import estimate_seconds, name_kernel

TRUSTED_SECONDS = 10.0  # the estimates weigh as much as this long of measured passes
MAX_LOADING_SECONDS = 2.5  # to compile a typical kernel; the first ones also compile what others share
NEVER_DONE = 0.95  # of a pass that takes longer than estimated, this share at most counts as over until it finishes


class WorkClock:
    """Turns estimates of passes, and the times at which passes finish, into a share and a remaining time.

    Workers start passes in the order given, so those in progress are the first that have not finished. The first pass
    of a kind also loads or compiles kernels: it tells how long that takes, not how fast the next ones are.
    """

    def __init__(self, passes: Sequence[Pass]) -> None:
        self.seconds = {work.key: estimate_seconds(work) for work in passes}
        self.kernels = {work.key: name_kernel(work) for work in passes}
        self.total = sum(self.seconds.values())
        self.waiting = dict.fromkeys(self.seconds)  # in order
        self.running: dict[str, float] = {}  # since when
        self.workers = 1
        self.first: dict[str, tuple[float, float]] = {}  # seconds that the first of a kind took, and its estimate
        self.measured = self.expected = TRUSTED_SECONDS
        self.finished = 0.0  # estimated seconds of all finished passes

    def assign(self, workers: int, now: float) -> None:
        """Let that many workers have a pass each, as long as passes are waiting."""
        self.workers = workers
        for key in list(self.waiting)[: max(0, workers - len(self.running))]:
            del self.waiting[key]
            self.running[key] = now

    def finish(self, key: str, now: float) -> None:
        """Take note that a pass is finished."""
        self.waiting.pop(key, None)
        self.finished += self.seconds[key]
        start = self.running.pop(key, None)
        if start is not None and self.kernels[key] in self.first:
            self.measured += now - start
            self.expected += self.seconds[key]
        elif start is not None:
            self.first[self.kernels[key]] = now - start, self.seconds[key]
        self.assign(self.workers, now)

    def compute_share(self) -> float:
        """Return the share of the work that is finished, by estimated seconds.

        Passes in progress don't count: how far they are is a guess, and they may still be compiling.
        """
        return 1.0 if self.is_over else self.finished / self.total

    @property
    def is_over(self) -> bool:
        """Whether all passes are finished."""
        return not self.waiting and not self.running

    def compute_remaining(self, now: float) -> float | None:
        """Return the seconds until all passes are finished: no less than the longest one takes.

        None until a first pass has finished, since how long kernels take to compile is unknown until then.
        """
        if self.is_over:
            return 0.0
        if not self.first:
            return None
        running, waiting = self._list_left(now), [self.seconds[key] for key in self.waiting]
        longest = max([*running, *waiting], default=0.0)
        slowness = self.measured / self.expected
        work = max((sum(running) + sum(waiting)) / self.workers, longest) * slowness
        new = {self.kernels[key] for key in (*self.running, *self.waiting)} - set(self.first)
        loading = [max(0.0, took - slowness * estimate) for took, estimate in self.first.values()]
        # Workers compile at the same time. The median ignores passes whose estimates were far off.
        return work + len(new) * min(median(loading) if loading else 0.0, MAX_LOADING_SECONDS) / self.workers

    def _list_left(self, now: float) -> list[float]:
        """List what is left of the passes in progress, in estimated seconds."""
        speed = self.expected / self.measured
        return [
            self.seconds[key] - min(NEVER_DONE * self.seconds[key], (now - start) * speed)
            for key, start in self.running.items()
        ]


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
