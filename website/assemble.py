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
PROJECT_PAGES = {
    "CONTRIBUTING.md": "project/contributing.md",
    "VISION.md": "project/vision.md",
    "CHANGELOG.md": "project/changelog.md",
    "README.md": HOME,
    "examples": "examples.md",
}
DOWNLOADS = ("deploy", "LICENSE")  # linked files that are not pages

FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")


def find_place(path: Path) -> Path:
    """Return where a file of the project stands in the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    relative = path.relative_to(ROOT).as_posix()
    if relative in PROJECT_PAGES:
        return Path(PROJECT_PAGES[relative])
    if relative.startswith("examples/"):
        return Path(PROJECT_PAGES["examples"])
    return Path("files") / relative


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


def gather_pages(folder: Path) -> None:
    """Copy all written pages, their pictures, and the files that they link to, into an empty folder."""
    for source in sorted(DOCS.rglob("*")):
        target = folder / find_place(source)
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif source.suffix != ".md":
            shutil.copyfile(source, target)
        else:
            text = rewrite_links(source.read_text(), source)
            target.write_text(text + write_menu() if find_place(source) == Path(HOME) else text)
    (folder / "project").mkdir()
    for name, place in PROJECT_PAGES.items():
        source = ROOT / name
        if place.startswith("project/"):
            (folder / place).write_text(rewrite_links(source.read_text(), source))
    for name in DOWNLOADS:
        source, target = ROOT / name, folder / "files" / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)
    (folder / "examples.md").write_text(examples.write_page(ROOT / "examples"))
