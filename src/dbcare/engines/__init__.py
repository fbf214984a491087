"""How good is a policy on a bandit? Evaluations by simulation or without Monte Carlo error, by the cheapest way."""

from dbcare.base.public import load_names

__all__, __dir__, __getattr__ = load_names(__name__)  # from `__init__.pyi`
