"""Measure how good the policies are: their risk over DBCARE's, on the paper's settings and on random instances.

`make bench`, or `python benchmarks/policies.py [--out DIR] [--instances N] [--work W]`. Reports the geometric mean, the
largest value and the share above 1.05 of the ratio, with standard errors; Breakeven with sigma correct, understated by
a factor of 2, and unknown; two arms against the known-gap SPRT; and the time of a step. A pilot sets the number of runs
per cell: for a policy that draws every pull, as many as W pulls times arms allow, for others four times as many; this
is the same on every machine. If one of our policies is not below DBCARE by three standard errors, both are measured
again with other random numbers and ten times the work, which replaces the first result; every cell and policy has its
own random numbers.
"""

import argparse
import itertools
import json
import math
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from instances import Cell, paper_cells, random_cells
from policies_figure import draw

from dbcare import (
    DBCARE,
    Bandit,
    Breakeven,
    BreakevenRacing,
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

PILOT_RUNS, MIN_RUNS, MAX_RUNS = 40, 300, 20_000


@dataclass(frozen=True)
class Measurement:
    """The risk of a policy on a cell, with its standard error."""

    risk: float
    error: float


def pull_cap(cell: Cell) -> int:
    """Return the paper's cap on fixed-confidence policies, 10/c pulls."""
    return round(10.0 / cell.risk.single_cost)


def count_arms(cell: Cell) -> int:
    return len(cell.bandit.arms)


POLICIES: dict[str, Callable[[Cell], Policy]] = {
    "DBCARE": lambda cell: DBCARE(cell.risk, count_arms(cell), cell.bandit.sigma, bound=cell.bound),
    "Breakeven": lambda cell: Breakeven(cell.risk, count_arms(cell), cell.bandit.sigma, bound=cell.bound),
    "Breakeven, no guard": lambda cell: Breakeven(
        cell.risk, count_arms(cell), cell.bandit.sigma, sigma_guard=False, bound=cell.bound
    ),
    "Breakeven, sigma / 2": lambda cell: Breakeven(
        cell.risk, count_arms(cell), cell.bandit.sigma / 2.0, bound=cell.bound
    ),
    "Breakeven, sigma / 2, no guard": lambda cell: Breakeven(
        cell.risk, count_arms(cell), cell.bandit.sigma / 2.0, sigma_guard=False, bound=cell.bound
    ),
    "Breakeven, sigma unknown": lambda cell: Breakeven(cell.risk, count_arms(cell), None, bound=cell.bound),
    "BreakevenRacing": lambda cell: BreakevenRacing(cell.risk, count_arms(cell), cell.bandit.sigma),
    "racing, 0.1": lambda cell: Racing(count_arms(cell), 0.1, cell.bandit.sigma, max_pulls=pull_cap(cell)),
    "racing, 0.01": lambda cell: Racing(count_arms(cell), 0.01, cell.bandit.sigma, max_pulls=pull_cap(cell)),
    "Halving, T = 5K": lambda cell: SequentialHalving(
        count_arms(cell), max(5, math.ceil(math.log2(count_arms(cell)))) * count_arms(cell)
    ),
    "Halving, T = 250K": lambda cell: SequentialHalving(count_arms(cell), 250 * count_arms(cell)),
}


def measure(policy: Policy, cell: Cell, work: float, stream: int) -> Measurement:
    """Measure a policy with as many runs as `work` allows, judged by a pilot; `stream` seeds the random numbers."""
    pilot = evaluate(policy, cell.bandit, cell.risk, runs=PILOT_RUNS, seed=2 * stream)
    if pilot.runs == 0:
        return Measurement(pilot.risk, 0.0)
    allowed = work * (1.0 if pilot.engine == "direct" else 4.0) / (pilot.pulls.mean * policy.arms + 1.0)
    runs = int(min(MAX_RUNS, max(MIN_RUNS, allowed)))
    evaluation = evaluate(policy, cell.bandit, cell.risk, runs=runs, seed=2 * stream + 1)
    return Measurement(evaluation.risk, evaluation.standard_error)


@dataclass(frozen=True)
class Ratio:
    """A policy's risk divided by DBCARE's in a cell."""

    cell: Cell
    value: float
    error: float


def divide(cell: Cell, policy: Measurement, dbcare: Measurement) -> Ratio:
    value = policy.risk / dbcare.risk
    return Ratio(cell, value, value * math.hypot(policy.error / policy.risk, dbcare.error / dbcare.risk))


OURS = ("Breakeven", "Breakeven, no guard", "BreakevenRacing")


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


def geometric_mean(ratios: Iterable[Ratio]) -> Measurement:
    """Return the geometric mean, and its standard error due to the limited number of runs."""
    logs = np.array([(math.log(ratio.value), ratio.error / ratio.value) for ratio in ratios])
    mean = math.exp(float(logs[:, 0].mean()))
    return Measurement(mean, mean * math.sqrt(float(np.square(logs[:, 1]).sum())) / len(logs))


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
        adaptive = [
            evaluate(Breakeven(risk, 2, sigma_guard=guard), Bandit.two_arm(gap), runs=40_000, seed=5).risk
            for guard in (True, False)
            for gap in gaps
        ]
        rows = {
            "BreakevenRacing": racing,
            "DBCARE": dbcare,
            "Breakeven": adaptive[: len(gaps)],
            "Breakeven, no guard": adaptive[len(gaps) :],
        }
        for name, risks in rows.items():
            curves[f"{name}, {short}"] = dict(zip(gaps, (np.asarray(risks) / best).tolist(), strict=True))
    return curves


def nanoseconds_per_arm(guard: bool, arms: int = 32) -> float:
    """Measure the CPU time of a step of Breakeven per arm, in the paper's 1-sparse setting with 32 arms."""
    times = []
    for loss in Loss:
        for gap in (0.2, 1.0):
            policy, bandit = Breakeven(Risk(loss, 1e-4), arms, sigma_guard=guard), Bandit.one_sparse(arms, gap)
            evaluate(policy, bandit, runs=2, threads=1)
            began = time.process_time()
            evaluation = evaluate(policy, bandit, runs=400, threads=1)
            times.append((time.process_time() - began) / evaluation.pulls_simulated / arms * 1e9)
    return max(times)


class Report:
    """Figures and their bars, printed as they are measured."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, float | None]] = {}

    def add(self, name: str, value: float, bar: float | None = None) -> None:
        self.rows[name] = {"value": value, "bar": bar}
        verdict = "" if bar is None else f"   <= {bar:<5g} {'met' if value <= bar else 'MISSED'}"
        print(f"{name:<72} {value:>8.3f}{verdict}", flush=True)


def summarize(report: Report, group: str, ratios: dict[str, list[Ratio]], bars: dict[str, float]) -> None:
    """Report every policy's ratio to DBCARE, and print Breakeven's worst cells."""
    for name, policy_ratios in ratios.items():
        mean = geometric_mean(policy_ratios)
        report.add(f"{group}: {name}, geometric mean (s.e. {mean.error:.3f})", mean.risk, bars.get(name))
        worst = max(policy_ratios, key=lambda ratio: ratio.value)
        report.add(f"{group}: {name}, largest (s.e. {worst.error:.3f})", worst.value)
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
    for guard, bar in ((False, 20.0), (True, 40.0)):
        label = "with" if guard else "without"
        report.add(f"nanoseconds per step and arm at K = 32, {label} guard", nanoseconds_per_arm(guard), bar)
    cells = {
        "paper": [cell for cell in paper_cells() if not cell.name.startswith("drug")],
        "drug trial": [cell for cell in paper_cells() if cell.name.startswith("drug")],
        "random": random_cells(options.instances, seed=20251),
    }
    bars: dict[str, dict[str, float]] = {
        "paper": {"Breakeven": 0.34, "BreakevenRacing": 0.42},
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
    all_ratios = {name: [ratio for group in ratios.values() for ratio in group[name]] for name in ratios["paper"]}
    base = geometric_mean(all_ratios["Breakeven, no guard"]).risk
    guarded = geometric_mean(all_ratios["Breakeven"]).risk
    report.add("sigma guard with correct sigma, over no guard", guarded / base, 1.06)
    for name, bar in (
        ("Breakeven, sigma / 2", 1.15),
        ("Breakeven, sigma / 2, no guard", None),
        ("Breakeven, sigma unknown", None),
    ):
        report.add(f"{name}, over correct sigma and no guard", geometric_mean(all_ratios[name]).risk / base, bar)
    report.add("minutes", (time.monotonic() - began) / 60.0, 10.0)
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
