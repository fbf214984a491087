"""Runs of a policy on random rewards: the compiled loops, the draws inside them, and what they count."""
