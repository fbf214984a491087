"""Prepare docstrings for Sphinx: ours are plain text with names in backticks, not reStructuredText."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

CODE = re.compile(r"(`[^`]*`)")
MARKUP = re.compile(r"\||(?<=\w)_(?=\W|$)")  # |S| and z_ mean something else there
COLUMNS = re.compile(r"\S {2,}\S")
SHOWN_AS_IS = ("dbcare.errors",)  # modules whose docstrings are quoted on their page


def prepare_docstring(_app: Any, what: str, name: str, _value: Any, _options: Any, lines: list[str]) -> None:
    """Escape what would be taken for markup, and keep tables and formulas as they are."""
    if what == "module" and name in SHOWN_AS_IS:
        lines.clear()
    if what == "property":
        # What stands before a colon in the first line would be taken for a type.
        lines[:1] = lines[0].replace(": ", ":\n", 1).split("\n")
    prepared: list[str] = []
    in_sections = False  # Parameters and so on, which have columns of their own
    for is_blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        in_sections = in_sections or any(line.startswith("---") for line in paragraph)
        if is_blank or any(line.lstrip().startswith(">>>") for line in paragraph):
            prepared += paragraph
        elif not in_sections and _is_table(paragraph):
            prepared += ["::", "", *(f"    {line}" for line in paragraph)]
        else:
            prepared += [_escape(line) for line in paragraph]
    lines[:] = prepared


def _is_table(paragraph: list[str]) -> bool:
    """Return whether a paragraph is laid out in columns, or indented as a formula."""
    return paragraph[0].startswith("    ") or sum(bool(COLUMNS.search(line)) for line in paragraph) > 1


def _escape(line: str) -> str:
    parts = CODE.split(line)
    parts[::2] = [MARKUP.sub(lambda match: "\\" + match[0], part) for part in parts[::2]]
    return "".join(parts)
