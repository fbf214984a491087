"""Numbers that JSON does not have."""

import math
from typing import Any


def replace_non_finite(value: Any) -> Any:
    """Return the same value with None for infinite and NaN numbers, inside dictionaries and lists too."""
    if isinstance(value, dict):
        return {name: replace_non_finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_non_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
