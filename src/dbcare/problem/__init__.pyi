"""Public names of dbcare.problem, each listed once: `__init__.py` loads them when they are first used."""

from dbcare.base.numbers import Money as Money
from dbcare.problem.bandits import GaussianBlocks as GaussianBlocks
from dbcare.problem.bandits import ScoreTable as ScoreTable

__all__: list[str]
