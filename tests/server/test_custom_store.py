"""The service over a store that is neither in memory nor SQL."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2 as httpx
import pytest
from uvicorn import Config

import dbcare
from dbcare.errors import AccessError, InvalidValueError
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import AccessRecords, MemoryRecords
from dbcare.server.app import Server, serve
from tests.helpers.dict_store import DictStore

MAX_START_SECONDS = 60.0


@contextmanager
def run_in_thread(
    store: DictStore, monkeypatch: pytest.MonkeyPatch, records: AccessRecords | None = None
) -> Iterator[tuple[str, bool]]:
    """Run the service in a thread; yield its address and whether it requires keys."""
    servers: list[Server] = []
    announced: queue.Queue[tuple[str, bool]] = queue.Queue()

    class RecordedServer(Server):
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            servers.append(self)

    monkeypatch.setattr("dbcare.server.app.Server", RecordedServer)

    def announce(address: str, protected: bool) -> None:
        announced.put((address, protected))

    thread = threading.Thread(target=serve, args=(store, "127.0.0.1", 0, announce, records))
    thread.start()
    try:
        yield announced.get(timeout=MAX_START_SECONDS)
    finally:
        for server in servers:
            server.should_exit = True
        thread.join(timeout=MAX_START_SECONDS)
    assert not thread.is_alive()


def test_a_service_over_a_custom_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies of the server are those of the store, over the API and on the dashboard."""
    store = DictStore()
    local = dbcare.create_study("local", arms=["A", "B"], cost=0.01, sigma=1.0, storage=store)
    local.add([("A", 1.0), ("B", 0.0)])
    with run_in_thread(store, monkeypatch) as (address, protected), dbcare.connect(address) as client:
        assert not protected
        assert client.list_studies() == ["local"]
        study = client.create_study("ads", arms=["A", "B"], price=0.4, value=20_000, sigma=0.5)
        trial = study.ask(worker="shop-1")
        assert trial is not None
        study.tell(trial, 0.75)
        status = study.status()
        assert (status.asked, status.counted, status.arms[0].mean) == (1, 1, 0.75)
        assert dbcare.load_study("ads", store).status().arms == status.arms
        page = httpx.get(address).text
        assert 'href="/studies/ads"' in page
        assert 'href="/studies/local"' in page
        assert httpx.get(f"{address}/studies/ads").status_code == 200
        client.delete_study("ads")
    assert dbcare.list_studies(store) == ["local"]


def test_keys_of_a_service_over_a_custom_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the records that are passed to it."""
    records = MemoryRecords()
    key, text = Keys(records).create("me", "admin")
    with run_in_thread(DictStore(), monkeypatch, records) as (address, protected):
        assert protected
        with dbcare.connect(address) as stranger, pytest.raises(AccessError, match="requires an API key"):
            stranger.list_studies()
        with dbcare.connect(address, text) as client:
            client.create_study("ads", arms=["A", "B"], cost=0.01, sigma=1.0)
            assert client.list_studies() == ["ads"]
        Keys(records).revoke(key.id)
        assert httpx.post(f"{address}/login", data={"key": text}).status_code == 401


def test_without_a_key_a_custom_store_is_not_served_to_others() -> None:
    with pytest.raises(InvalidValueError, match="`host` must be a loopback address"):
        serve(DictStore(), "0.0.0.0", 0)
