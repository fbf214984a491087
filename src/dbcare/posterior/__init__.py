"""What is known about the arms once rewards are in, for people to read; stopping rules do not use it."""

from dbcare.posterior.always_valid import AlwaysValid, expect_rewards
from dbcare.posterior.model import Posterior

__all__ = ["AlwaysValid", "Posterior", "expect_rewards"]
