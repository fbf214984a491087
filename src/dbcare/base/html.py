"""Small pieces of HTML for notebooks and reports: every text is escaped, and nothing is loaded or run.

Colors are those of the text around, so that a display is readable on light and dark backgrounds alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NewType

Html = NewType("Html", str)  # a text in which everything is escaped

# The class stands twice where this must be more specific than what notebooks say about tables.
STYLE = Html(
    """<style>
.dbcare-display { max-width: 60rem; line-height: 1.45; }
.dbcare-display .title { font-size: 1.1em; font-weight: 600; margin: 0 0 0.35em; overflow-wrap: anywhere; }
.dbcare-display .title span { font-weight: 400; opacity: 0.75; }
.dbcare-display p, .dbcare-display ul, .dbcare-display pre { margin: 0.35em 0; }
.dbcare-display ul { padding-left: 1.3em; }
.dbcare-display .scroll { overflow-x: auto; }
.dbcare-display.dbcare-display table { border-collapse: collapse; border: none; margin: 0.5em 0; font-size: 0.95em; }
.dbcare-display.dbcare-display table tbody tr:nth-child(n) { background: none; }
.dbcare-display.dbcare-display table th, .dbcare-display.dbcare-display table td {
  padding: 0.25em 1em 0.25em 0; text-align: left; vertical-align: top; max-width: none; white-space: nowrap;
  border: none; border-bottom: 1px solid rgba(128, 128, 128, 0.35); font-variant-numeric: tabular-nums;
}
.dbcare-display.dbcare-display table th { font-weight: 600; }
.dbcare-display.dbcare-display table .number { text-align: right; }
.dbcare-display.dbcare-display table .wide { white-space: normal; min-width: 10em; }
@media (max-width: 40rem) { .dbcare-display.dbcare-display table.facts th { white-space: normal; } }
.dbcare-display.dbcare-display table .strong td { font-weight: 700; }
.dbcare-display.dbcare-display table .faint td { opacity: 0.6; }
.dbcare-display pre {
  font-family: monospace; white-space: pre-wrap; overflow-wrap: anywhere; background: none; color: inherit;
}
</style>"""
)


def make_display(title: str, state: str, *parts: Html) -> str:
    """Return a display for a notebook, under a title."""
    heading = f'<div class="title">{escape(title)} <span>{escape(state)}</span></div>'
    return f'{STYLE}<div class="dbcare-display">{heading}{"".join(parts)}</div>'


def make_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[str] = (),
    wide: Sequence[str] = (),
    strong: Sequence[int] = (),
    faint: Sequence[int] = (),
) -> Html:
    """Return a table in a box that scrolls; `numbers` and `wide` name columns, `strong` and `faint` number rows."""
    kinds = ["number" if column in numbers else "wide" if column in wide else "" for column in columns]
    head = "".join(_make_cell("th", column, kind) for column, kind in zip(columns, kinds, strict=True))
    body = "".join(
        _open("tr", "strong" if place in strong else "faint" if place in faint else "")
        + "".join(_make_cell("td", cell, kind, column) for column, cell, kind in zip(columns, row, kinds, strict=True))
        + "</tr>"
        for place, row in enumerate(rows)
    )
    return Html(f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')


def make_facts(facts: Iterable[tuple[str, str]]) -> Html:
    """Return a table of names and texts."""
    rows = "".join(f"<tr>{_make_cell('th', name, '')}{_make_cell('td', text, 'wide')}</tr>" for name, text in facts)
    return Html(f'<div class="scroll"><table class="facts"><tbody>{rows}</tbody></table></div>')


def make_paragraph(text: str) -> Html:
    """Return a paragraph."""
    return Html(f"<p>{escape(text)}</p>")


def make_list(sentences: Iterable[str]) -> Html:
    """Return a list; nothing if there are no sentences."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return Html(f"<ul>{items}</ul>" if items else "")


def make_code(lines: Iterable[str]) -> Html:
    """Return lines of code; nothing if there are none."""
    code = escape("\n".join(lines))
    return Html(f"<pre>{code}</pre>" if code else "")


def _make_cell(tag: str, text: str, kind: str, label: str = "") -> str:
    return f"{_open(tag, kind, label)}{escape(text)}</{tag}>"


def _open(tag: str, kind: str, label: str = "") -> str:
    """Return the start of an element; a page for narrow screens may show the label of its column."""
    start = f'<{tag} class="{kind}"' if kind else f"<{tag}"
    return f'{start} data-label="{escape(label)}">' if label else f"{start}>"
