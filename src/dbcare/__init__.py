"""dbcare: find the best of K options when every observation costs money, and stop at break-even.

Public names load when they are first used, so that `import dbcare` costs next to nothing; `__init__.pyi` lists them.
"""

from dbcare.base.public import load_names

_names, _list_names, _load = load_names(__name__)
__all__ = ["__version__", *_names]  # noqa: PLE0604  # strings, from the stub


def __dir__() -> list[str]:
    return ["__version__", *_list_names()]


def __getattr__(name: str) -> object:
    if name != "__version__":
        return _load(name)
    from importlib.metadata import version  # noqa: PLC0415  # it loads zipfile, email and more

    globals()[name] = version("dbcare")
    return globals()[name]
