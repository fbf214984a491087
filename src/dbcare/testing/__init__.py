"""What a policy of your own must pass before the engines and the live study can be trusted with it."""

from dbcare.testing.policy_suite import PolicySuite as PolicySuite

__all__ = ["PolicySuite"]
