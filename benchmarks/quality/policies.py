"""Measure how good the policies are: their risk over DBCARE's, on the paper's settings and on random instances.

Reports the geometric mean, the largest value and the share above 1.05 of the ratio, with standard errors; Breakeven
with sigma right, off by a factor of 2, known and learned; two arms against the known-gap SPRT; and the time of a step.
A pilot sets the number of runs per cell: for a policy that draws every pull, as many as WORK pulls times arms allow,
for others four times as many; this is the same on every machine. If one of our policies is not below DBCARE by three
standard errors, both are measured again with other random numbers and ten times the work, which replaces the first
result; every cell and policy has its own random numbers. The figure of docs/explanation/breakeven.md is drawn, too.
"""

import itertools
import json
import math
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.parts.bars import Bars
from benchmarks.parts.instances import Cell, paper_cells, random_cells
from benchmarks.parts.measurements import Measurement, Ratio, count_arms, divide, geometric_mean, measure, report_ratios
from dbcare import DBCARE, Bandit, Breakeven, BreakevenRacing, Gaussian, Loss, Policy, Risk, evaluate, evaluate_grid
from dbcare.engines import best_sprt
from dbcare.errors import GuessingIsBestWarning
from dbcare.policies import Racing, SequentialHalving


def state(cell: Cell, sigma: float) -> Policy:
    """Return Breakeven with a stated sigma, and with the range of the rewards if they have one."""
    largest = None if is_gaussian(cell) else cell.bandit.sigma
    return Breakeven(cell.risk, count_arms(cell), sigma, bound=cell.bound, largest_sigma=largest)


def know(cell: Cell, sigma: float) -> Policy:
    """Return Breakeven with a sigma that it takes as certain."""
    return Breakeven(cell.risk, count_arms(cell), sigma, math.inf, cell.bound)


def is_gaussian(cell: Cell) -> bool:
    return isinstance(cell.bandit.arms[0], Gaussian)


def pull_cap(cell: Cell) -> int:
    """Return the paper's cap on fixed-confidence policies, 10/c pulls."""
    return round(10.0 / cell.risk.single_cost)


POLICIES: dict[str, Callable[[Cell], Policy]] = {
    "DBCARE": lambda cell: DBCARE(cell.risk, count_arms(cell), cell.bandit.sigma, bound=cell.bound),
    "Breakeven": lambda cell: state(cell, cell.bandit.sigma),
    "Breakeven, sigma known": lambda cell: know(cell, cell.bandit.sigma),
    "Breakeven, sigma / 2": lambda cell: state(cell, cell.bandit.sigma / 2.0),
    "Breakeven, sigma / 2, trusted": lambda cell: know(cell, cell.bandit.sigma / 2.0),
    "Breakeven, 2 sigma": lambda cell: state(cell, 2.0 * cell.bandit.sigma),
    "Breakeven, sigma learned": lambda cell: Breakeven(cell.risk, count_arms(cell), bound=cell.bound),
    "BreakevenRacing": lambda cell: BreakevenRacing(cell.risk, count_arms(cell), cell.bandit.sigma),
    "racing, 0.1": lambda cell: Racing(count_arms(cell), 0.1, cell.bandit.sigma, max_pulls=pull_cap(cell)),
    "racing, 0.01": lambda cell: Racing(count_arms(cell), 0.01, cell.bandit.sigma, max_pulls=pull_cap(cell)),
    "Halving, T = 5K": lambda cell: SequentialHalving(
        count_arms(cell), max(5, math.ceil(math.log2(count_arms(cell)))) * count_arms(cell)
    ),
    "Halving, T = 250K": lambda cell: SequentialHalving(count_arms(cell), 250 * count_arms(cell)),
}


