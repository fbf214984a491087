"""Measure how much time `compare` takes outside the functions that it calls.

The figure is the largest of four: in memory and in SQLite, on the event loop and in threads.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import dbcare
from benchmarks.parts.bars import Bars

AT_ONCE = 8
QUESTIONS = 300
PAUSE = 0.02  # seconds that a call takes
BAR = 3.0  # milliseconds a call


def make_sleeper(name: str, *, in_thread: bool) -> Callable[[int], float] | Callable[[int], Awaitable[float]]:
    """Return an arm that takes PAUSE; arms are equally good, so that most questions are asked."""

    def score(number: int) -> float:
        return random.Random(f"{name} {number}").random()

    def sleep(number: int) -> float:
        time.sleep(PAUSE)
        return score(number)

    async def sleep_on_loop(number: int) -> float:
        await asyncio.sleep(PAUSE)
        return score(number)

    return sleep if in_thread else sleep_on_loop


def measure_milliseconds(storage: str | None, *, in_thread: bool) -> float:
    """Return the time per call beyond what the calls themselves take, in milliseconds."""
    arms = {name: make_sleeper(name, in_thread=in_thread) for name in ("A", "B", "C")}
    began = time.perf_counter()
    comparison = dbcare.compare(
        arms, range(QUESTIONS), value=1e6, price=0.001, at_once=AT_ONCE, storage=storage, progress=False
    )
    wall = time.perf_counter() - began
    calls = sum(1 for _ in comparison.answers())
    return 1e3 * (wall / calls - PAUSE / AT_ONCE)


def main() -> None:
    bars = Bars(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        measure_milliseconds(f"sqlite:///{Path(folder)}/first.db", in_thread=True)  # loads what is needed
        figures = {}
        for in_thread in (False, True):
            where = "threads" if in_thread else "event loop"
            figures[f"memory, {where}"] = measure_milliseconds(None, in_thread=in_thread)
            address = f"sqlite:///{Path(folder) / where}.db"
            figures[f"SQLite, {where}"] = measure_milliseconds(address, in_thread=in_thread)
    bars.report("compare, ms a call outside the functions, 8 at once", max(figures.values()), BAR, **figures)
    bars.save()
