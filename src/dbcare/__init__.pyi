"""Public names of dbcare, each listed once: `__init__.py` loads them when they are first used."""

from dbcare import client as client
from dbcare import comparing as comparing
from dbcare import engines as engines
from dbcare import planner as planner
from dbcare import policies as policies
from dbcare import problem as problem
from dbcare import replay as replay
from dbcare import studies as studies
from dbcare.client.client import connect as connect
from dbcare.comparing.compare import compare as compare
from dbcare.engines.evaluate import evaluate as evaluate
from dbcare.engines.grid import evaluate_grid as evaluate_grid
from dbcare.errors import DbcareError as DbcareError
from dbcare.planner.plan import plan as plan
from dbcare.policies.breakeven.policy import Breakeven as Breakeven
from dbcare.policies.breakeven.racing import BreakevenRacing as BreakevenRacing
from dbcare.policies.breakeven.rounds import BreakevenRounds as BreakevenRounds
from dbcare.policies.elimination.dbcare import DBCARE as DBCARE
from dbcare.policies.policy import Policy as Policy
from dbcare.policies.registry import build_policy as build_policy
from dbcare.policies.registry import register_policy as register_policy
from dbcare.policies.registry import unregister_policy as unregister_policy
from dbcare.problem.bandits import Bandit as Bandit
from dbcare.problem.rewards import Bernoulli as Bernoulli
from dbcare.problem.rewards import Categorical as Categorical
from dbcare.problem.rewards import Empirical as Empirical
from dbcare.problem.rewards import Gaussian as Gaussian
from dbcare.problem.risk import Loss as Loss
from dbcare.problem.risk import Risk as Risk
from dbcare.replay.block_logs import read_block_log as read_block_log
from dbcare.replay.block_logs import read_harness_samples as read_harness_samples
from dbcare.replay.logs import read_log as read_log
from dbcare.replay.replay import replay_blocks as replay_blocks
from dbcare.replay.replay import replay_log as replay_log
from dbcare.studies.api import create_study as create_study
from dbcare.studies.api import delete_study as delete_study
from dbcare.studies.api import find_studies as find_studies
from dbcare.studies.api import list_studies as list_studies
from dbcare.studies.api import load_study as load_study
from dbcare.studies.study import Study as Study
from dbcare.studies.trial import Priced as Priced
from dbcare.studies.trial import Trial as Trial

__version__: str
__all__: list[str]
