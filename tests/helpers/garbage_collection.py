"""A pytest plugin that avoids most of Python's garbage collection during tests."""

import gc

import pytest


def pytest_configure() -> None:
    """Pause garbage collection while tests are collected, which creates a million objects and hardly any garbage."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Resume it, less often than by default, and exempt everything that exists by now."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
