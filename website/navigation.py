"""Where each page stands in the site: sections with their pages, in the order of the menu.

Paths are those of the site, without `.md`. A page in `docs/` that is missing here fails the build, and so does an
entry without a page.
"""

from __future__ import annotations

SECTIONS: dict[str, tuple[str, ...]] = {
    "Get started": (
        "get_started/install",
        "tutorial",
        "get_started/first_study",
        "get_started/first_dashboard",
    ),
    "Before you start": (
        "guides/price_value_spread",
        "guides/choosing_a_policy",
        "planning",
    ),
    "Guides": (
        "studies",
        "running",
        "notebooks",
        "data_frames",
        "guides/control_arm",
        "guides/delays",
        "guides/many_workers",
        "guides/web_applications",
        "drift",
        "revenue",
        "guides/importing_logs",
        "comparing_prompts",
        "searching_parameters",
        "sweeps",
        "examples",
    ),
    "Operation": (
        "service",
        "guides/postgresql",
        "deployment",
        "runbook",
    ),
    "How it works": (
        "explanation/breakeven",
        "explanation/proofs",
        "explanation/rounds",
        "explanation/assumptions",
        "explanation/calibration",
        "explanation/engines",
        "explanation/paper",
        "explanation/rivals",
    ),
    "Reference": (
        "reference/python/index",
        "reference/commands",
        "reference/http_api",
        "reference/options",
        "reference/environment",
        "reference/glossary",
        "reference/bibliography",
    ),
    "Development": (
        "project/contributing",
        "developer/architecture",
        "developer/add_a_policy",
        "developer/add_a_store",
        "developer/add_a_page",
        "developer/release",
        "project/vision",
        "project/security",
        "project/changelog",
    ),
}
