"""The conformance suite for live studies: what a `Study` promises, wherever it is kept and however it is reached.

Subclass it in a test file and say how to make a study; pytest collects the subclass and runs every check on new ones.

    from typing import Any

    import dbcare
    from dbcare.testing.study_suite import StudySuite


    class TestInMemory(StudySuite):
        def make(self, **settings: Any) -> dbcare.Study:
            return dbcare.create_study(**settings)

The checks use nothing but the public methods, and come by their subject from `dbcare.testing.studies`.
"""

from dbcare.testing.studies.counting import Counting
from dbcare.testing.studies.ending import Ending
from dbcare.testing.studies.leases import Leases
from dbcare.testing.studies.refusals import Refusals
from dbcare.testing.studies.telling import Telling
from dbcare.testing.studies.words import Words


class StudySuite(Counting, Leases, Telling, Ending, Words, Refusals):
    """All checks; subclasses define `make`."""