WORK = 1e7  # pulls times arms per cell, for a policy that draws every pull
GROUP_BARS: dict[str, dict[str, float]] = {
    "paper": {"Breakeven": 0.34, "BreakevenRacing": 0.42},
    "drug trial": {"Breakeven": 0.52},
    "random": {"Breakeven": 0.60, "BreakevenRacing": 0.68},
}
OURS = ("Breakeven", "Breakeven, sigma known", "BreakevenRacing")


def compare(cells: Iterable[Cell], work: float, group: str) -> dict[str, list[Ratio]]:
    """Return the ratios of all policies in all cells."""
    ratios: dict[str, list[Ratio]] = {name: [] for name in POLICIES if name != "DBCARE"}
    cell_list = list(cells)
    began = time.monotonic()
    streams = itertools.count(zlib.crc32(group.encode()))

    def measure_policy(name: str, cell: Cell, effort: float) -> Measurement:
        return measure(POLICIES[name](cell), cell, effort, next(streams))

    for number, cell in enumerate(cell_list):
        base = measure_policy("DBCARE", cell, work)
        for name, policy_ratios in ratios.items():
            ratio = divide(cell, measure_policy(name, cell, work), base)
            if name in OURS and ratio.value > 1.0 - 3.0 * ratio.error:
                more_work = 10.0 * work
                ratio = divide(cell, measure_policy(name, cell, more_work), measure_policy("DBCARE", cell, more_work))
            policy_ratios.append(ratio)
        if (number + 1) % 20 == 0:
            print(f"  {group}: {number + 1} of {len(cell_list)} cells, {time.monotonic() - began:.0f} s", flush=True)
    return ratios


def over_sprt(cost: float = 1e-4) -> dict[str, dict[float, float]]:
    """Return the risk over the best known-gap SPRT's by policy and loss: two Gaussian arms, gaps of 0.05 to 2."""
    gaps = np.geomspace(0.05, 2.0, 20).tolist()
    curves = {}
    for loss in Loss:
        risk = Risk(loss, cost)
        short = "MI" if loss is Loss.MISIDENTIFICATION else "SR"
        best = [float(evaluate_grid(best_sprt(risk, gap), [gap]).risk(risk)[0]) for gap in gaps]
        racing = evaluate_grid(BreakevenRacing(risk, 2), gaps).risk(risk)
        dbcare = evaluate_grid(DBCARE(risk, 2, bound=2.0), gaps).risk(risk)
        makers: dict[str, Callable[[Risk], Policy]] = {
            "Breakeven": lambda risk: Breakeven(risk, 2, 1.0),
            "Breakeven, sigma known": lambda risk: Breakeven(risk, 2, 1.0, math.inf),
        }
        rows = {"BreakevenRacing": racing, "DBCARE": dbcare} | {
            name: [evaluate(make(risk), Bandit.two_arm(gap), runs=40_000, seed=5).risk for gap in gaps]
            for name, make in makers.items()
        }
        for name, risks in rows.items():
            curves[f"{name}, {short}"] = dict(zip(gaps, (np.asarray(risks) / best).tolist(), strict=True))
    return curves


def nanoseconds_per_arm(make: Callable[[Risk, int], Policy], arms: int = 32) -> float:
    """Measure the CPU time of a step per arm, in the paper's 1-sparse setting with 32 arms; the largest of four."""
    times = []
    for loss in Loss:
        for gap in (0.2, 1.0):
            policy, bandit = make(Risk(loss, 1e-4), arms), Bandit.one_sparse(arms, gap)
            evaluate(policy, bandit, runs=2, threads=1)
            began = time.process_time()
            evaluation = evaluate(policy, bandit, runs=400, threads=1)
            times.append((time.process_time() - began) / evaluation.pulls_simulated / arms * 1e9)
    return max(times)


