"""A fingerprint of questions, by which a comparison that is resumed knows whether they are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from dbcare.base.checks import show
from dbcare.errors import InvalidValueError

DIGITS = 16


def describe_questions(questions: Mapping[str, Any], blocks: Mapping[str, tuple[str, ...]]) -> str:
    """Return a line with the number and the fingerprint of questions, of their ids and of how they are clustered.

    Contents count as far as another process can tell that they are the same: texts, numbers, arrays, dataclasses, and
    lists and dictionaries of those. Of any other object, only its type does.
    """
    digest = hashlib.sha256()
    for block, names in blocks.items():
        for name in names:
            digest.update(encode([block, name, questions[name]], _encode_type))
    return f"Comparison on {len(questions):,} questions with the fingerprint {digest.hexdigest()[:DIGITS]}"


def _encode_type(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def encode(value: Any, encode_other: Callable[[Any], str]) -> bytes:
    """Return bytes that differ where values do; `encode_other` describes objects of which nothing is known."""
    try:
        return _encode(value, encode_other)
    except Exception as failure:  # nested too deeply, an integer with too many digits, or not able to describe itself
        raise InvalidValueError(
            f"`questions` must have contents that Python can show but got {show(value)} ({type(failure).__name__})."
        ) from None


def _encode(value: Any, encode_other: Callable[[Any], str]) -> bytes:
    kind, parts = type(value).__qualname__, []
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        kind, parts = f"array {value.dtype.str} {value.shape}", [value.tobytes()]
    elif isinstance(value, np.ndarray | np.generic):
        parts = [_encode(value.tolist(), encode_other)]
    elif isinstance(value, Mapping):
        pairs = ([_encode(each, encode_other) for each in pair] for pair in value.items())
        parts = [part for pair in sorted(pairs) for part in pair]
    elif isinstance(value, list | tuple):
        parts = [_encode(each, encode_other) for each in value]
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [_encode(getattr(value, field.name), encode_other) for field in fields(value)]
    elif value is None or isinstance(value, str | bytes | int | float | complex):
        parts = [repr(value).encode()]
    else:
        parts = [encode_other(value).encode()]
    # Lengths keep ["a", "b"] apart from ["ab"].
    return b"".join([f"{kind} {len(parts)};".encode(), *(b"%d:%s" % (len(part), part) for part in parts)])
