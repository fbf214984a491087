"""Measure what drift that all arms share does to policies: a sine wave of half a standard deviation.

Eight Gaussian arms, one better by half a standard deviation, c = 1e-5, simple regret; the wave has a period of 200
pulls and a random phase.
"""

import argparse
import json
import math
from pathlib import Path

from dbcare import Breakeven, BreakevenRacing, Estimate, GaussianBlocks, Loss, Policy, Risk, evaluate

ARMS, GAP, COST, PERIOD = 8, 0.5, 1e-5, 200


def measure(policy: Policy, amplitude: float, runs: int) -> Estimate:
    """Return the risk of a policy, with its standard error."""
    bandit = GaussianBlocks.of([GAP] + [0.0] * (ARMS - 1), drift=amplitude, period=PERIOD)
    return evaluate(policy, bandit, runs=runs, seed=int(100 * amplitude)).risks[Loss.SIMPLE_REGRET]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    parser.add_argument("--runs", type=int, default=100_000)
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


def divide(one: Estimate, other: Estimate) -> tuple[float, float]:
    """Return the ratio of two risks and its standard error."""
    ratio = one.value / other.value
    return ratio, ratio * math.hypot(one.standard_error / one.value, other.standard_error / other.value)


if __name__ == "__main__":
    main()
