"""Results of an experiment, and the files that keep them.

Each line is written with a single call and identified by its key, which covers the code and all settings. A killed
sweep therefore loses only the passes in progress, and a changed experiment or engine never reuses an old result. A
checksum in each line shows whether it was damaged or edited; such a pass is computed again.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba
import numpy

import dbcare
from dbcare.base.files import replace_non_finite
from dbcare.engines import exact
from dbcare.engines.evaluate import choose_risk
from dbcare.engines.grid import evaluate_grid
from dbcare.engines.pooling.estimates import combine
from dbcare.engines.pooling.evaluate import MAX_SHARE, Pooled, Target, evaluate_pooled
from dbcare.engines.result import Evaluation
from dbcare.engines.runs import Runs, start_runs
from dbcare.engines.simulate.runs import PlainRuns
from dbcare.lab.experiments.passes import Pass, Point, digest_code
from dbcare.lab.experiments.shared_runs import evaluate_costs, share_caps
from dbcare.policies.breakeven.policy import Breakeven
from dbcare.problem.risk import Loss, Risk

PILOT_SHARE = 1.0 / 32.0  # of the plain runs asked for: enough to tell whether a control variate is worth more


@dataclass(frozen=True)
class Result:
    """Both risks of a point with their standard errors (0 if exact), and the engine that computed them."""

    misidentification: tuple[float, float]
    simple_regret: tuple[float, float]
    error: float
    regret: float
    pulls: float
    capped: float
    engine: str
    plain_runs: tuple[float | None, float | None]  # that have the same standard errors of the risks; None if exact

    def risk(self, loss: Loss) -> tuple[float, float]:
        """Return the risk under `loss` and its standard error."""
        return self.misidentification if loss is Loss.MISIDENTIFICATION else self.simple_regret

    @classmethod
    def from_evaluations(cls, for_error: Evaluation, for_regret: Evaluation) -> Result:
        """Return the part that is stored of evaluations of the same runs, one for each loss."""
        both = for_error, for_regret
        risks = [(evaluation.risk, evaluation.standard_error) for evaluation in both]
        worth = [evaluation.plain_runs if evaluation.runs else None for evaluation in both]
        return cls(
            misidentification=risks[0],
            simple_regret=risks[1],
            error=for_error.error,
            regret=for_regret.simple_regret,
            pulls=for_error.pulls.mean,
            capped=for_error.capped,
            engine=for_error.engine,
            plain_runs=(worth[0], worth[1]),
        )


@dataclass(frozen=True)
class Record:
    """A finished pass as it is stored: one result per point, and what it took to compute them."""

    key: str
    results: tuple[Result, ...]
    engine: str
    policy: str
    seed: int
    runs: int
    costs: tuple[float, ...]
    bandits: tuple[str, ...]
    cpu_seconds: float
    pulls_simulated: int
    versions: dict[str, str]
    code: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, texts and lists, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Record:
        """Return the record that `to_dict` described."""
        results = tuple(Result(**{**result, **_make_pairs(result)}) for result in plain["results"])
        lists = {name: tuple(plain[name]) for name in ("costs", "bandits")}
        return cls(**{**plain, **lists, "results": results})


def _make_pairs(plain: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(plain[name]) for name in (*map(str, Loss), "plain_runs")}


def compute(work: Pass) -> Record:
    """Compute a pass on one thread."""
    start = time.thread_time()
    first = work.points[0]
    if first.gap_family is not None:
        results, pulls = _evaluate_exactly(work.points), 0
    elif work.shares_costs:
        results, pulls = _pool_costs(work.points)
    elif first.pool is not None:
        results, pulls = _pool(work.points)
    else:
        results, pulls = _simulate(work.points)
    return Record(
        key=work.key,
        results=tuple(results),
        engine=results[0].engine,
        policy=repr(first.policy),
        seed=first.seed,
        runs=first.runs,
        costs=tuple(point.cost for point in work.points),
        bandits=tuple(dict.fromkeys(repr(point.bandit.means) for point in work.points)),
        cpu_seconds=time.thread_time() - start,
        pulls_simulated=pulls,
        versions={"dbcare": dbcare.__version__, "numpy": numpy.__version__, "numba": numba.__version__},
        code=digest_code(),
    )


def _evaluate_exactly(points: Sequence[Point]) -> list[Result]:
    """Evaluate all gaps in one pass of the exact engine, which simulates no pulls."""
    first = points[0]
    assert first.gap_family is not None
    bandits = [point.bandit for point in points]
    law = evaluate_grid(first.policy, [bandit.spread for bandit in bandits], first.gap_family, bandits[0].sigma)
    error, regret = (law.risk(Risk(loss, first.cost)) for loss in Loss)
    columns = (error, regret, law.error, law.regret, law.mean_pulls, law.capped)
    return [
        Result((mi, 0.0), (sr, 0.0), wrong, lost, pulls, capped, "exact", (None, None))
        for mi, sr, wrong, lost, pulls, capped in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _pool(points: Sequence[Point]) -> tuple[list[Result], int]:
    """Pool the runs on all bandits of the points, as precise as `runs` plain runs; also return the number of pulls.

    Where a control variate is as precise, plain runs with it serve instead.
    """
    first = points[0]
    losses = tuple(Loss) if first.policy.risk is None else (first.policy.risk.loss,)
    for point in points:
        choose_risk(first.policy, point.bandit, Risk(losses[0], first.cost))
    found: dict[Point, Result] = {}
    pulls = 0
    if first.has_control:
        for point in points:
            result, made = _simulate_with_control(point)
            pulls += made
            if result is not None:
                found[point] = result
    others = [point for point in points if point not in found]
    if others:
        bandits = {repr(point.bandit): point.bandit for point in others}
        risks = [(loss, cost) for cost in dict.fromkeys(point.cost for point in others) for loss in losses]
        pooled = evaluate_pooled(first.policy, list(bandits.values()), risks, Target(runs=first.runs), first.seed, 1)
        pulls += pooled.source.pulls
        places = {name: place for place, name in enumerate(bandits)}
        found |= {point: _make_pooled_result(pooled, places[repr(point.bandit)], point.cost) for point in others}
    return [found[point] for point in points], pulls


def _simulate_with_control(point: Point) -> tuple[Result | None, int]:
    """Simulate some runs with a control variate; return the result if it is precise enough, and the pulls made."""
    risk = point.policy.risk
    assert risk is not None
    runs = math.ceil(MAX_SHARE * point.runs)
    source = PlainRuns.start(point.policy, point.bandit, risk, runs, point.seed, "auto", threads=1)
    pilot = max(math.ceil(PILOT_SHARE * point.runs), len(source.outcomes.pulls))
    source.extend(pilot)
    if source.moments.plain_runs(risk.loss, risk.single_cost) * runs >= point.runs * pilot:
        source.extend(runs)
    pulls = int(source.outcomes.pulls.sum())
    if source.moments.plain_runs(risk.loss, risk.single_cost) < point.runs:
        return None, pulls
    return Result.from_evaluations(*(source.build(each) for each in point.risks)), pulls


def _pool_costs(points: Sequence[Point]) -> tuple[list[Result], int]:
    """Let the runs of all costs on one bandit share their pulls; also return the number of these."""
    first = points[0]
    by_cost = sorted(points, key=lambda point: -point.cost)
    policies = []
    for point in by_cost:
        choose_risk(point.policy, point.bandit, point.policy.risk)
        assert isinstance(point.policy, Breakeven)
        policies.append(point.policy)
    pooled, pulls = evaluate_costs(policies, first.bandit, Target(runs=first.runs), first.seed)
    found = {point: _make_pooled_result(each, 0, point.cost) for point, each in zip(by_cost, pooled, strict=True)}
    return [found[point] for point in points], pulls


def _make_pooled_result(pooled: Pooled, place: int, cost: float) -> Result:
    estimates = pooled.estimates
    error, regret, pulls = estimates.means[place].tolist()
    combinations = [combine(loss, cost) for loss in Loss]
    risks = [(error + cost * pulls), (regret + cost * pulls)]
    errors = [math.sqrt(estimates.variances(combination)[place]) for combination in combinations]
    worth = [replace_non_finite(float(estimates.plain_runs(combination)[place])) for combination in combinations]
    capped = float(estimates.capped[place])
    pairs = list(zip(risks, errors, strict=True))
    return Result(pairs[0], pairs[1], error, regret, pulls, capped, "pooled", (worth[0], worth[1]))


def _simulate(points: Sequence[Point]) -> tuple[list[Result], int]:
    """Make one set of runs for all costs, as `evaluate` does, or for all caps; also return the number of pulls."""
    first = points[0]
    for point in points:
        choose_risk(point.policy, point.bandit, point.risks[0])
    policies = {point.policy.max_pulls: point.policy for point in points}
    sources: Sequence[Runs]
    if len(policies) > 1 and not all(exact.applies(policy, first.bandit) for policy in policies.values()):
        sources = share_caps(list(policies.values()), first.bandit, first.runs, first.seed, threads=1)
    else:
        sources = [
            start_runs(policy, first.bandit, first.risks[0], first.runs, first.seed, "auto", threads=1)
            for policy in policies.values()
        ]
        for source in sources:
            source.extend(first.runs)
    by_cap = dict(zip(policies, sources, strict=True))
    evaluations = [[by_cap[point.policy.max_pulls].build(risk) for risk in point.risks] for point in points]
    pulls = max(each.pulls_simulated for both in evaluations for each in both)
    return [Result.from_evaluations(*both) for both in evaluations], pulls


class ResultStore:
    """The finished passes of a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = path.read_bytes() if path.exists() else b""
        for line in stored.splitlines():
            self._load_line(line)
        if stored and not stored.endswith(b"\n"):
            self._append(b"\n")  # a crash cut the last line short; start the next one on its own line

    def _load_line(self, line: bytes) -> None:
        try:
            plain = json.loads(line)
            checksum = plain.pop("checksum")
            record = Record.from_dict(plain)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return  # cut short by a crash, or from another version: computed again
        if checksum == _compute_checksum(plain):  # else somebody has changed it
            self.records[record.key] = record

    def add(self, record: Record) -> None:
        """Store a finished pass."""
        plain = record.to_dict()
        line = json.dumps({**plain, "checksum": _compute_checksum(plain)}, allow_nan=False)
        self._append(line.encode() + b"\n")
        self.records[record.key] = record

    def _append(self, line: bytes) -> None:
        with self.path.open("ab", buffering=0) as file:
            file.write(line)


def _compute_checksum(plain: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
