"""What a sweep computes: points, grouped into passes that share work.

A *point* is one policy on one bandit at one cost; its result covers both losses. A *pass* computes several points at
once: all gaps of a two-arm policy with the exact engine, all gaps of any other policy by pooled runs, all caps of a
racing policy, or all costs of a policy whose runs do not depend on the cost, or only in when they stop. Passes are the
unit of storage, and of work: if a worker is lost, another repeats its pass.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import numba
import numpy as np

import dbcare
from dbcare.engines import exact
from dbcare.engines.kernels.cache import digest
from dbcare.engines.pooling.model import find_family
from dbcare.lab.experiments.shared_runs import without_cost
from dbcare.policies.policy import Policy, ships
from dbcare.policies.rule import BlockRule
from dbcare.problem.bandits import Bandit, BlockBandit
from dbcare.problem.rewards import Bernoulli, Gaussian
from dbcare.problem.risk import Loss, Risk

# The code that the numbers of a result depend on: what `lab.experiments.results` imports, and nothing else. How
# policies are named, drawn and built is left out: a point's key contains the policy itself.
RESULT_PACKAGES = ("engines", "policies", "problem", "theory")
RESULT_FILES = (
    "base/checks.py",
    "lab/experiments/passes.py",
    "lab/experiments/results.py",
    "lab/experiments/shared_runs.py",
)
PRESENTATION_FILES = (
    "base/look.py",
    "policies/build.py",
    "policies/registry.py",
    "engines/result.py",
)


@dataclass(frozen=True, eq=False)
class Point:
    """`runs` runs of `policy` on `bandit` at `cost` per pull; points with equal settings are equal."""

    policy: Policy
    bandit: Bandit
    cost: float
    runs: int
    seed: int

    @cached_property
    def key(self) -> str:
        """A text with everything that the result depends on."""
        return f"{fingerprint(self.policy)} | {self.bandit!r} | {self.cost!r} | {self.runs} | {self.seed}"

    @cached_property
    def gap_family(self) -> str | None:
        """The reward family, if one exact pass can compute this two-arm instance along with all its other gaps."""
        if len(self.bandit.arms) != 2 or exact.find_obstacle(self.policy, self.bandit) is not None:
            return None
        # What knows the gap ends soon, and `exact.applies` would search for the best threshold of an SPRT.
        if not self.policy.knows_gap and not exact.applies(self.policy, self.bandit):
            return None
        first, second = self.bandit.arms
        if isinstance(first, Gaussian) and isinstance(second, Gaussian) and first.sigma == second.sigma:
            return "gaussian"
        if isinstance(first, Bernoulli) and isinstance(second, Bernoulli) and sum(self.bandit.means) == 1.0:
            return "bernoulli"
        return None

    @property
    def has_control(self) -> bool:
        """Whether runs have a control variate."""
        return self.policy.checkpoint > 0 and isinstance(self.bandit.arms[0], Gaussian)

    @property
    def shares_caps(self) -> bool:
        """Whether one set of runs serves several caps on pulls.

        For Gaussian rewards, skipping ahead once per cap is cheaper than drawing every pull once for all caps.
        """
        return self.policy.shares_caps and not isinstance(self.bandit, BlockBandit) and not self._is_gaussian

    @property
    def risks(self) -> list[Risk]:
        """The risk of each loss."""
        return [Risk(loss, self.cost) for loss in Loss]

    @property
    def _is_gaussian(self) -> bool:
        return isinstance(self.bandit.arms[0], Gaussian)

    @cached_property
    def pool(self) -> str | None:
        """A text that is the same for points whose runs can be pooled; None where runs of their own serve as well.

        Unless rewards are Gaussian, racing shares its runs between several caps instead.
        """
        if self.gap_family is not None or isinstance(self.bandit, BlockBandit):
            return None
        if self.shares_caps or not self.policy.pools:
            return None
        family = find_family([self.bandit])
        if family is None:
            return repr(self.bandit)
        ranks = np.unique(self.bandit.means, return_inverse=True)[1].tolist()
        return f"{family} {self.bandit.sigma if self._is_gaussian else ''} {ranks}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def fingerprint(policy: Policy) -> str:
    """Return a text that identifies a policy: the repr of shipped policies, the code of all others."""
    if ships(policy):
        return repr(policy)
    rule = policy.rule
    kind = type(policy)
    # A default repr contains the object's address, which differs between processes.
    described = "" if kind.__repr__ is object.__repr__ else repr(policy)
    name = f"{kind.__module__}.{kind.__qualname__} {described} {policy.state_size} {policy.max_pulls}"
    functions = [rule.init, rule.ask, rule.tell, rule.recommend, *([rule.block] if isinstance(rule, BlockRule) else [])]
    code = [digest(cast(FunctionType, function)) for function in functions]
    return f"{name} {code} {hashlib.sha256(pickle.dumps(policy.tables)).hexdigest()}"


@cache
def digest_code() -> str:
    """Return a digest of all code that results depend on, so that an outdated result is never reused."""
    code = hashlib.sha256(repr((dbcare.__version__, np.__version__, numba.__version__, version("scipy"))).encode())
    for path in list_result_sources():
        code.update(path.read_bytes())
    return code.hexdigest()[:16]


def list_result_sources() -> list[Path]:
    """List the source files whose code can change a result."""
    package = Path(dbcare.__file__).parent
    files = {package / name for name in RESULT_FILES}.union(
        *((package / name).rglob("*.py") for name in RESULT_PACKAGES)
    )
    return sorted(files - {package / name for name in PRESENTATION_FILES})


@dataclass(frozen=True)
class Pass:
    """Points that are computed together."""

    points: tuple[Point, ...]

    @cached_property
    def key(self) -> str:
        """The pass's key in a store."""
        text = "\n".join([digest_code(), *(point.key for point in self.points)])
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    @cached_property
    def shares_costs(self) -> bool:
        """Whether each point has its own policy, and their runs differ only in when they stop."""
        return len({fingerprint(point.policy) for point in self.points}) > 1 and self.points[0].pool is not None


def plan_passes(points: Iterable[Point]) -> list[Pass]:
    """Group points into as few passes as possible; the same points give the same passes, in the same order."""
    groups: dict[str, list[Point]] = {}
    for point in dict.fromkeys(points):
        groups.setdefault(_make_group_key(point), []).append(point)
    # Runs that differ only in when they stop share their pulls, unless they are pooled over several bandits.
    shared: dict[str, list[Point]] = {}
    for key, group in groups.items():
        shared.setdefault(_make_cost_key(group) or key, []).extend(group)
    return [Pass(tuple(group)) for group in shared.values()]


def _make_cost_key(group: Sequence[Point]) -> str | None:
    """Return a text that is the same for groups on one bandit whose runs differ only in when they stop."""
    first, *others = group
    policy = without_cost(first.policy)
    if policy is None or first.pool is None or others:
        return None
    return f"{policy!r} | {first.bandit!r} | {first.runs} | {first.seed}"


def _make_group_key(point: Point) -> str:
    """Return a text that is the same for points that one pass can compute."""
    if point.gap_family is not None:
        return f"{fingerprint(point.policy)} | {point.gap_family} | {point.bandit.sigma!r} | {point.cost!r}"
    if point.pool is not None:
        return f"{fingerprint(point.policy)} | {point.pool} | {point.runs} | {point.seed}"
    policy: Any = point.policy
    if point.shares_caps:
        policy = replace(policy, max_pulls=policy.arms)
    return f"{fingerprint(policy)} | {point.bandit!r} | {point.runs} | {point.seed}"
