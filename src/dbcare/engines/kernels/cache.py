"""Machine code on disk: what it is found by, where it is kept, and who compiles what is missing.

Everything that numba does not document is used here only; tests/test_private_parts.py says what we rely on.
"""

import dis
import hashlib
import os
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps
from numba.extending import is_jitted

import dbcare
from dbcare.base.files import replacing
from dbcare.policies.rule import Calls

Calling = Mapping[Callable[..., Any], Calls]

VERSIONED = ("math", "numpy", "numba")  # modules whose contents follow from the versions in the digest


def digest(function: Callable[..., Any], calls: Calling = MappingProxyType({}), *, options: object = ()) -> str:
    """Return a fingerprint of all code and constants that compiling `function` would use, and of how it is compiled."""
    versions = dbcare.__version__, numba.__version__, np.__version__, sys.version
    fingerprint = hashlib.sha256(repr((versions, options)).encode())
    _feed(fingerprint, function, calls, set())
    return fingerprint.hexdigest()[:20]


def _feed(fingerprint: Any, value: Any, calls: Calling, seen: set[int]) -> None:
    if is_jitted(value):
        for option, setting in sorted(value.targetoptions.items()):
            fingerprint.update(option.encode())
            _feed(fingerprint, setting, calls, seen)
        value = value.py_func
    if isinstance(value, FunctionType):
        if id(value) in seen:
            return
        seen.add(id(value))
        fingerprint.update(
            f"{value.__module__}.{value.__qualname__} {calls.get(value)}".encode()
        )  # cached code looks itself up
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        for part in (
            value.__code__,
            value.__defaults__,
            value.__kwdefaults__,
            globals_of(value),
            _attributes_of(value),
            cells,
        ):
            _feed(fingerprint, part, calls, seen)
    elif isinstance(value, CodeType):
        fingerprint.update(value.co_code)
        _feed(fingerprint, (value.co_names, value.co_varnames, value.co_consts), calls, seen)
    elif isinstance(value, np.ndarray):
        fingerprint.update(repr((value.dtype, value.shape)).encode())
        fingerprint.update(value.tobytes())
    elif isinstance(value, ModuleType):
        fingerprint.update(value.__name__.encode())
    elif isinstance(value, dict):
        for name in sorted(value):
            fingerprint.update(str(name).encode())
            _feed(fingerprint, value[name], calls, seen)
    elif isinstance(value, set | frozenset):
        fingerprint.update(repr(sorted(value, key=repr)).encode())
    elif isinstance(value, tuple | list):
        for part in value:
            _feed(fingerprint, part, calls, seen)
    else:
        fingerprint.update(repr(value).encode())


