"""Public names of dbcare.replay, each listed once: `__init__.py` loads them when they are first used."""

from dbcare.replay.block_logs import BlockLog as BlockLog
from dbcare.replay.replay import LoggedArm as LoggedArm
from dbcare.replay.replay import OrderSummary as OrderSummary
from dbcare.replay.replay import Replay as Replay
from dbcare.replay.replay import ReplayedOrder as ReplayedOrder

__all__: list[str]
