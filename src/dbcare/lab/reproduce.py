"""Turn experiments into a folder of results, figures, tables and a report, doing only what is missing."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

import dbcare
from dbcare.engines.workers import available_threads
from dbcare.lab.experiments.experiment import Experiment
from dbcare.lab.experiments.passes import PRESENTATION_FILES, Pass, digest_code, plan_passes
from dbcare.lab.experiments.progress import SweepProgress
from dbcare.lab.experiments.results import Record, ResultStore
from dbcare.lab.experiments.sweep import Workers, lead_with_kernels, list_missing, sweep
from dbcare.lab.report import JudgedClaim, SectionWriter, Totals, write_report

RESULTS = "results.jsonl"
REPORT = "report.html"
MANIFEST = "manifest.json"  # identifies what the files in the folder were made from


@dataclass(frozen=True)
class Reproduction:
    """What is in a folder, and what was done to get there."""

    files: tuple[Path, ...]
    paper_claims: tuple[int, int]  # how many hold, of how many
    our_claims: tuple[int, int]  # the same, for those that are not the paper's
    computed: int  # points that were not on disk
    drawn: bool  # whether figures and report had to be written


def reproduce(
    experiments: Sequence[Experiment],
    folder: Path,
    workers: Workers,
    console: Console,
    *,
    title: str,
    whole_paper: bool = False,
    bounds: bool = False,
) -> Reproduction:
    """Compute what is not on disk, then write figures and report unless they are up to date.

    `whole_paper` compares the run time with the paper's; `bounds` adds the paper's figure of bounds.
    """
    start = time.monotonic()
    store = ResultStore(folder / RESULTS)
    owners = {point: experiment.name for experiment in experiments for point in experiment.points}
    passes = plan_passes(owners)
    names = {work.key: owners[work.points[0]] for work in passes}
    missing = _keep_together(list_missing(passes, store), names)
    computed = sum(len(work.points) for work in missing)
    digest = _compute_digest(passes, experiments, title, bounds)
    manifest = _read_manifest(folder, digest)
    writer = SectionWriter(experiments if manifest is None else (), passes, store, folder, bounds and manifest is None)
    if manifest is None:
        (folder / MANIFEST).unlink(missing_ok=True)  # nothing is up to date until everything is written
    with SweepProgress(console, missing, names, workers) as progress:

        def watch(record: Record) -> None:
            progress.update(record)
            writer.write_finished()

        sweep(missing, store, workers, watch)
    if manifest is not None:
        files = tuple(folder / name for name in manifest["files"])
        return Reproduction(files, tuple(manifest["claims"]), tuple(manifest["of_ours"]), computed, drawn=False)
    console.print("Drawing figures and writing the report.")
    writer.write_finished()
    sections = writer.sections
    totals = _compute_totals(passes, store, computed, time.monotonic() - start)
    report = write_report(folder / REPORT, title, [section for section, _ in sections], totals, whole_paper=whole_paper)
    drawn = [file for _, files in sections for file in files]
    files = (report, *drawn, *([store.path] if passes else []), folder / MANIFEST)
    judged = [claim for section, _ in sections for claim in section.claims if claim.verdicts]
    reproduction = Reproduction(
        files,
        _count_holding([claim for claim in judged if claim.quote is not None]),
        _count_holding([claim for claim in judged if claim.quote is None]),
        computed,
        drawn=True,
    )
    _write_manifest(folder, digest, reproduction)
    return reproduction


def _keep_together(missing: Sequence[Pass], names: Mapping[str, str]) -> list[Pass]:
    """Order passes by experiment, so that one can be drawn while others are computed.

    The experiment with the longest pass comes first: short passes at the end let all workers finish at the same time.
    Within each experiment, the first passes need different kernels.
    """
    order = dict.fromkeys(names[work.key] for work in missing)
    groups = ([work for work in missing if names[work.key] == name] for name in order)
    return [work for group in groups for work in lead_with_kernels(group)]


def _count_holding(claims: Sequence[JudgedClaim]) -> tuple[int, int]:
    """Return how many claims hold, of how many."""
    return sum(bool(claim.holds) for claim in claims), len(claims)


def _compute_digest(passes: Sequence[Pass], experiments: Sequence[Experiment], title: str, bounds: bool) -> str:
    """Return a digest of all that figures and report depend on: results, definitions, and the code that draws them."""
    digest = hashlib.sha256(repr((digest_code(), title, bounds, [work.key for work in passes])).encode())
    for experiment in experiments:
        texts = (experiment.name, experiment.title, experiment.source, experiment.decisions)
        digest.update(repr((*texts, experiment.claims, experiment.losses, experiment.baselines)).encode())
        digest.update(repr([(setting.title, setting.x, setting.bound) for setting in experiment.settings]).encode())
        digest.update(repr((experiment.contenders, experiment.paper_figure)).encode())
        digest.update(repr([(each.choice, each.ours, each.alternative) for each in experiment.variants]).encode())
    package = Path(__file__).parent.parent
    drawing = [*(package / "lab").glob("*.*"), *(package / "lab" / "experiments").glob("*.py")]
    for path in sorted([*drawing, *(package / name for name in PRESENTATION_FILES)]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _read_manifest(folder: Path, digest: str) -> dict[str, Any] | None:
    """Return the manifest, if it was written for `digest` and every file still exists."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        current = manifest["digest"] == digest and all((folder / name).exists() for name in manifest["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return manifest if current else None


def _write_manifest(folder: Path, digest: str, reproduction: Reproduction) -> None:
    names = [str(file.relative_to(folder)) for file in reproduction.files]
    claims = {"claims": reproduction.paper_claims, "of_ours": reproduction.our_claims}
    plain = {"digest": digest, "files": names, **claims}
    (folder / MANIFEST).write_text(json.dumps(plain, indent=1), encoding="utf-8")


def _compute_totals(passes: Sequence[Pass], store: ResultStore, computed: int, wall_seconds: float) -> Totals:
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
        machine=f"Python {platform.python_version()}, {platform.machine()}, {available_threads()} CPUs",
    )
