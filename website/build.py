"""Build the documentation site: `python website/build.py FOLDER`. Any warning is an error.

Nothing is downloaded, and the pages load nothing from other sites.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import assemble
import commands
import http_api
import options
import python_api
import render


def build_site(folder: Path) -> int:
    """Build the site into a folder, and return the exit code."""
    with tempfile.TemporaryDirectory() as temporary:
        pages = Path(temporary)
        assemble.gather_pages(pages)
        reference = pages / "reference"
        (reference / "python").mkdir(parents=True, exist_ok=True)
        for name, text in python_api.write_pages().items():
            (reference / "python" / f"{name}.md").write_text(text)
        for module in (commands, http_api, options):
            (reference / f"{module.__name__}.md").write_text(module.write_page())
        return render.render_pages(pages, folder)


if __name__ == "__main__":
    sys.exit(build_site(Path(sys.argv[1]).resolve()))
