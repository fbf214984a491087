"""Settings of all tests."""

import gc

import pytest


def pytest_configure() -> None:
    """Pause garbage collection while tests are read: that makes a million objects, and hardly any garbage."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """From now on collect what tests leave behind, more rarely than usual, and never look through all modules again."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
