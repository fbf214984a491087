"""Measure the reproduction of the whole paper: cold, warm and with nothing to do; its memory; and against NumPy.

Progress is judged by the remaining times that it states: by what factor the worst of them is off, from the tenth second
until five seconds before the end.

NumPy runs a sample of the same points: 100 runs of each (1% of the K-arm experiments' runs, 0.1% of the two-arm ones'),
with all gaps of a policy in one batch; for the drug trial, 1,000 runs at every 8th cost, and 10,000 runs of racing up
to 10,000 pulls, so that batches are large enough for NumPy. Its time is scaled up to the pulls that all runs of the
paper make. Policies that need no loop over epochs (Sequential Halving) or know the gap are left out: they take next to
no time either way.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.parts.bars import Bars
from benchmarks.parts.numpy_batch import eliminate, make_draw
from dbcare.lab import paper
from dbcare.lab.experiments import definition
from dbcare.lab.experiments.passes import Point, plan_passes
from dbcare.lab.experiments.results import ResultStore
from dbcare.lab.reproduce import RESULTS
from dbcare.policies import Racing
from dbcare.policies.elimination.elimination import EliminationPolicy
from dbcare.problem.rewards import Gaussian

RUNS = 100
COMMAND = Path(sys.executable).with_name("dbcare")
STATED_SECONDS = re.compile(r"about (\d+) s remaining")


def time_reproduction(folder: Path, cache: Path, *options: str) -> tuple[float, float]:
    """Return the wall-clock seconds of `dbcare reproduce`, and the factor by which progress was off at worst."""
    began = time.perf_counter()
    environment = os.environ | {"DBCARE_CACHE": str(cache)}
    command = [COMMAND, "reproduce", "--out", folder, *options]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        statements = [
            (time.perf_counter() - began, float(stated[1]))
            for line in process.stderr
            if (stated := STATED_SECONDS.search(line))
        ]
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    seconds = time.perf_counter() - began
    factors = [
        max(stated / (seconds - passed), (seconds - passed) / max(stated, 1.0))
        for passed, stated in statements
        if 10.0 <= passed <= seconds - 5.0
    ]
    return seconds, max(factors, default=1.0)


def batches() -> Iterator[tuple[EliminationPolicy, list[Point], float, int]]:
    """Yield a policy, the points of a batch, how many points of the paper the batch represents, and runs per point."""
    for name in paper.NAMES:
        experiment = definition.load(paper.find_definition(name))
        seen_keys = set()
        for curve in experiment.curves.values():
            policy = curve[0].policy
            if not isinstance(policy, EliminationPolicy) or policy.knows_gap or curve[0].key in seen_keys:
                continue
            seen_keys.add(curve[0].key)
            if experiment.axis == "gap":
                yield policy, curve, len(curve), RUNS
            elif isinstance(policy, Racing):  # one pass to the largest cap serves every cost
                longest = max(curve, key=lambda point: point.policy.max_pulls)
                yield replace(policy, max_pulls=10_000), [longest], 1.0, 10_000
            else:
                for point in curve[::8]:
                    assert isinstance(point.policy, EliminationPolicy)
                    yield point.policy, [point], 8.0, 10 * RUNS


def numpy_cpu_seconds(mean_pulls: dict[str, float]) -> float:
    """Estimate the CPU-seconds that the batch implementation would need for all runs of the paper."""
    total = 0.0
    for policy, points, represented, runs in batches():
        draw = make_draw([point.bandit for point in points], runs, seed=1)
        began = time.process_time()
        _, pulls = eliminate(policy.tables, policy.arms, runs * len(points), draw)
        rate = float(pulls.sum()) / (time.process_time() - began)
        paper_pulls = sum(mean_pulls[point.key] * point.runs for point in points) * represented / len(points)
        total += paper_pulls / rate
        family = "Gaussian" if isinstance(points[0].bandit.arms[0], Gaussian) else "finite"
        print(f"  NumPy, {type(policy).__name__}, K={policy.arms}, {family}: {rate:.3g} pulls per second", flush=True)
    return total


def read_mean_pulls(folder: Path) -> dict[str, float]:
    """Return the mean pulls of every point, by its key."""
    records = ResultStore(folder / RESULTS).records
    return {
        point.key: result.pulls
        for name in paper.NAMES
        for work in plan_passes(definition.load(paper.find_definition(name)).points)
        for point, result in zip(work.points, records[work.key].results, strict=True)
    }


def main() -> None:
    bars = Bars(__doc__)
    options = bars.size((), ("--quick",))
    with tempfile.TemporaryDirectory() as name:
        cold, warm, cache = (Path(name) / folder for folder in ("cold", "warm", "cache"))
        for state, folder, bar in (("from a cold cache", cold, 120.0), ("warm", warm, 60.0)):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds, factor = time_reproduction(folder, cache, *options)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            bars.report(f"the whole paper and our policies, {state}, seconds", seconds, bar)
            bars.report(f"progress, {state}, off by a factor of at most", factor, 2.0)
        our_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        bars.report("nothing to do, seconds", time_reproduction(warm, cache, *options)[0], 3.0)
        bars.report("memory, GB", after.ru_maxrss / 1024**2, 2.0)
        if bars.quick:
            bars.save()
            return
        numpy_seconds = numpy_cpu_seconds(read_mean_pulls(warm))
        label = f"NumPy's CPU-seconds ({numpy_seconds:,.0f}) / ours ({our_seconds:,.0f})"
        bars.report(label, numpy_seconds / our_seconds, 50.0, at_least=True)
    bars.save()
