"""Means with their intervals, drawn in characters on one axis."""

from collections.abc import Iterable

from rich.text import Text

Span = tuple[float, float]
MEAN, LINE = "\N{BLACK CIRCLE}", "\N{BOX DRAWINGS HEAVY HORIZONTAL}"


def find_axis(spans: Iterable[Span]) -> Span | None:
    """Return the smallest axis that has room for all spans; None if there are none."""
    ends = list(spans)
    if not ends:
        return None
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return (low, high) if low < high else (low - 1.0, high + 1.0)


def draw_interval(mean: float, span: Span, axis: Span, width: int, style: str) -> Text:
    """Draw a line across the span with a dot at the mean; what is beyond the axis is cut off."""
    first, dot, last = (_place(value, axis, width) for value in (span[0], mean, span[1]))
    cells = [LINE if first <= place <= last else " " for place in range(width)]
    if axis[0] <= mean <= axis[1]:
        cells[dot] = MEAN
    text = Text("".join(cells), style=style, no_wrap=True)
    text.stylize("bold", dot, dot + 1)
    return text


def _place(number: float, axis: Span, width: int) -> int:
    share = (number - axis[0]) / (axis[1] - axis[0])
    return round(min(max(share, 0.0), 1.0) * (width - 1))
