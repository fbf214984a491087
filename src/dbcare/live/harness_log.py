"""Sample logs of lm-evaluation-harness: one file per model, `samples_<task>_<date>.jsonl`.

The harness writes such a file for each task with `--log_samples`. A line is a document after a filter: `doc_id`, the
name of the `filter`, the names of its `metrics`, and a field for each of them, such as `acc` or `exact_match`. Tasks
with several filters have a line for each document and filter. `doc_hash` tells whether files mean the same document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError
from dbcare.live.block_log import BlockLog, LogRow, collect_blocks
from dbcare.live.log_cells import parse_number
from dbcare.live.log_table import read_json_lines


def read_harness_samples(
    files: Mapping[str, str | PathLike[str]],
    *,
    metric: str,
    filter_name: str | None = None,
    shared_only: bool = False,
) -> BlockLog:
    """Read the scores of several models from the sample logs of lm-evaluation-harness.

    Parameters
    ----------
    files : mapping
        The file of each arm by its name, all of the same task.
    metric : str
        The metric that is the score, such as "acc" or "exact_match".
    filter_name : str, optional
        The filter, such as "strict-match"; required if the files have several.
    shared_only : bool
        As in `read_block_log`.

    Returns
    -------
    BlockLog
        The scores, for `replay_blocks`; blocks are documents.

    Raises
    ------
    InvalidValueError
        If a file cannot be read, has no such metric, or means other documents than the first one.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from dbcare import read_harness_samples
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for model, rights in (("small", [1, 0]), ("large", [1, 1])):
    ...     lines = [json.dumps({"doc_id": place, "filter": "none", "metrics": ["acc"], "acc": right})
    ...              for place, right in enumerate(rights)]
    ...     _ = (folder / f"{model}.jsonl").write_text("\\n".join(lines))
    >>> log = read_harness_samples({name: folder / f"{name}.jsonl" for name in ("small", "large")}, metric="acc")
    >>> log.rewards
    ((1.0, 0.0), (1.0, 1.0))
    """
    if not isinstance(files, Mapping):
        raise InvalidValueError(f"`files` must be a mapping of arms to files but got {show(files)}.")
    for path in files.values():
        if not isinstance(path, str | PathLike):
            raise InvalidValueError(f"`files` must have the path of a file for each arm but got {show(path)}.")
    checks.text("metric", metric)
    hashes: dict[str, tuple[str, Any]] = {}
    rows = [row for arm, path in files.items() for row in _read_samples(arm, Path(path), metric, filter_name, hashes)]
    return collect_blocks(rows, shared_only=shared_only)


def _read_samples(
    arm: str, path: Path, metric: str, filter_name: str | None, hashes: dict[str, tuple[str, Any]]
) -> Iterator[LogRow]:
    samples = list(read_json_lines(path))
    filters = {str(sample.get("filter", "none")): None for _, sample in samples}
    if filter_name is None and len(filters) > 1:
        raise InvalidValueError(f"{path} has several filters; pass `filter_name` as one of them: {', '.join(filters)}.")
    if filter_name is not None and filter_name not in filters:
        raise InvalidValueError(f"{path} has no filter {show(filter_name)}; its filters are {', '.join(filters)}.")
    for line, sample in samples:
        if filter_name is not None and sample.get("filter", "none") != filter_name:
            continue
        if "doc_id" not in sample:
            raise InvalidValueError(f"{path}, line {line}, has no doc_id, so it is not a sample log of the harness.")
        if metric not in sample:
            known = ", ".join(map(str, sample.get("metrics", ()))) or "none"
            raise InvalidValueError(f"{path}, line {line}, has no metric {show(metric)}; its metrics are {known}.")
        reward = parse_number(sample[metric])
        if not abs(reward) < float("inf"):
            raise InvalidValueError(f"{path}, line {line}: {metric!r} must be a number but got {show(sample[metric])}.")
        block = str(sample["doc_id"])
        other, found = hashes.setdefault(block, (arm, sample.get("doc_hash")))
        if found != sample.get("doc_hash"):
            raise InvalidValueError(
                f"Document {block} is not the same for {other} and {arm}; pass files of the same task and version."
            )
        yield arm, block, reward, None
