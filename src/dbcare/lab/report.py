"""The report: one HTML file that holds its figures, settings, numbers, and the verdicts on every claim."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from dbcare.lab.paper_claims import Claim, Verdict
from dbcare.lab.tables import Cell, Table

PAPER_HOURS = 7.5  # "Total runtime across all experiments", on 12 cores (appendix on experiments)


@dataclass(frozen=True)
class Judged:
    """A claim with what became of it."""

    claim: Claim
    verdicts: tuple[Verdict, ...]

    @property
    def holds(self) -> bool | None:
        """In every panel that it speaks of; None where it speaks of none."""
        return all(verdict.holds for verdict in self.verdicts) if self.verdicts else None


@dataclass(frozen=True)
class Section:
    """One experiment in the report."""

    name: str
    title: str
    source: str
    settings: tuple[tuple[str, str], ...]  # what, value
    decisions: tuple[str, ...]
    figures: tuple[tuple[str, Path], ...]  # caption, SVG file
    judged: tuple[Judged, ...]
    table: Table


@dataclass(frozen=True)
class Totals:
    """What all points together took, wherever and whenever they were computed, and what this run did of it."""

    points: int
    pulls: int
    cpu_seconds: float
    computed: int  # points computed by this run, the others were on disk
    wall_seconds: float  # of this run, until the report
    engines: dict[str, int]  # points by engine
    seed: str
    version: str
    machine: str


def write_report(path: Path, title: str, sections: Sequence[Section], totals: Totals, *, whole_paper: bool) -> Path:
    """Write the file, whole or not at all."""
    style = files("dbcare.lab").joinpath("report.css").read_text(encoding="utf-8")
    body = "\n".join([_totals(totals, whole_paper), _verdicts(sections), *(_section(section) for section in sections)])
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


def _totals(totals: Totals, whole_paper: bool) -> str:
    hours = totals.cpu_seconds / 3600.0
    facts = [
        (f"{totals.points:,}", "points: a policy on an instance at a cost, both losses"),
        (f"{totals.pulls:.3g}", "pulls simulated; points of the exact engine need none"),
        (f"{totals.cpu_seconds:,.1f} s", "of processor time for all points"),
        (
            f"{totals.wall_seconds:,.1f} s",
            f"for this run, which computed {totals.computed:,} points; the rest was on disk",
        ),
    ]
    if whole_paper:
        ratio = PAPER_HOURS / hours if hours > 0.0 else float("inf")
        facts.append((f"{PAPER_HOURS:g} h", f"the paper's own time on 12 cores, {ratio:,.0f} times our processor time"))
    cards = "".join(f"<div><b>{escape(figure)}</b><span>{escape(text)}</span></div>" for figure, text in facts)
    engines = ", ".join(f"{engine} {count:,}" for engine, count in sorted(totals.engines.items()))
    small = f"Points by engine: {engines}. Seed {totals.seed}. dbcare {totals.version}, {totals.machine}."
    return f'<section class="totals">{cards}</section>\n<p class="small">{escape(small)}</p>'


def _verdicts(sections: Sequence[Section]) -> str:
    """All claims at a glance, the paper's and ours apart."""
    parts = []
    for heading, ours in (("Claims", False), ("Our own policies, not in the paper", True)):
        listed = [(section, each) for section in sections for each in section.judged if each.claim.ours is ours]
        rows = []
        for section, judged in listed:
            good, all_of_them = sum(verdict.holds for verdict in judged.verdicts), len(judged.verdicts)
            count = f"{good} of {all_of_them} panels"
            rows.append((_mark(judged.holds), escape(judged.claim.text), _link(section), count))
        verdicts = [judged.holds for _, judged in listed if judged.verdicts]
        if rows:
            parts.append(f"<h2>{heading}: {sum(map(bool, verdicts))} of {len(verdicts)} hold</h2>")
            parts.append(_grid(("", "claim", "experiment", "holds in"), rows))
    return "\n".join(parts)


def _section(section: Section) -> str:
    parts = [
        f'<h2 id="{escape(section.name)}">{escape(section.title)}</h2>',
        f'<p class="small">{escape(section.source)}</p>',
    ]
    for caption, figure in section.figures:
        data = base64.b64encode(figure.read_bytes()).decode()
        parts.append(
            f'<figure><img alt="{escape(caption)}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )
    if section.judged:
        parts.append("<h3>Claims</h3>")
        parts.extend(_claim(judged) for judged in section.judged)
    parts.append("<h3>Settings</h3>")
    parts.append(_grid(None, [(escape(what), escape(value)) for what, value in section.settings]))
    if section.decisions:
        listed = "".join(f"<li>{escape(each)}</li>" for each in section.decisions)
        parts.append(f"<h3>What was left open, and what we chose</h3>\n<ul>{listed}</ul>")
    parts.append(
        f"<details><summary>Numbers ({len(section.table.rows):,} rows)</summary>{_numbers(section.table)}</details>"
    )
    return "\n".join(parts)


def _claim(judged: Judged) -> str:
    rows = [
        (_mark(each.holds), escape(each.panel), "<br>".join(map(escape, each.evidence))) for each in judged.verdicts
    ]
    opened = " open" if judged.holds is False else ""
    return (
        f"<details{opened}><summary>{_mark(judged.holds)} {escape(judged.claim.text)} "
        f'<span class="small">{escape(judged.claim.source)}</span></summary>{_grid(None, rows)}</details>'
    )


def _mark(holds: bool | None) -> str:
    if holds is None:
        return '<span class="small">says nothing here</span>'
    return '<span class="yes">holds</span>' if holds else '<span class="no">fails</span>'


def _link(section: Section) -> str:
    return f'<a href="#{escape(section.name)}">{escape(section.name)}</a>'


def _numbers(table: Table) -> str:
    return _grid(table.columns, ([_cell(cell) for cell in row] for row in table.rows))


def _cell(cell: Cell) -> str:
    return escape(cell) if isinstance(cell, str) else f"{cell:.5g}"


def _grid(columns: Sequence[str] | None, rows: Iterable[Sequence[str]]) -> str:
    """A table of ready-made HTML cells, in a box that scrolls by itself on a narrow screen."""
    head = "" if columns is None else "<tr>" + "".join(f"<th>{escape(column)}</th>" for column in columns) + "</tr>"
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table>{head}{body}</table></div>'
