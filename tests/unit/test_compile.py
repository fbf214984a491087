"""Kernels are kept on disk under a digest of all code in them."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from dbcare.engines.compile import cache_folder, digest, kernel

SCRIPT = """
from dbcare import Bandit, Racing, Risk, evaluate
print(evaluate(Racing(3, 0.1), Bandit.one_sparse(3, 0.5), Risk.misidentification(1e-3), runs=50, engine="direct").risk)
"""


def run_script(cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DBCARE_CACHE": str(cache)}
    return subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=environment)


def test_the_first_use_says_that_it_compiles_and_the_second_does_not(tmp_path: Path) -> None:
    first, second = run_script(tmp_path / "new"), run_script(tmp_path / "new")
    assert first.stderr.startswith("dbcare: compiling ")
    assert len(first.stderr.splitlines()) == 1
    assert second.stderr == ""
    assert first.stdout == second.stdout


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert run_script(tmp_path / "file").stdout == run_script(tmp_path / "other").stdout


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBCARE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/dbcare")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "dbcare"


def outer(inner: Any, constant: Any) -> Any:
    def loop(values):
        for index in range(len(values)):
            values[index] = inner(values[index]) + constant

    return loop


def twice(x):
    return 2.0 * x


def thrice(x):
    return 3.0 * x


def test_digest_sees_inner_functions_constants_arrays_and_options() -> None:
    jitted = [numba.njit(twice), numba.njit(fastmath=True)(twice)]
    loops = [
        outer(twice, 1.0),
        outer(thrice, 1.0),
        outer(twice, 2.0),
        outer(twice, np.arange(3)),
        outer(twice, np.arange(4)),
        outer(twice, (np.arange(5000),)),
        outer(twice, (np.arange(5000) + (np.arange(5000) == 2500),)),
        *(outer(each, 1.0) for each in jitted),
    ]
    assert len({digest(loop) for loop in loops}) == len(loops)
    assert digest(outer(twice, 1.0)) == digest(outer(twice, 1.0))


def nested(x):
    def inside(y):
        return y * FACTOR

    return inside(x)


def from_module(x):
    return x * settings.scale


FACTOR = 2.0
settings = ModuleType("settings")
settings.scale = 2.0  # type: ignore[attr-defined]


def test_digest_sees_defaults_modules_and_nested_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(default: float) -> Any:
        def scaled(x: float, factor: float = default, *, more: float = default) -> float:
            return x * factor + more

        return scaled

    assert digest(outer(made(1.0), 0.0)) != digest(outer(made(2.0), 0.0))
    before = digest(outer(nested, 0.0)), digest(outer(from_module, 0.0))
    monkeypatch.setitem(nested.__globals__, "FACTOR", 3.0)
    monkeypatch.setattr(settings, "scale", 3.0)
    after = digest(outer(nested, 0.0)), digest(outer(from_module, 0.0))
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_a_folder_with_sources_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As numba says it: no locator, because neither the folder nor the home can be written."""
    monkeypatch.setenv("DBCARE_CACHE", str(tmp_path))
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    values = np.full(2, 3.0)
    kernel(outer(twice, 5.0), "a test")(values)
    assert values.tolist() == [11.0, 11.0]


def test_kernels_with_other_insides_do_not_share_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DBCARE_CACHE", str(tmp_path))
    for inner, expected in ((twice, 7.0), (thrice, 10.0), (twice, 7.0)):
        values = np.full(2, 3.0)
        kernel(outer(inner, 1.0), "a test")(values)
        assert values.tolist() == [expected, expected]
