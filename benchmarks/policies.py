"""How good the policies are: risk over DBCARE's, on the paper's settings and on random instances.

`make bench`, or `python benchmarks/policies.py [--out DIR] [--instances N] [--work W]`. Geometric mean, largest value
and share above 1.05 of the ratio, with standard errors; Breakeven with sigma right, understated by 2, and unknown; two
arms against the known-gap SPRT; the cost of a step. A policy that draws every pull gets as many runs in a cell as W
pulls times arms allow, others four times as many, by a pilot: the same on every machine. Where one of ours is not
below DBCARE by three standard errors, both are measured again with other random numbers and ten times the work, and
that replaces the first look; every cell and policy has random numbers of its own.
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
from instances import Cell, at_random, of_the_paper
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

PILOT, FEWEST_RUNS, MOST_RUNS = 40, 300, 20_000


@dataclass(frozen=True)
class Measured:
    """Risk of a policy on a cell, with its standard error."""

    risk: float
    error: float


def capped(cell: Cell) -> int:
    """The paper's cap on fixed confidence, 10/c pulls."""
    return round(10.0 / cell.risk.single_cost)


def arms_of(cell: Cell) -> int:
    return len(cell.bandit.arms)


POLICIES: dict[str, Callable[[Cell], Policy]] = {
    "DBCARE": lambda cell: DBCARE(cell.risk, arms_of(cell), cell.bandit.sigma, bound=cell.bound),
    "Breakeven": lambda cell: Breakeven(cell.risk, arms_of(cell), cell.bandit.sigma, bound=cell.bound),
    "Breakeven, no guard": lambda cell: Breakeven(
        cell.risk, arms_of(cell), cell.bandit.sigma, sigma_guard=False, bound=cell.bound
    ),
    "Breakeven, sigma / 2": lambda cell: Breakeven(cell.risk, arms_of(cell), cell.bandit.sigma / 2.0, bound=cell.bound),
    "Breakeven, sigma / 2, no guard": lambda cell: Breakeven(
        cell.risk, arms_of(cell), cell.bandit.sigma / 2.0, sigma_guard=False, bound=cell.bound
    ),
    "Breakeven, sigma unknown": lambda cell: Breakeven(cell.risk, arms_of(cell), None, bound=cell.bound),
    "BreakevenRacing": lambda cell: BreakevenRacing(cell.risk, arms_of(cell), cell.bandit.sigma),
    "racing, 0.1": lambda cell: Racing(arms_of(cell), 0.1, cell.bandit.sigma, max_pulls=capped(cell)),
    "racing, 0.01": lambda cell: Racing(arms_of(cell), 0.01, cell.bandit.sigma, max_pulls=capped(cell)),
    "Halving, T = 5K": lambda cell: SequentialHalving(
        arms_of(cell), max(5, math.ceil(math.log2(arms_of(cell)))) * arms_of(cell)
    ),
    "Halving, T = 250K": lambda cell: SequentialHalving(arms_of(cell), 250 * arms_of(cell)),
}


def measured(policy: Policy, cell: Cell, work: float, stream: int) -> Measured:
    """As many runs as `work` allows, judged by a pilot; `stream` is the seed of its random numbers."""
    pilot = evaluate(policy, cell.bandit, cell.risk, runs=PILOT, seed=2 * stream)
    if pilot.runs == 0:
        return Measured(pilot.risk, 0.0)
    allowed = work * (1.0 if pilot.engine == "direct" else 4.0) / (pilot.pulls.mean * policy.arms + 1.0)
    runs = int(min(MOST_RUNS, max(FEWEST_RUNS, allowed)))
    found = evaluate(policy, cell.bandit, cell.risk, runs=runs, seed=2 * stream + 1)
    return Measured(found.risk, found.standard_error)


@dataclass(frozen=True)
class Ratio:
    """A policy's risk over DBCARE's in a cell."""

    cell: Cell
    value: float
    error: float


