"""A pytest plugin that spares the tests most of Python's garbage collection."""

import gc

import pytest


def pytest_configure() -> None:
    """Pause garbage collection while tests are read: that makes a million objects, and hardly any garbage."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collect what tests leave behind, less often than by default, and never look at what was there before them."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
