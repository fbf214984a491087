"""What we rely on in numba and uvicorn without it being documented: a later version may change it."""

import ast
import asyncio
import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import uvicorn
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from packaging.requirements import Requirement
from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

import dbcare
from dbcare.engines.kernels import cache as machine_code
from dbcare.server import app, sockets

ROOT = Path(__file__).parents[1]
PACKAGE = Path(dbcare.__file__).parent
# Where each package's private parts may be touched.
PLACES = {"numba.core": Path(machine_code.__file__), "uvicorn.protocols": Path(sockets.__file__)}


@pytest.mark.parametrize("name", ["numba", "uvicorn"])
def test_versions_that_nobody_has_tried_are_not_installed(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [each for group in project["optional-dependencies"].values() for each in group]
    (allowed,) = [each for text in [*project["dependencies"], *extras] if (each := Requirement(text)).name == name]
    major, minor, *_ = version(name).split(".")
    assert allowed.specifier.contains(version(name))
    assert not allowed.specifier.contains(f"{major}.{int(minor) + 1}")


@pytest.mark.parametrize("inner", PLACES)
def test_private_parts_are_touched_in_one_module(inner: str) -> None:
    def imports(path: Path) -> set[str]:
        nodes = list(ast.walk(ast.parse(path.read_text())))
        modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        return modules | {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}

    touching = {path for path in PACKAGE.rglob("*.py") if any(name.startswith(inner) for name in imports(path))}
    assert touching == {PLACES[inner]}


class RecordingCache(machine_code.KernelCache):
    """Notes what numba asks of a cache."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked: list[str] = []

    def load_overload(self, signature: Any, context: Any) -> Any:
        self.asked.append("load")
        return super().load_overload(signature, context)

    def save_overload(self, signature: Any, result: Any) -> None:
        self.asked.append("save")
        assert isinstance(result, CompileResult)
        super().save_overload(signature, result)


def double(values: Any) -> None:
    values[0] *= 2.0


def test_numba_asks_the_cache_and_the_compiler_as_we_expect(tmp_path: Path) -> None:
    """A function is looked up, compiled and saved; another process would find it, and compile nothing."""
    assert _Cache.__abstractmethods__ <= vars(machine_code.KernelCache).keys()
    for expected in (["load", "compile", "save"], ["load"]):
        dispatcher = numba.njit(**machine_code.KERNEL_OPTIONS)(double)
        cache = RecordingCache(tmp_path / "kernel")
        dispatcher._cache = cache
        machine_code.announce_compilation(dispatcher, lambda asked=cache.asked: asked.append("compile"))  # type: ignore[misc]  # a lambda with a default
        values = np.ones(1)
        dispatcher(values)
        assert values[0] == 2.0
        assert cache.asked == expected


def test_numba_takes_the_options_of_kernels_and_their_parts() -> None:
    options: dict[str, Any] = {
        **machine_code.KERNEL_OPTIONS,
        **machine_code.PART_OPTIONS,
        **machine_code.INLINED_BY_LLVM,
    }
    assert options == {"_nrt": False, "no_cfunc_wrapper": True, "no_cpython_wrapper": True, "forceinline": True}
    part = numba.njit(**options)(double)

    def call(values: Any) -> None:
        part(values)

    values = np.ones(1)
    numba.njit(**machine_code.KERNEL_OPTIONS)(call)(values)
    assert values[0] == 2.0


def test_numba_compiles_through_a_method_that_we_wrap() -> None:
    """Once for each signature."""
    dispatcher: Any = numba.njit(double)
    signatures = []
    compile_signature = dispatcher.compile

    def note_and_compile(signature: Any) -> Any:
        signatures.append(signature)
        return compile_signature(signature)

    dispatcher.compile = note_and_compile
    for values in (np.ones(1), np.ones(1), np.ones(1, np.float32)):
        dispatcher(values)
    assert len(signatures) == 2


def test_uvicorn_has_what_a_connection_overrides() -> None:
    """Methods with the same parameters."""
    own = {
        "expire", "abort", "_ignore", "_has_large_headers", "_is_busy_for_stranger", "_settle", "_has_begun", "_refuse",
        "_disconnect_all", "_leave", "_watch_reader", "_check_reader_later", "_check_reader",
    }  # fmt: skip
    methods = {name for name, value in vars(sockets.LimitedConnection).items() if inspect.isfunction(value)}
    overridden = methods - own - {"__init__"}
    assert len(overridden) == 14
    for name in overridden:
        ours, theirs = getattr(sockets.LimitedConnection, name), getattr(HttpToolsProtocol, name)
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name


def test_uvicorn_stops_through_a_method_that_we_wrap() -> None:
    """With the same parameters; it is awaited once the server is told to stop."""
    ours, theirs = app.Server.shutdown, uvicorn.Server.shutdown
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    assert "await self.shutdown(" in inspect.getsource(uvicorn.Server)


def test_uvicorn_has_the_state_that_a_connection_reads() -> None:
    async def make() -> HttpToolsProtocol:
        return HttpToolsProtocol(Config(lambda: None, loop="asyncio"), ServerState(), {})

    protocol = asyncio.run(make())
    for name in ("transport", "flow", "loop", "pipeline", "scope", "headers", "cycle"):
        assert name in vars(protocol), name
    assert {"pause_reading", "resume_reading", "resume_writing"} <= vars(FlowControl).keys()
    source = inspect.getsource(RequestResponseCycle.__init__)
    for name in (
        "scope",
        "body",
        "keep_alive",
        "disconnected",
        "message_event",
        "response_started",
        "response_complete",
    ):
        assert f"self.{name}" in source, name