def ratio(cell: Cell, ours: Measured, theirs: Measured) -> Ratio:
    value = ours.risk / theirs.risk
    return Ratio(cell, value, value * math.hypot(ours.error / ours.risk, theirs.error / theirs.risk))


OURS = ("Breakeven", "Breakeven, no guard", "BreakevenRacing")


def compare(cells: Iterable[Cell], work: float, what: str) -> dict[str, list[Ratio]]:
    """The ratios of all policies in all cells."""
    found: dict[str, list[Ratio]] = {name: [] for name in POLICIES if name != "DBCARE"}
    listed = list(cells)
    began = time.monotonic()
    streams = itertools.count(zlib.crc32(what.encode()))

    def look(name: str, cell: Cell, effort: float) -> Measured:
        return measured(POLICIES[name](cell), cell, effort, next(streams))

    for number, cell in enumerate(listed):
        base = look("DBCARE", cell, work)
        for name, ratios in found.items():
            seen = ratio(cell, look(name, cell, work), base)
            if name in OURS and seen.value > 1.0 - 3.0 * seen.error:
                seen = ratio(cell, look(name, cell, 10.0 * work), look("DBCARE", cell, 10.0 * work))
            ratios.append(seen)
        if (number + 1) % 20 == 0:
            print(f"  {what}: {number + 1} of {len(listed)} cells, {time.monotonic() - began:.0f} s", flush=True)
    return found


def geometric_mean(ratios: Iterable[Ratio]) -> Measured:
    """The geometric mean, and the standard error that the runs leave."""
    logs = np.array([(math.log(each.value), each.error / each.value) for each in ratios])
    mean = math.exp(float(logs[:, 0].mean()))
    return Measured(mean, mean * math.sqrt(float(np.square(logs[:, 1]).sum())) / len(logs))


def over_sprt(cost: float = 1e-4) -> dict[str, dict[float, float]]:
    """The risk over the best known-gap SPRT's at gaps of 0.05 to 2, by policy and loss: two Gaussian arms."""
    gaps = np.geomspace(0.05, 2.0, 20).tolist()
    found = {}
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
            found[f"{name}, {short}"] = dict(zip(gaps, (np.asarray(risks) / best).tolist(), strict=True))
    return found


def nanoseconds_per_arm(guard: bool, arms: int = 32) -> float:
    """Processor time of a step of Breakeven for each arm, in the paper's 1-sparse setting with 32 arms."""
    times = []
    for loss in Loss:
        for gap in (0.2, 1.0):
            policy, bandit = Breakeven(Risk(loss, 1e-4), arms, sigma_guard=guard), Bandit.one_sparse(arms, gap)
            evaluate(policy, bandit, runs=2, threads=1)
            began = time.process_time()
            found = evaluate(policy, bandit, runs=400, threads=1)
            times.append((time.process_time() - began) / found.pulls_simulated / arms * 1e9)
    return max(times)


