"""Decisions in progress: studies hand out trials, take rewards in any order, and say when to stop."""

from dbcare.base.public import load_names

__all__, __dir__, __getattr__ = load_names(__name__)  # from `__init__.pyi`
