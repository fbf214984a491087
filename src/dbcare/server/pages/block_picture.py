"""Recent blocks of a study as a picture: a row per arm, a column per block, and a cell per trial, colored by reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbcare.base.numbers import format_number
from dbcare.studies.record.events import EventKind
from dbcare.studies.show.export import TrialRow
from dbcare.studies.stored import StoredStudy

MAX_PICTURE_BLOCKS, MAX_PICTURE_ARMS = 60, 20  # columns and rows
LEVELS = 7  # colors
TRIALS_PER_CELL = 4  # read for each cell: arms of a pool may be far behind each other
CELL = 16  # width and height of a cell, with its gap


@dataclass(frozen=True)
class BlockCell:
    """A trial, or the lack of one; `look` is the class of its color or mark."""

    column: int
    look: str
    text: str

    @property
    def left(self) -> int:
        """Its horizontal position."""
        return CELL * self.column


@dataclass(frozen=True)
class BlockPicture:
    """Cells by arm; `low` and `high` are the smallest and the largest reward shown, if there are any."""

    rows: list[tuple[str, list[BlockCell]]]
    blocks: list[str]
    low: str | None
    high: str | None

    @property
    def width(self) -> int:
        """Width of a row of cells."""
        return CELL * len(self.blocks)


def draw_blocks(study: StoredStudy, arms: Sequence[str]) -> BlockPicture:
    """Return the picture of the latest blocks, with the first of these arms."""
    shown = arms[:MAX_PICTURE_ARMS]
    names = study.settings.block_names
    rows = [
        row for row in study.recent_trials(TRIALS_PER_CELL * MAX_PICTURE_BLOCKS * len(shown)) if row.block is not None
    ]
    blocks = sorted({row.block for row in rows if row.block is not None}, key=names.find)[-MAX_PICTURE_BLOCKS:]
    trials = {(row.arm, row.block): row for row in rows if row.arm in shown and row.block in blocks}
    rewards = [row.reward for row in trials.values() if row.reward is not None]
    low, high = min(rewards, default=0.0), max(rewards, default=0.0)

    def draw_row(arm: str) -> list[BlockCell]:
        return [
            _make_cell(trials.get((arm, block)), arm, block, place, low, high) for place, block in enumerate(blocks)
        ]

    return BlockPicture(
        rows=[(arm, draw_row(arm)) for arm in shown],
        blocks=blocks,
        low=format_number(low) if rewards else None,
        high=format_number(high) if rewards else None,
    )


def _make_cell(trial: TrialRow | None, arm: str, block: str, column: int, low: float, high: float) -> BlockCell:
    where = f"{arm}, {block}: "
    if trial is None:
        return BlockCell(column, "absent", f"{where}not asked")
    if trial.reward is not None:
        share = (trial.reward - low) / (high - low) if high > low else 0.5
        return BlockCell(
            column, f"level-{min(LEVELS - 1, int(LEVELS * share))}", f"{where}{format_number(trial.reward)}"
        )
    if trial.status == EventKind.ASKED:
        return BlockCell(column, "open", f"{where}pending")
    return BlockCell(column, "missed", f"{where}{trial.status}, no reward")
