"""dbcare: find the best of K options when every observation costs money, and stop when more is not worth its price.

Public names load when they are first used, so that `import dbcare` costs next to nothing.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbcare.bandit import Bandit as Bandit
    from dbcare.client.connect import connect as connect
    from dbcare.engines.best_sprt import best_sprt as best_sprt
    from dbcare.engines.evaluate import evaluate as evaluate
    from dbcare.engines.evaluate_grid import evaluate_grid as evaluate_grid
    from dbcare.engines.evaluate_together import evaluate_together as evaluate_together
    from dbcare.errors import DbcareError as DbcareError
    from dbcare.live.log_file import read_log as read_log
    from dbcare.live.replay import replay_log as replay_log
    from dbcare.live.stored_study import Study as Study
    from dbcare.live.studies import create_study as create_study
    from dbcare.live.studies import delete_study as delete_study
    from dbcare.live.studies import list_studies as list_studies
    from dbcare.live.studies import load_study as load_study
    from dbcare.planner.plan import plan as plan
    from dbcare.policies.breakeven import Breakeven as Breakeven
    from dbcare.policies.breakeven_racing import BreakevenRacing as BreakevenRacing
    from dbcare.policies.dbcare import DBCARE as DBCARE
    from dbcare.policies.fixed import Guess as Guess
    from dbcare.policies.fixed import KnownGapOracle as KnownGapOracle
    from dbcare.policies.fixed import Uniform as Uniform
    from dbcare.policies.halving import SequentialHalving as SequentialHalving
    from dbcare.policies.halving import SuccessiveRejects as SuccessiveRejects
    from dbcare.policies.known_gap_sprt import KnownGapSPRT as KnownGapSPRT
    from dbcare.policies.policy import CustomPolicy as CustomPolicy
    from dbcare.policies.policy import Policy as Policy
    from dbcare.policies.racing import Racing as Racing
    from dbcare.policies.racing import TwoArmConfidence as TwoArmConfidence
    from dbcare.policies.rule import Rule as Rule
    from dbcare.rewards import Bernoulli as Bernoulli
    from dbcare.rewards import Categorical as Categorical
    from dbcare.rewards import Empirical as Empirical
    from dbcare.rewards import Gaussian as Gaussian
    from dbcare.risk import Loss as Loss
    from dbcare.risk import Risk as Risk

_HOME = {
    "Bandit": "bandit",
    "connect": "client.connect",
    "DbcareError": "errors",
    "evaluate": "engines.evaluate",
    "evaluate_grid": "engines.evaluate_grid",
    "best_sprt": "engines.best_sprt",
    "evaluate_together": "engines.evaluate_together",
    "plan": "planner.plan",
    "create_study": "live.studies",
    "delete_study": "live.studies",
    "list_studies": "live.studies",
    "load_study": "live.studies",
    "read_log": "live.log_file",
    "replay_log": "live.replay",
    "Study": "live.stored_study",
    "Breakeven": "policies.breakeven",
    "BreakevenRacing": "policies.breakeven_racing",
    "DBCARE": "policies.dbcare",
    "Guess": "policies.fixed",
    "KnownGapOracle": "policies.fixed",
    "Uniform": "policies.fixed",
    "SequentialHalving": "policies.halving",
    "SuccessiveRejects": "policies.halving",
    "CustomPolicy": "policies.policy",
    "Policy": "policies.policy",
    "Racing": "policies.racing",
    "TwoArmConfidence": "policies.racing",
    "Rule": "policies.rule",
    "KnownGapSPRT": "policies.known_gap_sprt",
    "Bernoulli": "rewards",
    "Categorical": "rewards",
    "Empirical": "rewards",
    "Gaussian": "rewards",
    "Loss": "risk",
    "Risk": "risk",
}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604  # the names are literal strings, in the table above


def __getattr__(name: str) -> Any:
    if name == "__version__":
        found: Any = version("dbcare")
    elif name in _HOME:
        found = getattr(import_module(f"dbcare.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'dbcare' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
