"""From plain Python rules to compiled kernels that are cached on disk.

Policies are plain functions that import no numba, and engines are loops with holes for such functions. `kernel` turns
a loop and every function it calls into machine code, and keeps that on disk. Numba's own cache knows nothing of the
functions that a loop inlines, never recognizes closures, and runs damaged code; so kernels have a cache of their own,
whose files are named by a digest of all code that goes into them. The functions that numba does not copy into the loop
are kept one by one: kernels of one policy for different arms share them. Processes that need the same code at the same
time wait for the first of them to compile it. A folder that cannot be written is still read.
"""

import __future__

import dis
import inspect
import os
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from types import CellType, FunctionType, MappingProxyType
from typing import Any

import numba
from numba.extending import is_jitted

from dbcare.engines.kernels.cache import (
    INLINED_BY_LLVM,
    KERNEL_OPTIONS,
    PART_OPTIONS,
    Calling,
    announce_compilation,
    cache_folder,
    digest,
    globals_of,
    keep_kernel,
    keep_part,
    keep_source,
)
from dbcare.policies.rule import Calls

OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True} | KERNEL_OPTIONS
# How functions become part of their callers: copied by numba, as code without types, or by LLVM, or not at all.
#
# Functions that are seldom called are not inlined, which would only compile longer. Those called for every pull are
# long: LLVM inlines these, and what they call unless that has a loop. If numba did, it would infer types again for
# every call, and compile half as long again. All others are copied.
INLINING: dict[str, dict[str, Any]] = {
    "by numba": {"inline": "always"},
    "by LLVM": {"inline": "never"} | INLINED_BY_LLVM,
    "never": {"inline": "never"},
}
HOW = OPTIONS, INLINING

# Seconds that kernels usually take to compile: from the quickest as measured to the slowest on a slower machine.
USUAL_SECONDS = {
    "a simulator": "3 to 15",
    "a simulator of policies in epochs": "3 to 6",
    "a simulator of planned rounds": "3 to 6",
    "a simulator of elimination by safe jumps": "3 to 6",
    "the skip-ahead simulator": "4 to 15",
    "the exact engine for Gaussian arms": "4 to 8",
    "the exact engine for Bernoulli arms": "2 to 4",
    "the pooled estimator": "2 to 5",
}

# For all threads: kernels by their digests, and functions that kernels share.
_LOADED: dict[str, Any] = {}
_PARTS: dict[tuple[str, bool], Any] = {}  # by name and whether they are kept
_LOADING = threading.Lock()  # a sweep asks from several threads


def kernel(
    loop: Callable[..., Any],
    label: str,
    calls: Calling = MappingProxyType({}),
    *,
    of: str = "",
    keep: bool = True,
) -> Any:
    """Compile a loop with everything it calls; `keep` stores the code on disk.

    `label` names it to the user, and `of` tells apart kernels of the same label. `calls` says of functions that are
    not copied into the loop how often they are called, as `Rule.calls` does.
    """
    assert isinstance(loop, FunctionType)
    code = digest(loop, calls, options=HOW)
    with _LOADING:
        if code not in _LOADED:
            _LOADED[code] = _make_kernel(loop, code, calls, label, of, keep)
    return _LOADED[code]


def list_used() -> tuple[set[str], set[str]]:
    """Return which kernels this process has compiled, and which it has loaded, once for each type of arguments."""
    with _LOADING:
        stats = [(code, dispatcher.stats) for code, dispatcher in _LOADED.items()]
    compiled = {f"{code} {signature}" for code, each in stats for signature in each.cache_misses}
    loaded = {f"{code} {signature}" for code, each in stats for signature in each.cache_hits}
    return compiled, loaded


def _make_kernel(loop: FunctionType, code: str, calls: Calling, label: str, of: str, keep: bool) -> Any:
    path = cache_folder() / f"{loop.__name__}_{code}.py"
    source = textwrap.dedent(inspect.getsource(loop))
    kept = keep and keep_source(path, source)
    names = {
        name: _prepare(value, calls, "by numba", kept) for name, value in {**globals_of(loop), **_held_by(loop)}.items()
    }
    names["__name__"] = loop.__module__  # where a cached kernel looks itself up
    exec(compile(source, str(path), "exec", flags=__future__.annotations.compiler_flag), names)  # types are not needed
    dispatcher = numba.njit(**OPTIONS)(names[loop.__name__])
    notice = _describe_wait(label, of, path.parent, keep, kept)
    announce_compilation(dispatcher, lambda: print(notice, file=sys.stderr))  # noqa: T201  # the notice
    if kept:
        keep_kernel(dispatcher, path)
    return dispatcher


def _prepare(value: Any, calls: Calling, inline: str, keep: bool) -> Any:
    if not isinstance(value, FunctionType):
        return value
    called = calls.get(value)
    if called is Calls.SELDOM or (inline == "by LLVM" and _has_loop(value)):
        inline = "never"
    elif called is Calls.EACH_PULL and inline == "by numba":
        inline = "by LLVM"
    return _make_dispatcher(value, calls, inline, keep)


def _make_dispatcher(function: FunctionType, calls: Calling, inline: str, keep: bool) -> Any:
    """Return a plain function as a numba dispatcher, with all plain functions that it calls compiled likewise."""
    # Unique names: cached kernels have been observed to resolve each other's functions of the same name.
    name = f"{function.__name__}_{digest(function, calls, options=(HOW, inline))}"
    key = name, keep
    if key not in _PARTS:
        _PARTS[key] = None  # under construction: a function that calls itself finds this
        held = _held_by(function)
        within = "by LLVM" if inline == "never" else inline  # so that numba sees a function once, whoever calls it
        mentioned = {**globals_of(function), **held}
        used = {each: _prepare(value, calls, within, keep) for each, value in mentioned.items()}
        cells = tuple(CellType(used[each]) for each in held)
        copy = FunctionType(
            function.__code__, {**function.__globals__, **used}, function.__name__, function.__defaults__, cells
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__qualname__ = name
        _PARTS[key] = numba.njit(**OPTIONS | INLINING[inline] | PART_OPTIONS)(copy)
        # Functions that neither call others nor loop compile about as fast as they load.
        is_long = _has_loop(function) or any(map(is_jitted, used.values()))
        if keep and inline != "by numba" and is_long:
            keep_part(_PARTS[key], name)
    if _PARTS[key] is None:
        raise numba.UnsupportedError(f"{function.__name__} calls itself")
    return _PARTS[key]


def _has_loop(function: FunctionType) -> bool:
    """Return whether a function has a loop; inlined into others with loops, it could take minutes to optimize."""
    return any(instruction.opname.startswith("JUMP_BACKWARD") for instruction in dis.get_instructions(function))


def _held_by(function: FunctionType) -> dict[str, Any]:
    """Return what a closure holds, by name."""
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    return dict(zip(function.__code__.co_freevars, cells, strict=True))


def _describe_wait(label: str, of: str, folder: Path, keep: bool, kept: bool) -> str:
    """Return the notice that a kernel is being compiled: how long that usually takes, and how often."""
    if kept and os.access(folder, os.W_OK):
        often = "once on this machine; `dbcare warm-up` compiles all that ship in advance"
    elif keep:
        often = f"in every process, as {folder} cannot be written"
    else:
        often = "in every process, as its tables are defined in the main script"
    what = f"{label} of {of}" if of else label
    return f"dbcare: compiling {what} (usually {USUAL_SECONDS.get(label, 'a few')} seconds, {often})"
