"""Words on the terminal from the middle of a test that passes, for long ones."""

import sys

import pytest


def announce(capture: pytest.CaptureFixture[str], text: str) -> None:
    """Print a line on the terminal, also from a process of pytest-xdist."""
    with capture.disabled():
        sys.stderr.write(f"\n{text}\n")
        sys.stderr.flush()
