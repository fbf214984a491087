"""The figures of the benchmark `calibration`: what studies said at their stop, against what was true."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.parts.stops import BlockCell, Family, StopCell
from dbcare.base.numbers import MOST_STATED

Floats = npt.NDArray[np.float64]
MIN_JUDGED = 0.3  # share of the studies of a cell that stop and pass the gate


@dataclass(frozen=True)
class Judged:
    """What studies of a cell said at their stop, and what was true; one entry for each that passed the gate."""

    cell: StopCell | BlockCell
    studies: int  # all of the cell
    stated_loss: Floats
    loss: Floats
    chance: Floats  # not a number where none is stated
    is_best: Floats
    bias: Floats  # of the estimate, in standard errors
    naive_bias: Floats
    covers_mean: Floats
    covers_lead: Floats
    beats_control: Floats
    covers_always: Floats  # of all arms at the stop, by the intervals that hold however often one looks

    @property
    def is_enough(self) -> bool:
        """Whether enough studies passed the gate."""
        return len(self.loss) >= MIN_JUDGED * self.studies

    @property
    def has_enough_chances(self) -> bool:
        """Whether enough studies stated a chance."""
        return int(np.sum(~np.isnan(self.chance))) >= MIN_JUDGED * self.studies


class Figures:
    """Figures with their bars, printed and kept as they are measured."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, float | None]] = {}

    def add(self, name: str, value: float, low: float, high: float, slack: float = 0.0) -> None:
        """Report a figure that must lie within bars; `slack` is three standard errors."""
        met = low - slack <= value <= high + slack
        bars = f">= {low:g}" if math.isinf(high) else f"<= {high:g}" if math.isinf(low) else f"{low:g} to {high:g}"
        self.rows[name] = {
            "value": value,
            "low": None if math.isinf(low) else low,
            "high": None if math.isinf(high) else high,
            "slack": slack,
        }
        print(f"{name:<66} {value:>8.3f}   {bars:<14} {'met' if met else 'MISSED'}", flush=True)


def find_ratio(judged: Judged) -> tuple[float, float]:
    """Return the stated over the actual loss, and its standard error."""
    stated, actual = judged.stated_loss.mean(), judged.loss.mean()
    ratio = float(stated / actual)
    residuals = judged.stated_loss - ratio * judged.loss
    return ratio, float(residuals.std() / actual / math.sqrt(len(residuals)))


def mean_of(values: Floats) -> tuple[float, float]:
    """Return a mean and its standard error."""
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


def extreme(cells: list[Judged], measure: Callable[[Judged], tuple[float, float]], sign: float) -> tuple[float, float]:
    """Return the figure of the cell that is furthest up (sign 1) or down (-1), and three standard errors of it."""
    pairs = [measure(judged) for judged in cells]
    value, error = max(pairs, key=lambda pair: sign * pair[0] - 3.0 * pair[1])
    return value, 3.0 * error


def report(figures: Figures, judged: list[Judged]) -> None:
    """Report all figures over the cells."""
    cells = [each for each in judged if each.is_enough and each.cell.u > 0.0]
    found, hidden = [each for each in cells if each.cell.u >= 1.0], [each for each in cells if each.cell.u < 1.0]
    for sign, end in ((-1.0, "smallest"), (1.0, "largest")):
        value, slack = extreme(found, find_ratio, sign)
        figures.add(f"stated over actual loss, u >= 1, {end} of {len(found)} cells", value, 0.40, 2.2, slack)
        if hidden:
            value, slack = extreme(hidden, find_ratio, sign)
            figures.add(f"stated over actual loss, u < 1, {end} of {len(hidden)} cells", value, 0.7, 4.0, slack)
    logs = [math.log(find_ratio(each)[0]) for each in found]
    figures.add("stated over actual loss, u >= 1, geometric mean", math.exp(float(np.mean(logs))), 0.75, 1.25)
    report_chances(figures, found)
    for families, bar in (
        ((Family.GAUSSIAN, Family.EVEN_RATE), 0.7),
        ((Family.LOW_RATE, Family.REVENUE), 1.4),
    ):
        some = [each for each in cells if each.cell.family in families]
        name = " and ".join(family.name.lower().replace("_", " ") for family in families)
        for sign, end in ((-1.0, "smallest"), (1.0, "largest")):
            value, slack = extreme(some, lambda each: mean_of(each.bias), sign)
            figures.add(f"bias of the estimate, s.e., {name}, {end}", value, -bar, bar, slack)
        naive = max(mean_of(each.naive_bias)[0] for each in some)
        print(f"{f'  for comparison, bias of the naive mean, {name}, largest':<66} {naive:>8.3f}", flush=True)
    for name, measure in (
        ("mean", lambda each: mean_of(each.covers_mean)),
        ("lead", lambda each: mean_of(each.covers_lead)),
    ):
        value, slack = extreme(cells, measure, -1.0)
        figures.add(f"coverage of the {name}, smallest of {len(cells)} cells", value, 0.90, math.inf, slack)
        average = float(np.mean([measure(each)[0] for each in cells]))
        figures.add(f"coverage of the {name}, average", average, 0.95, math.inf)
    equal = [each for each in judged if each.cell.u == 0.0 and each.is_enough]
    value, slack = extreme(equal, lambda each: mean_of(each.beats_control), 1.0)
    figures.add(f"'beats the control' among equal arms, largest of {len(equal)} cells", value, -math.inf, 0.05, slack)


