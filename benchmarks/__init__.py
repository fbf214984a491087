"""Measurements of what the documentation claims; `python -m benchmarks` lists them."""
