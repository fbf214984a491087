"""The report of an experiment: sections, verdicts, and the page."""

from __future__ import annotations

import base64
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from dbcare.lab import bounds
from dbcare.lab.claims import ALL_CLAIMS, Claim, Quote, Verdict
from dbcare.lab.curves import Panel, format_loss, make_panels
from dbcare.lab.experiments.experiment import EVERYWHERE, Experiment, Only, PaperFigure
from dbcare.lab.experiments.passes import Pass, Point
from dbcare.lab.experiments.results import Result, ResultStore
from dbcare.lab.experiments.sweep import collect_results
from dbcare.lab.figures import Cell, Table, draw, make_plots_table, make_ratio_plot, make_results_table, make_risk_plot
from dbcare.lab.heat import (
    EXPLANATION,
    HeatTable,
    draw_heat_tables,
    format_heat_table,
    make_heat_tables,
    make_summary_table,
)
from dbcare.lab.sensitivity import EXPLANATION as SENSITIVITY
from dbcare.lab.sensitivity import make_sensitivity_table
from dbcare.lab.uniformity import EXPLANATION as STANDINGS
from dbcare.lab.uniformity import make_standings_table

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


MOST_COLUMNS, COLUMNS = 4, 3  # of a figure; the second where more settings do not fill rows of the first
BANDS = (
    "Mean risk. Bands show ± 2 standard errors of simulated results; points may share runs. The logarithmic axis cuts "
    "bands that go below half of the lowest curve."
)
LOWER_BOUND = "The lower bound is one for the worst instance of its class."
PAPER_CAPTION = f"The paper's policies alone, in its layout. {BANDS}"


def write_experiment_section(
    experiment: Experiment, results: Mapping[Point, Result], folder: Path
) -> tuple[Section, list[Path]]:
    """Draw an experiment and judge its claims; return its section and the files written."""
    panels = make_panels(experiment, results)
    stem = folder / experiment.name
    figures, files = _draw_curves(experiment, panels, stem)
    standings: list[tuple[str, Table]] = []
    if (paper := experiment.paper_figure) is not None:
        drawn = _draw_paper_figure(experiment, paper, panels, stem)
        figures, files = [(PAPER_CAPTION, drawn[0]), *figures], [*drawn, *files]
        theirs = [label for label in experiment.contenders if label not in paper.leave_out]
        standings.append(("How uniformly good: the paper's policies", make_standings_table(panels, theirs)))
        standings.append(("How uniformly good: with ours", make_standings_table(panels, experiment.contenders)))
    sensitivity = None
    if experiment.variants:
        sensitivity = make_sensitivity_table(experiment, results)
        files.append(sensitivity.write(folder / f"{stem.name}_sensitivity.csv"))
    heat = make_heat_tables(experiment, panels)
    for baseline in experiment.baselines:
        own = [table for table in heat if table.baseline == baseline]
        files += draw_heat_tables(_extend(stem, f"over {baseline}"), experiment.title, own)
    if heat:
        files.append(make_summary_table(experiment, panels).write(folder / f"{stem.name}_summary.csv"))
    table = make_results_table(panels, experiment.axis)
    claims = [
        JudgedClaim(claim, tuple(claim.judge(panels)), claim.find_quote(experiment.name))
        for claim in map(ALL_CLAIMS.__getitem__, experiment.claims)
    ]
    section = Section(
        name=experiment.name,
        title=experiment.title,
        source=experiment.source,
        settings=_list_settings(experiment),
        decisions=experiment.decisions,
        heat=tuple(heat),
        figures=tuple(figures),
        standings=tuple(standings),
        claims=tuple(claims),
        sensitivity=sensitivity,
        table=table,
    )
    return section, [*files, table.write(folder / f"{stem.name}.csv")]


def _draw_paper_figure(experiment: Experiment, paper: PaperFigure, panels: Sequence[Panel], stem: Path) -> list[Path]:
    """Draw the paper's policies alone, in its layout, up to the gaps where its axes end."""
    labels = [label for label in experiment.contenders if label not in paper.leave_out]
    shown = [panel.keep(labels).up_to(paper.largest.get(panel.loss, math.inf)) for panel in panels]
    plots = [make_risk_plot(panel, experiment.axis, with_bound=False) for panel in shown]
    return draw(stem, f"{experiment.title}, as in the paper", plots, paper.columns)


def _draw_curves(
    experiment: Experiment, panels: Sequence[Panel], stem: Path
) -> tuple[list[tuple[str, Path]], list[Path]]:
    """Draw the risks and their ratios, for each group of policies; return captions with SVG files, and all files."""
    settings = len(experiment.settings)
    columns = settings if settings <= MOST_COLUMNS else MOST_COLUMNS if settings % MOST_COLUMNS == 0 else COLUMNS
    baseline = next(iter(experiment.baselines), None)
    divisor = "the lower bound" if baseline is None else f"{baseline}'s risk"
    figures: list[tuple[str, Path]] = []
    files: list[Path] = []
    for group in experiment.groups:
        own = [panel.keep(experiment.list_labels(group)) for panel in panels]
        shown = [panel for panel in own if panel.curves]
        title = f"{experiment.title}: {group}" if group else experiment.title
        intro = f"{group[:1].upper()}{group[1:]}. " if group else ""
        # Where the paper has a figure of its own, that one has the plain name.
        name = _extend(stem, group, "with ours" if experiment.paper_figure else "")
        risk = draw(name, title, [make_risk_plot(panel, experiment.axis) for panel in shown], columns)
        ratio = draw(
            _extend(stem, group, "ratio"),
            f"{title}: risk / {divisor.removeprefix('the ')}",
            [make_ratio_plot(panel, experiment.axis, baseline) for panel in shown],
            columns,
        )
        figures += [
            (f"{intro}{BANDS} {LOWER_BOUND}", risk[0]),
            (f"{intro}The same as a multiple of {divisor}.", ratio[0]),
        ]
        files += [*risk, *ratio]
    return figures, files


def _extend(stem: Path, *parts: str) -> Path:
    """Return a path whose name goes on with these parts, in plain letters."""
    words = [re.sub(r"\W+", "_", part.lower()).strip("_") for part in parts]
    return stem.with_name("_".join([stem.name, *filter(None, words)]))


class SectionWriter:
    """Writes the sections of experiments, each as soon as all of its results are stored.

    The figure of bounds, if wanted, needs no results and is drawn at the first chance, while others are computed.
    """

    def __init__(
        self, experiments: Sequence[Experiment], passes: Sequence[Pass], store: ResultStore, folder: Path, bounds: bool
    ) -> None:
        self.experiments, self.store, self.folder, self.wants_bounds = experiments, store, folder, bounds
        self.passes = {
            experiment.name: [work for work in passes if not points.isdisjoint(work.points)]
            for experiment in experiments
            for points in [set(experiment.points)]
        }
        self.written: dict[str, tuple[Section, list[Path]]] = {}

    @property
    def sections(self) -> list[tuple[Section, list[Path]]]:
        """The sections and their files, the bounds first, in the order of the experiments."""
        names = [*([bounds.NAME] if self.wants_bounds else []), *(experiment.name for experiment in self.experiments)]
        return [self.written[name] for name in names]

    def write_finished(self) -> None:
        """Write the sections whose results are complete and that are not written yet."""
        if self.wants_bounds and bounds.NAME not in self.written:
            self.written[bounds.NAME] = write_bounds_section(self.folder)
        for experiment in self.experiments:
            passes = self.passes[experiment.name]
            if experiment.name not in self.written and all(work.key in self.store.records for work in passes):
                results = collect_results(passes, self.store)
                self.written[experiment.name] = write_experiment_section(experiment, results, self.folder)


def write_bounds_section(folder: Path) -> tuple[Section, list[Path]]:
    """Draw the paper's figure of bounds; return its section and the files written."""
    setup = bounds.Setup()
    plots = bounds.make_plots(setup)
    files = draw(folder / bounds.NAME, setup.title, plots, columns=2)
    table = make_plots_table(plots, "gap")
    section = Section(
        name=bounds.NAME,
        title=bounds.TITLE,
        source=bounds.SOURCE,
        settings=(("cost per pull", f"{setup.cost:g}"), ("sigma", f"{setup.sigma:g}")),
        decisions=bounds.DECISIONS,
        heat=(),
        figures=(("Theory alone: no policy was run.", files[0]),),
        standings=(),
        claims=(),
        sensitivity=None,
        table=table,
    )
    return section, [*files, table.write(folder / f"{bounds.NAME}.csv")]


def _list_settings(experiment: Experiment) -> tuple[tuple[str, str], ...]:
    """List what was run, by name and value."""
    rows = [("precision", _describe_precision(experiment.runs)), ("seed", str(experiment.seed))]
    rows.append(("losses", ", ".join(format_loss(loss) for loss in experiment.losses)))
    for setting in experiment.settings:
        first = setting.bandits[0]
        span = f"{experiment.axis} {setting.x[0]:g} to {setting.x[-1]:g}, {len(setting.x)} values"
        cost = "" if experiment.axis == "cost" else f", cost {setting.costs[0]:g}"
        rows.append(
            (setting.title, f"{len(first.arms)} arms, sigma {first.sigma:g}, {span}{cost}, B = {setting.bound:g}")
        )
    for label, contender in experiment.contenders.items():
        options = "".join(f", {name} = {value}" for name, value in contender.options.items())
        runs = experiment.count_runs(label)
        own = "" if runs == experiment.runs else f", {_describe_precision(runs)}"
        rows.append((label, f"{contender.policy}{options}{own}{_describe_only(contender.only)}"))
    return tuple(rows)


def _describe_only(only: Only) -> str:
    """Return where a policy takes part, as an addition to its options; empty if everywhere."""
    parts = [
        "" if only.max_arms is None else f", only up to {only.max_arms} arms",
        "" if only.rewards is None else f", only for {only.rewards} rewards",
        "" if only.losses == EVERYWHERE.losses else f", only for {' and '.join(map(format_loss, only.losses))}",
    ]
    return "".join(parts)


def _describe_precision(runs: int) -> str:
    return f"at least that of {runs:,} plain runs per point"
