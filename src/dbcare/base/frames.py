"""Data frames of any library, through narwhals: pandas, polars, Arrow, and whatever speaks Arrow's interface.

None of these libraries is required, and none is imported before a frame comes or is asked for.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from dbcare.base import checks
from dbcare.errors import InvalidValueError

if TYPE_CHECKING:
    import narwhals as nw

LIBRARIES = ("pandas", "polars", "pyarrow")  # the first one that is installed is the default
ARROW = "__arrow_c_stream__"  # the interface that tables of any library have, see the Arrow PyCapsule interface
MAX_COLUMNS_SHOWN = 20


class FrameColumns:
    """The columns of a data frame by name; cells are read when they are asked for."""

    def __init__(self, frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> None:
        self._frame = frame
        self.names = [str(name) for name in frame.collect_schema().names()]

    def read(self, names: Sequence[str]) -> dict[str, list[Any]]:
        """Return the cells of some columns, which exist, as plain Python values."""
        import narwhals as nw  # noqa: PLC0415  # only for frames

        if not names:  # narwhals wants one at least
            return {}
        wanted = self._frame.select(*names)
        eager = wanted.collect() if isinstance(wanted, nw.LazyFrame) else wanted
        return {name: eager[name].to_list() for name in names}

    def list_records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""
        columns = self.read(self.names)
        return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def open_frame(source: Any) -> FrameColumns | None:
    """Return the columns of a data frame, which may be open already; None if the source is none."""
    if isinstance(source, FrameColumns):
        return source
    if not any(hasattr(type(source), name) for name in ("columns", "collect_schema", ARROW)):
        return None
    import narwhals as nw  # noqa: PLC0415  # only for frames
    from narwhals.exceptions import DuplicateError  # noqa: PLC0415  # only for frames

    try:
        frame = nw.from_native(source, pass_through=True)
        if not isinstance(frame, nw.DataFrame | nw.LazyFrame) and hasattr(type(source), ARROW):
            library = next((name for name in ("pyarrow", "polars") if find_spec(name) is not None), None)
            if library is None:
                raise InvalidValueError("Arrow data require pyarrow or polars; install either one.")
            frame = nw.from_arrow(source, backend=import_module(library))
        return FrameColumns(frame) if isinstance(frame, nw.DataFrame | nw.LazyFrame) else None
    except DuplicateError:
        raise InvalidValueError("The data frame has several columns with the same name; rename or drop them.") from None


def list_rows(name: str, source: Any, columns: Sequence[str], optional: Sequence[str] = ()) -> Any:
    """Return the rows of a data frame as tuples; what is not a data frame is returned as it is.

    Rows have the `columns`, then the `optional` ones that the frame has; missing cells of these are None.
    """
    frame = open_frame(source)
    if frame is None:
        return source
    wanted = [*columns, *(column for column in optional if column in frame.names)]
    for column in columns:
        if column not in frame.names:
            raise InvalidValueError(
                f"`{name}` has no column {column!r}; rename one of its columns: {show_columns(frame.names)}."
            )
    cells = frame.read(wanted)
    for column in wanted[len(columns) :]:
        cells[column] = [None if cell != cell else cell for cell in cells[column]]  # noqa: PLR0124  # as NaN does
    return zip(*cells.values(), strict=True)


def show_columns(names: Sequence[str]) -> str:
    """Return names of columns for a message, at most 20 of them."""
    listed = ", ".join(names[:MAX_COLUMNS_SHOWN]) or "none"
    return listed if len(names) <= MAX_COLUMNS_SHOWN else f"{listed} and {len(names) - MAX_COLUMNS_SHOWN:,} more"


def make_frame(columns: Mapping[str, Iterable[Any]], types_: Mapping[str, type], library: str | None) -> Any:
    """Return a data frame of a library, or of the first one that is installed; each column has a type of its own."""
    chosen = _choose_library() if library is None else checks.one_of("library", library, LIBRARIES)
    try:
        module = import_module(chosen)
    except ModuleNotFoundError:
        raise InvalidValueError(f"Data frames of {chosen} require it: pip install {chosen}.") from None
    import narwhals as nw  # noqa: PLC0415  # only for frames

    kinds: dict[type, Any] = {
        int: nw.Int64,
        float: nw.Float64,
        bool: nw.Boolean,
        str: nw.String,
        datetime: nw.Datetime("us", "UTC"),
    }
    schema = {name: kinds[types_[name]] for name in columns}
    return nw.from_dict({name: list(cells) for name, cells in columns.items()}, schema, backend=module).to_native()


def _choose_library() -> str:
    for library in LIBRARIES:
        try:
            import_module(library)
        except ModuleNotFoundError:
            continue
        return library
    raise InvalidValueError("Data frames require pandas, polars or pyarrow; install one of them.")


def find_types(kind: type) -> dict[str, type]:
    """Return the types of a dataclass's fields; `float` for `float | None`."""
    return {name: _strip_none(hint) for name, hint in get_type_hints(kind).items()}


def _strip_none(hint: Any) -> type:
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not types.NoneType)
    assert isinstance(hint, type)
    return hint
