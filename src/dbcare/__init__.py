"""dbcare: find the best of K options when every observation costs money, and stop at break-even.

Public names load when they are first used, so that `import dbcare` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbcare.base.look import Look as Look
    from dbcare.base.look import PolicyKind as PolicyKind
    from dbcare.base.numbers import Money as Money
    from dbcare.client.client import Client as Client
    from dbcare.client.client import connect as connect
    from dbcare.comparing.compare import compare as compare
    from dbcare.comparing.comparison import Comparison as Comparison
    from dbcare.comparing.report import ComparedAnswer as ComparedAnswer
    from dbcare.comparing.report import ComparedArm as ComparedArm
    from dbcare.comparing.trials import CallFailure as CallFailure
    from dbcare.engines.evaluate import evaluate as evaluate
    from dbcare.engines.grid import GridEvaluation as GridEvaluation
    from dbcare.engines.grid import evaluate_grid as evaluate_grid
    from dbcare.engines.pooling.estimates import Estimates as Estimates
    from dbcare.engines.result import ControlVariate as ControlVariate
    from dbcare.engines.result import Evaluation as Evaluation
    from dbcare.engines.result import Pulls as Pulls
    from dbcare.engines.sprt import best_sprt as best_sprt
    from dbcare.engines.statistics import Estimate as Estimate
    from dbcare.errors import DbcareError as DbcareError
    from dbcare.planner.outlook import Outlook as Outlook
    from dbcare.planner.plan import Plan as Plan
    from dbcare.planner.plan import plan as plan
    from dbcare.planner.setting import PlanSetting as PlanSetting
    from dbcare.policies.breakeven.policy import Breakeven as Breakeven
    from dbcare.policies.breakeven.racing import BreakevenRacing as BreakevenRacing
    from dbcare.policies.breakeven.rounds import BreakevenRounds as BreakevenRounds
    from dbcare.policies.elimination.dbcare import DBCARE as DBCARE
    from dbcare.policies.elimination.racing import Racing as Racing
    from dbcare.policies.elimination.racing import TwoArmConfidence as TwoArmConfidence
    from dbcare.policies.elimination.sprt import KnownGapSPRT as KnownGapSPRT
    from dbcare.policies.literature.adaptive import Adaptive as Adaptive
    from dbcare.policies.literature.chick_frazier import ChickFrazier as ChickFrazier
    from dbcare.policies.literature.chick_frazier import TwoArmChickFrazier as TwoArmChickFrazier
    from dbcare.policies.literature.eb_tci import EBTCI as EBTCI
    from dbcare.policies.literature.kg_star import KGStar as KGStar
    from dbcare.policies.literature.kl_lucb import KLLUCB as KLLUCB
    from dbcare.policies.literature.kn import KN as KN
    from dbcare.policies.literature.lil_ucb import LilUCB as LilUCB
    from dbcare.policies.literature.lucb import LUCB as LUCB
    from dbcare.policies.literature.ocba import OCBA as OCBA
    from dbcare.policies.literature.track_and_stop import TrackAndStop as TrackAndStop
    from dbcare.policies.literature.ugape import UGapE as UGapE
    from dbcare.policies.literature.ugape import UGapEBudget as UGapEBudget
    from dbcare.policies.planned import Guess as Guess
    from dbcare.policies.planned import KnownGapOracle as KnownGapOracle
    from dbcare.policies.planned import SequentialHalving as SequentialHalving
    from dbcare.policies.planned import SuccessiveRejects as SuccessiveRejects
    from dbcare.policies.planned import Uniform as Uniform
    from dbcare.policies.policy import CustomPolicy as CustomPolicy
    from dbcare.policies.policy import Policy as Policy
    from dbcare.policies.registry import PolicyEntry as PolicyEntry
    from dbcare.policies.registry import build_policy as build_policy
    from dbcare.policies.registry import register_policy as register_policy
    from dbcare.policies.registry import unregister_policy as unregister_policy
    from dbcare.policies.rule import BlockRule as BlockRule
    from dbcare.policies.rule import Rule as Rule
    from dbcare.policies.run import Run as Run
    from dbcare.policies.run import RunEvent as RunEvent
    from dbcare.policies.run import Wording as Wording
    from dbcare.policies.two_arm_likelihood import TwoArmLikelihood as TwoArmLikelihood
    from dbcare.problem.bandits import Bandit as Bandit
    from dbcare.problem.bandits import GaussianBlocks as GaussianBlocks
    from dbcare.problem.bandits import ScoreTable as ScoreTable
    from dbcare.problem.rewards import Bernoulli as Bernoulli
    from dbcare.problem.rewards import Categorical as Categorical
    from dbcare.problem.rewards import Empirical as Empirical
    from dbcare.problem.rewards import Gaussian as Gaussian
    from dbcare.problem.risk import Loss as Loss
    from dbcare.problem.risk import Risk as Risk
    from dbcare.replay.block_logs import BlockLog as BlockLog
    from dbcare.replay.block_logs import read_block_log as read_block_log
    from dbcare.replay.block_logs import read_harness_samples as read_harness_samples
    from dbcare.replay.logs import read_log as read_log
    from dbcare.replay.replay import LoggedArm as LoggedArm
    from dbcare.replay.replay import OrderSummary as OrderSummary
    from dbcare.replay.replay import Replay as Replay
    from dbcare.replay.replay import ReplayedOrder as ReplayedOrder
    from dbcare.replay.replay import replay_blocks as replay_blocks
    from dbcare.replay.replay import replay_log as replay_log
    from dbcare.studies.api import create_study as create_study
    from dbcare.studies.api import delete_study as delete_study
    from dbcare.studies.api import find_studies as find_studies
    from dbcare.studies.api import list_studies as list_studies
    from dbcare.studies.api import load_study as load_study
    from dbcare.studies.assignment import Assignment as Assignment
    from dbcare.studies.record.events import Event as Event
    from dbcare.studies.record.events import EventKind as EventKind
    from dbcare.studies.results.status import Activity as Activity
    from dbcare.studies.results.status import ArmStatus as ArmStatus
    from dbcare.studies.results.status import HistoryPoint as HistoryPoint
    from dbcare.studies.results.status import Lift as Lift
    from dbcare.studies.results.status import Pending as Pending
    from dbcare.studies.results.status import Recommendation as Recommendation
    from dbcare.studies.results.status import Status as Status
    from dbcare.studies.settings import Settings as Settings
    from dbcare.studies.show.export import TrialRow as TrialRow
    from dbcare.studies.stores.base import Standing as Standing
    from dbcare.studies.stores.base import Store as Store
    from dbcare.studies.stores.base import StoreSession as StoreSession
    from dbcare.studies.stores.base import StudyRecord as StudyRecord
    from dbcare.studies.study import Study as Study
    from dbcare.studies.trial import Priced as Priced
    from dbcare.studies.trial import Trial as Trial

# Where each public name lives.
_HOME = {
    "Bandit": "bandit",
    "GaussianBlocks": "block_bandits",
    "ScoreTable": "block_bandits",
    "Client": "client.client",
    "connect": "client.client",
    "ComparedArm": "comparing.report",
    "CallFailure": "comparing.trials",
    "ComparedAnswer": "comparing.report",
    "Comparison": "comparing.comparison",
    "Priced": "studies.trial",
    "compare": "comparing.compare",
    "best_sprt": "engines.sprt",
    "evaluate": "engines.evaluate",
    "evaluate_grid": "engines.grid",
    "Evaluation": "engines.result",
    "GridEvaluation": "engines.grid",
    "Estimates": "engines.pooling.estimates",
    "DbcareError": "errors",
    "Event": "studies.record.events",
    "EventKind": "studies.record.events",
    "TrialRow": "studies.show.export",
    "BlockLog": "replay.block_logs",
    "read_block_log": "replay.block_logs",
    "read_harness_samples": "replay.block_logs",
    "replay_blocks": "replay.replay",
    "read_log": "replay.logs",
    "Replay": "replay.replay",
    "replay_log": "replay.replay",
    "Assignment": "studies.assignment",
    "Standing": "studies.stores.base",
    "Activity": "studies.results.status",
    "ArmStatus": "studies.results.status",
    "HistoryPoint": "studies.results.status",
    "Lift": "studies.results.status",
    "Pending": "studies.results.status",
    "Recommendation": "studies.results.status",
    "Status": "studies.results.status",
    "Settings": "studies.settings",
    "Store": "studies.stores.base",
    "StoreSession": "studies.stores.base",
    "StudyRecord": "studies.stores.base",
    "create_study": "studies.api",
    "delete_study": "studies.api",
    "find_studies": "studies.api",
    "list_studies": "studies.api",
    "load_study": "studies.api",
    "Study": "studies.study",
    "Trial": "studies.trial",
    "Money": "money",
    "Outlook": "planner.outlook",
    "Plan": "planner.plan",
    "plan": "planner.plan",
    "Adaptive": "policies.literature.adaptive",
    "ChickFrazier": "policies.literature.chick_frazier",
    "EBTCI": "policies.literature.eb_tci",
    "KGStar": "policies.literature.kg_star",
    "KLLUCB": "policies.literature.kl_lucb",
    "KN": "policies.literature.kn",
    "LilUCB": "policies.literature.lil_ucb",
    "LUCB": "policies.literature.lucb",
    "OCBA": "policies.literature.ocba",
    "TrackAndStop": "policies.literature.track_and_stop",
    "TwoArmChickFrazier": "policies.literature.chick_frazier",
    "TwoArmLikelihood": "policies.two_arm_likelihood",
    "UGapE": "policies.literature.ugape",
    "UGapEBudget": "policies.literature.ugape",
    "Breakeven": "policies.breakeven.policy",
    "BreakevenRacing": "policies.breakeven.racing",
    "BreakevenRounds": "policies.breakeven.rounds",
    "DBCARE": "policies.elimination.dbcare",
    "Guess": "policies.planned",
    "KnownGapOracle": "policies.planned",
    "Uniform": "policies.planned",
    "SequentialHalving": "policies.planned",
    "SuccessiveRejects": "policies.planned",
    "KnownGapSPRT": "policies.elimination.sprt",
    "Look": "base.look",
    "PolicyKind": "base.look",
    "CustomPolicy": "policies.policy",
    "Policy": "policies.policy",
    "Racing": "policies.elimination.racing",
    "TwoArmConfidence": "policies.elimination.racing",
    "PolicyEntry": "policies.registry",
    "build_policy": "policies.registry",
    "register_policy": "policies.registry",
    "unregister_policy": "policies.registry",
    "BlockRule": "policies.rule",
    "Rule": "policies.rule",
    "Run": "policies.run",
    "RunEvent": "policies.run",
    "Wording": "policies.run",
    "Bernoulli": "rewards",
    "Categorical": "rewards",
    "Empirical": "rewards",
    "Gaussian": "rewards",
    "Loss": "risk",
    "Risk": "risk",
    "Estimate": "engines.statistics",
    "ControlVariate": "engines.result",
    "Pulls": "engines.result",
    "LoggedArm": "replay.replay",
    "OrderSummary": "replay.replay",
    "ReplayedOrder": "replay.replay",
    "PlanSetting": "planner.setting",
}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604  # the names are literal strings, in the table above


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415  # it loads zipfile, email and more

        value: Any = version("dbcare")
    elif name in _HOME:
        value = getattr(import_module(f"dbcare.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'dbcare' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
