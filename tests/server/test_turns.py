"""Turns of requests that only look: who is next, who is refused, and what a client that leaves gives up."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from fastapi import Request

import dbcare
from dbcare.engines.simulate.halt import Halt
from dbcare.server.access.gate import VISITOR, Visitor
from dbcare.server.access.keys import BrowserSession, Key
from dbcare.server.access.roles import Role
from dbcare.server.metrics import Metrics, Refusal
from dbcare.server.pages.study import TOKEN_MARK, SharedViews
from dbcare.server.problems import RefusalError
from dbcare.server.service_limits import DEFAULT_LIMITS
from dbcare.server.studies import OpenStudies
from dbcare.server.turns import CLIENT_LEFT, Turns
from dbcare.studies.stores.memory import MemoryStore


def make_turns(longest: int = 3) -> Turns:
    return Turns(longest, Metrics(DEFAULT_LIMITS), Refusal.LOOKS_FULL)


class Client:
    """A client that waits for the response to a request, until it leaves."""

    def __init__(self, visitor: str = "me") -> None:
        self.left = asyncio.Event()
        self.request = Request({"type": "http", VISITOR: visitor}, self._receive)

    async def _receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60.0))


def test_visitors_take_turns() -> None:
    """However many requests one of them sends, another waits for one of them at most."""

    async def test() -> None:
        turns, order = make_turns(), []

        async def look(visitor: str) -> None:
            async with turns.take(visitor):
                order.append(visitor)
                await settle()

        async with asyncio.TaskGroup() as everybody:
            for visitor in ("busy", "busy", "busy", "busy", "second", "third", "second"):
                everybody.create_task(look(visitor))
                await asyncio.sleep(0)
        assert order == ["busy", "busy", "second", "third", "busy", "second", "busy"]

    run(test)


def test_a_full_line_refuses_its_own_visitor_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbcare.server.turns.REFUSAL_SECONDS", 0.0)

    async def test() -> None:
        turns = make_turns(longest=2)

        async def look(client: Client) -> None:
            async with turns.take_for(client.request):
                await client.left.wait()

        mine = [Client() for _ in range(4)]
        tasks = [asyncio.create_task(look(client)) for client in mine[:3]]
        await settle()
        with pytest.raises(RefusalError, match="2 such requests of yours are waiting; retry in 5 seconds") as refused:
            await look(mine[3])
        assert refused.value.status == 429
        assert turns._metrics.refusals.labels(Refusal.LOOKS_FULL)._value.get() == 1.0
        other = asyncio.create_task(look(Client("other")))  # is not refused
        await settle()
        assert not other.done()
        for client in mine:
            client.left.set()
        with suppress(RefusalError):
            await asyncio.gather(*tasks)
        other.cancel()

    run(test)


def test_a_client_that_leaves_gives_up_its_place() -> None:
    async def test() -> None:
        turns = make_turns()
        first, second, third = Client(), Client(), Client()
        is_let_in = []

        async def look(client: Client) -> None:
            async with turns.take_for(client.request):
                is_let_in.append(client)

        async with turns.take("other"):
            waiting = [asyncio.create_task(look(client)) for client in (first, second, third)]
            await settle()
            second.left.set()
            with pytest.raises(RefusalError) as refused:
                await waiting[1]
            assert refused.value.status == CLIENT_LEFT
            assert is_let_in == []
        await asyncio.gather(waiting[0], waiting[2])
        assert is_let_in == [first, third]
        async with turns.take("other"):  # the place is free again
            pass

    run(test)


@pytest.mark.parametrize("moment", range(8))
def test_the_place_is_never_lost(moment: int) -> None:
    """Whoever is cancelled at whatever moment: somebody else gets the place."""

    async def test() -> None:
        turns = make_turns()

        async def look() -> None:
            async with turns.take("me"):
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(look()) for _ in range(4)]
        for _ in range(moment):
            await asyncio.sleep(0)
        tasks[1].cancel()
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with turns.take("other"):
            pass
        assert not turns._lines

    run(test)


def test_work_ends_with_its_client() -> None:
    async def test() -> None:
        turns, client, steps = make_turns(), Client(), []
        loop = asyncio.get_running_loop()

        def work(halt: Halt) -> None:
            loop.call_soon_threadsafe(client.left.set)
            while not halt.is_set():
                steps.append("going on")
            halt.check()

        with pytest.raises(RefusalError) as refused:
            await turns.run_for(client.request, work)
        assert refused.value.status == CLIENT_LEFT
        assert await turns.run_for(Client().request, lambda _: 7) == 7

    run(test)


def test_a_page_is_rendered_once_per_change() -> None:
    """For everybody who looks; each sees the token of their own session, and no other."""
    store = MemoryStore()
    study = dbcare.create_study("ads", ["A", "B"], cost=1e-9, sigma=1.0, storage=store)

    async def test() -> None:
        views = SharedViews(OpenStudies(store), make_turns())
        first = await asyncio.gather(*[views.get("ads") for _ in range(8)], *[views.watch("ads") for _ in range(8)])
        assert len(set(map(id, first))) == 1
        assert await views.get("ads") is first[0]
        study.add([("A", 1.0)])
        later = await asyncio.gather(*[views.get("ads") for _ in range(8)])
        assert len(set(map(id, later))) == 1
        assert later[0].position == first[0].position + 2
        assert later[0].parts["arms"] != first[0].parts["arms"]
        sessions = [BrowserSession(Key(name, name, Role.ADMIN, ""), f"token-of-{name}") for name in ("ann", "bob")]
        pages = [str(later[0].parts_for(Visitor(Role.ADMIN, each.key.name, each))) for each in sessions]
        assert ["token-of-ann" in page for page in pages] == [True, False]
        assert ["token-of-bob" in page for page in pages] == [False, True]
        assert not any(TOKEN_MARK in page for page in pages)
        viewer = BrowserSession(Key("eve", "eve", Role.VIEWER, ""), "token-of-eve")
        assert "/pause" not in later[0].parts_for(Visitor(Role.VIEWER, "eve", viewer))["actions"]
        store.delete("ads")
        with pytest.raises(dbcare.errors.StudyNotFoundError):
            await views.get("ads")

    run(test)


def test_a_page_that_is_recreated_is_another_one() -> None:
    store = MemoryStore()
    dbcare.create_study("ads", ["A", "B"], cost=1e-9, sigma=1.0, storage=store)

    async def test() -> None:
        studies = OpenStudies(store)
        views = SharedViews(studies, make_turns())
        before = await views.get("ads")
        store.delete("ads")
        studies.forget("ads")
        dbcare.create_study("ads", ["C", "D"], cost=1e-9, sigma=1.0, storage=store)
        after = await views.get("ads")
        assert after.position == before.position
        assert (">C<" in before.parts["arms"], ">C<" in after.parts["arms"]) == (False, True)

    run(test)
