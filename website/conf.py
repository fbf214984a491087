"""Configuration of Sphinx; `build.py` uses it."""

from __future__ import annotations

from pathlib import Path

import docstrings
import links
import outputs

import dbcare

project = "dbcare"
author = "The dbcare maintainers"
copyright = author  # noqa: A001  # what Sphinx calls it
release = version = dbcare.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]
default_role = "py:obj"  # names in single backticks link to their entry, if there is one
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries = False  # every public name has a heading of its own
maximum_signature_line_length = 88

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types are in the signatures of numpy-style parameters
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
pygments_dark_style = "a11y-dark"
html_title = "dbcare"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_js_files = ["search_note.js"]
html_favicon = str(Path(dbcare.__file__).parent / "server/pages/static/icon.svg")
html_logo = html_favicon
html_copy_source = False
html_use_index = False
html_domain_indices = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "footer_icons": [],
    "light_css_variables": {"color-brand-primary": "#5a3ec8", "color-brand-content": "#5a3ec8"},
    "dark_css_variables": {"color-brand-primary": "#b3a1ff", "color-brand-content": "#b3a1ff"},
}


def setup(app):  # type: ignore[no-untyped-def]  # called by Sphinx
    """Register what we add to Sphinx."""
    app.add_transform(links.LinkPublicNames)
    app.add_transform(outputs.WrapSentences)
    app.connect("autodoc-process-docstring", docstrings.prepare_docstring, priority=100)  # before napoleon