def summarize(bars: Bars, group: str, ratios: dict[str, list[Ratio]]) -> None:
    """Report every policy's ratio to DBCARE, and print Breakeven's worst cells."""
    for name, policy_ratios in ratios.items():
        report_ratios(bars, f"{group}: {name}", policy_ratios, GROUP_BARS[group].get(name))
        share = float(np.mean([ratio.value > 1.05 for ratio in policy_ratios]))
        bars.report(f"{group}: {name}, share above 1.05", share)
    for ratio in sorted(ratios["Breakeven"], key=lambda ratio: -ratio.value)[:5]:
        cell = f"{ratio.cell.name}, {ratio.cell.risk.loss}, N* = {ratio.cell.epochs:.2g}"
        print(f"    {ratio.value:.3f} +- {ratio.error:.3f}  {cell}")


# Okabe and Ito's colors; our policies are violet, as in the reproduction.
LOOKS = {
    "Breakeven": ("#5E2CA5", "-", 2.2),
    "BreakevenRacing": ("#5E2CA5", "--", 1.6),
    "DBCARE": ("#0072B2", "-", 2.2),
    "Halving, T = 5K": ("#E69F00", "-.", 1.6),
    "Halving, T = 250K": ("#D55E00", "-.", 1.6),
    "racing, 0.1": ("#56B4E9", ":", 2.0),
    "racing, 0.01": ("#009E73", ":", 2.0),
    "Breakeven, sigma / 2": ("#000000", "--", 1.6),
    "Breakeven, sigma / 2, trusted": ("#D55E00", "-", 1.6),
    "Breakeven, sigma learned": ("#009E73", ":", 2.0),
}
CELLS = ("paper", "drug trial", "random")


def draw_shares(axes: Any, results: dict[str, Any], names: list[str], title: str) -> None:
    """Draw, for each policy, the share of cells whose ratio to DBCARE is at most x."""
    for name in names:
        values = np.sort([row[2] for group in CELLS for row in results["ratios"][group][name]])
        color, dashes, width = LOOKS[name]
        axes.step(
            values, np.arange(1, len(values) + 1) / len(values), label=name, color=color, ls=dashes, lw=width,
            where="post",
        )  # fmt: skip
    axes.axvline(1.0, color=LOOKS["DBCARE"][0], lw=1.0)
    axes.set_xscale("log")
    axes.set_xlim(0.08, 20.0)
    axes.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("risk / DBCARE's risk")
    axes.set_ylabel("share of all cells")
    axes.legend(fontsize=8, frameon=False)
    axes.grid(alpha=0.25)


