"""Files that are written whole or not at all, values for JSON, and texts that no spreadsheet computes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # what a spreadsheet takes for one, marked as text or not


@lru_cache(maxsize=1024)
def defuse_formula(text: str) -> str:
    """Mark a text that a spreadsheet would take for a formula with an apostrophe."""
    return f"'{text}" if FORMULA.match(text) else text


def restore_formula(text: str) -> str:
    """Return the text that `defuse_formula` was given."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def replace_non_finite(value: Any) -> Any:
    """Return the same value with None for infinite and NaN numbers, inside dictionaries and lists too."""
    if isinstance(value, dict):
        return {name: replace_non_finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_non_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


FIGURE_TYPES = (".png", ".svg", ".pdf")


def check_path(path: Any) -> Path:
    """Return the path of a file."""
    try:
        checked = Path(path)
        usable = bool(checked.name) and b"\0" not in os.fsencode(checked)
    except (TypeError, UnicodeEncodeError):
        usable = False
    if not usable:
        raise InvalidValueError(f"`path` must be the path of a file but got {show(path)}.")
    return checked


def check_figure_path(path: Any, name: str = "path") -> Path:
    """Return the path of a file that a figure can be written to."""
    checked = check_path(path)
    checks.one_of(name, checked.suffix.lower(), FIGURE_TYPES)
    return checked


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a draft to write to, which takes the place of the file at the end; after an error, nothing is left of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    except OSError as failure:
        if str(failure.filename) == str(draft):  # a name that nobody has given
            raise OSError(failure.errno, failure.strerror, str(path)) from None
        raise
    finally:
        draft.unlink(missing_ok=True)
