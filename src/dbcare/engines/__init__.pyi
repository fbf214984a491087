"""Public names of dbcare.engines, each listed once: `__init__.py` loads them when they are first used."""

from dbcare.engines.grid import GridEvaluation as GridEvaluation
from dbcare.engines.pooling.estimates import Estimates as Estimates
from dbcare.engines.result import ControlVariate as ControlVariate
from dbcare.engines.result import Evaluation as Evaluation
from dbcare.engines.result import Pulls as Pulls
from dbcare.engines.sprt import best_sprt as best_sprt
from dbcare.engines.statistics import Estimate as Estimate

__all__: list[str]
