"""Public names of dbcare.studies, each listed once: `__init__.py` loads them when they are first used."""

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

__all__: list[str]
