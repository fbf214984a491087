"""The picture of a search, with short labels for its candidates."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dbcare.base.extras import say_how_to_install
from dbcare.sklearn.fit_runner import choose_metric

LONGEST_LABEL = 100  # characters
LONGEST_SHORT_LABEL, LONGEST_VALUE = 60, 20  # in a figure
NO_PARAMETERS = "no parameters"


def label_candidates(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the candidates' parameters as scikit-learn writes them, all different, and the same in every process."""
    labels: list[str] = []
    taken: set[str] = set()
    for number, parameters in enumerate(candidates):
        text = ", ".join(f"{name}={describe_value(parameters[name])}" for name in sorted(parameters))
        label = cut(text, LONGEST_LABEL) or NO_PARAMETERS
        if label in taken:
            label = f"{label} (candidate {number})"
        while label in taken:
            label += "'"
        labels.append(label)
        taken.add(label)
    return labels


def shorten_candidates(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return short labels: without parameters that all share, and without a pipeline's steps where that is clear."""
    texts = [{name: _shorten_value(value) for name, value in parameters.items()} for parameters in candidates]
    everywhere = [name for name in texts[0] if all(text.get(name) == texts[0][name] for text in texts)]
    if len(candidates) > 1:
        texts = [{name: value for name, value in text.items() if name not in everywhere} for text in texts]
    names = {name for text in texts for name in text}
    last = [name.rpartition("__")[2] for name in names]
    shown = {name: short if last.count(short := name.rpartition("__")[2]) == 1 else name for name in names}
    listed = [", ".join(f"{shown[name]}={text[name]}" for name in sorted(text)) for text in texts]
    return [cut(each, LONGEST_SHORT_LABEL) or NO_PARAMETERS for each in listed]


def describe_value(value: Any) -> str:
    """Return a value as text without addresses in memory, on one line."""
    if callable(value) and hasattr(value, "__qualname__"):
        text = value.__qualname__
    elif repr(value) == object.__repr__(value):
        text = type(value).__qualname__
    else:
        text = str(value)
    return "".join(each if each.isprintable() else " " for each in text)


def _shorten_value(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.3g}"
    return cut(type(value).__name__ if hasattr(value, "get_params") else describe_value(value), LONGEST_VALUE)


def cut(text: str, longest: int) -> str:
    """Return a text, its end replaced by an ellipsis if it is too long."""
    return text if len(text) <= longest else f"{text[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ImportError as failure:
    raise ImportError(f"Figures of searches require an extra: {say_how_to_install('lab')}.") from failure


Floats = npt.NDArray[np.float64]

MAX_LABELED = 40  # candidates; more are numbered
ROW, COLUMN, LETTER = 0.24, 0.45, 0.075  # inches, in a figure of our own; a letter of the labels and the title
LEAST_ROW, LEAST_COLUMN = 0.11, 0.22  # inches that a label needs
NEGLIGIBLE = 1e-9  # of the largest gap: a loss that is shown as 0
FAILED = "0.6"  # gray, unlike any other color on white and on black
# Without the ends of the scale, which can hardly be told from white and from black.
COLORS = ListedColormap(mpl.colormaps["viridis"](np.linspace(0.95, 0.15, 256)), "behind")


def draw_search(search: Any, axes: Axes | None = None) -> Axes:
    """Draw a fitted search, one row for each candidate, the best first, and one column for each fold; return the axes.

    Cells are blank where nothing was fitted, and gray where there is no score.
    """
    metric = find_metric(search)
    rows = np.argsort(search.cv_results_[f"rank_test_{metric}"], kind="stable")
    gaps, failed = measure_gaps(search, metric)
    gaps, failed = gaps[rows], failed[rows]
    labels = shorten_candidates(search.cv_results_["params"])
    best = getattr(search, "best_index_", int(rows[0]))
    if axes is None:
        axes, width, height = _make_axes(gaps.shape, labels)
    else:
        width, height = axes.figure.dpi_scale_trans.inverted().transform(axes.get_window_extent().size)
    _draw_cells(axes, gaps, failed, metric)
    _name_rows(axes, [labels[row] for row in rows], int(np.flatnonzero(rows == best)[0]), height)
    _name_columns(axes, search.fold_order_, width)
    missing = gaps.mask & ~failed
    signs = [text for text, cells in (("blank: not fitted", missing), ("gray: no score", failed)) if cells.any()]
    axes.set_xlabel("; ".join(["fold, in the order of fitting", *signs]))
    title = describe_search(search, labels[best], gaps)
    axes.set_title(textwrap.fill(title, max(30, int(width / LETTER))), loc="left", fontsize="medium", parse_math=False)
    return axes


def find_metric(search: Any) -> str:
    """Return the metric by which candidates are compared."""
    prefix = "mean_test_"
    return choose_metric(
        [name.removeprefix(prefix) for name in search.cv_results_ if name.startswith(prefix)], search.refit
    )


def measure_gaps(search: Any, metric: str) -> tuple[np.ma.MaskedArray[Any, Any], npt.NDArray[np.bool_]]:
    """Return by how much each candidate is behind the best score on each fold, and where fits have no score.

    Folds are in the order of fitting; gaps are masked where there is no score.
    """
    table, order = search.cv_results_, search.fold_order_
    scores = np.stack([np.asarray(table[f"split{fold}_test_{metric}"], dtype=np.float64) for fold in order], axis=1)
    scores[~np.isfinite(scores)] = np.nan
    counts = np.asarray(table.get("n_folds", np.full(len(scores), len(order))))
    failed = np.isnan(scores) & (np.arange(len(order)) < counts[:, None])  # every candidate takes folds in this order
    return np.ma.masked_invalid(np.fmax.reduce(scores, axis=0) - scores), failed


def describe_search(search: Any, chosen: str, gaps: np.ma.MaskedArray[Any, Any]) -> str:
    """Return in a sentence what was chosen, after how many of all fits, and what that is expected to lose."""
    fits, loss = f"after {search.n_fits_:,} of {gaps.size:,} fits", search.expected_loss_
    if np.isnan(loss):
        return f"No candidate has a score on all of its folds {fits}."
    is_negligible = loss <= NEGLIGIBLE * gaps.max()
    return f"{chosen} is chosen {fits}, with an expected loss of {0.0 if is_negligible else loss:.2g}."


def _make_axes(shape: tuple[int, int], labels: Sequence[str]) -> tuple[Axes, float, float]:
    """Make axes in a figure that has room for labels and the scale of colors; return them with their size in inches."""
    rows, columns = shape
    longest = max(map(len, labels)) if rows <= MAX_LABELED else 0
    width = min(max(columns * COLUMN, 4.5), 9.0)
    height = min(max(rows, 6), MAX_LABELED) * ROW
    figure = Figure(figsize=(width + longest * LETTER + 1.4, height + 1.1), layout="constrained")
    return figure.add_subplot(), width, height


def _draw_cells(axes: Axes, gaps: np.ma.MaskedArray[Any, Any], failed: npt.NDArray[np.bool_], metric: str) -> None:
    """Draw the cells, with rows numbered from 1, and the scale of their colors."""
    rows, columns = gaps.shape
    positive = gaps.compressed()[gaps.compressed() > 0.0]
    # Terrible candidates share the last color, so that the others differ in theirs.
    limit = min(float(positive.max()), 3.0 * float(np.median(positive))) if positive.size else 1.0
    extent = (-0.5, columns - 0.5, rows + 0.5, 0.5)
    options: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "extent": extent}
    image = axes.imshow(gaps, cmap=COLORS, vmin=0.0, vmax=limit, **options)
    if failed.any():
        axes.imshow(np.ma.masked_where(~failed, failed), cmap=ListedColormap([FAILED]), **options)
    if rows <= MAX_LABELED:
        axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(rows + 1) + 0.5, minor=True)
        axes.grid(which="minor", color=axes.get_facecolor(), linestyle="-", linewidth=1.0)
        axes.tick_params(which="minor", length=0)
    axes.grid(False, which="major")
    clipped = positive.size > 0 and float(positive.max()) > limit
    scale = axes.figure.colorbar(image, ax=axes, extend="max" if clipped else "neither", extendfrac=0.03)
    scale.set_label(f"{metric} behind\nthe best on the fold", parse_math=False)
    if not positive.size:
        scale.set_ticks([0.0])


def _name_rows(axes: Axes, labels: Sequence[str], best: int, height: float) -> None:
    """Write the candidates' names, the best in bold, or number them where there is no room for names."""
    if len(labels) > MAX_LABELED or height / len(labels) < LEAST_ROW:
        axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        axes.set_ylabel("candidate, best first")
        return
    axes.set_yticks(np.arange(1, len(labels) + 1), labels, parse_math=False)
    axes.tick_params(axis="y", length=0, labelsize=min(9.0, 60.0 * height / len(labels)))
    axes.get_yticklabels()[best].set_fontweight("bold")


def _name_columns(axes: Axes, order: Sequence[int], width: float) -> None:
    """Write the folds' numbers, as many as there is room for."""
    step = max(1, int(np.ceil(LEAST_COLUMN * len(order) / width)))
    places = range(0, len(order), step)
    axes.set_xticks(places, [str(order[place]) for place in places])
