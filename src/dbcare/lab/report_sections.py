"""The sections of a report, with the files that each writes: two figures, their numbers, and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbcare.lab import bounds
from dbcare.lab.curves import panels, words
from dbcare.lab.experiment import Experiment
from dbcare.lab.figures import draw, ratio_plot, risk_plot
from dbcare.lab.our_claims import ALL_CLAIMS
from dbcare.lab.points import Point
from dbcare.lab.report import Judged, Section
from dbcare.lab.results import Result
from dbcare.lab.tables import plots_table, results_table


def experiment_section(
    experiment: Experiment, results: Mapping[Point, Result], folder: Path
) -> tuple[Section, list[Path]]:
    """Draw and judge one experiment."""
    found = panels(experiment, results)
    columns = len(experiment.settings)
    stem = folder / experiment.name
    risk = draw(stem, experiment.title, [risk_plot(panel, experiment.axis) for panel in found], columns)
    ratio = draw(
        stem.with_name(f"{stem.name}_ratio"),
        f"{experiment.title}: risk over the lower bound",
        [ratio_plot(panel, experiment.axis) for panel in found],
        columns,
    )
    table = results_table(found, experiment.axis)
    judged = [Judged(ALL_CLAIMS[name], tuple(ALL_CLAIMS[name].verdicts(found))) for name in experiment.claims]
    section = Section(
        name=experiment.name,
        title=experiment.title,
        source=experiment.source,
        settings=_settings(experiment),
        decisions=experiment.decisions,
        figures=(
            ("Mean risk; bands are ± 2 standard errors where runs were drawn.", risk[0]),
            ("The same as multiples of the lower bound.", ratio[0]),
        ),
        judged=tuple(judged),
        table=table,
    )
    return section, [*risk, *ratio, table.write(stem.with_name(f"{stem.name}.csv"))]


def bounds_section(folder: Path) -> tuple[Section, list[Path]]:
    """Draw the paper's figure of bounds."""
    setup = bounds.Setup()
    plots = bounds.make_plots(setup)
    files = draw(folder / bounds.NAME, setup.title, plots, columns=2)
    table = plots_table(plots, "gap")
    section = Section(
        name=bounds.NAME,
        title=bounds.TITLE,
        source=bounds.SOURCE,
        settings=(("cost of a pull", f"{setup.cost:g}"), ("sigma", f"{setup.sigma:g}")),
        decisions=bounds.DECISIONS,
        figures=(("Theory alone: no policy was run.", files[0]),),
        judged=(),
        table=table,
    )
    return section, [*files, table.write(folder / f"{bounds.NAME}.csv")]


def _settings(experiment: Experiment) -> tuple[tuple[str, str], ...]:
    """What was run, for a reader."""
    rows = [("runs a point, where runs are drawn", f"{experiment.runs:,}"), ("seed", str(experiment.seed))]
    rows.append(("losses", ", ".join(words(loss) for loss in experiment.losses)))
    for setting in experiment.settings:
        first = setting.bandits[0]
        span = f"{experiment.axis} {setting.x[0]:g} to {setting.x[-1]:g}, {len(setting.x)} values"
        cost = "" if experiment.axis == "cost" else f", cost {setting.costs[0]:g}"
        rows.append(
            (setting.title, f"{len(first.arms)} arms, sigma {first.sigma:g}, {span}{cost}, B = {setting.bound:g}")
        )
    for label, contender in experiment.contenders.items():
        options = "".join(f", {name} = {value}" for name, value in contender.options.items())
        runs = experiment.runs_of(label)
        fewer = "" if runs == experiment.runs else f", {runs:,} runs a point"
        rows.append((label, f"{contender.policy}{options}{fewer}"))
    return tuple(rows)
