"""Conformance suites: checks that a policy or a store of your own must pass before it can be trusted.

PolicySuite   what every `Policy` promises; define `policies`
StoreSuite    what every `Store` promises; define `make`, and `open_again` where that is possible

Subclass a suite in a test file; pytest collects the subclass and runs every check on what it returns.

    from collections.abc import Iterable

    from dbcare import Policy
    from dbcare.policies import Uniform
    from dbcare.testing import PolicySuite


    class TestUniform(PolicySuite):
        def policies(self) -> Iterable[Policy]:
            return [Uniform(arms=3, pulls=10)]

To see the compared values when a check fails, call `pytest.register_assert_rewrite("dbcare.testing")` in conftest.py.
"""

from dbcare.testing.policies import PolicySuite as PolicySuite
from dbcare.testing.stores import StoreSuite as StoreSuite

__all__ = ["PolicySuite", "StoreSuite"]
