"""A shop that finds its best checkout page while it sells: `python examples/shop.py`.

The shop asks for a page for each visitor and tells the study when somebody buys. Nobody tells it who does not: that is
what the lease is for. A trial that is not told within its lease counts as `timeout_reward=0`, a visitor who did not
buy. Purchases are known at once and their absence only later; the study counts visitors in the order in which they
came, so that this cannot make a page look better than it is.

The number of a trial travels with the page, so the shop itself remembers nothing and may be restarted or run many
times over. Once the study has stopped, `ask` gives None and everybody sees the recommended page.

Here all of it runs on this machine: the service of dbcare in a process of its own, the shop (a FastAPI application)
that reaches it over HTTP, and visitors who click. A lease is two seconds; in a real shop it would be a day or a week.
Needs `pip install 'dbcare[server]'`.
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

CHANCE_TO_BUY = {"one page": 0.50, "three steps": 0.30, "with account": 0.20}  # what nobody knows in a real shop
LEASE = "2s"
LONGEST_THOUGHT = 0.3  # seconds from the page to the purchase
VISITORS_AT_ONCE = 16


def make_shop(study: dbcare.Study) -> FastAPI:
    """Two routes: a page for a visitor, and a purchase."""
    shop = FastAPI()

    @shop.get("/checkout")
    def checkout() -> dict[str, str | int | None]:
        trial = study.ask(lease=LEASE)
        if trial is None:  # enough visitors are out, or the study has stopped
            return {"page": study.recommendation().arm, "trial": None}
        return {"page": trial.arm, "trial": trial.id}

    @shop.post("/buy")
    def buy(trial: int) -> None:
        study.tell(trial, 1)

    return shop


def visit(shop: httpx2.Client, number: int) -> None:
    """A visitor looks at the page, thinks, and buys or never comes back."""
    chance = random.Random(number)
    seen = shop.get("/checkout").raise_for_status().json()
    if chance.random() < CHANCE_TO_BUY[seen["page"]]:
        time.sleep(LONGEST_THOUGHT * chance.random())
        if seen["trial"] is not None:
            shop.post("/buy", params={"trial": seen["trial"]}).raise_for_status()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def running_service(storage: str) -> Iterator[str]:
    """The service of dbcare in a process of its own; the client waits until it answers."""
    port = str(free_port())
    command = [sys.executable, "-m", "dbcare", "serve", "--storage", storage, "--port", port]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def running_shop(app: FastAPI) -> Iterator[httpx2.Client]:
    """The shop, in a thread."""
    port = free_port()
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
        running_service(f"sqlite:///{folder}/shop.db") as address,
        dbcare.connect(address) as client,
    ):
        study = client.create_study(
            "checkout",
            arms=list(CHANCE_TO_BUY),
            price=0.20,  # of an advertisement that brings a visitor
            value=200_000,  # profit of a sale times visitors to come: what a chance to buy of 1 instead of 0 is worth
            binary=True,
            timeout_reward=0,
            max_ahead=100,  # visitors whose purchase may still come
        )
        with running_shop(make_shop(study)) as shop, ThreadPoolExecutor(VISITORS_AT_ONCE) as visitors:
            came = 0
            while not study.should_stop():
                numbers = range(came, came := came + 2 * VISITORS_AT_ONCE)
                list(visitors.map(lambda number: visit(shop, number), numbers))
        status = study.status()
        for arm in status.arms:
            mean = "-" if arm.mean is None else f"{arm.mean:.0%}"
            print(f"{arm.name:<13} {arm.trials:>4} visitors, {mean:>4} bought")
        print(f"{came} visitors came, {status.counted} of them in the study, for {status.spent:.2f} USD")
        print(study.recommendation())


if __name__ == "__main__":
    main()
