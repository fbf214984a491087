"""Every shipped policy passes the conformance suite, on Gaussian, 0/1, equal and widely separated rewards."""

import inspect
import math
import pickle
from collections.abc import Iterable
from importlib import import_module
from pkgutil import walk_packages
from typing import ClassVar

import pytest

from dbcare import policies
from dbcare.policies.breakeven.policy import Breakeven
from dbcare.policies.breakeven.racing import BreakevenRacing
from dbcare.policies.breakeven.rounds import BreakevenRounds
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.racing import RATES, Racing, TwoArmConfidence
from dbcare.policies.elimination.sprt import KnownGapSPRT
from dbcare.policies.literature.adaptive import Adaptive
from dbcare.policies.literature.chick_frazier import ChickFrazier, TwoArmChickFrazier
from dbcare.policies.literature.eb_tci import EBTCI
from dbcare.policies.literature.kg_star import KGStar
from dbcare.policies.literature.kl_lucb import KLLUCB
from dbcare.policies.literature.kn import KN
from dbcare.policies.literature.lil_ucb import LilUCB
from dbcare.policies.literature.lucb import LUCB
from dbcare.policies.literature.ocba import OCBA
from dbcare.policies.literature.track_and_stop import TrackAndStop
from dbcare.policies.literature.ugape import UGapE, UGapEBudget
from dbcare.policies.planned import Guess, Keep, KnownGapOracle, SequentialHalving, SuccessiveRejects, Uniform
from dbcare.policies.policy import CustomPolicy, Policy
from dbcare.policies.two_arm_likelihood import TwoArmLikelihood
from dbcare.problem.risk import Risk
from dbcare.testing import PolicySuite
from dbcare.testing.policies import Draw

ARMS = (2, 3, 8, 32)
SHIPPED: list[Policy] = [
    *(DBCARE(Risk.misidentification(0.1 / arms), arms, sigma=0.5) for arms in ARMS),
    *(DBCARE(Risk.simple_regret(0.1 / arms), arms, sigma=0.5, confidence="corrected") for arms in ARMS),
    DBCARE(Risk.misidentification(0.004), 2, sigma=0.1, confidence="theorem"),
    *(BreakevenRacing(Risk.misidentification(0.1 / arms), arms, sigma=0.5) for arms in ARMS),
    *(BreakevenRacing(Risk.simple_regret(0.1 / arms), arms, sigma=0.5) for arms in ARMS),
    *(Breakeven(Risk.misidentification(max(0.2 / arms, 0.0125)), arms, sigma=0.5) for arms in ARMS),
    *(Breakeven(Risk.simple_regret(0.1 / arms), arms, sigma=0.5, sigma_pulls=math.inf) for arms in ARMS),
    Breakeven(Risk.simple_regret((0.01, 0.02, 0.05)), 3, sigma=0.05),
    Breakeven(Risk.simple_regret(0.02), 3, sigma=None, bound=1.0),
    Breakeven(Risk.misidentification(0.03), 8, sigma=None),
    Breakeven(Risk.misidentification((0.4, 0.6)), 2),
    *(BreakevenRounds(Risk.misidentification(max(0.1 / arms, 0.0125)), arms, first_blocks=2) for arms in ARMS),
    *(BreakevenRounds(Risk.simple_regret(max(0.1 / arms, 0.0125)), arms, pool=7, first_blocks=3) for arms in ARMS),
    BreakevenRounds(Risk.simple_regret((0.01, 0.02, 0.05)), 3, bound=1.0),
    BreakevenRounds(Risk.simple_regret(0.01), 4, pool=12, only_these_blocks=True, not_before=20),
    BreakevenRounds(Risk.misidentification(0.02), 3, pool=20),
    *(Racing(arms, 0.1, sigma=0.5, max_pulls=3 * arms + 1) for arms in ARMS),
    *(TwoArmConfidence(0.1, sigma=0.5, rate=rate, max_pulls=41) for rate in RATES),
    *(SequentialHalving(arms, 5 * arms, ranking) for arms in ARMS for ranking in ("round", "all")),
    *(SuccessiveRejects(arms, 3 * arms) for arms in ARMS),
    SuccessiveRejects(8, 9),
    *(Uniform(arms, 2) for arms in ARMS),
    *(Guess(arms) for arms in ARMS),
    KnownGapOracle(Risk.misidentification(0.01), gap=0.5),
    KnownGapOracle(Risk.simple_regret(0.01), gap=0.1),
    KnownGapSPRT(Risk.misidentification(0.01), gap=1.0, threshold=0.5, sigma=0.5),
    KnownGapSPRT(Risk.simple_regret(0.01), gap=0.1, threshold=math.inf),
]
REGRET = Risk.simple_regret(0.01)
SHIPPED += [
    *(LUCB(arms, 0.2, sigma=0.5, max_pulls=2 * arms + 9) for arms in (2, 5)),
    *(LilUCB(arms, 0.2, sigma=0.5, rate=rate, max_pulls=40) for arms in (2, 5) for rate in ("proven", "heuristic")),
    *(UGapE(arms, 0.2, sigma=0.5, max_pulls=30) for arms in (2, 5)),
    *(UGapEBudget(arms, 30, sigma=0.5) for arms in (2, 5)),
    *(TrackAndStop(arms, 0.2, sigma=0.5, rate="heuristic", max_pulls=30) for arms in (2, 5)),
    *(EBTCI(arms, 0.2, sigma=0.5, max_pulls=30) for arms in (2, 5)),
    *(OCBA(arms, 25, first_pulls=2) for arms in (2, 5)),
    *(KN(arms, 0.5, 0.2, first_pulls=3, max_pulls=31) for arms in (2, 5)),
    *(ChickFrazier(REGRET, arms, sigma=0.5, max_pulls=60) for arms in (2, 5)),
    *(KGStar(REGRET, arms, sigma=0.5, max_pulls=60) for arms in (2, 5)),
    TwoArmChickFrazier(REGRET, sigma=0.1),
    Adaptive(3, "breakeven", "breakeven", risk=REGRET, sigma=0.5),
    Adaptive(3, "ocba", "breakeven", risk=REGRET, sigma=0.5, max_pulls=40),
    Adaptive(3, "kg-star", "lucb", risk=REGRET, sigma=0.5, max_pulls=40),
    Adaptive(3, "breakeven", "likelihood-ratio", risk=REGRET, sigma=0.5, max_pulls=40),
]
# These take rewards from 0 to 1 only.
IN_UNIT_RANGE: list[Policy] = [
    *(KLLUCB(arms, 0.2, rate=rate, max_pulls=30) for arms in (2, 5) for rate in ("proven", "heuristic")),
    *(TrackAndStop(arms, 0.2, family="bernoulli", max_pulls=30) for arms in (2, 5)),
    EBTCI(4, 0.2, family="bernoulli", rate="heuristic", max_pulls=30),
    TwoArmLikelihood(0.2, "heuristic", max_pulls=31),
    Adaptive(3, "eb-tci", "kl-lucb", family="bernoulli", max_pulls=40),
]


