"""A page with the programs in `examples/`."""

from __future__ import annotations

import ast
from pathlib import Path

INTRODUCTION = """# Examples

Whole programs, from the folder `examples/`. Each runs as it is, in the tests too.
"""


def write_page(folder: Path) -> str:
    """Return the page: for each program what its docstring says, and its code."""
    parts = [INTRODUCTION]
    for path in sorted(folder.glob("*.py")):
        text = path.read_text()
        documentation = ast.get_docstring(ast.parse(text)) or ""
        headline, _, rest = documentation.partition("\n")
        code = text.split('"""', 2)[2].strip()
        title = headline.partition(": `")[0].rstrip(".")  # what follows says how to run it
        parts.append(f"## {title}\n\n`examples/{path.name}`\n\n{rest.strip()}\n\n```python\n{code}\n```\n")
    return "\n".join(parts)
