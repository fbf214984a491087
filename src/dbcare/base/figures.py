"""Figures of matplotlib, which is an extra: shown by notebooks, and written to files that are the same every time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dbcare.base.extras import say_how_to_install

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(f"Figures require an extra: {say_how_to_install('lab')}.", name=missing.name) from None

DPI = 150
ACCENT, MUTED, LOSS = "#5E2CA5", "0.45", "#D55E00"  # the chosen arm and what was spent; others; losses


class DisplayedFigure(Figure):
    """A figure that a notebook shows also where pyplot, which teaches notebooks to show figures, is not loaded."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=DPI / 1.5)
        return content.getvalue()

    def saved(self, path: Path | None) -> DisplayedFigure:
        """Write the figure, if a path is given, in the format of its extension, and return it.

        Files have no date, so that the same figure gives the same file.
        """
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
            with mpl.rc_context({"svg.hashsalt": "dbcare"}):
                self.savefig(path, dpi=DPI, metadata=undated)
        return self


@contextmanager
def drawing_figure(width: float, height: float) -> Iterator[DisplayedFigure]:
    """Give an empty figure of so many inches to draw into, in our style."""
    with mpl.rc_context({"font.size": 10}):
        yield DisplayedFigure(figsize=(width, height), layout="constrained")
