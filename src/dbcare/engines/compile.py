"""From plain Python rules to compiled kernels that are cached on disk.

Policies are plain functions that import no numba, and engines are loops with holes for such functions. `kernel` turns
a loop and every function it calls into machine code, and keeps that on disk. Numba's own cache knows nothing of the
functions that a loop inlines, and never recognises closures; so the loop's source is written to a file whose name
carries a digest of all code that goes into it, and numba caches that.
"""

import hashlib
import inspect
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

import dbcare

OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}


def cache_folder() -> Path:
    """Where kernels are kept: $DBCARE_CACHE, or `dbcare` in the user's cache folder."""
    if named := os.environ.get("DBCARE_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dbcare"


# Called once a run: inlining these, and what they call, would only lengthen the compilation.
SELDOM = ("init", "recommend")


def _dispatcher(function: FunctionType, inline: str, done: dict[tuple[FunctionType, str], Any]) -> Any:
    """A plain function as a numba dispatcher, with all plain functions that it calls compiled likewise."""
    key = function, inline
    if key not in done:
        used = {name: _ready(value, inline, done) for name, value in _globals_of(function).items()}
        cells = tuple(CellType(_ready(cell.cell_contents, inline, done)) for cell in function.__closure__ or ())
        copy = FunctionType(
            function.__code__, {**function.__globals__, **used}, function.__name__, function.__defaults__, cells
        )
        options = OPTIONS | {"inline": inline}
        done[key] = numba.njit(**options)(copy)
    return done[key]


def _ready(value: Any, inline: str, done: dict[tuple[FunctionType, str], Any]) -> Any:
    return _dispatcher(value, inline, done) if isinstance(value, FunctionType) else value


def kernel(loop: Callable[..., Any], label: str) -> Any:
    """A loop, compiled with everything it calls, and its machine code kept on disk; `label` names it to the user."""
    assert isinstance(loop, FunctionType)
    held = dict(zip(loop.__code__.co_freevars, (cell.cell_contents for cell in loop.__closure__ or ()), strict=True))
    done: dict[tuple[FunctionType, str], Any] = {}
    names = {
        name: _ready(value, "never" if name in SELDOM else "always", done)
        for name, value in {**_globals_of(loop), **held}.items()
    }
    path = cache_folder() / f"{loop.__name__}_{digest(loop)}.py"
    source = textwrap.dedent(inspect.getsource(loop))
    kept = _keep(path, source)
    if not any(path.parent.glob(f"__pycache__/{path.stem}.*.nbc")):
        print(f"dbcare: compiling {label} (once on this machine, a few seconds)", file=sys.stderr)  # noqa: T201
    names["__name__"] = loop.__module__  # where a cached kernel looks itself up
    exec(compile(source, str(path), "exec"), names)  # the loop's own source, with its holes filled
    return numba.njit(cache=kept, **OPTIONS)(names[loop.__name__])


def _keep(path: Path, source: str) -> bool:
    """Write the source once; False where the folder cannot be written, and then nothing is cached."""
    if path.exists():
        return True
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(source)
        draft.replace(path)
    except OSError:
        return False
    return True


def digest(function: FunctionType) -> str:
    """A fingerprint of all code and constants that compiling `function` would use."""
    found = hashlib.sha256(
        repr((dbcare.__version__, numba.__version__, np.__version__, sys.version, OPTIONS, SELDOM)).encode()
    )
    _feed(found, function, set())
    return found.hexdigest()[:20]


def _feed(found: Any, value: Any, seen: set[int]) -> None:
    if isinstance(value, Dispatcher):
        for option, setting in sorted(value.targetoptions.items()):
            found.update(f"{option}={sorted(setting) if isinstance(setting, set) else setting}".encode())
        value = value.py_func
    if isinstance(value, FunctionType):
        if id(value) in seen:
            return
        seen.add(id(value))
        found.update(f"{value.__module__}.{value.__qualname__}".encode())  # where cached code looks itself up
        _feed(found, value.__code__, seen)
        for name, used in sorted(_globals_of(value).items()):
            found.update(name.encode())
            _feed(found, used, seen)
        for cell in value.__closure__ or ():
            _feed(found, cell.cell_contents, seen)
    elif isinstance(value, CodeType):
        found.update(value.co_code)
        found.update(repr((value.co_names, value.co_varnames)).encode())
        for constant in value.co_consts:
            _feed(found, constant, seen)
    elif isinstance(value, np.ndarray):
        found.update(repr((value.dtype, value.shape)).encode())
        found.update(value.tobytes())
    elif isinstance(value, ModuleType):
        found.update(value.__name__.encode())
    else:
        found.update(repr(value).encode())


def _globals_of(function: FunctionType) -> dict[str, Any]:
    return {name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__}
