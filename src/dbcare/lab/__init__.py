"""The laboratory: the paper's experiments, their numbers on disk and their figures."""
