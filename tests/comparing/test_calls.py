"""`compare`: how functions are called, side by side, in time, and no more often than allowed."""

import asyncio
import contextvars
import threading
import time
from typing import Any

import pytest

import dbcare
from tests.helpers.comparisons import make_arms, run


def test_sync_and_async_functions_mix_and_calls_overlap() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def enter(step: int) -> None:
        nonlocal running, most
        with lock:
            running += step
            most = max(most, running)

    plain = make_arms()

    async def asynchronous(number: int) -> float:
        enter(1)
        await asyncio.sleep(0.02)
        enter(-1)
        return plain["long"](number)

    def synchronous(number: int) -> float:
        enter(1)
        time.sleep(0.02)
        enter(-1)
        return plain["short"](number)

    async def judge(question: int, answer: float) -> float:
        await asyncio.sleep(0.0)
        return answer

    arms = {"long": asynchronous, "short": synchronous, "odd": lambda number: asynchronous(int(number))}
    comparison = run(arms, None, judge, at_once=6)
    assert comparison.recommendation.arm in ("long", "odd")
    assert 3 <= most <= 6


def test_it_works_inside_a_running_event_loop() -> None:
    async def notebook() -> dbcare.comparing.Comparison:
        return run()

    assert asyncio.run(notebook()).recommendation.arm == "long"


def test_context_variables_reach_the_functions() -> None:
    key = contextvars.ContextVar("key", default="none")
    key.set("secret")
    seen = set()

    def answer(number: int) -> float:
        seen.add(key.get())
        return float(number % 3)

    run({"a": answer, "b": lambda number: 0.0}, range(10))
    assert seen == {"secret"}


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_call_that_hangs_fails_in_time(kind: str) -> None:
    release = threading.Event()
    cancelled = []

    def hang(number: int) -> float:
        if number % 6 == 5:
            release.wait(60.0)
        return 0.5 + 0.01 * number

    async def hang_asynchronously(number: int) -> float:
        if number % 6 == 5:
            try:
                await asyncio.sleep(60.0)
            except asyncio.CancelledError:
                cancelled.append(number)
                raise
        return 0.5 + 0.01 * number

    start = time.monotonic()
    function = hang if kind == "sync" else hang_asynchronously
    arms = {"hangs": function, "works": lambda number: 0.02 * number}
    comparison = run(arms, range(30), timeout=0.2, retries=0, value=1e6)
    release.set()
    assert time.monotonic() - start < 30.0
    assert {str(failure.error) for failure in comparison.failures} == {"no answer within 0.2 s"}
    assert bool(cancelled) is (kind == "async")


def test_rate_limits_space_calls_evenly() -> None:
    """At 1,200 calls per minute, call k begins at least k times 50 ms after the start, however busy the machine is.

    Without a limit, calls begin earlier. Only there can a delay do harm, so a few attempts are allowed.
    """

    def is_spaced(**options: Any) -> bool:
        times: list[float] = []

        def answer(number: int) -> float:
            times.append(time.monotonic())
            return 0.1 * number

        start = time.monotonic()
        run({"a": answer, "b": lambda number: 0.1 * (number % 3)}, range(8), value=1e6, **options)
        assert len(times) == 8
        rounding = 1e-6  # of sums of times
        return all(began - start >= 0.05 * call - rounding for call, began in enumerate(sorted(times)))

    assert is_spaced(rate_limit={"a": 1_200})
    assert not all(is_spaced() for _ in range(20))


def test_a_call_in_a_thread_of_the_users_own_does_not_keep_it_from_ending() -> None:
    release = threading.Event()

    async def waits(number: int) -> float:
        if number == 3:
            await asyncio.to_thread(release.wait, 20.0)
        return 0.01 * number

    start = time.monotonic()
    run({"waits": waits, "works": lambda number: 1.0 + 0.02 * number}, range(9), timeout=0.2, retries=0, value=1e6)
    assert time.monotonic() - start < 15.0
    release.set()
