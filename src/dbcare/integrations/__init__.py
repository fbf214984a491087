"""Studies inside other tools; each module needs its tool, and is imported by those who have it.

inspect    inspect_ai: an early stopping that runs only the samples that a study asks for
"""
