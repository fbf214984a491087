"""Measure what drift that all arms share does to policies: a sine wave of half a standard deviation.

Eight Gaussian arms, one better by half a standard deviation, c = 1e-5, simple regret; the wave has a period of 200
pulls and a random phase. Runs are stepped one by one, since no engine draws rewards that change over time.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np

from dbcare import Breakeven, BreakevenRacing, Policy, Risk

ARMS, GAP, COST, PERIOD = 8, 0.5, 1e-5, 200


def measure(policy: Policy, amplitude: float, runs: int) -> tuple[float, float]:
    """Return the risk of a policy and its standard error."""
    totals = []
    for seed in range(runs):
        generator = np.random.default_rng([seed, int(100 * amplitude)])
        best, phase = generator.integers(ARMS), generator.uniform(0.0, 2.0 * math.pi)
        run = policy.start(seed=seed)
        while (arm := run.ask()) is not None:
            wave = amplitude * math.sin(2.0 * math.pi * run.pulls / PERIOD + phase)
            run.tell(GAP * (arm == best) + wave + generator.standard_normal())
        totals.append(GAP * (run.recommendation() != best) + COST * run.pulls)
    return float(np.mean(totals)), float(np.std(totals)) / math.sqrt(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    parser.add_argument("--runs", type=int, default=8_000)
    options = parser.parse_args()
    risk, rows, still = Risk.simple_regret(COST), {}, {}
    for policy in (Breakeven(risk, ARMS, 1.0), BreakevenRacing(risk, ARMS, 1.0)):
        name = type(policy).__name__
        still[name], drifting = measure(policy, 0.0, options.runs), measure(policy, 0.5, options.runs)
        rows[f"{name}, risk with drift over risk without"] = divide(drifting, still[name])
    rows["BreakevenRacing over Breakeven, without drift"] = divide(still["BreakevenRacing"], still["Breakeven"])
    for label, (ratio, error) in rows.items():
        print(f"{label:<60} {ratio:>6.2f} (s.e. {error:.2f})")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "drift.json").write_text(json.dumps(rows, indent=1))


def divide(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return the ratio of two risks and its standard error."""
    ratio = one[0] / other[0]
    return ratio, ratio * math.hypot(one[1] / one[0], other[1] / other[0])


if __name__ == "__main__":
    main()
