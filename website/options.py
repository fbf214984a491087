"""The page on options: those of studies and plans, and the service's limits, from their definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbcare.base.options import named_options
from dbcare.planner.options import LocalPlanOptions
from dbcare.planner.plan import plan
from dbcare.server.service_limits import DEFAULT_LIMITS, describe_limits
from dbcare.studies.api import create_study
from dbcare.studies.options import StudyOptions

INTRODUCTION = """# Options

Options have the same names and meaning wherever they appear: in Python, in the shell (`sigma_pulls` is
`--sigma-pulls`), in the HTTP API, and in the dashboard's form.
[Price, value, and spread](../guides/price_value_spread.md) says how to choose the most important ones.
"""
LIMITS = """## Limits of the service

Each is an option of `dbcare serve`, such as `--body-bytes`. [Deployment](../deployment.md#limits) says what happens
beyond them.
"""


def describe_options(options: type, function: Callable[..., Any]) -> str:
    """Return the options of a typed dictionary as a definition list, with the defaults of `function`."""
    entries = []
    for each in named_options(options, function):
        choices = each.option.choices() if each.option.choices else ()
        facts = [each.option.help]
        if choices:
            facts.append(f"One of {', '.join(f'`{choice}`' for choice in choices)}.")
        if each.default not in (None, False) and "Default:" not in each.option.help:
            facts.append(f"Default: `{each.default}`.")
        entries.append(f"`{each.name}`\n: {' '.join(facts)}\n")
    return "\n".join(entries)


def write_page() -> str:
    """Return the page."""
    limits = "\n".join(
        f"| `--{name.replace('_', '-')}` | {getattr(DEFAULT_LIMITS, name):,g} | {help_text} |"
        for name, _kind, help_text in describe_limits()
    )
    return "\n".join(
        [
            INTRODUCTION,
            "## Options of a study\n",
            "For `create_study`, `dbcare create`, and `POST /v1/studies`.\n",
            describe_options(StudyOptions, create_study),
            "## Options of a plan\n",
            "For `plan`, `dbcare plan`, and `POST /v1/plan`.\n",
            describe_options(LocalPlanOptions, plan),
            LIMITS,
            "| option | default | what it limits |\n|---|---|---|",
            limits,
            "",
        ]
    )
