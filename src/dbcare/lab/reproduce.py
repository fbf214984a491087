"""From experiments to a folder with results, figures, tables and a report; only what is missing is done."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

import dbcare
from dbcare.engines.threads import available_threads
from dbcare.lab.experiment import Experiment
from dbcare.lab.points import Pass, code_digest, plan
from dbcare.lab.progress import SweepProgress
from dbcare.lab.report import Totals, write_report
from dbcare.lab.report_sections import bounds_section, experiment_section
from dbcare.lab.result_store import ResultStore
from dbcare.lab.sweep import Workers, sweep, waiting

RESULTS = "results.jsonl"
REPORT = "report.html"
MANIFEST = "manifest.json"  # what the files in the folder were made from


@dataclass(frozen=True)
class Written:
    """What a folder holds now."""

    files: tuple[Path, ...]
    claims: tuple[int, int]  # that hold, and all
    of_ours: tuple[int, int]  # the same, of those about our own policies
    computed: int  # points that were not on disk
    drawn: bool  # whether figures and report had to be made


def reproduce(
    experiments: Sequence[Experiment],
    folder: Path,
    workers: Workers,
    console: Console,
    *,
    title: str,
    whole_paper: bool = False,
    bounds: bool = False,
) -> Written:
    """Run what is not on disk, then draw and report unless that is up to date.

    `whole_paper` compares the time with the paper's, `bounds` adds its figure of bounds.
    """
    began = time.monotonic()
    store = ResultStore(folder / RESULTS)
    owner = {point: each.name for each in experiments for point in each.points}
    passes = plan(owner)
    todo = waiting(passes, store)
    computed = sum(len(work.points) for work in todo)
    with SweepProgress(console, computed, {work.key: owner[work.points[0]] for work in todo}) as progress:
        results = sweep(passes, store, workers, progress.see)
    digest = _digest(passes, experiments, title, bounds)
    if (known := _up_to_date(folder, digest)) is not None:
        files = tuple(folder / each for each in known["files"])
        return Written(files, tuple(known["claims"]), tuple(known["of_ours"]), computed, drawn=False)
    console.print("Drawing figures and writing the report.")
    (folder / MANIFEST).unlink(missing_ok=True)  # until all is written, nothing is up to date
    sections = [bounds_section(folder)] if bounds else []
    sections += [experiment_section(each, results, folder) for each in experiments]
    totals = _totals(passes, store, computed, time.monotonic() - began)
    report = write_report(folder / REPORT, title, [section for section, _ in sections], totals, whole_paper=whole_paper)
    files = (report, *(file for _, files in sections for file in files), *([store.path] if passes else []))
    judged = [each for section, _ in sections for each in section.judged if each.verdicts and not each.claim.ours]
    of_ours = [each for section, _ in sections for each in section.judged if each.verdicts and each.claim.ours]
    written = Written(
        files,
        (sum(bool(each.holds) for each in judged), len(judged)),
        (sum(bool(each.holds) for each in of_ours), len(of_ours)),
        computed,
        drawn=True,
    )
    _remember(folder, digest, written)
    return written


def _digest(passes: Sequence[Pass], experiments: Sequence[Experiment], title: str, bounds: bool) -> str:
    """A fingerprint of everything that figures and report depend on: results, definitions, and the code here."""
    found = hashlib.sha256(repr((code_digest(), title, bounds, [work.key for work in passes])).encode())
    for each in experiments:
        found.update(repr((each.name, each.title, each.source, each.decisions, each.claims, each.losses)).encode())
        found.update(repr([(setting.title, setting.x, setting.bound) for setting in each.settings]).encode())
        found.update(repr(each.contenders).encode())
    for path in sorted(Path(__file__).parent.glob("*.*")):
        found.update(path.read_bytes())
    return found.hexdigest()


def _up_to_date(folder: Path, digest: str) -> dict[str, Any] | None:
    """What the manifest says, if it was written for `digest` and every file is still there."""
    try:
        known: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        current = known["digest"] == digest and all((folder / each).exists() for each in known["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return known if current else None


def _remember(folder: Path, digest: str, written: Written) -> None:
    listed = [str(file.relative_to(folder)) for file in written.files]
    plain = {"digest": digest, "files": listed, "claims": written.claims, "of_ours": written.of_ours}
    (folder / MANIFEST).write_text(json.dumps(plain, indent=1), encoding="utf-8")


def _totals(passes: Sequence[Pass], store: ResultStore, computed: int, wall_seconds: float) -> Totals:
    records = [store.records[work.key] for work in passes]
    engines: Counter[str] = Counter()
    for record in records:
        engines[record.engine] += len(record.results)
    return Totals(
        points=sum(engines.values()),
        pulls=sum(record.pulls_simulated for record in records),
        cpu_seconds=sum(record.cpu_seconds for record in records),
        computed=computed,
        wall_seconds=wall_seconds,
        engines=dict(engines),
        seed=", ".join(sorted({str(record.seed) for record in records})) or "none",
        version=dbcare.__version__,
        machine=f"Python {platform.python_version()}, {platform.machine()}, {available_threads()} processors",
    )
