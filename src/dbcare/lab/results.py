"""The result of a point: what figures, tables and claims are made of."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numba
import numpy

import dbcare
from dbcare.engines.evaluate_grid import evaluate_grid
from dbcare.engines.evaluate_together import evaluate_together
from dbcare.engines.evaluation import Evaluation
from dbcare.lab.points import Pass, Point, code_digest, fingerprint
from dbcare.policies.policy import Policy
from dbcare.risk import Loss, Risk


@dataclass(frozen=True)
class Result:
    """Both risks of a point with their standard errors (0 where the engine is exact), and where they come from."""

    misidentification: tuple[float, float]
    simple_regret: tuple[float, float]
    error: float
    regret: float
    pulls: float
    capped: float
    engine: str

    def risk(self, loss: Loss) -> tuple[float, float]:
        """The risk under `loss` and its standard error."""
        return self.misidentification if loss is Loss.MISIDENTIFICATION else self.simple_regret

    @classmethod
    def of(cls, evaluation: Evaluation) -> Result:
        """What is kept of an evaluation."""
        error, regret = (evaluation.risks[loss] for loss in Loss)
        return cls(
            misidentification=(error.value, error.standard_error),
            simple_regret=(regret.value, regret.standard_error),
            error=evaluation.error,
            regret=evaluation.simple_regret,
            pulls=evaluation.pulls.mean,
            capped=evaluation.capped,
            engine=evaluation.engine,
        )


@dataclass(frozen=True)
class Record:
    """A finished pass, as it is stored: one result for each of its points, and what it took."""

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
        """Plain numbers, texts and lists, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Record:
        """The record that `to_dict` described."""
        results = tuple(Result(**{**each, **_pairs(each)}) for each in plain["results"])
        lists = {name: tuple(plain[name]) for name in ("costs", "bandits")}
        return cls(**{**plain, **lists, "results": results})


def _pairs(plain: dict[str, Any]) -> dict[str, Any]:
    return {str(loss): tuple(plain[str(loss)]) for loss in Loss}


def compute(work: Pass) -> Record:
    """Do a pass, on one thread."""
    began = time.thread_time()
    results, simulated = (_simulated if work.points[0].gap_family is None else _exact)(work.points)
    first = work.points[0]
    return Record(
        key=work.key,
        results=tuple(results),
        engine=results[0].engine,
        policy=repr(first.policy),
        seed=first.seed,
        runs=first.runs,
        costs=tuple(point.cost for point in work.points),
        bandits=tuple(dict.fromkeys(repr(point.bandit.means) for point in work.points)),
        cpu_seconds=time.thread_time() - began,
        pulls_simulated=simulated,
        versions={"dbcare": dbcare.__version__, "numpy": numpy.__version__, "numba": numba.__version__},
        code=code_digest(),
    )


def _exact(points: Sequence[Point]) -> tuple[list[Result], int]:
    """One pass of the exact engine over all gaps."""
    first = points[0]
    assert first.gap_family is not None
    bandits = [point.bandit for point in points]
    law = evaluate_grid(first.policy, [bandit.spread for bandit in bandits], first.gap_family, bandits[0].sigma)
    error, regret = (law.risk(Risk(loss, first.cost)) for loss in Loss)
    columns = (error, regret, law.error, law.regret, law.mean_pulls, law.capped)
    return [
        Result((mi, 0.0), (sr, 0.0), wrong, lost, pulls, capped, "exact")
        for mi, sr, wrong, lost, pulls, capped in zip(*(column.tolist() for column in columns), strict=True)
    ], 0


def _simulated(points: Sequence[Point]) -> tuple[list[Result], int]:
    """One set of runs for all caps and costs."""
    first = points[0]
    # Two objects may be the same policy without being equal, if it is a user's own.
    same: dict[str, Policy] = {}
    found = evaluate_together(
        [same.setdefault(fingerprint(point.policy), point.policy) for point in points],
        first.bandit,
        [Risk(Loss.MISIDENTIFICATION, point.cost) for point in points],
        first.runs,
        first.seed,
        threads=1,
    )
    return [Result.of(each) for each in found], sum(each.pulls_simulated for each in found)
