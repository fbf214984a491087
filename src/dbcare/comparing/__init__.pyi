"""Public names of dbcare.comparing, each listed once: `__init__.py` loads them when they are first used."""

from dbcare.comparing.comparison import Comparison as Comparison
from dbcare.comparing.report import ComparedAnswer as ComparedAnswer
from dbcare.comparing.report import ComparedArm as ComparedArm
from dbcare.comparing.trials import CallFailure as CallFailure

__all__: list[str]
