"""Measure how good the policies are: their risk over DBCARE's, on the paper's settings and on random instances.

`make bench`, or `python benchmarks/policies.py [--out DIR] [--instances N] [--work W]`. Reports the geometric mean,
the largest value and the share above 1.05 of the ratio, with standard errors; Breakeven with sigma right, off by a
factor of 2, known and learned; unequal spreads and revenue (`spreads.py`); two arms against the
known-gap SPRT; and the time of a step. A pilot sets the number of runs per cell: for a policy that draws every pull,
as many as W pulls times arms allow, for others four times as many; this is the same on every machine. If one of our
policies is not below DBCARE by three standard errors, both are measured again with other random numbers and ten times
the work, which replaces the first result; every cell and policy has its own random numbers.
"""

import argparse
import itertools
import json
import math
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from instances import Cell, paper_cells, random_cells
from measurements import Measurement, Ratio, Report, count_arms, divide, geometric_mean, measure
from policies_figure import draw
from spreads import measure_spreads

from dbcare import (
    DBCARE,
    Bandit,
    Breakeven,
    BreakevenRacing,
    Gaussian,
    Loss,
    Policy,
    Racing,
    Risk,
    SequentialHalving,
    best_sprt,
    evaluate,
    evaluate_grid,
)
from dbcare.errors import GuessingIsBestWarning


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


def summarize(report: Report, group: str, ratios: dict[str, list[Ratio]], bars: dict[str, float]) -> None:
    """Report every policy's ratio to DBCARE, and print Breakeven's worst cells."""
    for name, policy_ratios in ratios.items():
        report.add_ratios(f"{group}: {name}", policy_ratios, bars.get(name))
        share = float(np.mean([ratio.value > 1.05 for ratio in policy_ratios]))
        report.add(f"{group}: {name}, share above 1.05", share)
    for ratio in sorted(ratios["Breakeven"], key=lambda ratio: -ratio.value)[:5]:
        cell = f"{ratio.cell.name}, {ratio.cell.risk.loss}, N* = {ratio.cell.epochs:.2g}"
        print(f"    {ratio.value:.3f} +- {ratio.error:.3f}  {cell}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    parser.add_argument("--instances", type=int, default=400)
    parser.add_argument("--work", type=float, default=1e7)
    options = parser.parse_args()
    warnings.simplefilter("ignore", GuessingIsBestWarning)  # some random instances are that expensive
    report = Report()
    began = time.monotonic()
    sprt_curves = over_sprt()
    for name, curve in sprt_curves.items():
        value = math.exp(float(np.mean(np.log(list(curve.values())))))
        bar = None if name.startswith("DBCARE") else 1.4 if name.endswith("MI") else 1.25
        report.add(f"two arms, over the known-gap SPRT: {name}", value, bar)
    for label, make, bar in (
        ("sigma known", lambda risk, arms: Breakeven(risk, arms, 1.0, math.inf), 20.0),
        ("sigma stated", lambda risk, arms: Breakeven(risk, arms, 1.0), 50.0),
        ("sigma learned", Breakeven, 50.0),
    ):
        report.add(f"nanoseconds per step and arm at K = 32, {label}", nanoseconds_per_arm(make), bar)
    cells = {
        "paper": [cell for cell in paper_cells() if not cell.name.startswith("drug")],
        "drug trial": [cell for cell in paper_cells() if cell.name.startswith("drug")],
        "random": random_cells(options.instances, seed=20251),
    }
    bars: dict[str, dict[str, float]] = {
        "paper": {"Breakeven": 0.34, "BreakevenRacing": 0.42},
        "drug trial": {"Breakeven": 0.52},
        "random": {"Breakeven": 0.60, "BreakevenRacing": 0.68},
    }
    ratios = {group: compare(group_cells, options.work, group) for group, group_cells in cells.items()}
    for group, group_ratios in ratios.items():
        summarize(report, group, group_ratios, bars.get(group, {}))
    for name, bar in bars["paper"].items():
        whole = geometric_mean([*ratios["paper"][name], *ratios["drug trial"][name]])
        report.add(f"paper with the drug trial: {name}, geometric mean", whole.risk, bar)
    published = [*ratios["paper"]["Breakeven"], *ratios["drug trial"]["Breakeven"]]
    largest = max(ratio.value - 2.0 * ratio.error for ratio in published)
    report.add("paper with the drug trial: Breakeven, largest ratio less 2 standard errors", largest, 1.0)
    share = float(np.mean([ratio.value > 1.05 for ratio in ratios["random"]["Breakeven"]]))
    report.add("random: Breakeven, share of cells above 1.05", share, 0.01)
    affordable = [ratio for ratio in ratios["random"]["Breakeven"] if ratio.cell.epochs >= 1.0]
    report.add(
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
        report.add_ratios(f"Gaussian cells: {name}, over right and known", wrong, bar)
    measure_spreads(report, options.work / 4.0)
    report.add("minutes", (time.monotonic() - began) / 60.0)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "policies.json"
    rows = {
        group: {
            name: [(ratio.cell.name, str(ratio.cell.risk.loss), ratio.value, ratio.error) for ratio in policy_ratios]
            for name, policy_ratios in group_ratios.items()
        }
        for group, group_ratios in ratios.items()
    }
    path.write_text(json.dumps({"figures": report.rows, "ratios": rows, "over SPRT": sprt_curves}, indent=1))
    print(path)
    print(draw(json.loads(path.read_text()), options.out / "breakeven.png"))


if __name__ == "__main__":
    main()
