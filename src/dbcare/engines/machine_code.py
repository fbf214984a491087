"""Machine code on disk: where it is kept, who may write it, and who compiles what is missing."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator
from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # on Windows, where two processes may both compile a kernel
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

PARTS = "parts"  # the folder of functions that kernels share


def cache_folder() -> Path:
    """Return where kernels are kept: $DBCARE_CACHE, or `dbcare` in the user's cache folder."""
    if named := os.environ.get("DBCARE_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dbcare"


class KernelLocator(InTreeCacheLocator):
    """Finds machine code next to a kernel's source, in a folder that need not be writable."""

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> "KernelLocator":
        return cls(function, file)

    def get_source_stamp(self) -> str:
        # The file's name has the digest of all code; its time may change when a cache is copied.
        return Path(self._py_file).name


class PartLocator(KernelLocator):
    """Finds machine code of a function that kernels share; its source may be in any file."""

    def __init__(self, function: FunctionType, file: str) -> None:
        super().__init__(function, file)  # type: ignore[no-untyped-call]  # numba is not typed
        self._cache_path = str(cache_folder() / PARTS)
        self._name = function.__qualname__

    def get_source_stamp(self) -> str:
        return self._name  # has the digest of all code


class KernelCacheImpl(CompileResultCacheImpl):
    """Numba's format of a cached function, found by `KernelLocator`."""

    _locator_classes: list[type[object]] = [KernelLocator]  # noqa: RUF012  # as numba declares it


class PartCacheImpl(CompileResultCacheImpl):
    """Numba's format of a cached function, found by `PartLocator`."""

    _locator_classes: list[type[object]] = [PartLocator]  # noqa: RUF012  # as numba declares it


class KernelCache(FunctionCache):
    """Numba's cache, without errors: what cannot be read is compiled, and what cannot be written is not saved."""

    _impl_class: type[CompileResultCacheImpl] = KernelCacheImpl

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


class PartCache(KernelCache):
    """The same for functions that kernels share."""

    _impl_class = PartCacheImpl


def keep_kernel(dispatcher: Any, path: Path) -> None:
    """Find a kernel whose source is at `path` on disk, or compile it and save it there."""
    dispatcher._cache = KernelCache(dispatcher.py_func)  # type: ignore[no-untyped-call]  # numba is not typed
    _compile_in_turn(dispatcher, path)


def keep_part(dispatcher: Any, name: str) -> None:
    """Find a function that kernels share on disk, or compile it and save it there; `name` has its digest."""
    dispatcher._cache = PartCache(dispatcher.py_func)  # type: ignore[no-untyped-call]  # numba is not typed
    _compile_in_turn(dispatcher, cache_folder() / PARTS / name)


def keep_source(path: Path, source: str) -> bool:
    """Write a kernel's source once; return False where it is missing and cannot be written: nothing is kept then."""
    try:
        if path.exists():
            return True
        (path.parent / PARTS).mkdir(parents=True, exist_ok=True)
        with _locked(path):
            if not path.exists():  # written again, it would be newer than the code that others compiled from it
                draft = path.with_suffix(f".{os.getpid()}")
                draft.write_text(source)
                draft.replace(path)
    except OSError:
        return False
    return True


def _compile_in_turn(dispatcher: Any, path: Path) -> None:
    """Let one process at a time look on disk for a signature, compile it if it is not there, and save it.

    Numba calls this once per signature and process. Without this, processes that start together
    all compile, and two that save different signatures at once can leave one's code under the other's name.
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
