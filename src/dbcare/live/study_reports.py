"""What a study says about itself: as values, as rows, and for people to look at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbcare.base.files import check_figure_path, check_path, replacing
from dbcare.live.export import TrialRow, make_data_frame, write_trials
from dbcare.live.recommendation import Recommendation
from dbcare.live.settings import Settings
from dbcare.live.status import HistoryPoint, Pending, Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dbcare.live.decision_page import FiledPlan


class StudyReports(ABC):
    """The part of a `Study` that reads and changes nothing."""

    name: str
    settings: Settings

    @abstractmethod
    def should_stop(self) -> bool:
        """Return whether the study has stopped."""

    @abstractmethod
    def recommendation(self) -> Recommendation:
        """Return the arm to choose as things stand, and how certain that is."""

    @abstractmethod
    def status(self) -> Status:
        """Return the state of the study: what is counted, and what is pending."""

    def snapshot(self) -> tuple[Status, Recommendation]:
        """Return the status and the recommendation, of one moment where the study is at hand."""
        return self.status(), self.recommendation()

    @abstractmethod
    def pending(self) -> list[Pending]:
        """Return the trials that have not been counted, in the order asked."""

    @abstractmethod
    def history(self) -> list[HistoryPoint]:
        """Return spend and expected loss over time; a study that breaks even stops where they meet."""

    @abstractmethod
    def explain(self) -> list[str]:
        """Explain every elimination and the stop, in one sentence each with its numbers."""

    @abstractmethod
    def trials(self) -> Iterator[TrialRow]:
        """Iterate over the trials asked so far, in order, each with its outcome.

        A few thousand are read at a time, as they are at that moment; nothing is locked in between.
        """

    def to_dataframe(self, library: str | None = None) -> Any:
        """Return the trials as a data frame, with times in UTC.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            Whose data frame. Default: the first of these that is installed.
        """
        return make_data_frame(self.trials(), library)

    def export(self, path: str | Path) -> Path:
        """Write the trials to a .csv, .jsonl or .parquet file."""
        return write_trials(self.trials(), path)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw what is known of the arms, and how spending and expected loss went.

        Parameters
        ----------
        path : str or Path, optional
            A .png, .svg or .pdf file to write it to.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which notebooks show. This requires the extra `lab`.
        """
        wanted = None if path is None else check_figure_path(path)
        from dbcare.live.figure import draw_study  # noqa: PLC0415  # matplotlib is an extra

        return draw_study(self).saved(wanted)

    def report(self, path: str | Path, plan: FiledPlan | None = None) -> Path:
        """Write the decision as one HTML page to print and file away, and return its path.

        It has the result, every number with its meaning, the settings and their digest, the plan, the rule that stops
        the study, and what people did to it. It loads nothing from elsewhere, and is written whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file.
        plan : Plan, optional
            What `dbcare.plan` said before the study, to be filed with it.

        Raises
        ------
        InvalidValueError
            If the plan is for other arms, prices, or another value.
        OSError
            If the file cannot be written.
        """
        from dbcare.live.decision_page import make_page  # noqa: PLC0415  # only for reports

        target = check_path(path)
        page = make_page(self, plan)
        with replacing(target) as draft:
            draft.write_text(page, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        from dbcare.live.notebook import display_study  # noqa: PLC0415  # only for notebooks

        return display_study(self)
