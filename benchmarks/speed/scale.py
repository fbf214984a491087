"""Measure many studies and long ones: listing 5,000, the memory of open ones, and a study of 1,000,000 trials.

The long study is grown with `tell_many`, which takes a few minutes. The memory of an open study is by how much a server
process grows with each study whose status, recommendation, history and pending trials somebody looks at.
"""

import json
import random
import statistics
import tempfile
import time
from pathlib import Path

import dbcare
from benchmarks.parts.bars import Bars
from benchmarks.parts.http_load import Server
from benchmarks.parts.process_memory import read_memory
from benchmarks.parts.study_load import BATCH, seconds_per_pair
from dbcare import Study
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.sql.store import SqlStore

STUDIES = 5_000
TRIALS = 1_000_000
SMALL = 1_000
PAIRS = 300
OPEN_STUDIES = (  # arms, blocks in a pool, trials told, trials pending; studies to open; MB that each may take
    (3, None, 1_000, 0, 40, 0.3),
    (3, None, 50_000, 0, 10, 0.5),
    (100, None, 1_000, 0, 20, 1.5),
    (1_000, None, 2_000, 0, 10, 15.0),
    (3, None, 1_000, 10_000, 10, 8.0),
    (10, 1_000, 1_000, 1, 20, 1.5),
    (10, 10_000, 1_000, 1, 10, 10.0),
    (10, 100_000, 1_000, 1, 5, 90.0),
)


def create_studies(storage: str, studies: int) -> None:
    """Create studies with a few rewards each."""
    for number in range(studies):
        study = dbcare.create_study(f"study {number}", ("A", "B"), cost=1e-6, sigma=1.0, storage=storage)
        study.add([("A", 0.5), ("B", 0.25)])


def grow(study: Study, trials: int) -> None:
    """Let a study run that many trials."""
    chance, asked = random.Random(trials), 0
    while asked < trials:
        batch = study.ask(min(BATCH, trials - asked))
        study.tell_many((trial, chance.gauss(0.0, 1.0)) for trial in batch)
        asked += len(batch)


def time_listing(storage: str, studies: int) -> tuple[float, float]:
    """Return the seconds that the API takes to list 50 of the studies, and to search them all."""
    server = Server(storage)
    server.start()
    server.get("/v1/studies?limit=1")
    listing, searching = [], []
    for number in range(20):
        began = time.perf_counter()
        listed = json.loads(server.get(f"/v1/studies?limit=50&after=study%20{studies // 25 * number}"))
        listing.append(time.perf_counter() - began)
        assert len(listed) == 50
        began = time.perf_counter()
        found = json.loads(server.get(f"/v1/studies?limit=50&q={200 + number}"))
        searching.append(time.perf_counter() - began)
        assert found
    server.kill()
    return statistics.median(listing), statistics.median(searching)


def create_open_studies(
    storage: str, arms: int, blocks: int | None, told: int, pending: int, studies: int
) -> list[str]:
    """Create studies of one kind; return their names."""
    names = [f"{arms}-{blocks}-{told}-{pending}-{number}" for number in range(studies)]
    for name in names:
        study = dbcare.create_study(
            name, [f"arm {arm}" for arm in range(arms)], cost=1e-9, sigma=1.0, blocks=blocks, max_ahead=BATCH,
            storage=storage,
        )  # fmt: skip
        grow(study, told)
        assert len(study.ask(pending) if pending else []) == pending
    return names


def measure_open_studies(folder: Path, bars: Bars) -> None:
    """Measure by how many megabytes a server grows per open study, for several kinds of studies."""
    for place, (arms, blocks, told, pending, studies, bar) in enumerate(bars.size(OPEN_STUDIES, OPEN_STUDIES[::2])):
        storage = f"sqlite:///{folder / f'open {place}'}.db"
        count = bars.size(studies, 3)
        first, *others = create_open_studies(storage, arms, blocks, told, pending, count + 1)
        server = Server(storage)
        server.start()
        memory = []
        for names in ([first], others):
            for name in names:
                for view in ("", "/recommendation", "/history", "/pending"):
                    server.get(f"/v1/studies/{name}{view}")
            memory.append(read_memory(server.process.pid, "VmRSS"))
        server.kill()
        kind = f"{arms} arms, {told:,} rewards"
        kind += f", {blocks:,} blocks" if blocks else f", {pending:,} pending" if pending else ""
        bars.report(f"MB per open study: {kind}", (memory[1] - memory[0]) / count, bar)


def main() -> None:
    bars = Bars(__doc__)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        storage = f"sqlite:///{folder / 'many.db'}"
        count, trials = bars.size((STUDIES, TRIALS), (300, 40_000))
        create_studies(storage, count)
        listing, searching = time_listing(storage, count)
        bars.report(f"listing 50 of {count:,} studies over HTTP, seconds", listing, 0.1)
        bars.report(f"searching {count:,} studies over HTTP, seconds", searching, 0.1)
        measure_open_studies(folder, bars)
        studies = {
            name: dbcare.create_study(
                name, ("A", "B", "C"), cost=1e-15, sigma=1.0, max_ahead=BATCH, storage=f"sqlite:///{folder / name}.db"
            )
            for name in ("small", "large")
        }
        grow(studies["small"], SMALL)
        grow(studies["large"], trials)
        opened = []
        for _ in range(5):
            store = SqlStore(f"sqlite:///{folder / 'large'}.db", create=False)
            began = time.perf_counter()
            StoredStudy(store, "large").should_stop()
            opened.append(time.perf_counter() - began)
            store.close()
        bars.report(f"opening {trials:,} trials, seconds", statistics.median(opened), 0.1)
        ratios = [
            seconds_per_pair(studies["large"], PAIRS, with_key=True)
            / seconds_per_pair(studies["small"], PAIRS, with_key=True)
            for _ in range(5)
        ]
        bars.report(f"ask+tell with a key at {trials:,} trials / at {SMALL:,}", statistics.median(ratios), 1.3)
        began = time.perf_counter()
        studies["large"].status()
        bars.report(f"status of {trials:,} trials, seconds", time.perf_counter() - began, 0.1)
    bars.save()
