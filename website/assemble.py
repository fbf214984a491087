"""Gather the pages of the site in one folder: those of `docs/`, those at the top of the project, and generated ones.

Pages are plain Markdown that is readable in the repository. Links between them are rewritten to where the pages stand
in the site, so a link to `../CONTRIBUTING.md` works in both places.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import navigation

import examples

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
HOME = "index.md"
README = ROOT / "README.md"  # its place is taken by the first page of `docs/`
PROJECT_PAGES = [path for path in sorted(ROOT.glob("*.md")) if path != README]
EXAMPLES = ROOT / "examples"

FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")


def find_place(path: Path) -> Path:
    """Return where a file of the project stands in the site; those that are not pages can be downloaded."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    if path == README:
        return Path(HOME)
    if path in PROJECT_PAGES:
        return Path("project", path.name.lower())
    return Path("examples.md") if path.is_relative_to(EXAMPLES) else Path("files") / path.relative_to(ROOT)


def rewrite_links(text: str, source: Path) -> str:
    """Point the links of a page to where their targets stand in the site; code is left alone."""
    here = find_place(source).parent

    def replace(match: re.Match[str]) -> str:
        if "://" in match[2]:
            return match[0]
        target = find_place((source.parent / match[2]).resolve())
        return f"{match[1]}{os.path.relpath(target, here)}{match[3]}"

    return "".join(part if part.startswith("```") else LINK.sub(replace, part) for part in FENCE.split(text))


def write_menu() -> str:
    """Return the directives that make the menu."""
    blocks = []
    for caption, pages in navigation.SECTIONS.items():
        entries = "\n".join(f"/{page}" for page in pages)
        blocks.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n")
    return "\n" + "\n".join(blocks)


def copy_page(source: Path, folder: Path) -> None:
    """Copy a page to its place, and the files that it links to."""
    text = rewrite_links(source.read_text(), source)
    target = folder / find_place(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text + write_menu() if find_place(source) == Path(HOME) else text)
    for _, link, _ in LINK.findall(source.read_text()):
        linked = (source.parent / link).resolve()
        place = folder / find_place(linked) if linked.is_relative_to(ROOT) and linked.is_file() else None
        if place is not None and place.suffix != ".md":
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(linked, place)


def gather_pages(folder: Path) -> None:
    """Copy all written pages, their pictures, and the files that they link to, into an empty folder."""
    for source in (*sorted(DOCS.rglob("*.md")), *PROJECT_PAGES):
        copy_page(source, folder)
    (folder / "examples.md").write_text(examples.write_page(EXAMPLES))
