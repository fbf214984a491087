"""The whole paper: time from a cold cache, warm, and with nothing to do; memory; and against NumPy.

`make bench`, or `python benchmarks/reproduce.py [--out DIR]`. NumPy runs a sample of the same points: 100 runs of each
(1% of the K-arm experiments' runs, 0.1% of the two-arm ones'), all gaps of a policy in one batch; for the drug trial
1,000 runs at every 8th cost, and 10,000 runs of racing up to 10,000 pulls, batches large enough for NumPy. Its time is
scaled by the pulls that all runs of the paper make. What it can do without a loop over epochs (Sequential Halving, the
oracle) is left out: it takes next to no time either way.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bars import Bars
from numpy_batch import drawing, eliminate

from dbcare import Racing
from dbcare.lab import definition, paper
from dbcare.lab.points import Point, plan
from dbcare.lab.reproduce import RESULTS
from dbcare.lab.result_store import ResultStore
from dbcare.policies.elimination import EliminationPolicy
from dbcare.rewards import Gaussian

RUNS = 100
COMMAND = Path(sys.executable).with_name("dbcare")


def timed(folder: Path, cache: Path) -> float:
    """Wall seconds of `dbcare reproduce`."""
    began = time.perf_counter()
    environment = os.environ | {"DBCARE_CACHE": str(cache)}
    subprocess.run([COMMAND, "reproduce", "--out", folder], check=True, env=environment, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def batches() -> Iterator[tuple[EliminationPolicy, list[Point], float, int]]:
    """A policy, the points of one batch, how many points of the paper it stands for, and runs of each."""
    for name in paper.NAMES:
        experiment = definition.load(paper.file(name))
        seen = set()
        for curve in experiment.curves.values():
            policy = curve[0].policy
            if not isinstance(policy, EliminationPolicy) or curve[0].key in seen:
                continue
            seen.add(curve[0].key)
            if experiment.axis == "gap":
                yield policy, curve, len(curve), RUNS
            elif isinstance(policy, Racing):  # one pass to the largest cap serves every cost
                longest = max(curve, key=lambda point: point.policy.max_pulls)
                yield replace(policy, max_pulls=10_000), [longest], 1.0, 10_000
            else:
                for point in curve[::8]:
                    assert isinstance(point.policy, EliminationPolicy)
                    yield point.policy, [point], 8.0, 10 * RUNS


def numpy_cpu_seconds(pulls_of: dict[str, float]) -> float:
    """CPU-seconds that the batch implementation would need for all runs of the paper."""
    total = 0.0
    for policy, points, stands_for, runs in batches():
        draw = drawing([point.bandit for point in points], runs, seed=1)
        began = time.process_time()
        _, pulls = eliminate(policy.tables, policy.arms, runs * len(points), draw)
        rate = float(pulls.sum()) / (time.process_time() - began)
        wanted = sum(pulls_of[point.key] * point.runs for point in points) * stands_for / len(points)
        total += wanted / rate
        family = "Gaussian" if isinstance(points[0].bandit.arms[0], Gaussian) else "finite"
        print(f"  NumPy, {type(policy).__name__}, K={policy.arms}, {family}: {rate:.3g} pulls a second", flush=True)
    return total


def mean_pulls(folder: Path) -> dict[str, float]:
    """Mean pulls of every point, by its key."""
    records = ResultStore(folder / RESULTS).records
    return {
        point.key: result.pulls
        for name in paper.NAMES
        for work in plan(definition.load(paper.file(name)).points)
        for point, result in zip(work.points, records[work.key].results, strict=True)
    }


def main() -> None:
    bars = Bars(__doc__)
    with tempfile.TemporaryDirectory() as name:
        cold, warm, cache = (Path(name) / each for each in ("cold", "warm", "cache"))
        bars.report("the whole paper and our policies from a cold cache, seconds", timed(cold, cache), 180.0)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        bars.report("the whole paper and our policies, warm, seconds", timed(warm, cache), 120.0)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        bars.report("nothing to do, seconds", timed(warm, cache), 3.0)
        bars.report("memory, GB", after.ru_maxrss / 1024**2, 2.0)
        theirs = numpy_cpu_seconds(mean_pulls(warm))
        bars.report(f"NumPy's CPU-seconds ({theirs:,.0f}) / ours ({ours:,.0f})", theirs / ours, 50.0, at_least=True)
    bars.save()


if __name__ == "__main__":
    main()
