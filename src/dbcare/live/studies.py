"""Studies by name: make one, find it again, list them, remove one."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

from dbcare import validation
from dbcare.errors import InvalidValueError, StudyExistsError, StudyMismatchError
from dbcare.live.settings import Settings
from dbcare.live.stored_study import Study
from dbcare.live.stores.base import Store
from dbcare.live.stores.memory import MemoryStore
from dbcare.risk import Loss, Risk

VARIABLE = "DBCARE_STORAGE"


def create_study(
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
    storage: str | None = None,
    load_if_exists: bool = False,
    max_spend: float | None = None,
    max_ahead: int | None = None,
    timeout_reward: float | None = None,
    unit: str = "USD",
    seed: int = 0,
) -> Study:
    """A new study: which of `arms` is best, when a trial has a `price` and a unit of reward a `value` in money.

    Or give the `cost`, price / value. `risk` says what a wrong choice loses: its gap in means ("simple_regret"), or the
    same whatever the gap ("misidentification"; `value` is then what a wrong choice costs). Rewards have the standard
    deviation `sigma`, or stay within `bounds`, or are `binary`: 0 or 1. `max_spend`, in money if there is a value, ends
    the study early. A trial whose lease runs out is replaced, or counts as `timeout_reward`.

    `storage` is an address such as sqlite:///ads.db or postgresql+psycopg://...; without one the variable
    DBCARE_STORAGE, or else this process's memory. With `load_if_exists` a stored study of the same settings is loaded.
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
    return create_in(store_of(storage), name, arms, load_if_exists=load_if_exists, **options)


def create_in(store: Store, name: str, arms: Sequence[str], *, load_if_exists: bool, **options: Any) -> Study:
    """As `create_study`, in a store that is open; all its options must be given."""
    settings = _settings(arms, **options)
    try:
        store.create(checked_name(name), settings.to_dict(), time.time())
    except StudyExistsError:
        if not load_if_exists:
            raise
        study = Study(store, name)
        if differing := settings.differences(study.settings):
            raise StudyMismatchError(
                f"{name!r} must have the settings it was made with, but got {'; '.join(differing)}."
            ) from None
        return study
    return Study(store, name)


def _settings(arms: Any, *, price: Any, value: Any, cost: Any, risk: str, max_spend: Any, **others: Any) -> Settings:
    """Settings as users say them: in money."""
    make = Risk.simple_regret if _loss(risk) is Loss.SIMPLE_REGRET else Risk.misidentification
    made = make(cost, price=price, value=value)
    return Settings(
        arms=tuple(arms) if isinstance(arms, list) else arms,
        cost=made.cost,
        value=made.value,
        risk=str(made.loss),
        max_spend=None if max_spend is None else validation.positive("max_spend", max_spend) / (made.value or 1.0),
        **others,
    )


def load_study(name: str, storage: str | None = None) -> Study:
    """A study that is stored."""
    return Study(store_of(storage), checked_name(name))


def delete_study(name: str, storage: str | None = None) -> None:
    """Remove a study and everything that happened in it."""
    store_of(storage).delete(checked_name(name))


def list_studies(storage: str | None = None) -> list[str]:
    """The names of all studies, the oldest first."""
    return store_of(storage).names()


def checked_name(name: object) -> str:
    """A study's name, if it can be one: it is part of addresses and of files."""
    checked = validation.text("name", name)
    if "/" in checked or checked in (".", ".."):
        raise InvalidValueError(f"`name` must have no slash, and not be . or .., but got {checked!r}.")
    return checked


def store_of(storage: str | None) -> Store:
    """The store at an address; the same address is the same store."""
    address = os.environ.get(VARIABLE) if storage is None else storage
    if address is not None and not isinstance(address, str):
        raise InvalidValueError(f"`storage` must be an address such as sqlite:///ads.db but got {address!r}.")
    return _opened(address)


@cache
def _opened(address: str | None) -> Store:
    if address is None:
        return MemoryStore()
    from dbcare.live.stores.sql.store import SqlStore  # noqa: PLC0415  # only databases need SQLAlchemy

    return SqlStore(address)


def _loss(risk: Any) -> Loss:
    return Loss(validation.one_of("risk", risk, list(Loss)))
