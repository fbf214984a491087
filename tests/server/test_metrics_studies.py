"""Figures of single studies for Prometheus: what they count, and what is left out."""

import asyncio
import re
import time

import dbcare
from dbcare.server.metrics import MAX_STUDY_BYTES, Metrics, Readiness, StudyFigures
from dbcare.server.service_limits import DEFAULT_LIMITS
from dbcare.server.studies import OpenStudies
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.memory import MemoryStore


class Watched:
    """A store with studies, and their figures."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.studies, self.metrics = OpenStudies(self.store), Metrics(DEFAULT_LIMITS)
        self.figures = StudyFigures(self.studies, self.metrics, Readiness(self.store))

    def create(self, name: str) -> StoredStudy:
        """Create a study, and open it as a request does."""
        dbcare.create_study(name, ["A", "B"], cost=1e-6, sigma=1.0, storage=self.store)
        return asyncio.run(self.studies.open(name))

    def read(self) -> dict[str, float]:
        """Refresh the figures, and return all series."""
        self.figures.refresh()
        lines = self.metrics.text().decode().splitlines()
        return {series: float(value) for line in lines if line[0] != "#" for series, value in [line.rsplit(" ", 1)]}


def test_a_stalled_study_shows() -> None:
    watched = Watched()
    study = watched.create("ads")
    quiet = watched.read()
    assert quiet['dbcare_study_pending_trials{study="ads"}'] == 0.0
    assert quiet['dbcare_study_empty_answers_total{study="ads",reason="pending"}'] == 0.0
    began = time.time()
    trials = [study.ask(), study.ask()]  # two may be pending
    asked = study.check_ask(n=1, lease=None, worker=None, timeout_reward=None, key=None, unit=None)
    for _ in range(3):
        watched.metrics.count_ask("ads", study.carry_out(study.ask_later(asked)))
    found = watched.read()
    assert found['dbcare_study_pending_trials{study="ads"}'] == found["dbcare_pending_trials"] == 2.0
    assert 0.0 <= found['dbcare_study_oldest_pending_seconds{study="ads"}'] <= time.time() - began + 0.1
    assert found['dbcare_study_empty_answers_total{study="ads",reason="pending"}'] == 3.0
    assert found['dbcare_empty_answers_total{reason="pending"}'] == 3.0
    for trial in trials:
        assert trial is not None
        study.tell(trial, 0.5)
        watched.metrics.count_told("ads")
    found = watched.read()
    assert found['dbcare_study_pending_trials{study="ads"}'] == 0.0
    assert found['dbcare_study_oldest_pending_seconds{study="ads"}'] == 0.0
    assert found['dbcare_study_rewards_total{study="ads"}'] == found['dbcare_trials_total{what="told"}'] == 2.0


def test_a_closed_study_is_shown_until_something_happens_in_it() -> None:
    watched = Watched()
    study = watched.create("left")
    trial = study.ask()
    assert trial is not None
    watched.create("empty")
    watched.read()
    for name in ("left", "empty"):
        watched.studies.forget(name)
    for _ in range(3):
        found = watched.read()
        assert found['dbcare_study_pending_trials{study="left"}'] == 1.0
        assert 'dbcare_study_pending_trials{study="empty"}' not in found
    study.tell(trial, 0.5)  # such as through another server
    assert 'dbcare_study_pending_trials{study="left"}' not in watched.read()


def test_too_many_studies_are_left_out_and_names_are_escaped() -> None:
    watched = Watched()
    watched.create('a "quoted" \\ name')
    for number in range(700):
        watched.create(f"{number:03} {'x' * 190}")
    found = watched.read()
    assert len(watched.metrics.text_of_studies) < MAX_STUDY_BYTES + 2_000
    shown = [series for series in found if series.startswith("dbcare_study_notes{")]
    assert 0 < len(shown) < 701
    assert found["dbcare_left_out_studies"] == 701 - len(shown)
    assert found["dbcare_open_studies"] == 701.0
    assert re.search(r'study="a \\"quoted\\" \\\\ name"', watched.metrics.text_of_studies.decode())
