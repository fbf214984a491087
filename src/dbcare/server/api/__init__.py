"""The JSON API under /v1: its routes, what they take and return, and its description."""