def _names_in(code: CodeType) -> set[str]:
    inner = [_names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _globals_in(code: CodeType) -> set[str]:
    inner = [_globals_in(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    loads = (each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    return set(loads).union(*inner)


def globals_of(function: FunctionType) -> dict[str, Any]:
    """Return the global names that a function reads, in nested functions too; not attributes of the same name."""
    names = _globals_in(function.__code__)
    return {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}


def _attributes_of(function: FunctionType) -> dict[str, Any]:
    """Return what a function reads from modules, other than those whose versions are in the digest anyway."""
    names = _names_in(function.__code__)
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in globals_of(function).values()
        if isinstance(module, ModuleType) and module.__name__ not in VERSIONED
        for name in sorted(names)
        if hasattr(module, name)
    }


try:
    import fcntl
except ImportError:  # on Windows, where two processes may both compile a kernel
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

# Options that numba does not document. Kernels allocate nothing, so they need no runtime for it, and nothing calls them
# through a C pointer: that wrapper would take a tenth of the time.
KERNEL_OPTIONS: dict[str, Any] = {"_nrt": False, "no_cfunc_wrapper": True}
# Only kernels call their parts: without the wrapper for callers in Python, these compile much faster.
PART_OPTIONS: dict[str, Any] = {"no_cpython_wrapper": True}
INLINED_BY_LLVM: dict[str, Any] = {"forceinline": True}

PARTS = "parts"  # the folder of functions that kernels share
CHECKSUM_SIZE = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Return where kernels are kept: $DBCARE_CACHE, or `dbcare` in the user's cache folder."""
    if named := os.environ.get("DBCARE_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dbcare"


class KernelCache(_Cache):
    """The machine code of one function: a file for each signature and kind of processor.

    A file starts with the SHA-256 of its name and of what follows. Numba runs whatever code it is given, so damage must
    be noticed before. What is damaged, misplaced, or unreadable is compiled, and replaced; what cannot be written is
    not saved.
    """

    def __init__(self, path: Path) -> None:
        self._base = path

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._base.parent)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled function; None if it has to be compiled."""
        context.refresh()  # loads what the function may refer to
        try:
            return self._load(self._find(signature, context.codegen()), signature, context)
        except Exception:  # a file may hold anything, such as tables of a class that was renamed
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write the compiled function, whole or not at all."""
        if result.library.has_dynamic_globals:
            warnings.warn("a kernel with large tables is compiled in every process", stacklevel=2)
            return
        path = self._find(signature, result.codegen)
        content: bytes = dumps((signature, result._reduce()))  # type: ignore[no-untyped-call]  # numba is not typed
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir() and not path.is_symlink():  # no file can replace it
                shutil.rmtree(path)
            with replacing(path) as draft, draft.open("wb") as file:
                file.write(_checksum(path, content) + content)
                file.flush()
                os.fsync(file.fileno())

    def enable(self) -> None:
        """Do nothing: it is always enabled."""

    def disable(self) -> None:
        """Do nothing: what should not be kept has no such cache."""

    def flush(self) -> None:
        """Do nothing: files are replaced one by one."""

    def _find(self, signature: Any, codegen: Any) -> Path:
        """Return the path of a file, which depends on the signature and the processor."""
        identity = repr((str(signature), codegen.magic_tuple()))
        return self._base.with_name(f"{self._base.name}-{hashlib.sha256(identity.encode()).hexdigest()[:20]}.nbc")

    def _load(self, path: Path, signature: Any, context: Any) -> Any:
        if not path.is_file():  # to read anything else could take forever
            return None
        stored = path.read_bytes()
        checksum, content = stored[:CHECKSUM_SIZE], stored[CHECKSUM_SIZE:]
        if checksum != _checksum(path, content):
            return None
        stored_signature, parts = pickle.loads(content)
        if stored_signature != signature:  # of another class of the same name
            return None
        return CompileResult._rebuild(context, *parts)  # type: ignore[no-untyped-call]  # numba is not typed


def _checksum(path: Path, content: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + content).digest()


def keep_kernel(dispatcher: Any, path: Path) -> None:
    """Find a kernel whose source is at `path` next to it on disk, or compile it and save it there."""
    dispatcher._cache = KernelCache(path.with_suffix(""))
    _compile_in_turn(dispatcher, path)


def keep_part(dispatcher: Any, name: str) -> None:
    """Find a function that kernels share on disk, or compile it and save it there; `name` has its digest."""
    path = cache_folder() / PARTS / name
    dispatcher._cache = KernelCache(path)
    _compile_in_turn(dispatcher, path)


def keep_source(path: Path, source: str) -> bool:
    """Write a kernel's source once; return False where it is missing and cannot be written: nothing is kept then."""
    try:
        if path.exists():
            return True
        (path.parent / PARTS).mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            draft.write_text(source)
    except OSError:
        return False
    return True


def announce_compilation(dispatcher: Any, announce: Callable[[], None]) -> None:
    """Call `announce` whenever a function is really compiled, rather than loaded from disk."""
    compile_signature = dispatcher._compiler.compile

    def announce_and_compile(*signature: Any) -> Any:
        announce()
        return compile_signature(*signature)

    dispatcher._compiler.compile = announce_and_compile


def _compile_in_turn(dispatcher: Any, path: Path) -> None:
    """Let one process at a time look on disk for a signature, compile it if it is not there, and save it.

    Numba calls this once per signature and process. Without this, processes that start together all compile.
    """
    find_or_compile: Callable[[Any], Any] = dispatcher.compile

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
