"""From plain Python rules to compiled kernels that are cached on disk.

Policies are plain functions that import no numba, and engines are loops with holes for such functions. `kernel` turns
a loop and every function it calls into machine code, and keeps that on disk. Numba's own cache knows nothing of the
functions that a loop inlines, and never recognizes closures; so the loop's source is written to a file whose name
carries a digest of all code that goes into it, and numba caches that. Processes that need the same kernel at the same
time wait for the first of them to compile it. A folder that cannot be written is still read.
"""

import dis
import hashlib
import inspect
import os
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.errors import UnsupportedError

import dbcare

try:
    import fcntl
except ImportError:  # on Windows, where two processes may both compile a kernel
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

# Nothing calls compiled code through a C pointer; that wrapper would take a tenth of the time.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}


def cache_folder() -> Path:
    """Return where kernels are kept: $DBCARE_CACHE, or `dbcare` in the user's cache folder."""
    if named := os.environ.get("DBCARE_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dbcare"


# Called once per run, or where something happens: inlining these would only compile longer.
RARELY_CALLED = ("init", "decide", "recommend")
# Called for every pull, and long: LLVM inlines these, and what they call unless that has a loop. If numba did, it would
# infer types again for every call, and compile half as long again.
EACH_PULL = ("ask", "tell")
# How functions become part of their callers: copied by numba, as code without types, or by LLVM, or not at all.
INLINING: dict[str, dict[str, Any]] = {
    "by numba": {"inline": "always"},
    "by LLVM": {"inline": "never", "forceinline": True},
    "never": {"inline": "never"},
}
HOW_INLINED = RARELY_CALLED, EACH_PULL, INLINING

# Seconds that kernels usually take to compile: from the quickest as measured to the slowest on a slower machine.
USUAL_SECONDS = {
    "a simulator of your policy": "3 to 15",
    "a simulator of policies in epochs": "3 to 6",
    "a simulator of planned rounds": "3 to 6",
    "a simulator of elimination by safe jumps": "3 to 6",
    "the skip-ahead simulator": "4 to 15",
    "the exact engine for Gaussian arms": "4 to 8",
    "the exact engine for Bernoulli arms": "2 to 4",
    "the pooled estimator": "2 to 5",
}

VERSIONED = ("math", "numpy", "numba")  # modules whose contents follow from the versions in the digest


def _make_dispatcher(function: FunctionType, inline: str, done: dict[tuple[FunctionType, str], Any]) -> Any:
    """Return a plain function as a numba dispatcher, with all plain functions that it calls compiled likewise."""
    key = function, inline
    if key not in done:
        done[key] = None  # under construction: a function that calls itself finds this
        held = _held_by(function)
        within = "by LLVM" if inline == "never" else inline  # so that numba sees a function once, whoever calls it
        used = {name: _prepare(name, value, within, done) for name, value in {**_globals_of(function), **held}.items()}
        cells = tuple(CellType(used[name]) for name in held)
        copy = FunctionType(
            function.__code__, {**function.__globals__, **used}, function.__name__, function.__defaults__, cells
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        # Kernels loaded from disk were once seen to take each other's functions of the same name: give each its own.
        copy.__qualname__ = f"{function.__qualname__}_{digest(function)}"
        # Only kernels call these: without the wrapper for callers in Python, they compile much faster.
        options = OPTIONS | INLINING[inline] | {"no_cpython_wrapper": True}
        done[key] = numba.njit(**options)(copy)
    if done[key] is None:
        raise UnsupportedError(f"{function.__name__} calls itself")
    return done[key]


def _prepare(name: str, value: Any, inline: str, done: dict[tuple[FunctionType, str], Any]) -> Any:
    if not isinstance(value, FunctionType):
        return value
    if name in RARELY_CALLED or (inline == "by LLVM" and _has_loop(value)):
        inline = "never"
    elif name in EACH_PULL and inline == "by numba":
        inline = "by LLVM"
    return _make_dispatcher(value, inline, done)


def _has_loop(function: FunctionType) -> bool:
    """Return whether a function has a loop; inlined into others with loops, it could take minutes to optimize."""
    return any(instruction.opname.startswith("JUMP_BACKWARD") for instruction in dis.get_instructions(function))


def _held_by(function: FunctionType) -> dict[str, Any]:
    """Return what a closure holds, by name."""
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    return dict(zip(function.__code__.co_freevars, cells, strict=True))


def kernel(loop: Callable[..., Any], label: str, *, keep: bool = True) -> Any:
    """Compile a loop with everything it calls; `label` names it to the user, `keep` stores the code on disk."""
    assert isinstance(loop, FunctionType)
    code = digest(loop)
    with _LOADING:
        if code not in _LOADED:
            _LOADED[code] = _compile(loop, code, label, keep)
    return _LOADED[code]


_LOADED: dict[str, Any] = {}
_LOADING = threading.Lock()  # a sweep asks from several threads


def list_used() -> tuple[set[str], set[str]]:
    """Return which kernels this process has compiled, and which it has loaded, once for each type of arguments."""
    with _LOADING:
        stats = [(code, dispatcher.stats) for code, dispatcher in _LOADED.items()]
    compiled = {f"{code} {signature}" for code, each in stats for signature in each.cache_misses}
    loaded = {f"{code} {signature}" for code, each in stats for signature in each.cache_hits}
    return compiled, loaded


def _compile(loop: FunctionType, code: str, label: str, keep: bool) -> Any:
    done: dict[tuple[FunctionType, str], Any] = {}
    names = {
        name: _prepare(name, value, "by numba", done) for name, value in {**_globals_of(loop), **_held_by(loop)}.items()
    }
    path = cache_folder() / f"{loop.__name__}_{code}.py"
    source = textwrap.dedent(inspect.getsource(loop))
    kept = keep and _keep(path, source)
    names["__name__"] = loop.__module__  # where a cached kernel looks itself up
    exec(compile(source, str(path), "exec"), names)
    dispatcher = numba.njit(**OPTIONS)(names[loop.__name__])
    _announce_compilation(dispatcher, _describe_wait(label, path.parent, keep, kept))
    if kept:
        dispatcher._cache = KernelCache(dispatcher.py_func)  # type: ignore[no-untyped-call]  # numba is not typed
        _compile_in_turn(dispatcher, path)
    return dispatcher


def _describe_wait(label: str, folder: Path, keep: bool, kept: bool) -> str:
    """Return the notice that a kernel is being compiled: how long that usually takes, and how often."""
    if kept and os.access(folder, os.W_OK):
        often = "once on this machine; `dbcare warm-up` compiles all that ship in advance"
    elif keep:
        often = f"in every process, as {folder} cannot be written"
    else:
        often = "in every process, as its tables are defined in the main script"
    return f"dbcare: compiling {label} (usually {USUAL_SECONDS.get(label, 'a few')} seconds, {often})"


class KernelLocator(InTreeCacheLocator):
    """Finds machine code next to a kernel's source, in a folder that need not be writable."""

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> "KernelLocator":
        return cls(function, file)

    def get_source_stamp(self) -> str:
        # The file's name has the digest of all code; its time may change when a cache is copied.
        return Path(self._py_file).name


class KernelCacheImpl(CompileResultCacheImpl):
    """Numba's format of a cached function, found by `KernelLocator`."""

    _locator_classes: list[type[object]] = [KernelLocator]  # noqa: RUF012  # as numba declares it


class KernelCache(FunctionCache):
    """Numba's cache, without errors: what cannot be read is compiled, and what cannot be written is not saved."""

    _impl_class = KernelCacheImpl

    def load_overload(self, signature: Any, context: Any) -> Any:
        with suppress(OSError):
            try:
                return super().load_overload(signature, context)  # type: ignore[no-untyped-call]  # numba is not typed
            except (AttributeError, ImportError):  # compiled for tables of a class that has another name now
                self.flush()  # type: ignore[no-untyped-call]  # numba is not typed
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        with suppress(OSError):
            super().save_overload(signature, result)  # type: ignore[no-untyped-call]  # numba is not typed


def _announce_compilation(dispatcher: Any, notice: str) -> None:
    """Tell the user when `dispatcher` is really compiled, rather than loaded from disk."""
    compile_signature = dispatcher._compiler.compile

    def announce_and_compile(*signature: Any) -> Any:
        print(notice, file=sys.stderr)  # noqa: T201  # the notice
        return compile_signature(*signature)

    dispatcher._compiler.compile = announce_and_compile


def _compile_in_turn(dispatcher: Any, path: Path) -> None:
    """Let one process at a time look on disk for a signature of a kernel, compile it if it is not there, and save it.

    Numba calls this once per signature and process. Without this, processes that start together
    all compile, and two that save different signatures at once can leave one's code under the other's name.
    """
    find_or_compile = dispatcher.compile

    def compile_in_turn(signature: Any) -> Any:
        # Numba's lock first, always: a thread that waits for a file cannot then hold up one that compiles.
        with global_compiler_lock, _locked(path):
            return find_or_compile(signature)

    dispatcher.compile = compile_in_turn


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes out, where files can be locked; a lock ends with the process that holds it."""
    with ExitStack() as opened:
        if fcntl is not None:
            try:
                file = opened.enter_context(path.with_suffix(".lock").open("a"))
                fcntl.flock(file, fcntl.LOCK_EX)
                opened.callback(fcntl.flock, file, fcntl.LOCK_UN)  # now, even if a forked child has the file open too
            except OSError:  # a folder that cannot be written, or a file system without locks
                pass
        yield


def _keep(path: Path, source: str) -> bool:
    """Write the source once; return False where it is missing and cannot be written, and then nothing is cached."""
    try:
        if path.exists():
            return True
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            if not path.exists():  # written again, it would be newer than the code that others compiled from it
                draft = path.with_suffix(f".{os.getpid()}")
                draft.write_text(source)
                draft.replace(path)
    except OSError:
        return False
    return True


def digest(function: FunctionType) -> str:
    """Return a fingerprint of all code and constants that compiling `function` would use."""
    fingerprint = hashlib.sha256(
        repr((dbcare.__version__, numba.__version__, np.__version__, sys.version, OPTIONS, HOW_INLINED)).encode()
    )
    _feed(fingerprint, function, set())
    return fingerprint.hexdigest()[:20]


def _feed(fingerprint: Any, value: Any, seen: set[int]) -> None:
    if isinstance(value, Dispatcher):
        for option, setting in sorted(value.targetoptions.items()):
            fingerprint.update(option.encode())
            _feed(fingerprint, setting, seen)
        value = value.py_func
    if isinstance(value, FunctionType):
        if id(value) in seen:
            return
        seen.add(id(value))
        fingerprint.update(f"{value.__module__}.{value.__qualname__}".encode())  # where cached code looks itself up
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        for part in (
            value.__code__,
            value.__defaults__,
            value.__kwdefaults__,
            _globals_of(value),
            _attributes_of(value),
            cells,
        ):
            _feed(fingerprint, part, seen)
    elif isinstance(value, CodeType):
        fingerprint.update(value.co_code)
        _feed(fingerprint, (value.co_names, value.co_varnames, value.co_consts), seen)
    elif isinstance(value, np.ndarray):
        fingerprint.update(repr((value.dtype, value.shape)).encode())
        fingerprint.update(value.tobytes())
    elif isinstance(value, ModuleType):
        fingerprint.update(value.__name__.encode())
    elif isinstance(value, dict):
        for name in sorted(value):
            fingerprint.update(str(name).encode())
            _feed(fingerprint, value[name], seen)
    elif isinstance(value, set | frozenset):
        fingerprint.update(repr(sorted(value, key=repr)).encode())
    elif isinstance(value, tuple | list):
        for part in value:
            _feed(fingerprint, part, seen)
    else:
        fingerprint.update(repr(value).encode())


def _names_in(code: CodeType) -> set[str]:
    inner = [_names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _globals_of(function: FunctionType) -> dict[str, Any]:
    """Return the global names that a function mentions, in nested functions too."""
    names = _names_in(function.__code__)
    return {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}


def _attributes_of(function: FunctionType) -> dict[str, Any]:
    """Return what a function reads from modules, other than those whose versions are in the digest anyway."""
    names = _names_in(function.__code__)
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in _globals_of(function).values()
        if isinstance(module, ModuleType) and module.__name__ not in VERSIONED
        for name in sorted(names)
        if hasattr(module, name)
    }
