"""What a study shows people: in notebooks, as a figure, and on the page to file away."""

from __future__ import annotations

import hashlib
import re
import tempfile
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dbcare.errors import InvalidValueError
from tests.suites.studies.checks import NAMES, Checks, catch_error

HOSTILE = "<script>alert(1)</script>"


class Showing(Checks):
    """Displays, figures and reports have the study's own words and numbers, and nothing that a browser would run."""

    def test_a_study_is_shown_in_notebooks(self) -> None:
        """At any moment, with names as text."""
        study = self.make_study(arms=[HOSTILE, "B"], description=HOSTILE)
        assert "nothing is recommended" in study._repr_html_()
        study.add([(HOSTILE, 1.0), ("B", 0.5)] * 20)
        shown = study._repr_html_()
        assert HOSTILE not in shown
        assert HOSTILE in unescape(shown)
        for sentence in study.recommendation().sentences:
            assert sentence in unescape(shown)

    def test_a_study_is_drawn(self) -> None:
        """Where matplotlib is installed, with a row for each arm."""
        if find_spec("matplotlib") is None:
            return
        study = self.make_study()
        study.add([(arm, 1.0) for arm in NAMES])
        figure = study.plot()
        assert {label.get_text() for label in figure.axes[0].get_yticklabels()} == set(NAMES)

    def test_a_report_is_written_whole(self) -> None:
        """It has every sentence, the settings with their digest, and no scripts; without its folder, nothing."""
        study = self.make_study(arms=[HOSTILE, "B"], cost=None, price=0.5, value=50.0, max_spend=1_000.0)
        study.add([(HOSTILE, 1.0), ("B", 0.5)] * 20)
        study.stop("the season is over")
        with tempfile.TemporaryDirectory() as folder:
            path = study.report(Path(folder) / "decision.html")
            page = path.read_text(encoding="utf-8")
            assert [file.name for file in Path(folder).iterdir()] == ["decision.html"]
            catch_error(FileNotFoundError, lambda: study.report(Path(folder) / "none" / "decision.html"))
        assert "<script" not in page
        text = unescape(page)
        for sentence in (*study.recommendation().sentences, *study.explain(), "1,000 USD", "the season is over"):
            assert sentence in text
        digest = re.search(r"[0-9a-f]{64}", text)
        assert digest is not None
        lines = [unescape(line) for line in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)]
        assert digest[0] in [hashlib.sha256(line.encode()).hexdigest() for line in lines]

    def test_a_report_needs_a_path(self) -> None:
        """What is not a path is refused, and so is a plan that is none."""
        study = self.make_study()
        message = catch_error(InvalidValueError, lambda: study.report(3))  # type: ignore[arg-type]  # the point
        assert message == "`path` must be the path of a file but got 3."
        wrong: Any = "plan"
        message = catch_error(InvalidValueError, lambda: study.report("x.html", plan=wrong))
        assert message == "`plan` must be a Plan but got 'plan'."
