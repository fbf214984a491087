"""Plans of the service: a budget of work for each, and an end when the client leaves; in a real server and browser."""

import json
import math
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from playwright.sync_api import Browser, expect

import dbcare
from dbcare.server.service_limits import DEFAULT_LIMITS
from tests.helpers.browser import launch_chromium, open_window
from tests.helpers.service_process import run_service

pytestmark = pytest.mark.service

if not Path("/proc/net/tcp").exists():
    pytest.skip("The CPU time of a server is read from /proc, which this system lacks.", allow_module_level=True)

# Enough runs of Breakeven at the smallest gap would take minutes.
HEAVY = {"arms": 32, "price": 1, "value": 1e7, "sigma": 1.0, "risk": "misidentification"}
LONG: dict[str, object] = {"arms": 32, "cost": 1e-7, "sigma": 1.0}  # takes all of the work that a plan may take
QUICK: dict[str, Any] = {"arms": 2, "cost": 1e-2, "sigma": 1.0, "gaps": [0.5, 1.0]}
TIMEOUT_SECONDS = 240.0  # for a busy machine; the work itself is counted
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a server without keys, which serves this machine, on two CPUs: with many, the longest plan would be short."""
    storage = f"sqlite:///{tmp_path_factory.mktemp('planning') / 'studies.db'}"
    all_cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cpus)[:2])  # for processes started from now on
    with ExitStack() as running:
        try:
            url = running.enter_context(run_service(storage))
        finally:
            os.sched_setaffinity(0, all_cpus)
        httpx.post(f"{url}/v1/plan", json=LONG, timeout=TIMEOUT_SECONDS)  # compile or load the kernels
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch_chromium() as launched:
        yield launched


def post_plan(address: str, body: dict[str, object]) -> httpx.Response:
    return httpx.post(f"{address}/v1/plan", json=body, timeout=TIMEOUT_SECONDS)


def find_pid(address: str) -> int:
    """Return the process that listens at an address."""
    port = int(address.rpartition(":")[2])
    inodes = {
        fields[9]
        for fields in map(str.split, Path("/proc/net/tcp").read_text().splitlines()[1:])
        if int(fields[1].partition(":")[2], 16) == port and fields[3] == "0A"  # listening
    }
    sockets = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(file) in sockets for file in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:  # it has ended, or belongs to somebody else
            continue
    raise AssertionError(f"Nothing listens at {address}.")


def read_cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def is_idle(pid: int) -> bool:
    """Return whether the process uses less than a tenth of a CPU for half a second."""
    before = read_cpu_seconds(pid)
    time.sleep(0.5)
    return read_cpu_seconds(pid) - before < 0.05


@contextmanager
def send_plan(address: str, body: dict[str, object]) -> Iterator[socket.socket]:
    """Send a request for a plan, without waiting for its response; close the connection in the end."""
    host, _, port = address.removeprefix("http://").partition(":")
    content = json.dumps(body).encode()
    head = f"POST /v1/plan HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        yield connection


def is_answered(connection: socket.socket) -> bool:
    """Return whether a response has begun to arrive."""
    connection.setblocking(False)
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def is_refused(address: str) -> bool:
    """Return whether the queue for plans is full, as the metrics have it; a plan that is queued instead is given up."""

    def count() -> float:
        text = httpx.get(f"{address}/metrics", timeout=TIMEOUT_SECONDS).text
        found = re.search(r'^dbcare_refusals_total\{reason="waiting_checks"\} (\S+)$', text, re.MULTILINE)
        return 0.0 if found is None else float(found[1])

    before = count()
    with send_plan(address, QUICK):
        time.sleep(0.3)
        return count() > before


@pytest.fixture(scope="module")
def heavy_plan(address: str) -> dict[str, Any]:
    response = post_plan(address, HEAVY)
    assert response.status_code == 200
    return dict(response.json())


def test_a_plan_says_what_it_leaves_out(heavy_plan: dict[str, Any]) -> None:
    answer = heavy_plan
    assert {omission["policy"] for omission in answer["omissions"]} == {"breakeven"}
    left_out = [omission["gap"] for omission in answer["omissions"]]
    assert left_out[0] == 0.01
    assert any("Breakeven is left out at " in sentence for sentence in answer["advice"])
    gaps: dict[str, list[float]] = {}
    for row in answer["rows"]:
        gaps.setdefault(row["policy"], []).append(row["gap"])
    assert [*left_out, *gaps["breakeven"]] == gaps["best-fixed-size"] == gaps["decide-now"]
    assert gaps["best-fixed-size"] == [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0]


def test_a_plan_is_that_of_the_library(address: str) -> None:
    answer = post_plan(address, QUICK).json()
    assert answer == json.loads(json.dumps(dbcare.plan(**QUICK).to_dict()))
    assert answer["omissions"] == []
    certain = post_plan(address, QUICK | {"bounds": [-2, 3], "sigma_pulls": "inf"}).json()
    options: dict[str, Any] = {**QUICK, "bounds": (-2, 3), "sigma_pulls": math.inf}
    assert certain == json.loads(json.dumps(dbcare.plan(**options).to_dict(), allow_nan=False))
    assert certain["max_spend"] != answer["max_spend"]


@pytest.mark.soak
@pytest.mark.parametrize(
    "extreme",
    [
        {"arms": 2, "cost": 1e-12, "sigma": 1.0, "gaps": [1e-4, 1.0]},
        {"arms": 32, "cost": 1e-7, "sigma": 1e6, "gaps": [100.0]},
        {"arms": 2, "price": 1e-6, "value": 1e6, "baseline": 1e-6, "gaps": [1e-6], "risk": "misidentification"},
    ],
)
def test_any_cost_is_answered(address: str, extreme: dict[str, object]) -> None:
    """To tell arms apart that are G standard deviations apart takes about 1/G^2 pulls: here over 1e7 in every run."""
    response = post_plan(address, extreme)
    assert response.status_code == 200, response.text
    assert "breakeven" in {omission["policy"] for omission in response.json()["omissions"]}
    assert "decide-now" in {row["policy"] for row in response.json()["rows"]}


def test_a_plan_ends_with_its_client(address: str) -> None:
    """Of many plans whose clients leave early, hardly anything is computed: each would take over a CPU-second."""
    pid = find_pid(address)
    wait_until(lambda: is_idle(pid))
    before = read_cpu_seconds(pid)
    for _ in range(20):
        with send_plan(address, LONG) as connection:
            at_work = read_cpu_seconds(pid)
            wait_until(lambda reached=at_work: read_cpu_seconds(pid) > reached + 0.05)  # type: ignore[misc]  # bound now
            assert not is_answered(connection)
    wait_until(lambda: is_idle(pid))
    assert read_cpu_seconds(pid) - before < 14.0  # whole plans would take more than 20
    assert post_plan(address, QUICK).status_code == 200


def test_a_client_that_leaves_gives_up_its_place_in_the_queue(address: str) -> None:
    """Many plans at once do not hold up other requests: when the queue is full, more are refused at once."""
    with send_plan(address, LONG) as running, ExitStack() as waiting:
        for _ in range(DEFAULT_LIMITS.waiting_checks):
            waiting.enter_context(send_plan(address, LONG))
        time.sleep(0.5)  # a request that overtook the last one would take its place
        wait_until(lambda: is_refused(address))
        assert httpx.get(f"{address}/healthz", timeout=20.0).status_code == 200
        waiting.close()
        wait_until(lambda: not is_refused(address))
        assert not is_answered(running)  # it is not its place that has become free
    assert post_plan(address, QUICK).status_code == 200


def test_the_dashboard_shows_what_a_plan_leaves_out(address: str, browser: Browser, heavy_plan: dict[str, Any]) -> None:
    with open_window(browser, address, viewport={"width": 1400, "height": 900}) as window:
        page = window.page
        page.goto("/new")
        page.get_by_label("Arms, one per line").fill("\n".join(f"arm {number}" for number in range(32)))
        page.locator("input[name=rewards][value=sigma]").check()
        page.locator("#sigma").fill("1")
        page.locator("#risk").select_option("misidentification")
        page.get_by_label("Value").fill("10000000")
        page.get_by_label("Price of a trial").fill("1")
        losses, details = (page.locator("#plan-result table").nth(place).locator("tbody tr") for place in (0, 1))
        expect(losses).to_have_count(8, timeout=TIMEOUT_SECONDS * 1_000)
        page.get_by_text("What Breakeven would do").click()
        assert losses.nth(0).locator("td").first.inner_text() == "\N{EN DASH}"
        assert details.nth(0).locator("td").all_inner_texts() == ["\N{EN DASH}"] * 4
        assert "\N{EN DASH}" not in losses.nth(4).inner_text() + details.nth(4).inner_text()
        lowest = [row["shown"]["total_loss"] for row in heavy_plan["rows"] if row["is_lowest"]]
        assert page.locator("#plan-result tbody .best").all_inner_texts() == lowest
        shown = next(row["shown"] for row in heavy_plan["rows"] if row["policy"] == "breakeven")
        figures = [shown[name] for name in ("observations", "spend", "wrong", "runs")]
        assert details.nth(3).locator("td").all_inner_texts() == figures
        assert losses.nth(3).locator("td").first.inner_text() == shown["total_loss"]
        expect(page.locator("#plan .advice")).to_contain_text("Breakeven is left out at ")
        expect(page.locator("#plan-error")).to_be_hidden()
        assert "Days" not in page.locator("#plan-result thead").last.inner_text()
        page.get_by_label("Price of a trial").fill("100000")  # so that the next plan is quick
        page.get_by_label("Trials per day").fill("2")
        expect(page.locator("#plan-result thead").last).to_contain_text("Days", timeout=TIMEOUT_SECONDS * 1_000)
        quick = post_plan(address, HEAVY | {"price": 1e5}).json()["rows"]
        days = next(row["observations"] for row in quick if (row["policy"], row["gap"]) == ("breakeven", 0.1)) / 2
        assert details.nth(3).locator("td").nth(4).inner_text() == f"{days:,.0f}"
