"""Find a shop's best checkout page while it sells: `python examples/shop.py`.

The shop asks for a page for each visitor and tells the study when someone buys. Nobody reports a visitor who doesn't
buy: that is what the lease is for. A trial that isn't told within its lease counts as `timeout_reward=0`, a visitor who
didn't buy. Purchases are known at once and their absence only later; the study counts visitors in the order in which
they came, so this can't make a page look better than it is.

The shop only needs to know who a visitor is, so it can be restarted, or run in many copies. Once the study has stopped,
new visitors see the winner. While the service is down, they see the first page.

Here everything runs on this machine: the dbcare service in a process of its own, the shop (a FastAPI application) that
reaches it over HTTP, and visitors who click. A lease is two seconds; in a real shop it would be a day or a week.
Requires the extra `server`: in a checkout, `pip install '.[server]'`.
"""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import uvicorn
from fastapi import FastAPI

import dbcare

CHANCE_TO_BUY = {"one page": 0.50, "three steps": 0.30, "with account": 0.20}  # unknown in a real shop
LEASE = "2s"
MAX_THINKING_SECONDS = 0.3  # from the page to the purchase
VISITORS_AT_ONCE = 16


def make_shop(study: dbcare.Study) -> FastAPI:
    """Return an application with two routes: a page for a visitor, and a purchase."""
    shop = FastAPI()

    @shop.get("/checkout")
    def checkout(visitor: str) -> str:
        return study.assign(visitor, fallback="one page", lease=LEASE).arm

    @shop.post("/buy")
    def buy(visitor: str) -> None:
        study.tell(unit=visitor, reward=1)

    return shop


def visit(shop: httpx2.Client, number: int) -> None:
    """Look at the page, think, and buy or never come back."""
    generator = random.Random(number)
    visitor = {"visitor": f"visitor-{number}"}
    page = shop.get("/checkout", params=visitor).raise_for_status().json()
    if generator.random() < CHANCE_TO_BUY[page]:
        time.sleep(MAX_THINKING_SECONDS * generator.random())
        shop.post("/buy", params=visitor).raise_for_status()


def find_free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def run_service(storage: str) -> Iterator[str]:
    """Run the dbcare service in a process of its own; the client waits until it responds."""
    port = str(find_free_port())
    command = [sys.executable, "-m", "dbcare", "serve", "--storage", storage, "--port", port, "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def run_shop(app: FastAPI) -> Iterator[httpx2.Client]:
    """Run the shop in a thread."""
    port = find_free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30.0) as browser:
            yield browser
    finally:
        server.should_exit = True
        thread.join()


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        run_service(f"sqlite:///{folder}/shop.db") as address,
        dbcare.connect(address) as client,
    ):
        study = client.create_study(
            "checkout",
            arms=list(CHANCE_TO_BUY),
            price=0.20,  # of the ad that brings a visitor
            value=200_000,  # of a probability to buy of 1 instead of 0: profit per sale times future visitors
            binary=True,
            timeout_reward=0,
        )
        with run_shop(make_shop(study)) as shop, ThreadPoolExecutor(VISITORS_AT_ONCE) as visitors:
            count = 0
            while not study.should_stop():
                numbers = range(count, count := count + 2 * VISITORS_AT_ONCE)
                list(visitors.map(lambda number: visit(shop, number), numbers))
        status = study.status()
        for arm in status.arms:
            mean = "-" if arm.mean is None else f"{arm.mean:.0%}"
            print(f"{arm.name:<13} {arm.trials:>4} visitors, {mean:>4} bought")
        print(f"{count} visitors came, {status.counted} of them in the study, for {status.spent:.2f} USD")
        print(study.recommendation())


if __name__ == "__main__":
    main()
