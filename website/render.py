"""Render a folder of pages as a site."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sphinx.cmd.build import build_main

CONFIGURATION = Path(__file__).parent
# Nothing is kept from before, so that every warning is seen every time, and each is an error.
OPTIONS = ("-q", "-E", "-W", "--keep-going", "-j", "auto")


def render_pages(pages: Path, folder: Path) -> int:
    """Render pages into a folder, and return the exit code: 0 if there was nothing to complain about."""
    with tempfile.TemporaryDirectory() as trees:
        return build_main([*OPTIONS, "-c", str(CONFIGURATION), "-d", trees, str(pages), str(folder)])
