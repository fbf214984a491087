"""The laboratory: runs experiments, stores their results, and turns them into figures and reports."""
