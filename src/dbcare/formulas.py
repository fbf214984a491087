"""Texts that a spreadsheet would take for formulas, in files and output of comma-separated values."""

import re
from functools import lru_cache

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # what a spreadsheet takes for one, marked as text or not


@lru_cache(maxsize=1024)
def defuse_formula(text: str) -> str:
    """Mark a text that a spreadsheet would take for a formula with an apostrophe."""
    return f"'{text}" if FORMULA.match(text) else text


def restore_formula(text: str) -> str:
    """Return the text that `defuse_formula` was given."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text
