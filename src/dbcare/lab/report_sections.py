"""The sections of a report, and the files that belong to each: figures and their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dbcare.lab import bounds
from dbcare.lab.curves import format_loss, make_panels
from dbcare.lab.experiment import Experiment
from dbcare.lab.figures import draw, make_ratio_plot, make_risk_plot
from dbcare.lab.our_claims import ALL_CLAIMS
from dbcare.lab.points import Pass, Point
from dbcare.lab.report import JudgedClaim, Section
from dbcare.lab.result_store import ResultStore
from dbcare.lab.results import Result
from dbcare.lab.sweep import collect_results
from dbcare.lab.tables import make_plots_table, make_results_table


def write_experiment_section(
    experiment: Experiment, results: Mapping[Point, Result], folder: Path
) -> tuple[Section, list[Path]]:
    """Draw an experiment and judge its claims; return its section and the files written."""
    panels = make_panels(experiment, results)
    columns = len(experiment.settings)
    stem = folder / experiment.name
    risk = draw(stem, experiment.title, [make_risk_plot(panel, experiment.axis) for panel in panels], columns)
    ratio = draw(
        stem.with_name(f"{stem.name}_ratio"),
        f"{experiment.title}: risk / lower bound",
        [make_ratio_plot(panel, experiment.axis) for panel in panels],
        columns,
    )
    table = make_results_table(panels, experiment.axis)
    claims = [JudgedClaim(ALL_CLAIMS[name], tuple(ALL_CLAIMS[name].judge(panels))) for name in experiment.claims]
    section = Section(
        name=experiment.name,
        title=experiment.title,
        source=experiment.source,
        settings=_list_settings(experiment),
        decisions=experiment.decisions,
        figures=(
            ("Mean risk. Bands show ± 2 standard errors of simulated results; points may share runs.", risk[0]),
            ("The same as a multiple of the lower bound.", ratio[0]),
        ),
        claims=tuple(claims),
        table=table,
    )
    return section, [*risk, *ratio, table.write(stem.with_name(f"{stem.name}.csv"))]


class SectionWriter:
    """Writes the sections of experiments, each as soon as all of its results are stored."""

    def __init__(
        self, experiments: Sequence[Experiment], passes: Sequence[Pass], store: ResultStore, folder: Path
    ) -> None:
        self.experiments, self.store, self.folder = experiments, store, folder
        self.passes = {
            experiment.name: [work for work in passes if not points.isdisjoint(work.points)]
            for experiment in experiments
            for points in [set(experiment.points)]
        }
        self.written: dict[str, tuple[Section, list[Path]]] = {}

    @property
    def sections(self) -> list[tuple[Section, list[Path]]]:
        """The sections and their files, in the order of the experiments."""
        return [self.written[experiment.name] for experiment in self.experiments]

    def write_finished(self) -> None:
        """Write the sections whose results are complete and that are not written yet."""
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
        figures=(("Theory alone: no policy was run.", files[0]),),
        claims=(),
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
        rows.append((label, f"{contender.policy}{options}{own}"))
    return tuple(rows)


def _describe_precision(runs: int) -> str:
    return f"at least that of {runs:,} plain runs per point"
