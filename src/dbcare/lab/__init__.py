"""Experiments: what is run, what is stored, and the figures, tables and reports that follow."""
