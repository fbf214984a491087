"""The conformance suite for live studies: what a `Study` promises, wherever it is kept and however it is reached.

Subclass it in a test file and return a new study; pytest runs every check on new ones.

    from typing import Any

    import dbcare
    from dbcare.testing import StudySuite


    class TestInMemory(StudySuite):
        def make(self, **settings: Any) -> dbcare.Study:
            return dbcare.create_study(**settings)

To check studies in a store of your own, pass it on: `dbcare.create_study(**settings, storage=store)`. The checks use
only public methods; `dbcare.testing.studies` has them by subject.
"""

from dbcare.testing.studies.blocks import Blocks
from dbcare.testing.studies.counting import Counting
from dbcare.testing.studies.ending import Ending
from dbcare.testing.studies.leases import Leases
from dbcare.testing.studies.refusals import Refusals
from dbcare.testing.studies.reporting import Reporting
from dbcare.testing.studies.running import Running
from dbcare.testing.studies.showing import Showing
from dbcare.testing.studies.telling import Telling
from dbcare.testing.studies.units import Units


class StudySuite(Counting, Leases, Units, Telling, Blocks, Ending, Running, Reporting, Showing, Refusals):
    """Checks what every study promises; subclasses define `make`.

    Attributes
    ----------
    policies : sequence of str
        Names of the policies to make studies with: those that ship, or one of your own that is registered.
    lease_seconds : float
        Time that is surely enough for a few calls; leases that must expire last this long.
    repeats : int
        How often checks with random rewards are repeated, each time with another seed.

    Examples
    --------
    >>> import dbcare
    >>> from dbcare.testing import StudySuite
    >>> class TestInMemory(StudySuite):
    ...     def make(self, **settings):
    ...         return dbcare.create_study(**settings)
    >>> TestInMemory().test_repeating_an_outcome_is_harmless()  # or let pytest run all checks
    """