class Report:
    """Figures with their bars, printed as they come."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, float | None]] = {}

    def line(self, name: str, value: float, bar: float | None = None) -> None:
        self.rows[name] = {"value": value, "bar": bar}
        verdict = "" if bar is None else f"   <= {bar:<5g} {'met' if value <= bar else 'MISSED'}"
        print(f"{name:<72} {value:>8.3f}{verdict}", flush=True)


def summarise(report: Report, what: str, found: dict[str, list[Ratio]], bars: dict[str, float]) -> None:
    """Every policy's ratio to DBCARE, and Breakeven's worst cells."""
    for name, ratios in found.items():
        mean = geometric_mean(ratios)
        report.line(f"{what}: {name}, geometric mean (s.e. {mean.error:.3f})", mean.risk, bars.get(name))
        worst = max(ratios, key=lambda each: each.value)
        report.line(f"{what}: {name}, largest (s.e. {worst.error:.3f})", worst.value)
        report.line(f"{what}: {name}, share above 1.05", float(np.mean([each.value > 1.05 for each in ratios])))
    for each in sorted(found["Breakeven"], key=lambda each: -each.value)[:5]:
        cell = f"{each.cell.name}, {each.cell.risk.loss}, N* = {each.cell.epochs:.2g}"
        print(f"    {each.value:.3f} +- {each.error:.3f}  {cell}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    parser.add_argument("--instances", type=int, default=400)
    parser.add_argument("--work", type=float, default=1e7)
    given = parser.parse_args()
    warnings.simplefilter("ignore", GuessingIsBestWarning)  # some random instances are that dear
    report = Report()
    began = time.monotonic()
    nearness = over_sprt()
    for name, curve in nearness.items():
        value = math.exp(float(np.mean(np.log(list(curve.values())))))
        bar = None if name.startswith("DBCARE") else 1.4 if name.endswith("MI") else 1.25
        report.line(f"two arms, over the known-gap SPRT: {name}", value, bar)
    for guard, bar in ((False, 20.0), (True, 40.0)):
        label = "with" if guard else "without"
        report.line(f"nanoseconds a step and arm at K = 32, {label} guard", nanoseconds_per_arm(guard), bar)
    cells = {
        "paper": [cell for cell in of_the_paper() if not cell.name.startswith("drug")],
        "drug trial": [cell for cell in of_the_paper() if cell.name.startswith("drug")],
        "random": at_random(given.instances, seed=20251),
    }
    bars: dict[str, dict[str, float]] = {
        "paper": {"Breakeven": 0.34, "BreakevenRacing": 0.42},
        "random": {"Breakeven": 0.60, "BreakevenRacing": 0.68},
    }
    ratios = {what: compare(each, given.work, what) for what, each in cells.items()}
    for what, found in ratios.items():
        summarise(report, what, found, bars.get(what, {}))
    for name, bar in bars["paper"].items():
        whole = geometric_mean([*ratios["paper"][name], *ratios["drug trial"][name]])
        report.line(f"paper with the drug trial: {name}, geometric mean", whole.risk, bar)
    published = [*ratios["paper"]["Breakeven"], *ratios["drug trial"]["Breakeven"]]
    surely = max(each.value - 2.0 * each.error for each in published)
    report.line("paper with the drug trial: Breakeven, largest ratio less 2 standard errors", surely, 1.0)
    share = float(np.mean([each.value > 1.05 for each in ratios["random"]["Breakeven"]]))
    report.line("random: Breakeven, share of cells above 1.05", share, 0.01)
    affordable = [each for each in ratios["random"]["Breakeven"] if each.cell.epochs >= 1.0]
    report.line(
        "random: Breakeven, largest ratio less 2 s.e. where N*(K) >= 1",
        max(each.value - 2.0 * each.error for each in affordable),
        1.1,
    )
    together = {name: [each for found in ratios.values() for each in found[name]] for name in ratios["paper"]}
    right = geometric_mean(together["Breakeven, no guard"]).risk
    report.line("sigma guard where sigma is right, over none", geometric_mean(together["Breakeven"]).risk / right, 1.06)
    for name, bar in (
        ("Breakeven, sigma / 2", 1.15),
        ("Breakeven, sigma / 2, no guard", None),
        ("Breakeven, sigma unknown", None),
    ):
        report.line(f"{name}, over sigma right and no guard", geometric_mean(together[name]).risk / right, bar)
    report.line("minutes", (time.monotonic() - began) / 60.0, 10.0)
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "policies.json"
    plain = {
        what: {
            name: [(each.cell.name, str(each.cell.risk.loss), each.value, each.error) for each in rows]
            for name, rows in found.items()
        }
        for what, found in ratios.items()
    }
    path.write_text(json.dumps({"figures": report.rows, "ratios": plain, "over SPRT": nearness}, indent=1))
    print(path)
    print(draw(json.loads(path.read_text()), given.out / "breakeven.png"))


if __name__ == "__main__":
    main()