# Enough to see a policy that breaks ties between two arms by nine to one; `make soak` sees finer differences.
FEW_TIES = 50


class TestShippedPolicies(PolicySuite):
    tie_runs = FEW_TIES

    def policies(self) -> Iterable[Policy]:
        return SHIPPED


class TestPoliciesInTheUnitRange(PolicySuite):
    tie_runs = FEW_TIES
    rewards: ClassVar[dict[str, Draw]] = {
        "binary": PolicySuite.rewards["binary"],
        "equal": PolicySuite.rewards["equal"],
        "uniform": lambda generator, arm: generator.random() ** (1 + arm),
        "at the ends": lambda generator, arm: float(arm % 2),
    }

    def policies(self) -> Iterable[Policy]:
        return IN_UNIT_RANGE


@pytest.mark.soak
class TestShippedPoliciesWithManyTies(TestShippedPolicies):
    tie_runs = 2_000


def test_no_shipped_policy_is_missing() -> None:
    """The list has every concrete class of dbcare.policies but that for users' own rules, and Keep: it has no ties."""
    modules = [import_module(each.name) for each in walk_packages(policies.__path__, f"{policies.__name__}.")]
    classes = {kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass)}
    concrete = {kind for kind in classes if issubclass(kind, Policy) and not inspect.isabstract(kind)}
    # Base classes have neither an `__init__` nor a part of their own.
    shipped = {kind for kind in concrete if vars(kind).keys() & {"__init__", "sampling_part"}}
    assert shipped == {type(policy) for policy in [*SHIPPED, *IN_UNIT_RANGE]} | {CustomPolicy, Keep}


@pytest.mark.parametrize("policy", [*SHIPPED, *IN_UNIT_RANGE], ids=str)
def test_a_policy_is_a_value(policy: Policy) -> None:
    """Its repr is the call that creates it, and a pickled copy is equal."""
    assert repr(policy).startswith(f"{type(policy).__name__}(")
    copied = pickle.loads(pickle.dumps(policy))
    assert copied is not policy
    assert copied == policy
    assert hash(copied) == hash(policy)
