"""Every Python example in the README and the docs runs, and prints what stands below it; every TOML one is valid."""

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

from dbcare.lab import definition

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+?)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a page share their names, as a reader would run them; `...` stands for anything."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    checker = doctest.OutputChecker()
    for language, text in BLOCK.findall(page.read_text()):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(text, str(page), "exec"), names)
            printed = output.getvalue()
        elif language == "toml":
            file = tmp_path / "prompts.toml"
            file.write_text(text)
            assert definition.load(file).points
        elif language == "text":
            assert checker.check_output(text, printed, doctest.ELLIPSIS), (
                f"{page.name} promises\n{text}\nbut\n{printed}"
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page: Path) -> None:
    """Links within the project lead somewhere."""
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []
