"""The sections of a report, and the files that belong to each: figures and their numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbcare.lab import bounds
from dbcare.lab.contenders import EVERYWHERE, Only
from dbcare.lab.curves import Panel, format_loss, make_panels
from dbcare.lab.experiment import Experiment, PaperFigure
from dbcare.lab.figures import draw, make_ratio_plot, make_risk_plot
from dbcare.lab.heat import make_heat_tables, make_summary_table
from dbcare.lab.heat_pictures import draw_heat_tables
from dbcare.lab.our_claims import ALL_CLAIMS
from dbcare.lab.points import Pass, Point
from dbcare.lab.report import JudgedClaim, Section
from dbcare.lab.result_store import ResultStore
from dbcare.lab.results import Result
from dbcare.lab.sensitivity import make_sensitivity_table
from dbcare.lab.sweep import collect_results
from dbcare.lab.tables import Table, make_plots_table, make_results_table
from dbcare.lab.uniformity import make_standings_table

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
