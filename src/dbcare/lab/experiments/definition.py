"""Experiments from TOML files: the paper's in `paper/`, and your own.

    title = "Four prompts"
    runs = 10_000                                   # per point, or pooled runs that are as precise
    cost = 1e-4                                     # or a list, or { from = 1e-5, to = 1e-3, points = 20 }
    losses = ["simple_regret"]                      # default: both

    [[settings]]                                    # one column of the figure
    bandit = "one-sparse"
    arms = [4, 8]                                   # a list gives one column per entry
    gap = { from = 0.05, to = 2.0, points = 40 }    # geometric steps

    [policies."Sequential Halving"]
    policy = "sequential-halving"
    budget_per_arm = 50

    [policies.Breakeven]
    policy = "breakeven"
    runs = 1_000                                    # fewer than the others

    [policies."Track-and-Stop"]
    policy = "track-and-stop"
    only = { max_arms = 8 }                         # not with more; also `rewards = "binary"`, `losses = [...]`
    group = "for a given error"                     # figures of its own, with the policies that have no group

The axis is the gap or the cost, whichever has several values. Name a policy of your own `module:function`, where the
module may be next to the file. `baselines = ["Breakeven"]`, before the settings, adds tables of all risks as multiples
of that policy's, in colors. Unknown keys and names are errors that list the valid ones.

Where a source leaves a choice open, a variant repeats the experiment with another one, and the report says which
verdicts flip. It changes policies, the bandit, or both; `settings` are titles, `every = 4` uses each fourth point:

    [[variants]]
    choice = "sigma of binary rewards"
    ours = "1/2"
    alternative = "1"
    settings = ["Bernoulli"]
    every = 4
    policies = { DBCARE = { sigma = 1.0 }, racing = { sigma = 1.0 } }   # `policy` replaces it
    bandit = { table = 2 }
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dbcare.base import checks
from dbcare.errors import InvalidValueError
from dbcare.lab.claims import ALL_CLAIMS
from dbcare.lab.experiments.bandits import build_bandit
from dbcare.lab.experiments.experiment import (
    EVERYWHERE,
    Experiment,
    PaperFigure,
    Setting,
    Variant,
    as_list,
    check_text,
    parse_contenders,
    parse_losses,
)
from dbcare.policies.build import refuse_unknown
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Loss

EXPERIMENT_KEYS = (
    "title", "source", "decisions", "claims", "baselines", "runs", "seed", "cost", "losses", "settings", "policies",
    "paper_figure", "variants",
)  # fmt: skip
PAPER_FIGURE_KEYS = ("columns", "leave_out", "largest")
VARIANT_KEYS = ("choice", "ours", "alternative", "settings", "every", "policies", "bandit")
BANDIT_KEYS: tuple[str, ...] = ("arms", "sigma", "means", "reading", "table", "shape", "seed")
SETTING_KEYS = ("title", "bandit", "cost", "bound", "gap", *BANDIT_KEYS)
QUICK_RUNS, LEAST_QUICK_RUNS = 200, 20
QUICK_POINTS, QUICK_STEP = 5, 2  # of an axis, and of those for a variant


def load(path: Path, *, seed: int | None = None, quick: bool = False) -> Experiment:
    """Load an experiment from a file, and check it.

    `seed` overrides the file's seed; `quick` uses few points and runs, to check that everything works.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise InvalidValueError(f"Cannot read {path}: {failure.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as failure:
        raise InvalidValueError(f"{path.name} is not a valid TOML file: {failure}.") from None
    try:
        with _importing_from(path.resolve().parent):
            return _build_experiment(path.stem, raw if seed is None else {**raw, "seed": seed}, quick)
    except InvalidValueError as failure:
        raise InvalidValueError(f"{path.name}: {failure}") from None


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Allow imports of modules next to the file, which may define policies named `module:function`."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _build_experiment(name: str, raw: dict[str, Any], quick: bool) -> Experiment:
    refuse_unknown("Keys of an experiment", raw, EXPERIMENT_KEYS)
    tables = _check_tables("settings", raw.get("settings"))
    columns = [column for table in tables for column in _expand_columns(table, raw.get("cost"), quick)]
    axes = {column.axis for column in columns}
    if len(axes) > 1:
        raise InvalidValueError("All `settings` must sweep the same parameter: gap or cost.")
    runs = _count_runs(raw)
    experiment = Experiment(
        name=name,
        title=check_text("title", raw.get("title", name)),
        axis=axes.pop(),
        settings=tuple(column.setting for column in columns),
        contenders=parse_contenders(raw.get("policies"), runs),
        losses=parse_losses("losses", raw.get("losses", list(Loss))),
        runs=min(runs, QUICK_RUNS, max(LEAST_QUICK_RUNS, runs // 10)) if quick else runs,
        seed=checks.whole("seed", raw.get("seed", 0), at_least=0),
        source=check_text("source", raw.get("source", "")),
        decisions=tuple(
            check_text("decisions", text) for text in as_list("decisions", raw.get("decisions", []), empty=True)
        ),
        claims=tuple(
            checks.one_of("claims", claim, ALL_CLAIMS) for claim in as_list("claims", raw.get("claims", []), empty=True)
        ),
        baselines=tuple(as_list("baselines", raw.get("baselines", []), empty=True)),
    )
    if "paper_figure" in raw:
        experiment = replace(experiment, paper_figure=_parse_paper_figure(raw["paper_figure"], experiment))
    if "variants" in raw:
        variants = [
            _build_variant(table, raw, experiment, quick) for table in _check_tables("variants", raw["variants"])
        ]
        experiment = replace(experiment, variants=tuple(variants))
    # Building all points now reports invalid options and instances before anything runs.
    _check_who_takes_part(experiment)
    _ = experiment.points
    return experiment


def _count_runs(raw: dict[str, Any]) -> int:
    """Return the number of runs per point without `quick`."""
    return checks.whole("runs", raw.get("runs", 10_000), at_least=2)


def _parse_paper_figure(table: Any, experiment: Experiment) -> PaperFigure:
    if not isinstance(table, Mapping) or "columns" not in table:
        raise InvalidValueError(f"`paper_figure` must be a table with `columns` but got {table!r}.")
    refuse_unknown("Keys of paper_figure", table, PAPER_FIGURE_KEYS)
    largest = table.get("largest", {})
    refuse_unknown("Keys of paper_figure.largest", largest, [str(loss) for loss in Loss])
    return PaperFigure(
        columns=checks.whole("paper_figure.columns", table["columns"], at_least=1),
        leave_out=tuple(
            checks.one_of("paper_figure.leave_out", label, experiment.contenders)
            for label in as_list("paper_figure.leave_out", table.get("leave_out", []), empty=True)
        ),
        largest={Loss(loss): checks.positive(f"paper_figure.largest.{loss}", end) for loss, end in largest.items()},
    )


def _build_variant(table: dict[str, Any], raw: dict[str, Any], experiment: Experiment, quick: bool) -> Variant:
    """Return a variant: the same settings, at fewer points if wanted, without and with its changes."""
    refuse_unknown("Keys of variants", table, VARIANT_KEYS)
    choice, own_choice, alternative = (check_text(f"variants.{key}", table.get(key)) for key in VARIANT_KEYS[:3])
    step = QUICK_STEP if quick else checks.whole("variants.every", table.get("every", 1), at_least=1)
    titles = [setting.title for setting in experiment.settings]
    chosen = [
        checks.one_of("variants.settings", title, titles)
        for title in as_list("variants.settings", table.get("settings", titles))
    ]
    changed = [
        column.setting
        for own in _check_tables("settings", raw["settings"])
        if any(column.setting.title in chosen for column in _expand_columns(own, raw.get("cost"), quick))
        for column in _expand_columns({**own, **table.get("bandit", {})}, raw.get("cost"), quick)
    ]
    contenders, runs = dict(experiment.contenders), _count_runs(raw)
    for label, options in table.get("policies", {}).items():
        own = contenders[checks.one_of("variants.policies", label, contenders)]
        kept = {} if "policy" in options else {"policy": own.policy, **own.options}
        parsed = parse_contenders({label: {"runs": own.runs or runs, **kept, **options}}, runs)
        contenders[label] = replace(parsed[label], group=own.group, only=own.only)
    left_out = () if experiment.paper_figure is None else experiment.paper_figure.leave_out
    paper = [label for label in contenders if label not in left_out]
    base, other = (
        replace(
            experiment,
            settings=tuple(_thin(setting, step) for setting in settings if setting.title in chosen),
            contenders={label: policies[label] for label in paper},
        )
        for settings, policies in ((experiment.settings, experiment.contenders), (changed, contenders))
    )
    return Variant(choice, own_choice, alternative, base, other)


def _thin(setting: Setting, step: int) -> Setting:
    """Return a setting at the first of its points and each so many after it, and the last."""
    last = len(setting.x) - 1
    places = [place for place in range(last + 1) if place % step == 0 or place == last]
    return replace(
        setting,
        x=tuple(setting.x[place] for place in places),
        bandits=tuple(setting.bandits[place] for place in places),
        costs=tuple(setting.costs[place] for place in places),
    )


def _check_who_takes_part(experiment: Experiment) -> None:
    """Refuse a policy that never takes part, an empty panel, and a baseline that is missing somewhere."""
    for label in experiment.contenders:
        if not any(own == label for _, _, own in experiment.curves):
            raise InvalidValueError(f"`policies.{label}.only` leaves no setting and loss of the experiment; relax it.")
    panels = {(loss, number) for loss, number, _ in experiment.curves}
    for loss in experiment.losses:
        for number, setting in enumerate(experiment.settings):
            if (loss, number) not in panels:
                raise InvalidValueError(
                    f"No policy takes part in {setting.title!r} under {loss}; add one without `only`."
                )
    for label in experiment.baselines:
        checks.one_of("baselines", label, experiment.contenders)
        if experiment.contenders[label].only != EVERYWHERE:
            raise InvalidValueError(f"`baselines` must take part everywhere but {label!r} has `only`.")


@dataclass(frozen=True)
class _Column:
    axis: str
    setting: Setting


def _expand_columns(table: dict[str, Any], cost: Any, quick: bool) -> list[_Column]:
    """Return the columns of one table of settings: one per number of arms."""
    refuse_unknown("Keys of settings", table, SETTING_KEYS)
    if "bandit" not in table:
        raise InvalidValueError("Each of `settings` must name a bandit.")
    arms = table.get("arms")
    if isinstance(arms, list) and arms:
        title = f"{table['title']}, " if "title" in table else ""
        return [
            column
            for number in arms
            for column in _expand_columns({**table, "arms": number, "title": f"{title}K = {number}"}, cost, quick)
        ]
    cost = table.get("cost", cost)
    if cost is None:
        raise InvalidValueError("`cost` is required, for the experiment or for each of its settings.")
    costs = _parse_values("cost", cost, quick)
    gaps = _parse_values("gap", table["gap"], quick) if "gap" in table else None
    if gaps is not None and len(gaps) > 1 and len(costs) > 1:
        raise InvalidValueError("`gap` or `cost` must be a single number but both have several values.")
    options = {key: table[key] for key in BANDIT_KEYS if key in table}
    if not isinstance(options.get("means", []), list):
        raise InvalidValueError(f"`means` must be a list of numbers but got {options['means']!r}.")
    name = table["bandit"]
    title = check_text("title", table.get("title", str(name)))
    by_gap = gaps is not None and len(costs) == 1
    bandits = [build_bandit(name, {**options, "gap": gap}) for gap in gaps or ()] or [build_bandit(name, options)]
    places = max(len(bandits), len(costs))
    setting = Setting(
        title=title,
        x=tuple(gaps if by_gap and gaps else costs),
        bandits=tuple(bandits) * (places // len(bandits)),
        costs=tuple(costs) * (places // len(costs)),
        bound=checks.positive("bound", table.get("bound", _find_largest_gap(bandits))),
    )
    return [_Column("gap" if by_gap else "cost", setting)]


def _find_largest_gap(bandits: Iterable[Bandit]) -> float:
    """Return the default B of a setting: the largest difference of two means in it."""
    return max([bandit.spread for bandit in bandits if bandit.spread > 0.0], default=1.0)


def _parse_values(name: str, value: Any, quick: bool) -> list[float]:
    """Parse a number, a list of numbers, or a geometric range, into ascending numbers."""
    if isinstance(value, Mapping):
        refuse_unknown(f"Keys of {name}", value, ("from", "to", "points"))
        for key in ("from", "to"):
            if key not in value:
                raise InvalidValueError(f"`{name}` is a range without `{key}`.")
        low, high = (checks.positive(f"{name}.{key}", value[key]) for key in ("from", "to"))
        points = checks.whole(f"{name}.points", value.get("points", 40), at_least=2)
        return sorted(np.geomspace(low, high, min(points, QUICK_POINTS) if quick else points).tolist())
    numbers = sorted({checks.positive(name, number) for number in as_list(name, value)})
    return numbers[:: -(-len(numbers) // QUICK_POINTS)] if quick else numbers


def _check_tables(name: str, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value or not all(isinstance(table, Mapping) for table in value):
        raise InvalidValueError(f"`{name}` must be one or more tables, written [[{name}]].")
    return [dict(table) for table in value]
