"""How good is a policy on a bandit? Evaluations by simulation or without Monte Carlo error, by the cheapest way."""
