"""Let commands, and sentences that a program prints, wrap like prose; tables keep their columns and scroll."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

COLUMNS = re.compile(r"\S {2,}\S|^ {2,}|[─═-]{8}", re.MULTILINE)
LANGUAGES = ("text", "console")
WRAPPED = "wrapped"  # a class of `site.css`


class WrapSentences(SphinxTransform):
    """Mark the blocks that have no columns."""

    default_priority = 500

    def apply(self) -> None:
        """Add the class to their blocks."""
        for block in self.document.findall(nodes.literal_block):
            if block.get("language") in LANGUAGES and not COLUMNS.search(block.astext()):
                block["classes"].append(WRAPPED)