def report_close(figures: Figures, judged: list[Judged]) -> None:
    """Report two arms that are close: where nothing else says how close arms can be."""
    for u in (1.0, 2.0, 3.0):
        cells = [each for each in judged if isinstance(each.cell, StopCell) and (each.cell.arms, each.cell.u) == (2, u)]
        cells = [each for each in cells if each.is_enough and each.cell.order_deviation == 1.0]
        sure = np.concatenate([each.is_best[each.chance > MOST_STATED] for each in cells])
        print(
            f"{f'  K = 2, u = {u:g}: share that is best of {len(sure)} with a chance over 90%':<66} {sure.mean():>8.3f}"
        )
        for name, covers in (("mean", "covers_mean"), ("lead", "covers_lead"), ("always", "covers_always")):
            value, slack = extreme(cells, lambda each, covers=covers: mean_of(getattr(each, covers)), -1.0)
            figures.add(f"K = 2, u = {u:g}: coverage, {name}, smallest of {len(cells)}", value, 0.90, math.inf, slack)


def report_heavy(cells: list[Judged]) -> None:
    """Print the coverage for revenue whose orders vary more; no bar, as no finite sample shows its tail."""
    for each in cells:
        shares = [f"{name} {mean_of(getattr(each, f'covers_{name}'))[0]:.3f}" for name in ("mean", "lead", "always")]
        print(f"  {each.cell.name}: {len(each.loss)} stops; coverage: {', '.join(shares)}")


def report_blocks(figures: Figures, judged: list[Judged]) -> None:
    """Report the figures of arms that share blocks, with the bars of all others."""
    cells = [each for each in judged if each.cell.u > 0.0]
    for sign, end in ((-1.0, "smallest"), (1.0, "largest")):
        value, slack = extreme(cells, find_ratio, sign)
        figures.add(f"blocks: stated over actual loss, {end} of {len(cells)} cells", value, 0.40, 2.2, slack)
        value, slack = extreme(cells, lambda each: mean_of(each.bias), sign)
        figures.add(f"blocks: bias of the estimate, s.e., {end}", value, -0.7, 0.7, slack)
    logs = [math.log(find_ratio(each)[0]) for each in cells]
    figures.add("blocks: stated over actual loss, geometric mean", math.exp(float(np.mean(logs))), 0.75, 1.25)
    for name, covers in (("mean", "covers_mean"), ("lead", "covers_lead")):
        pairs = [mean_of(getattr(each, covers)) for each in cells]
        value, error = min(pairs)
        figures.add(f"blocks: coverage of the {name}, smallest", value, 0.90, math.inf, 3.0 * error)
        average = float(np.mean([pair[0] for pair in pairs]))
        figures.add(f"blocks: coverage of the {name}, average", average, 0.95, math.inf)
    report_chances(figures, cells, "blocks: ")
    equal = [mean_of(each.beats_control) for each in judged if each.cell.u == 0.0]
    value, error = max(equal)
    figures.add("blocks: 'beats the control' among equal arms", value, -math.inf, 0.05, 3.0 * error)


def report_chances(figures: Figures, found: list[Judged], prefix: str = "") -> None:
    """Report what is said about the chance of being best."""

    def difference(each: Judged) -> tuple[float, float]:
        stated = ~np.isnan(each.chance)
        return mean_of(each.chance[stated] - each.is_best[stated])

    enough = [each for each in found if each.has_enough_chances]
    for sign, end in ((-1.0, "smallest"), (1.0, "largest")):
        value, slack = extreme(enough, difference, sign)
        figures.add(f"{prefix}probability best minus share that was, {end} of {len(enough)}", value, -0.25, 0.25, slack)
    average = float(np.mean([difference(each)[0] for each in enough]))
    figures.add(f"{prefix}probability best minus share that was, average", average, -0.08, 0.08)
    sure = np.concatenate([each.is_best[each.chance > MOST_STATED] for each in found])
    share, error = mean_of(sure)
    figures.add(
        f"{prefix}share that is best of {len(sure)} stops with a chance over 90%", share, 0.85, math.inf, 3.0 * error
    )


def list_cell(judged: Judged) -> dict[str, float | str | None]:
    """Print and return a cell's figures."""
    name, count = judged.cell.name, len(judged.loss)
    if not judged.is_enough:
        print(f"  {name}: {count} stops pass the gate, too few to judge")
        return {"cell": name, "stops": count}
    ratio = find_ratio(judged)[0] if judged.loss.any() else None
    stated = ~np.isnan(judged.chance)
    row: dict[str, float | str | None] = {
        "cell": name,
        "stops": count,
        "ratio": ratio,
        "chance": float(judged.chance[stated].mean()) if stated.any() else None,
        "best": float(judged.is_best[stated].mean()) if stated.any() else None,
        "bias": float(judged.bias.mean()),
        "naive_bias": float(judged.naive_bias.mean()),
        "covers_mean": float(judged.covers_mean.mean()),
        "covers_lead": float(judged.covers_lead.mean()),
        "covers_always": float(judged.covers_always.mean()),
    }
    numbers = ", ".join(f"{key} {value:.2f}" for key, value in row.items() if isinstance(value, float))
    print(f"  {name}: {numbers}")
    return row
