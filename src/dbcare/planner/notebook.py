"""A plan as notebooks show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbcare.base.html import make_code, make_display, make_list, make_table
from dbcare.planner.presentation import how_to_run, notes, title
from dbcare.planner.table import LEFT, list_headers, list_lines

if TYPE_CHECKING:
    from dbcare.planner.plan import Plan


def display_plan(plan: Plan) -> str:
    """Return title, advice, table, what the figures rest on, and how to create the study."""
    headers, lines = list_headers(plan), list(list_lines(plan))
    return make_display(
        title(plan),
        "",
        make_list(plan.advice),
        make_table(
            headers,
            [line.cells for line in lines],
            numbers=[header for header in headers if header not in LEFT],
            strong=[place for place, line in enumerate(lines) if line.is_best],
        ),
        make_list(notes(plan)),
        make_code(line for line in how_to_run(plan) if line),
    )
