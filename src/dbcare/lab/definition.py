"""Experiments from TOML files: the paper's own in `paper/`, and yours.

    title = "Four prompts"
    runs = 10_000
    cost = 1e-4                                     # or a list, or { from = 1e-5, to = 1e-3, points = 20 }
    losses = ["simple_regret"]                      # both if not given

    [[settings]]                                    # one column of the figure each
    bandit = "one-sparse"
    arms = [4, 8]                                   # a list makes a column of each
    gap = { from = 0.05, to = 2.0, points = 40 }    # geometric steps

    [policies."Sequential Halving"]
    policy = "sequential-halving"
    budget_per_arm = 50

    [policies.Breakeven]
    policy = "breakeven"
    runs = 1_000                                    # fewer than the others

The axis is whichever of gap and cost takes several values. A policy of your own is named `module:function` and looked
for beside the file. Unknown keys and names are errors that list what exists.
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

from dbcare import validation
from dbcare.bandit import Bandit
from dbcare.errors import InvalidValueError
from dbcare.lab.bandit_names import build_bandit
from dbcare.lab.experiment import Contender, Experiment, Setting
from dbcare.lab.our_claims import ALL_CLAIMS
from dbcare.policies.factory import refuse_unknown
from dbcare.risk import Loss

KEYS = ("title", "source", "decisions", "claims", "runs", "seed", "cost", "losses", "settings", "policies")
BANDIT_KEYS: tuple[str, ...] = ("arms", "sigma", "means", "reading")
SETTING_KEYS = ("title", "bandit", "cost", "bound", "gap", *BANDIT_KEYS)
QUICK_RUNS = 200
QUICK_POINTS = 5


def load(path: Path, *, seed: int | None = None, quick: bool = False, full: bool = False) -> Experiment:
    """The experiment that a file describes, checked.

    `seed` replaces the file's; `quick` has few points and runs, to see that all works; `full` gives every policy the
    runs of the experiment, those too that have fewer of their own.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise InvalidValueError(f"`file` must be readable but got {path}: {failure.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as failure:
        raise InvalidValueError(f"{path.name} must be a TOML file: {failure}.") from None
    try:
        with _importable(path.resolve().parent):
            experiment = _build_experiment(path.stem, raw if seed is None else {**raw, "seed": seed}, quick)
    except OverflowError:
        raise InvalidValueError(f"{path.name}: gaps and costs must be of a size whose squares are numbers.") from None
    except InvalidValueError as failure:
        raise InvalidValueError(f"{path.name}: {failure}") from None
    if full:
        contenders = {label: replace(each, runs=None) for label, each in experiment.contenders.items()}
        return replace(experiment, contenders=contenders)
    return experiment


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let modules next to the file be imported, where a policy such as `module:function` may live."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _build_experiment(name: str, raw: dict[str, Any], quick: bool) -> Experiment:
    refuse_unknown("Keys of an experiment", raw, KEYS)
    settings = _tables("settings", raw.get("settings"))
    parts = [part for table in settings for part in _columns(table, raw.get("cost"), quick)]
    axes = {part.axis for part in parts}
    if len(axes) > 1:
        raise InvalidValueError("All `settings` must have several values of the same one of gap and cost.")
    runs = validation.whole("runs", raw.get("runs", 10_000), at_least=2)
    experiment = Experiment(
        name=name,
        title=_text("title", raw.get("title", name)),
        axis=axes.pop(),
        settings=tuple(part.setting for part in parts),
        contenders=_contenders(raw.get("policies"), runs),
        losses=tuple(
            Loss(validation.one_of("losses", each, list(Loss)))
            for each in _list("losses", raw.get("losses", list(Loss)))
        ),
        runs=min(runs, QUICK_RUNS) if quick else runs,
        seed=validation.whole("seed", raw.get("seed", 0), at_least=0),
        source=_text("source", raw.get("source", "")),
        decisions=tuple(_text("decisions", each) for each in _list("decisions", raw.get("decisions", []), empty=True)),
        claims=tuple(
            validation.one_of("claims", each, ALL_CLAIMS) for each in _list("claims", raw.get("claims", []), empty=True)
        ),
    )
    # What is wrong with an option or an instance is found before anything runs.
    _ = experiment.points
    if any(bandit.complexity == 0.0 for setting in experiment.settings for bandit in setting.bandits):
        raise OverflowError
    return experiment


@dataclass(frozen=True)
class _Column:
    axis: str
    setting: Setting


def _columns(table: dict[str, Any], cost: Any, quick: bool) -> list[_Column]:
    """The columns of one table of settings: one for each number of arms."""
    refuse_unknown("Keys of settings", table, SETTING_KEYS)
    if "bandit" not in table:
        raise InvalidValueError("Each of `settings` must name its bandit.")
    arms = table.get("arms")
    if isinstance(arms, list) and arms:
        title = f"{table['title']}, " if "title" in table else ""
        return [
            column
            for each in arms
            for column in _columns({**table, "arms": each, "title": f"{title}K = {each}"}, cost, quick)
        ]
    given = table.get("cost", cost)
    if given is None:
        raise InvalidValueError("`cost` must be given, for the experiment or for each of its settings.")
    costs, gaps = _values("cost", given, quick), _values("gap", table["gap"], quick) if "gap" in table else None
    if gaps is not None and len(gaps) > 1 and len(costs) > 1:
        raise InvalidValueError("One of `gap` and `cost` must be a single number but got several of both.")
    options = {key: table[key] for key in BANDIT_KEYS if key in table}
    if not isinstance(options.get("means", []), list):
        raise InvalidValueError(f"`means` must be a list of numbers but got {options['means']!r}.")
    name = table["bandit"]
    title = _text("title", table.get("title", str(name)))
    by_gap = gaps is not None and len(costs) == 1
    bandits = [build_bandit(name, {**options, "gap": gap}) for gap in gaps or ()] or [build_bandit(name, options)]
    places = max(len(bandits), len(costs))
    setting = Setting(
        title=title,
        x=tuple(gaps if by_gap and gaps else costs),
        bandits=tuple(bandits) * (places // len(bandits)),
        costs=tuple(costs) * (places // len(costs)),
        bound=validation.positive("bound", table.get("bound", _largest_gap(bandits))),
    )
    return [_Column("gap" if by_gap else "cost", setting)]


def _largest_gap(bandits: Iterable[Bandit]) -> float:
    """The B of a setting that states none: the largest difference of two means in it."""
    return max([bandit.spread for bandit in bandits if bandit.spread > 0.0], default=1.0)


def _values(name: str, given: Any, quick: bool) -> list[float]:
    """A number, a list of numbers, or a geometric range; ascending."""
    if isinstance(given, Mapping):
        refuse_unknown(f"Keys of {name}", given, ("from", "to", "points"))
        for key in ("from", "to"):
            if key not in given:
                raise InvalidValueError(f"`{name}` must say {key} where it ranges.")
        low, high = (validation.positive(f"{name}.{key}", given[key]) for key in ("from", "to"))
        points = validation.whole(f"{name}.points", given.get("points", 40), at_least=2)
        return sorted(np.geomspace(low, high, min(points, QUICK_POINTS) if quick else points).tolist())
    listed = sorted({validation.positive(name, each) for each in _list(name, given)})
    return listed[:: -(-len(listed) // QUICK_POINTS)] if quick else listed


def _contenders(given: Any, runs: int) -> dict[str, Contender]:
    if not isinstance(given, Mapping) or not given:
        raise InvalidValueError("`policies` must be one or more tables, such as [policies.DBCARE].")
    contenders = {}
    for label, options in given.items():
        if not isinstance(options, Mapping) or "policy" not in options:
            raise InvalidValueError(f"`policies.{label}` must be a table that names its policy.")
        own = {key: value for key, value in options.items() if key not in ("policy", "runs")}
        fewer = validation.whole(f"policies.{label}.runs", options.get("runs", runs), at_least=2)
        if fewer > runs:
            raise InvalidValueError(
                f"`policies.{label}.runs` must be at most {runs}, the runs of the experiment, but got {fewer}."
            )
        contenders[label] = Contender(str(options["policy"]), own, fewer if fewer < runs else None)
    return contenders


def _tables(name: str, given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not given or not all(isinstance(each, Mapping) for each in given):
        raise InvalidValueError(f"`{name}` must be one or more tables, written [[{name}]].")
    return [dict(each) for each in given]


def _list(name: str, given: Any, *, empty: bool = False) -> list[Any]:
    if given == [] and not empty:
        raise InvalidValueError(f"`{name}` must have at least one value but got none.")
    return given if isinstance(given, list) else [given]


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise InvalidValueError(f"`{name}` must be a text but got {given!r}.")
    return given
