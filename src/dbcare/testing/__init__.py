"""Conformance suites: what a policy, a store or a study of your own must pass before it can be trusted.

Subclass a suite in a test file and say what to check; pytest then runs every check on it.
"""

from dbcare.testing.policy_suite import PolicySuite as PolicySuite
from dbcare.testing.store_suite import StoreSuite as StoreSuite
from dbcare.testing.study_suite import StudySuite as StudySuite

__all__ = ["PolicySuite", "StoreSuite", "StudySuite"]
