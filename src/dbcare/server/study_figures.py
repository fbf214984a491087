"""Figures of single studies for Prometheus: read in the background, so that /metrics waits for no database.

A server has the studies that are open in it, and those with pending trials that were open before: a study that nobody
asks for any more is the one to hear about.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from dbcare.errors import DbcareError, StudyNotFoundError
from dbcare.server.metrics import LACKS, Metrics, StudyTally
from dbcare.server.open_studies import MAX_OPEN_STUDIES, OpenStudies
from dbcare.server.readiness import Readiness
from dbcare.studies.results.status import VitalSigns
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.base import Standing

REFRESH_SECONDS = 15.0
MAX_SHARE = 0.05  # of the time is spent on refreshing, however many studies are open
MAX_STUDY_BYTES = 800_000  # of the series of single studies; those of the others are left out
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

FAMILIES = {
    "dbcare_study_rewards_total": ("counter", "Rewards told for a study, to this server"),
    "dbcare_study_empty_answers_total": ("counter", "Asks and assignments that got no trial, from this server"),
    "dbcare_study_pending_trials": ("gauge", "Trials that wait for an answer, unless the study has stopped"),
    "dbcare_study_oldest_pending_seconds": ("gauge", "Seconds since the oldest of them was asked; 0 without any"),
    "dbcare_study_notes": ("gauge", "Notes on the page of a study, such as an assumption that its data contradict"),
}


@dataclass(frozen=True)
class Figures:
    """The figures of one study; `closed` is its standing when it was closed here, after which only time goes on."""

    signs: VitalSigns
    closed: Standing | None = None

    def age(self, now: float) -> float:
        """Return the seconds since the oldest pending trial was asked."""
        return 0.0 if self.signs.oldest is None else max(0.0, now - self.signs.oldest)


class StudyFigures:
    """Refreshes the figures of studies in a thread of its own, and hands them to the metrics."""

    def __init__(self, studies: OpenStudies, metrics: Metrics, readiness: Readiness) -> None:
        self._studies = studies
        self._metrics = metrics
        self._readiness = readiness
        self._ended = threading.Event()
        self._figures: dict[str, Figures] = {}
        self._left_out = 0
        self._refreshed = time.monotonic()
        for name, meaning, measure in (
            ("dbcare_refresh_age_seconds", "Seconds since the figures of studies were read", self._find_age),
            ("dbcare_open_studies", "Studies whose figures are read", lambda: len(self._figures)),
            ("dbcare_pending_trials", "Trials that wait for an answer, in all of these", self._count_pending),
            ("dbcare_oldest_pending_seconds", "Seconds since the oldest of them was asked", self._find_oldest),
            ("dbcare_notes", "Notes on the pages of all of these", self._count_notes),
            ("dbcare_left_out_studies", "Studies without series of their own, for lack of room", self._count_left_out),
        ):
            metrics.add_gauge(name, meaning, measure)
        self._render()

    def start(self) -> None:
        """Begin to refresh."""
        threading.Thread(target=self._run, name="study figures", daemon=True).start()

    def end(self) -> None:
        """Refresh no more."""
        self._ended.set()

    def _find_age(self) -> float:
        return time.monotonic() - self._refreshed

    def _count_pending(self) -> float:
        return sum(each.signs.waiting for each in self._figures.values())

    def _find_oldest(self) -> float:
        now = time.time()
        return max((each.age(now) for each in self._figures.values()), default=0.0)

    def _count_notes(self) -> float:
        return sum(each.signs.notes for each in self._figures.values())

    def _count_left_out(self) -> float:
        return self._left_out

    def _run(self) -> None:
        while not self._ended.wait(REFRESH_SECONDS):
            self.refresh()

    def refresh(self) -> None:
        """Read all figures; if the database fails, the old ones stay, and their age says so."""
        found: dict[str, Figures] = {}
        for study in self._studies.list_open():
            if (figures := self._read(study)) is not None:
                found[study.name] = figures
            elif self._readiness.find_problem() is not None:
                return
        closed = {name: each for name, each in self._figures.items() if name not in found and each.signs.waiting}
        for name, figures in list(closed.items())[: max(0, MAX_OPEN_STUDIES - len(found))]:
            if (still := self._follow(name, figures)) is not None:
                found[name] = still
        self._figures, self._refreshed = found, time.monotonic()
        self._render()

    def _read(self, study: StoredStudy) -> Figures | None:
        """Return the figures of an open study; None if it cannot be read."""
        began = time.monotonic()
        try:
            figures = Figures(study.vital_signs())
        except DbcareError:  # which whoever asks for a trial hears
            figures = None
        # Asks and tells go first: a thousand studies are read in as many short moments.
        self._ended.wait(min(1.0, (time.monotonic() - began) * (1.0 / MAX_SHARE - 1.0)))
        return figures

    def _follow(self, name: str, figures: Figures) -> Figures | None:
        """Return the figures of a study that was closed here, as long as nothing has happened in it since."""
        try:
            standing = self._studies.store.record(name).standing
        except StudyNotFoundError:
            return None
        except DbcareError:
            return figures
        if figures.closed is None:
            return Figures(figures.signs, standing)
        return figures if standing == figures.closed else None

    def _render(self) -> None:
        """Render the series, the studies first whose trials have been pending for the longest time."""
        now = time.time()
        tallies = self._metrics.keep_tallies(self._figures)
        lines: dict[str, list[str]] = {family: [] for family in FAMILIES}
        size = shown = 0
        for name in sorted(self._figures, key=lambda name: -self._figures[name].age(now)):
            own = list(_make_series(name, self._figures[name], tallies[name], now))
            size += sum(len(line.encode()) for _, line in own)
            if size > MAX_STUDY_BYTES:
                break
            shown += 1
            for family, line in own:
                lines[family].append(line)
        self._left_out = len(self._figures) - shown
        texts = (
            f"# HELP {family} {meaning}.\n# TYPE {family} {kind}\n{''.join(lines[family])}"
            for family, (kind, meaning) in FAMILIES.items()
        )
        self._metrics.text_of_studies = "".join(texts).encode()


def _make_series(name: str, figures: Figures, tally: StudyTally, now: float) -> Iterable[tuple[str, str]]:
    """Yield the lines of a study, each with its family."""
    rewards, empty, pending, oldest, notes = FAMILIES
    study = f'study="{name.translate(ESCAPES)}"'
    yield rewards, f"{rewards}{{{study}}} {tally.told}\n"
    for lack in LACKS:
        yield empty, f'{empty}{{{study},reason="{lack}"}} {tally.empty[lack]}\n'
    yield pending, f"{pending}{{{study}}} {figures.signs.waiting}\n"
    yield oldest, f"{oldest}{{{study}}} {figures.age(now):.1f}\n"
    yield notes, f"{notes}{{{study}}} {figures.signs.notes}\n"
