"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.validation import show

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
    validation.one_of(name, checked.suffix.lower(), FIGURE_TYPES)
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
