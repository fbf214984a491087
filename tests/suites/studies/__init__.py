"""Checks of what a `Study` promises, wherever it is kept and however it is reached; one module per subject.

counting    which arms are asked for, and when rewards count
leases      trials that expire, and asking again
units       units that come back
telling     outcomes, what they cost, and the trials on record
blocks      arms that share questions of a pool, or rounds
ending      limits, pausing, stopping and retiring
running     functions and commands that measure
reporting   recommendation, status, history and explanations
showing     notebooks, figures and pages
refusals    invalid arguments, and the messages about them
checks      what the others share
"""

from tests.suites.studies.blocks import Blocks
from tests.suites.studies.counting import Counting
from tests.suites.studies.ending import Ending
from tests.suites.studies.leases import Leases
from tests.suites.studies.refusals import Refusals
from tests.suites.studies.reporting import Reporting
from tests.suites.studies.running import Running
from tests.suites.studies.showing import Showing
from tests.suites.studies.telling import Telling
from tests.suites.studies.units import Units


class StudySuite(Counting, Leases, Units, Telling, Blocks, Ending, Running, Reporting, Showing, Refusals):
    """Checks what every study promises; subclasses define `make`, which returns a new study.

    Attributes
    ----------
    policies : sequence of str
        Names of the policies to make studies with.
    lease_seconds : float
        Time that is surely enough for a few calls; leases that must expire last this long.
    repeats : int
        How often checks with random rewards are repeated, each time with another seed.
    """
