"""`connect`: a server's studies, used as if they were here.

with dbcare.connect("http://127.0.0.1:8080") as client:
    study = client.create_study("ads", arms=["A", "B"], price=0.40, value=20_000, sigma=0.5, load_if_exists=True)
    while not study.should_stop():
        if trial := study.ask():
            study.tell(trial, show_ad(trial.arm))
    print(study.recommendation())
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dbcare import validation
from dbcare.client.remote_study import RemoteStudy, path_of
from dbcare.client.responses import listed, made_settings, part
from dbcare.errors import AnswerLostError, InvalidValueError, StorageError
from dbcare.live.stored_study import Study
from dbcare.live.stores.memory import MemoryStore
from dbcare.live.studies import checked_name, create_in

if TYPE_CHECKING:
    from dbcare.client.transport import Transport

VARIABLE = "DBCARE_KEY"
STUDIES = "/v1/studies"


def connect(address: str, key: str | None = None, *, timeout: float = 30.0, patience: float = 30.0) -> Client:
    """The studies of the server at an address such as http://127.0.0.1:8080; nothing is sent yet.

    `key` is an API key, or else the variable DBCARE_KEY; without one, only a server on this machine that has no keys
    lets you in. A request waits up to `timeout` seconds for each piece of its answer. While the server cannot be
    reached or is busy, requests are repeated for `patience` seconds, with growing pauses; then they fail with a
    StorageError.
    """
    checked = _address(address)
    secret = _key(os.environ.get(VARIABLE) or None if key is None else key)
    try:
        from dbcare.client.transport import Transport  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as missing:
        raise StorageError(
            f"A server must be reached by httpx2 but got {missing}: pip install 'dbcare[server]'."
        ) from None
    limits = validation.positive("timeout", timeout), validation.non_negative("patience", patience)
    return Client(Transport(checked, secret, *limits))


class Client:
    """The studies of a server, by name; get one with `connect`. Safe to use from several threads."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create_study(
        self,
        name: str,
        arms: Sequence[str],
        *,
        price: float | Sequence[float] | None = None,
        value: float | None = None,
        cost: float | Sequence[float] | None = None,
        direction: str = "maximize",
        risk: str = "simple_regret",
        sigma: float | None = None,
        bounds: tuple[float, float] | None = None,
        binary: bool = False,
        policy: str = "breakeven",
        load_if_exists: bool = False,
        max_spend: float | None = None,
        max_ahead: int | None = None,
        timeout_reward: float | None = None,
        unit: str = "USD",
        seed: int = 0,
    ) -> Study:
        """As `dbcare.create_study`, on the server.

        If the answer gets lost, a study of that name with these very settings is taken for the one that was made.
        """
        options: dict[str, Any] = {
            "price": price,
            "value": value,
            "cost": cost,
            "direction": direction,
            "risk": risk,
            "sigma": sigma,
            "bounds": bounds,
            "binary": binary,
            "policy": policy,
            "max_spend": max_spend,
            "max_ahead": max_ahead,
            "timeout_reward": timeout_reward,
            "unit": unit,
            "seed": seed,
        }
        create_in(MemoryStore(), name, arms, load_if_exists=False, **options)  # refuses what cannot be meant
        body = {"name": name, "arms": list(arms), **options}
        key = uuid.uuid4().hex  # tells the server that a study with these settings is as good as new
        if load_if_exists:
            return self._study(self._transport.call("POST", STUDIES, body, key=key))
        try:
            return self._study(self._transport.call("POST", STUDIES, body, once=True))
        except AnswerLostError:
            return self._study(self._transport.call("POST", STUDIES, body, key=key))

    def load_study(self, name: str) -> Study:
        """As `dbcare.load_study`."""
        return self._study(self._transport.call("GET", path_of(checked_name(name))))

    def list_studies(self) -> list[str]:
        """As `dbcare.list_studies`."""
        return [str(part(each, "name")) for each in listed(self._transport.call("GET", STUDIES))]

    def delete_study(self, name: str) -> None:
        """As `dbcare.delete_study`; not repeated where the answer gets lost."""
        self._transport.call("DELETE", path_of(checked_name(name)), once=True)

    def plan(
        self,
        arms: int,
        price: float | Sequence[float] | None = None,
        value: float | None = None,
        *,
        cost: float | Sequence[float] | None = None,
        sigma: float | None = None,
        baseline: float | None = None,
        risk: str = "simple_regret",
        bound: float | None = None,
        gaps: Iterable[float] | None = None,
        runs: int | None = None,
        seed: int = 0,
    ) -> dict[str, Any]:
        """As `dbcare.plan(...).to_dict()`, computed by the server, which compares all policies."""
        body = {
            "arms": arms,
            "price": price,
            "value": value,
            "cost": cost,
            "sigma": sigma,
            "baseline": baseline,
            "risk": risk,
            "bound": bound,
            "gaps": None if gaps is None else list(gaps),
            "runs": runs,
            "seed": seed,
        }
        found: dict[str, Any] = self._transport.call("POST", "/v1/plan", body)
        return found

    def close(self) -> None:
        """Close all connections; they open again when needed."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._transport.address!r})"

    def _study(self, plain: Any) -> Study:
        return RemoteStudy(self._transport, part(plain, "name"), made_settings(part(plain, "settings")))


def _address(address: Any) -> str:
    must = "`address` must be such as http://127.0.0.1:8080, without a user"
    if not isinstance(address, str):
        raise InvalidValueError(f"{must} but got {address!r}.")
    try:
        parts = urlsplit(address)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    if "@" in address:  # a password is not to be shown
        raise InvalidValueError(f"{must} but got one: give the key as `key`, or as {VARIABLE}.")
    if not fine or parts.query or parts.fragment or not address.isprintable():
        raise InvalidValueError(f"{must} but got {address!r}.")
    return address.rstrip("/")


def _key(key: Any) -> str | None:
    if key is None or (isinstance(key, str) and key.isascii() and key.isprintable() and key and " " not in key):
        return key
    raise InvalidValueError("`key` must be an API key as `dbcare keys create` prints it; what was given is not shown.")
