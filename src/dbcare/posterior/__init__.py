"""What is known about the arms once rewards are in, for people to read; stopping rules do not use it."""


from dbcare.posterior.model import Posterior

__all__ = ["Posterior"]
