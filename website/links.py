"""Link names of the Python API, wherever a page mentions them as code, to their entry in the reference."""

from __future__ import annotations

import re

from docutils import nodes
from python_api import list_public_packages
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

NAME = re.compile(r"(?:dbcare\.)?(?:[a-z]+\.)?(\w+)(?:\(.*\))?")
LINKED = (nodes.reference, nodes.title, pending_xref)  # where code stays as it is
PUBLIC = {name: package.__name__ for package in list_public_packages() for name in package.__all__}


class LinkPublicNames(SphinxTransform):
    """Turn `Breakeven`, `dbcare.plan` or `create_study(...)` into a link."""

    default_priority = 500

    def apply(self) -> None:
        """Replace code by references to be resolved."""
        for code in list(self.document.findall(nodes.literal)):
            match = NAME.fullmatch(code.astext())
            if match and match[1] in PUBLIC and not isinstance(code.parent, LINKED):
                target = f"{PUBLIC[match[1]]}.{match[1]}"
                link = pending_xref("", refdomain="py", reftype="obj", reftarget=target, refdoc=self.env.docname)
                code.replace_self(link)
                link += code
