"""A damaged SQLite file: whatever is read from it is right, or is a StorageError that says what to do."""

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import dbcare
from dbcare.errors import DbcareError
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.sql.store import SqlStore

SETTINGS = {"cost": 1e-9, "sigma": 1.0, "max_ahead": 50}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a file with a study of 550 trials, a summary, pending trials and a retired arm."""
    path = tmp_path_factory.mktemp("sound") / "s.db"
    with closing(SqlStore(f"sqlite:///{path}")) as store:
        study = dbcare.create_study("s", ["A", "B", "C"], storage=store, **SETTINGS)  # type: ignore[arg-type]  # values of several types
        chance = random.Random(1)
        for turn in range(11):
            study.tell_many((trial, chance.gauss(0.0, 1.0)) for trial in study.ask(50, worker="w", key=f"key {turn}"))
        study.retire("C", "out of stock")
        study.ask(3, worker="w \N{SNOWMAN}")
    return path.read_bytes()


def damage(content: bytes, chance: random.Random) -> bytes:
    """Change some bytes in one place."""
    damaged = bytearray(content)
    length = chance.choice((1, 4, 40, 400))
    first = chance.randrange(len(content) - length)
    damaged[first : first + length] = chance.randbytes(length)
    return bytes(damaged)


def list_uses(store: SqlStore) -> Iterator[Callable[[], object]]:
    """Return everything that reads the study, or writes to it."""
    yield store.names
    yield store.find
    for use in ("status", "recommendation", "pending", "history", "explain", "check", "ask"):
        yield lambda use=use: getattr(StoredStudy(store, "s"), use)()  # type: ignore[misc]  # binds the value
    yield lambda: list(StoredStudy(store, "s").trials())
    yield lambda: StoredStudy(store, "s").ask(key="key 3")
    yield lambda: StoredStudy(store, "s").tell(1, 0.5)
    yield lambda: StoredStudy(store, "s").retire("B")


@pytest.mark.parametrize("damages", [25, pytest.param(500, marks=pytest.mark.soak)])
def test_damaged_files(sound: bytes, tmp_path: Path, damages: int) -> None:
    refused = 0
    for seed in range(damages):
        path = tmp_path / f"{seed}.db"
        path.write_bytes(damage(sound, random.Random(seed)))
        try:
            store = SqlStore(f"sqlite:///{path}", create=False)
        except DbcareError:
            refused += 1
            continue
        with closing(store):
            for use in list_uses(store):
                try:
                    use()
                except DbcareError:  # anything else fails the test
                    refused += 1
    assert refused > damages  # the damage is felt
