"""Public names of a package that load when they are first used, each listed once: in the package's stub."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module


def load_names(package: str) -> tuple[list[str], Callable[[], list[str]], Callable[[str], object]]:
    """Return `__all__`, `__dir__` and `__getattr__` of a package, from the lines of its `__init__.pyi`.

    A line `from dbcare.risk import Risk as Risk` makes a name public; one that imports from the package itself names a
    subpackage, which is loaded in the same way.
    """
    file = sys.modules[package].__file__
    homes: dict[str, str] = {}
    packages: set[str] = set()
    with open(f"{file}i", encoding="utf-8") as stub:
        for line in stub:
            if line.startswith("from "):
                _, module, _, name, *_ = line.split()
                if module == package:
                    packages.add(name)
                else:
                    homes[name] = module
    public = sorted(homes)

    def load(name: str) -> object:
        if name in homes:
            value = getattr(import_module(homes[name]), name)
        elif name in packages:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return public, lambda: sorted({*vars(sys.modules[package]), *public, *packages}), load
