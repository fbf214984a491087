"""What people call candidates: by their parameters, in full or shortened to fit a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LONGEST_LABEL = 100  # characters
LONGEST_SHORT_LABEL, LONGEST_VALUE = 60, 20  # in a figure
NO_PARAMETERS = "no parameters"


def label_candidates(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the candidates' parameters as scikit-learn writes them, all different, and the same in every process."""
    labels: list[str] = []
    taken: set[str] = set()
    for number, parameters in enumerate(candidates):
        text = ", ".join(f"{name}={describe_value(parameters[name])}" for name in sorted(parameters))
        label = cut(text, LONGEST_LABEL) or NO_PARAMETERS
        if label in taken:
            label = f"{label} (candidate {number})"
        while label in taken:
            label += "'"
        labels.append(label)
        taken.add(label)
    return labels


def shorten_candidates(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return short labels: without parameters that all share, and without a pipeline's steps where that is clear."""
    texts = [{name: _shorten_value(value) for name, value in parameters.items()} for parameters in candidates]
    everywhere = [name for name in texts[0] if all(text.get(name) == texts[0][name] for text in texts)]
    if len(candidates) > 1:
        texts = [{name: value for name, value in text.items() if name not in everywhere} for text in texts]
    names = {name for text in texts for name in text}
    last = [name.rpartition("__")[2] for name in names]
    shown = {name: short if last.count(short := name.rpartition("__")[2]) == 1 else name for name in names}
    listed = [", ".join(f"{shown[name]}={text[name]}" for name in sorted(text)) for text in texts]
    return [cut(each, LONGEST_SHORT_LABEL) or NO_PARAMETERS for each in listed]


def describe_value(value: Any) -> str:
    """Return a value as text without addresses in memory, on one line."""
    if callable(value) and hasattr(value, "__qualname__"):
        text = value.__qualname__
    elif repr(value) == object.__repr__(value):
        text = type(value).__qualname__
    else:
        text = str(value)
    return "".join(each if each.isprintable() else " " for each in text)


def _shorten_value(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.3g}"
    return cut(type(value).__name__ if hasattr(value, "get_params") else describe_value(value), LONGEST_VALUE)


def cut(text: str, longest: int) -> str:
    """Return a text, its end replaced by an ellipsis if it is too long."""
    return text if len(text) <= longest else f"{text[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"
