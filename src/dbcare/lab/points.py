"""What a sweep computes: points, gathered into passes that share their work.

A *point* is one policy on one bandit at one cost; one result serves both losses. A *pass* answers several points at
once: all gaps of a two-arm policy by the exact engine, all costs of a policy whose runs do not depend on the cost, all
caps of a racing policy. It is the unit that is stored, and that a lost worker does again.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType
from typing import cast

import numba
import numpy as np

import dbcare
from dbcare.bandit import Bandit
from dbcare.engines import exact
from dbcare.engines.best_sprt import BestSPRT
from dbcare.engines.compile import digest
from dbcare.policies.policy import CustomPolicy, Policy
from dbcare.policies.racing import Racing, TwoArmConfidence
from dbcare.rewards import Bernoulli, Gaussian

# What the numbers of a result depend on: whatever `lab.results` imports, and nothing else. How policies are named,
# drawn and built from facts is left out: a point's key has the policy itself.
RESULT_PACKAGES = ("engines", "policies", "theory")
RESULT_FILES = ("bandit.py", "datasets.py", "rewards.py", "risk.py", "validation.py", "lab/points.py", "lab/results.py")
PRESENTATION_FILES = tuple(f"policies/{name}.py" for name in ("facts", "factory", "look", "registry", "wording"))


@dataclass(frozen=True, eq=False)
class Point:
    """`runs` runs of `policy` on `bandit`, each pull at `cost`; equal settings make equal points."""

    policy: Policy
    bandit: Bandit
    cost: float
    runs: int
    seed: int

    @cached_property
    def key(self) -> str:
        """Everything that the result depends on, as text."""
        return f"{fingerprint(self.policy)} | {self.bandit!r} | {self.cost!r} | {self.runs} | {self.seed}"

    @cached_property
    def gap_family(self) -> str | None:
        """The family of a two-arm instance that one exact pass answers together with its whole grid of gaps."""
        # The best SPRT is made for the exact engine; asking whether that applies would look for its threshold.
        applies = isinstance(self.policy, BestSPRT) or exact.applies(self.policy, self.bandit)
        if len(self.bandit.arms) != 2 or not applies:
            return None
        first, second = self.bandit.arms
        if isinstance(first, Gaussian) and isinstance(second, Gaussian) and first.sigma == second.sigma:
            return "gaussian"
        if isinstance(first, Bernoulli) and isinstance(second, Bernoulli) and sum(self.bandit.means) == 1.0:
            return "bernoulli"
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def fingerprint(policy: Policy) -> str:
    """A text that differs where two policies do; shipped policies are values, others are known by their code."""
    if type(policy).__module__.startswith("dbcare.") and not isinstance(policy, CustomPolicy):
        return repr(policy)
    rule = policy.rule
    kind = type(policy)
    # Without a description of its own, an object is described by its address, which is another in every process.
    known = f"{kind.__module__}.{kind.__qualname__}" if kind.__repr__ is object.__repr__ else repr(policy)
    code = [digest(cast(FunctionType, each)) for each in (rule.init, rule.ask, rule.tell, rule.recommend)]
    return f"{known} {code} {hashlib.sha256(pickle.dumps(policy.tables)).hexdigest()}"


@cache
def code_digest() -> str:
    """Return a fingerprint of all code that results depend on, so that an old result never passes for a new one."""
    fingerprint = hashlib.sha256(repr((dbcare.__version__, np.__version__, numba.__version__)).encode())
    for path in result_sources():
        fingerprint.update(path.read_bytes())
    return fingerprint.hexdigest()[:16]


def result_sources() -> list[Path]:
    """Return the source files whose code can change a number."""
    package = Path(dbcare.__file__).parent
    files = {package / name for name in RESULT_FILES}.union(
        *((package / name).rglob("*.py") for name in RESULT_PACKAGES)
    )
    return sorted(files - {package / name for name in PRESENTATION_FILES})


@dataclass(frozen=True)
class Pass:
    """Points answered together."""

    points: tuple[Point, ...]

    @cached_property
    def key(self) -> str:
        """The name of the pass in a store."""
        listed = "\n".join([code_digest(), *(point.key for point in self.points)])
        return hashlib.sha256(listed.encode()).hexdigest()[:24]


def plan(points: Iterable[Point]) -> list[Pass]:
    """The fewest passes that answer all points; the same points make the same passes, in the same order."""
    groups: dict[str, list[Point]] = {}
    for point in dict.fromkeys(points):
        groups.setdefault(_shared(point), []).append(point)
    return [Pass(tuple(group)) for group in groups.values()]


def _shared(point: Point) -> str:
    """Points with the same text can be answered by one pass."""
    if point.gap_family is not None:
        return f"{fingerprint(point.policy)} | {point.gap_family} | {point.bandit.sigma!r} | {point.cost!r}"
    policy = point.policy
    # With Gaussian rewards skipping ahead for each cap is cheaper than drawing every pull once for all.
    if isinstance(policy, Racing | TwoArmConfidence) and not isinstance(point.bandit.arms[0], Gaussian):
        policy = replace(policy, max_pulls=policy.arms)
    return f"{fingerprint(policy)} | {point.bandit!r} | {point.runs} | {point.seed}"
