"""The shop of the guide for web applications: four processes, late purchases, and a service that is killed."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest

import dbcare
from tests.helpers.service_process import SCRIPT, find_free_port
from tests.test_documentation import BLOCK, ROOT

pytestmark = pytest.mark.service

PROCESSES = 4
DAY = 1.0  # simulated, in seconds
LEASE = 2 * DAY
RATES = {"old": 0.1, "express": 0.5}
LIMIT_OF_GUIDE = "within=WITHIN"
SHORT_LIMIT = "0.3"
MAX_SECONDS = 60.0  # on a busy machine


def wait_for(url: str) -> None:
    until = time.monotonic() + MAX_SECONDS
    while time.monotonic() < until:
        try:
            httpx.get(url, timeout=5.0)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(url)


@contextmanager
def run(*arguments: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Python program in a process group of its own, and kill that in the end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    process = subprocess.Popen([sys.executable, *arguments], env=environment, start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Visitors:
    """Visitors of the shop: they look, some buy within two days, and some come back."""

    def __init__(self, shop: str) -> None:
        self.shop = httpx.Client(base_url=shop, timeout=MAX_SECONDS)
        self.seen: dict[str, dict[str, str]] = {}  # what each visitor saw first
        self.purchases: list[threading.Timer] = []

    def close(self) -> None:
        """Close all connections."""
        self.shop.close()

    def look(self, visitor: str) -> dict[str, str]:
        """Show the checkout page to a visitor, who may buy later."""
        shown: dict[str, str] = self.shop.get("/checkout", params={"visitor": visitor}).raise_for_status().json()
        if visitor not in self.seen:
            self.seen[visitor] = shown
            chance = random.Random(visitor)
            if chance.random() < RATES[shown["page"]]:
                timer = threading.Timer(chance.uniform(0.0, LEASE), self._buy, [visitor])
                self.purchases.append(timer)
                timer.start()
        return shown

    def _buy(self, visitor: str) -> None:
        self.shop.post("/purchase", params={"visitor": visitor}).raise_for_status()

    def come(self, first: int, last: int) -> list[dict[str, str]]:
        """Let visitors come, eight at a time."""
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(self.look, [f"visitor-{number}" for number in range(first, last)]))


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shop.db'}"


@pytest.fixture
def limit(tmp_path: Path) -> Path:
    """A file with the seconds within which the shop assigns: many, as a busy machine may be slow to answer."""
    path = tmp_path / "within"
    path.write_text(str(MAX_SECONDS))
    return path


@pytest.fixture
def shop_folder(tmp_path: Path, limit: Path) -> Path:
    """A folder with the application of the guide, which reads its limit from a file."""
    page = ROOT / "docs" / "guides" / "web_applications.md"
    (app,) = [text for language, text in BLOCK.findall(page.read_text()) if text.startswith("# shop.py")]
    assert app.count(LIMIT_OF_GUIDE) == 1
    (tmp_path / "shop.py").write_text(app.replace(LIMIT_OF_GUIDE, f"within=float(open({str(limit)!r}).read())"))
    return tmp_path


def test_every_visitor_gets_a_page_and_keeps_it(storage: str, shop_folder: Path, limit: Path) -> None:
    """With default settings, whatever happens to the service; after the stop, new visitors see the winner."""
    study = dbcare.create_study(
        "checkout", list(RATES), control="old", price=0.2, value=4_000, binary=True, timeout_reward=0, storage=storage
    )
    ports = [str(find_free_port()) for _ in range(2)]
    service = [str(SCRIPT), storage, ports[0]]
    address, shop = (f"http://127.0.0.1:{port}" for port in ports)
    command = ["-m", "uvicorn", "shop:app", "--workers", str(PROCESSES), "--port", ports[1], "--log-level", "warning"]
    variables = {
        "DBCARE_SERVICE": address,
        "SHOP_LEASE": f"{LEASE}s",
        "PYTHONPATH": os.pathsep.join([str(shop_folder), *sys.path]),
    }
    with ExitStack() as stack, run(*command, **variables):
        with run(*service):
            wait_for(f"{shop}/openapi.json")
            visitors = stack.enter_context(closing(Visitors(shop)))
            came = visitors.come(0, 150)
            assert Counter(shown["reason"] for shown in came) == {"new trial": 150}
            assert study.status().asked == 150
        # The service has been killed.
        limit.write_text(SHORT_LIMIT)
        outage = visitors.come(150, 170)
        assert Counter(map(tuple, (shown.values() for shown in outage))) == {("old", "fallback"): 20}
        limit.write_text(str(MAX_SECONDS))
        with run(*service):
            wait_for(f"{address}/healthz")
            until = time.monotonic() + MAX_SECONDS
            while {shown["reason"] for shown in visitors.come(0, 40)} != {"own trial"}:  # it has just started
                assert time.monotonic() < until
            again = visitors.come(0, 150)
            assert [shown["page"] for shown in again] == [shown["page"] for shown in came]
            assert {shown["reason"] for shown in again} == {"own trial"}
            count = 170
            until = time.monotonic() + 5 * MAX_SECONDS
            while not study.should_stop():
                assert time.monotonic() < until, study.status()
                visitors.come(count, count := count + 20)
            after = visitors.come(count, count + 20)
            assert Counter(map(tuple, (shown.values() for shown in after))) == {("express", "winner"): 20}
            assert [shown["page"] for shown in visitors.come(0, 150)] == [shown["page"] for shown in came]
            for timer in visitors.purchases:
                timer.join()
    rows = {row.unit: row for row in study.trials()}
    in_study = {visitor for visitor, shown in visitors.seen.items() if shown["reason"] == "new trial"}
    assert in_study == rows.keys()
    assert all(row.arm == visitors.seen[str(unit)]["page"] for unit, row in rows.items())
    assert study.recommendation().arm == "express"
