"""The report: a single HTML file with figures, settings, numbers, and a verdict on every claim."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from dbcare.lab.heat import HeatTable
from dbcare.lab.heat_pictures import EXPLANATION, format_heat_table
from dbcare.lab.paper_claims import Claim, Quote, Verdict
from dbcare.lab.sensitivity import EXPLANATION as SENSITIVITY
from dbcare.lab.tables import Cell, Table
from dbcare.lab.uniformity import EXPLANATION as STANDINGS

ENGINES = {  # how each engine computes points
    "exact": "exact, without runs",
    "pooled": "from pooled runs, which serve several points at once",
    "skip": "from plain runs that skip ahead",
    "direct": "from plain runs, pull by pull",
}
PAPER_HOURS = 7.5  # "Total runtime across all experiments", on 12 cores (appendix on experiments)


@dataclass(frozen=True)
class JudgedClaim:
    """A claim about an experiment with its verdicts, and what the paper says about it."""

    claim: Claim
    verdicts: tuple[Verdict, ...]
    quote: Quote | None

    @property
    def holds(self) -> bool | None:
        """Whether the claim holds in every panel it applies to; None if it applies to none."""
        return all(verdict.holds for verdict in self.verdicts) if self.verdicts else None


@dataclass(frozen=True)
class Section:
    """One experiment in the report."""

    name: str
    title: str
    source: str
    settings: tuple[tuple[str, str], ...]  # name, value
    decisions: tuple[str, ...]
    heat: tuple[HeatTable, ...]
    figures: tuple[tuple[str, Path], ...]  # caption, SVG file
    standings: tuple[tuple[str, Table], ...]  # title, table
    claims: tuple[JudgedClaim, ...]
    sensitivity: Table | None
    table: Table


@dataclass(frozen=True)
class Totals:
    """What all points took to compute, wherever and whenever that was, and what this run contributed."""

    points: int
    pulls: int
    cpu_seconds: float
    computed: int  # points that this run computed; the others were on disk
    wall_seconds: float  # of this run, up to the report
    engines: dict[str, int]  # points by engine
    seed: str
    version: str
    machine: str


def write_report(path: Path, title: str, sections: Sequence[Section], totals: Totals, *, whole_paper: bool) -> Path:
    """Write the report; a crash never leaves half a file."""
    style = files("dbcare.lab").joinpath("report.css").read_text(encoding="utf-8")
    parts = [_format_totals(totals, whole_paper), _format_verdicts(sections), *map(_format_section, sections)]
    body = "\n".join(parts)
    page = (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(page, encoding="utf-8")
    draft.replace(path)
    return path


def _format_totals(totals: Totals, whole_paper: bool) -> str:
    hours = totals.cpu_seconds / 3600.0
    facts = [
        (f"{totals.points:,}", "points: one policy on one instance at one cost"),
        (f"{totals.pulls:.3g}", "pulls simulated; the exact engine needs none"),
        (f"{totals.cpu_seconds:,.1f} s", "of CPU time for all points"),
        (
            f"{totals.wall_seconds:,.1f} s",
            f"for this run, which computed {totals.computed:,} points; the others were on disk",
        ),
    ]
    if whole_paper:
        ratio = PAPER_HOURS / hours if hours > 0.0 else float("inf")
        facts.append((f"{PAPER_HOURS:g} h", f"the paper's own run time on 12 cores, {ratio:,.0f} times our CPU time"))
    cards = "".join(f"<div><b>{escape(number)}</b><span>{escape(text)}</span></div>" for number, text in facts)
    engines = "; ".join(f"{count:,} {ENGINES.get(engine, engine)}" for engine, count in sorted(totals.engines.items()))
    note = f"Points: {engines or 'none'}. Seed {totals.seed}. dbcare {totals.version}, {totals.machine}."
    return f'<section class="totals">{cards}</section>\n<p class="small">{escape(note)}</p>'


def _format_verdicts(sections: Sequence[Section]) -> str:
    """Return all claims at a glance: those of the paper, our observations about its policies, and about our own."""
    parts = []
    headings = {"The paper's claims": (False, True), "Our observations, not in the paper": (False, False)}
    headings["Our own policies, not in the paper"] = (True, False)
    for heading, kind in headings.items():
        claims = [
            (section, judged)
            for section in sections
            for judged in section.claims
            if (judged.claim.ours, judged.quote is not None) == kind
        ]
        rows = []
        for section, judged in claims:
            count = f"{sum(verdict.holds for verdict in judged.verdicts)} of {len(judged.verdicts)} panels"
            rows.append((_format_mark(judged.holds), escape(judged.claim.text), _format_link(section), count))
        outcomes = [judged.holds for _, judged in claims if judged.verdicts]
        if rows:
            parts.append(f"<h2>{heading}: {sum(map(bool, outcomes))} of {len(outcomes)} hold</h2>")
            parts.append(_format_grid(("", "claim", "experiment", "holds in"), rows))
    return "\n".join(parts)


def _format_section(section: Section) -> str:
    parts = [
        f'<h2 id="{escape(section.name)}">{escape(section.title)}</h2>',
        f'<p class="small">{escape(section.source)}</p>',
    ]
    parts.extend(_format_heat(section.heat))
    for caption, figure in section.figures:
        data = base64.b64encode(figure.read_bytes()).decode()
        parts.append(
            f'<figure><img alt="{escape(caption)}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )
    for title, table in section.standings:
        parts.append(f"<h3>{escape(title)}</h3>\n{_format_table(table)}")
    if section.standings:
        parts.append(f'<p class="small">{escape(STANDINGS)}</p>')
    if section.claims:
        parts.append("<h3>Claims</h3>")
        parts.extend(_format_claim(judged) for judged in section.claims)
    parts.append("<h3>Settings</h3>")
    parts.append(_format_grid(None, [(escape(name), escape(value)) for name, value in section.settings]))
    if section.decisions:
        items = "".join(f"<li>{escape(decision)}</li>" for decision in section.decisions)
        parts.append(f"<h3>What was left open, and what we chose</h3>\n<ul>{items}</ul>")
    if section.sensitivity is not None:
        parts.append(f"<h3>What other choices would change</h3>\n{_format_table(section.sensitivity)}")
        parts.append(f'<p class="small">{escape(SENSITIVITY)}</p>')
    rows = f"{len(section.table.rows):,} rows"
    parts.append(f"<details><summary>Numbers ({rows})</summary>{_format_table(section.table)}</details>")
    return "\n".join(parts)


def _format_heat(tables: Sequence[HeatTable]) -> Iterator[str]:
    """Yield heat tables: those that divide by the first baseline in full, all others behind a click."""
    if tables:
        yield f'<p class="small">{escape(EXPLANATION)}</p>'
    for table in tables:
        if table.baseline == tables[0].baseline:
            yield f"<h3>{escape(table.title)}</h3>\n{format_heat_table(table)}"
        else:
            yield f"<details><summary>{escape(table.title)}</summary>{format_heat_table(table)}</details>"


def _format_claim(judged: JudgedClaim) -> str:
    rows = [
        (_format_mark(verdict.holds), escape(verdict.panel), "<br>".join(map(escape, verdict.evidence)))
        for verdict in judged.verdicts
    ]
    opened = " open" if judged.holds is False else ""
    quote = "" if judged.claim.ours else "<blockquote>Not in the paper.</blockquote>"
    if judged.quote is not None:
        quote = f"<blockquote>“{escape(judged.quote.text)}” <cite>{escape(judged.quote.place)}</cite></blockquote>"
    return (
        f"<details{opened}><summary>{_format_mark(judged.holds)} {escape(judged.claim.text)}</summary>"
        f'{quote}<p class="small">{escape(judged.claim.reading)}</p>{_format_grid(None, rows)}</details>'
    )


def _format_mark(holds: bool | None) -> str:
    if holds is None:
        return '<span class="small">does not apply</span>'
    return '<span class="yes">holds</span>' if holds else '<span class="no">fails</span>'


def _format_link(section: Section) -> str:
    return f'<a href="#{escape(section.name)}">{escape(section.name)}</a>'


def _format_table(table: Table) -> str:
    return _format_grid(table.columns, ([_format_cell(cell) for cell in row] for row in table.rows))


def _format_cell(cell: Cell) -> str:
    """Format a number or text; no number here can be negative, but an estimate with a control variate may be."""
    if isinstance(cell, str):
        return escape(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{max(cell, 0.0):.5g}"


def _format_grid(columns: Sequence[str] | None, rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are already HTML, in a box that scrolls on narrow screens."""
    head = "" if columns is None else "<tr>" + "".join(f"<th>{escape(column)}</th>" for column in columns) + "</tr>"
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table>{head}{body}</table></div>'
