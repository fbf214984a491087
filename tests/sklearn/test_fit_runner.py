"""A search that is killed goes on where it was, fits nothing again that was stored, and ends as if never killed."""

import os
import pickle
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dbcare
from tests.helpers.fold_searches import assert_same_results, collect_scores, search_table
from tests.helpers.fork_server import ForkedProcess, ForkServer
from tests.helpers.score_table import draw_table, make_samples, read_fits
from tests.helpers.search_main import LISTED, NAME, TABLE, make_search

TESTS = Path(__file__).parents[2]
SOURCE = Path(dbcare.__file__).parents[1]
FOLDS = TABLE.shape[1]


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    """Starts searches in processes that have loaded scikit-learn."""
    server = ForkServer("import tests.helpers.search_main", SOURCE, TESTS)
    yield server
    server.close()


@pytest.fixture
def start(fork_server: ForkServer) -> Iterator[Callable[..., ForkedProcess]]:
    """Start a search in a session of its own."""
    started = []

    def begin(*arguments: object) -> ForkedProcess:
        code = "import os; os.setsid(); from tests.helpers.search_main import main; main()"
        started.append(fork_server.start(code, *map(str, arguments)))
        return started[-1]

    yield begin
    for process in started:
        process.close()


def kill_after(process: ForkedProcess, journal: Path, fits: int) -> None:
    """Kill a search and its workers once it has begun so many fits."""
    deadline = time.monotonic() + 120.0
    while len(read_fits(journal)) < fits:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize(("jobs", "kills"), [(1, (5, 30)), (2, (20,))])
def test_a_killed_search_ends_as_if_never_killed(
    tmp_path: Path, start: Callable[..., ForkedProcess], jobs: int, kills: tuple[int, ...]
) -> None:
    storage, journal, result = f"sqlite:///{tmp_path}/fits.db", tmp_path / "journal", tmp_path / "result"
    for begun in kills:
        kill_after(start(storage, journal, jobs, result), journal, begun)
        assert not result.exists()
    stored = Counter((row.arm, row.block) for row in dbcare.load_study(NAME, storage).trials())
    assert set(stored.values()) == {1}
    before = len(read_fits(journal))
    assert before - 2 * jobs * len(kills) <= len(stored) <= before  # what was in flight is lost
    # It may go on with another number of jobs; workers of a second search would take seconds to start.
    assert start(storage, journal, 1, result).wait() == 0

    resumed = pickle.loads(result.read_bytes())
    whole = make_search(None, None, 1).fit(make_samples(TABLE))
    assert_same_results(resumed["cv_results_"], whole.cv_results_)
    for name in LISTED[1:]:
        assert resumed[name] == getattr(whole, name), name
    assert {"split0_train_plain", "mean_test_reversed", "split0_test_reversed"} <= set(resumed["cv_results_"])

    fits = Counter(place for place in read_fits(journal) if place[1] < FOLDS)
    assert len(fits) == whole.n_fits_ > max(kills)
    repeated = sum(fits.values()) - len(fits)
    # What was running is lost, and with several workers perhaps a fit that was about to be stored.
    assert repeated <= (jobs + (jobs > 1)) * len(kills)

    study = dbcare.load_study(NAME, storage)
    assert study.should_stop()
    assert sum(1 for _ in study.trials()) == whole.n_fits_
    assert study.recommendation().arm == f"candidate={whole.best_index_}"
    assert study.check() > 0  # the stored events still replay to the stored state


def test_a_finished_search_fits_nothing_when_run_again(tmp_path: Path) -> None:
    storage, journal = f"sqlite:///{tmp_path}/fits.db", tmp_path / "journal"
    options: dict[str, Any] = {"value": 1e5, "storage": storage, "estimator_options": {"journal": str(journal)}}
    first = search_table(TABLE, **options)
    fits = read_fits(journal)
    again = search_table(TABLE, **options)
    assert len(fits) == first.n_fits_ == again.n_fits_
    assert read_fits(journal) == fits
    assert list(first.cv_results_) == list(again.cv_results_)
    for key in first.cv_results_:  # also the times
        if key != "params":
            np.testing.assert_array_equal(first.cv_results_[key], again.cv_results_[key])
    assert (first.why_stopped_, first.best_params_) == (again.why_stopped_, again.best_params_)


@pytest.mark.parametrize("seed", [0, None])
def test_the_study_lists_the_fits(tmp_path: Path, seed: int | None) -> None:
    storage = f"sqlite:///{tmp_path}/fits.db"
    table = draw_table(5, 8, 1)
    search = search_table(table, value=1e5, price=2.0, storage=storage, study_name="mine", random_state=seed)
    study = dbcare.load_study("mine", storage)
    rows = list(study.trials())
    scores = collect_scores(search)
    listed = {(int(row.arm.removeprefix("candidate=")), int(row.block or 0) - 1): row.reward for row in rows}
    assert listed == {(int(a), int(b)): scores[a, b] for a, b in np.argwhere(~np.isnan(scores))}
    recommended = study.recommendation()
    assert recommended.arm == f"candidate={search.best_index_}"
    assert recommended.spent == pytest.approx(search.spent_)
    again = search_table(table, value=1e5, price=2.0, storage=storage, study_name="mine", random_state=seed)
    assert_same_results(search.cv_results_, again.cv_results_)  # also if the seed was drawn
    assert study.check() > 0


def test_storage_changes_no_decision(tmp_path: Path) -> None:
    for seed in range(4):
        table = draw_table(6, 10, seed, spread=0.01)
        storage = f"sqlite:///{tmp_path}/{seed}.db"
        plain = search_table(table, value=1e5, random_state=seed)
        stored = search_table(table, value=1e5, random_state=seed, storage=storage)
        assert_same_results(plain.cv_results_, stored.cv_results_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_failed_fits_are_stored_too(tmp_path: Path) -> None:
    storage, journal = f"sqlite:///{tmp_path}/fits.db", tmp_path / "journal"
    table = draw_table(5, 8, 1)
    table[2] = np.nan
    options: dict[str, Any] = {"value": 1e5, "storage": storage, "estimator_options": {"journal": str(journal)}}
    first, fits = search_table(table, **options), read_fits(journal)
    again = search_table(table, **options)
    assert_same_results(first.cv_results_, again.cv_results_)
    assert read_fits(journal) == fits
    failed = [row for row in dbcare.load_study("search", storage).trials() if row.status == "failed"]
    assert [row.arm for row in failed] == ["candidate=2"] * 3