def draw(results: dict[str, Any], path: Path) -> Path:
    """Draw three panels: against DBCARE, with a doubtful sigma, and against the known-gap SPRT."""
    figure = Figure(figsize=(12.5, 4.0), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    rivals = ["Breakeven", "BreakevenRacing", "Halving, T = 5K", "Halving, T = 250K", "racing, 0.1", "racing, 0.01"]
    draw_shares(left, results, rivals, "All policies")
    draw_shares(
        middle,
        results,
        ["Breakeven", "Breakeven, sigma learned", "Breakeven, sigma / 2", "Breakeven, sigma / 2, trusted"],
        "Breakeven with sigma right, learned, halved",
    )
    for name in ("DBCARE", "BreakevenRacing", "Breakeven"):
        for loss, alpha in (("MI", 1.0), ("SR", 0.5)):
            curve = results["over SPRT"][f"{name}, {loss}"]
            color, dashes, width = LOOKS[name]
            right.plot(
                [float(gap) for gap in curve], list(curve.values()), label=f"{name}, {loss}", color=color, ls=dashes,
                lw=width, alpha=alpha,
            )  # fmt: skip
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    right.set_xticks([0.05, 0.2, 1, 2], ["0.05", "0.2", "1", "2"])
    right.minorticks_off()
    right.set_title("Two arms, c = 1e-4", fontsize=10)
    right.set_xlabel("gap")
    right.set_ylabel("risk / risk of the known-gap SPRT")
    right.set_ylim(0.9, 30.0)
    right.legend(fontsize=8, frameon=False, loc="upper center", ncols=2)
    right.grid(alpha=0.25)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


def main() -> None:
    bars = Bars(__doc__)
    work, instances, step = bars.size((WORK, 400, 1), (WORK / 50.0, 20, 10))
    warnings.simplefilter("ignore", GuessingIsBestWarning)  # some random instances are that expensive
    began = time.monotonic()
    sprt_curves = over_sprt()
    for name, curve in sprt_curves.items():
        value = math.exp(float(np.mean(np.log(list(curve.values())))))
        bar = None if name.startswith("DBCARE") else 1.4 if name.endswith("MI") else 1.25
        bars.report(f"two arms, over the known-gap SPRT: {name}", value, bar)
    for label, make, bar in (
        ("sigma known", lambda risk, arms: Breakeven(risk, arms, 1.0, math.inf), 20.0),
        ("sigma stated", lambda risk, arms: Breakeven(risk, arms, 1.0), 50.0),
        ("sigma learned", Breakeven, 50.0),
    ):
        bars.report(f"nanoseconds per step and arm at K = 32, {label}", nanoseconds_per_arm(make), bar)
    of_paper = list(paper_cells())
    cells = {
        "paper": [cell for cell in of_paper if not cell.name.startswith("drug")][::step],
        "drug trial": [cell for cell in of_paper if cell.name.startswith("drug")][::step],
        "random": random_cells(instances, seed=20251),
    }
    ratios = {group: compare(group_cells, work, group) for group, group_cells in cells.items()}
    for group, group_ratios in ratios.items():
        summarize(bars, group, group_ratios)
    for name, bar in GROUP_BARS["paper"].items():
        whole = geometric_mean([*ratios["paper"][name], *ratios["drug trial"][name]])
        bars.report(f"paper with the drug trial: {name}, geometric mean", whole.risk, bar)
    published = [*ratios["paper"]["Breakeven"], *ratios["drug trial"]["Breakeven"]]
    largest = max(ratio.value - 2.0 * ratio.error for ratio in published)
    bars.report("paper with the drug trial: Breakeven, largest ratio less 2 standard errors", largest, 1.0)
    share = float(np.mean([ratio.value > 1.05 for ratio in ratios["random"]["Breakeven"]]))
    bars.report("random: Breakeven, share of cells above 1.05", share, 0.01)
    affordable = [ratio for ratio in ratios["random"]["Breakeven"] if ratio.cell.epochs >= 1.0]
    bars.report(
        "random: Breakeven, largest ratio less 2 s.e. where N*(K) >= 1",
        max(ratio.value - 2.0 * ratio.error for ratio in affordable),
        1.1,
    )
    gaussian = {
        name: [ratio for group in ratios.values() for ratio in group[name] if is_gaussian(ratio.cell)]
        for name in ratios["paper"]
    }
    for name, bar in (
        ("Breakeven", None),
        ("Breakeven, sigma / 2", 1.4),
        ("Breakeven, 2 sigma", 1.35),
        ("Breakeven, sigma learned", None),
        ("Breakeven, sigma / 2, trusted", None),
    ):
        pairs = zip(gaussian[name], gaussian["Breakeven, sigma known"], strict=True)
        wrong = [divide(one.cell, one.measured, known.measured) for one, known in pairs]
        report_ratios(bars, f"Gaussian cells: {name}, over right and known", wrong, bar)
    bars.report("minutes", (time.monotonic() - began) / 60.0)
    rows = {
        group: {
            name: [(ratio.cell.name, str(ratio.cell.risk.loss), ratio.value, ratio.error) for ratio in policy_ratios]
            for name, policy_ratios in group_ratios.items()
        }
        for group, group_ratios in ratios.items()
    }
    path = bars.save(ratios=rows, **{"over SPRT": sprt_curves})
    print(draw(json.loads(path.read_text()), bars.folder / "breakeven.png"))
