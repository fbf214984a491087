"""Fingerprints of code: what machine code and results on disk are found by."""

import dis
import hashlib
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.extending import is_jitted

import dbcare
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
