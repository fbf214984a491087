"""The questions of a comparison as blocks of a study, and whether they are the same as before."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.base.frames import open_frame
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


Cluster = Callable[[Any], Any] | Sequence[Any] | Mapping[Any, Any]


@dataclass(frozen=True)
class QuestionPool:
    """All questions by id, and the ids of each block."""

    questions: dict[str, Any]
    blocks: dict[str, tuple[str, ...]]

    @property
    def weight(self) -> float:
        """What the sum of a block's scores is multiplied by, so that the mean over blocks is that over questions."""
        return len(self.blocks) / len(self.questions)

    @property
    def has_clusters(self) -> bool:
        """Whether some block has several questions."""
        return len(self.blocks) < len(self.questions)

    def find_bounds(self, bounds: tuple[float, float]) -> tuple[float, float]:
        """Return the range of a block's reward, if that of a score is `bounds`."""
        sizes = [self.weight * len(block) for block in self.blocks.values()]
        return min(bounds[0] * size for size in sizes), max(bounds[1] * size for size in sizes)


def read_questions(questions: Any, cluster: Cluster | None) -> QuestionPool:
    """Return the questions with their ids: the keys of a mapping, or else their positions from 1."""
    if isinstance(questions, Mapping):
        by_id, keys = _read_mapping(questions), list(questions)
    else:
        by_id = _read_sequence(questions)
        keys = list(range(1, len(by_id) + 1))
    blocks = _group(by_id, list(by_id) if cluster is None else _find_groups(by_id, keys, cluster))
    if len(blocks) < 2:
        what = "questions" if cluster is None else "clusters of questions"
        raise InvalidValueError(f"`questions` must be 2 or more {what} but got {len(blocks)}.")
    return QuestionPool(by_id, blocks)


def _read_mapping(questions: Mapping[Any, Any]) -> dict[str, Any]:
    by_id: dict[str, Any] = {}
    for key, question in questions.items():
        name = checks.text("questions", _to_text("questions", key))
        if name in by_id:
            raise InvalidValueError(f"`questions` must have ids of their own but got {name!r} twice.")
        by_id[name] = question
    return by_id


def _to_text(argument: str, name: Any) -> str:
    """Return an id or a group as text."""
    try:
        return str(name)
    except Exception:  # an integer with too many digits, or an object that cannot describe itself
        raise InvalidValueError(
            f"`{argument}` must have names that are texts or numbers but got {show(name)}."
        ) from None


def _read_sequence(questions: Any) -> dict[str, Any]:
    frame = open_frame(questions)
    questions = questions if frame is None else frame.list_records()
    listed = checks.items("questions", questions, "a list of questions, or a mapping of ids to questions,")
    seen: dict[Any, int] = {}
    for position, question in enumerate(listed, start=1):
        key = _make_key(question)
        if key in seen:
            raise InvalidValueError(
                f"`questions` must be distinct but got {show(question)} at positions {seen[key]} and {position}; "
                "pass a mapping of ids to questions if that is meant."
            )
        seen[key] = position
    return {str(position): question for position, question in enumerate(listed, start=1)}


def _make_key(question: Any) -> Any:
    """Return something that tells questions apart; lists, dictionaries and arrays go by their contents."""
    try:
        hash(question)
    except TypeError:
        return encode(question, lambda other: str(id(other)))
    return type(question), question


def _group(by_id: Mapping[str, Any], groups: Sequence[Any]) -> dict[str, tuple[str, ...]]:
    blocks: dict[str, list[str]] = {}
    for name, group in zip(by_id, groups, strict=True):
        blocks.setdefault(checks.text("cluster", _to_text("cluster", group)), []).append(name)
    return {group: tuple(names) for group, names in blocks.items()}


def _find_groups(by_id: Mapping[str, Any], keys: Sequence[Any], cluster: Cluster) -> list[Any]:
    if isinstance(cluster, Mapping):
        return [_look_up(cluster, key) for key in keys]
    if callable(cluster):
        return [cluster(question) for question in by_id.values()]
    groups = checks.items("cluster", cluster, "a function, a list, or a mapping of ids to groups,")
    if len(groups) != len(by_id):
        raise InvalidValueError(f"`cluster` must be as long as `questions` ({len(by_id):,}) but got {len(groups):,}.")
    return groups


def _look_up(cluster: Mapping[Any, Any], key: Any) -> Any:
    """Return the group of a question, by its id as it was given or as text."""
    for name in (key, str(key)):
        if name in cluster:
            return cluster[name]
    raise InvalidValueError(f"`cluster` must have a group for every question but has none for {str(key)!r}.")
