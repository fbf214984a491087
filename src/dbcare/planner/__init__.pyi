"""Public names of dbcare.planner, each listed once: `__init__.py` loads them when they are first used."""

from dbcare.planner.outlook import Outlook as Outlook
from dbcare.planner.plan import Plan as Plan
from dbcare.planner.setting import PlanSetting as PlanSetting

__all__: list[str]
