"""Decisions in progress: studies hand out trials, take rewards in any order, and say when to stop."""
