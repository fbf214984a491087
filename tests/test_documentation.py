"""The README and the docs keep their word: examples run and print what the page shows, and links lead somewhere."""

import contextlib
import doctest
import importlib
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dbcare
from dbcare.lab.experiments import definition
from dbcare.policies.registry import POLICIES
from tests.helpers.dbcare_command import COMMAND, run_dbcare
from tests.helpers.prepared_process import PreparedProcess

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = [*PAGES, ROOT / "VISION.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]
PARTS = {path.stem for path in Path(dbcare.__file__).parent.iterdir() if not path.name.startswith("_")}

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"# (\w+\.(?:py|toml))\b")  # in the first line of a block that is, or continues, a file
PROMPT = "$ "  # before a command that is run
BACKGROUND = " &"  # after one that runs as long as the page is read
LINK = re.compile(r"\]\(([^)#]+?)(?:#[^)]*)?\)")
CODE_NAME = re.compile(r"`(\w+(?:\.\w+)+)(?:\(.*?\))?`")
COMMANDS = {"dbcare": ("-m", "dbcare"), "pytest": ("-m", "pytest", "-p", "no:cacheprovider")}


def name_page(page: Path) -> str:
    return str(page.relative_to(ROOT))


class Reader:
    """Does what a page says, block by block, in an empty folder.

    A block that starts with a comment such as `# lucb.py` is a file, or the next part of one; a module is imported
    right away. All other Python blocks share their names. A line of a console block after `$ ` is a command. What
    `pyproject.toml` declares is installed, but only for commands: they are processes of their own, and started by
    Python itself from then on. Until then `dbcare` is forked from a process that has imported it, which is faster.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packages = folder / "site-packages"
        self.names: dict[str, object] = {}
        self.printed = ""
        self.checker = doctest.OutputChecker()
        self.background: list[PreparedProcess] = []

    def read(self, language: str, text: str) -> None:
        """Do what one block says."""
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                self.run_python(text)
            self.printed = output.getvalue()
        elif language == "toml":
            self.use_toml(self.extend_file(text), tomllib.loads(text))
        elif language == "text":
            self.compare(text, self.printed)
        elif language == "console" and text.startswith(PROMPT):
            command, _, expected = text.removeprefix(PROMPT).partition("\n")
            self.compare(expected, self.run_command(command))

    def run_python(self, text: str) -> None:
        if not FILE_NAME.match(text):
            exec(compile(text, str(self.folder / "<page>"), "exec"), self.names)
            return
        path = self.extend_file(text)
        if not path.name.startswith("test_"):  # those are for pytest
            linecache.checkcache(str(path))
            importlib.invalidate_caches()
            sys.modules.pop(path.stem, None)
            importlib.import_module(path.stem)

    def extend_file(self, text: str) -> Path:
        named = FILE_NAME.match(text)
        assert named, f"the first line must name the file: {text.splitlines()[0]}"
        path = self.folder / named[1]
        with path.open("a") as file:
            file.write(f"{text}\n\n")
        return path

    def use_toml(self, path: Path, content: dict[str, Any]) -> None:
        """Check the definition of an experiment, or install what a package declares."""
        if path.name != "pyproject.toml":
            assert definition.load(path).points
            return
        project = content["project"]
        info = self.packages / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        groups = [
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
            for group, entries in project["entry-points"].items()
        ]
        (info / "entry_points.txt").write_text("\n".join(groups))

    def run_command(self, command: str) -> str:
        program, *arguments = shlex.split(command.removesuffix(BACKGROUND))
        paths = [str(self.packages), str(self.folder), *sys.path]
        variables = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
        variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # pages need none, and loading all takes seconds
        if command.endswith(BACKGROUND):
            assert program == "dbcare"
            self.background.append(PreparedProcess(COMMAND, arguments, os.devnull, **variables))
            return ""
        if program == "dbcare" and not self.packages.exists():
            process = run_dbcare(*arguments, **variables)
        else:
            call = [sys.executable, *COMMANDS[program], *arguments]
            environment = {**os.environ, **variables}
            process = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=300, check=False)
        assert process.returncode == 0, f"{command} failed\n{process.stdout}\n{process.stderr}"
        return process.stdout

    def compare(self, expected: str, printed: str) -> None:
        assert self.checker.check_output(expected, printed, doctest.ELLIPSIS), (
            f"The page shows\n{expected}\nbut this was printed:\n{printed}"
        )


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """A reader who leaves neither modules nor policies behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("SHOP_WITHIN", "60")  # a busy machine may need more than the guide's time
    known = set(POLICIES)
    reader = Reader(tmp_path)
    yield reader
    for process in reader.background:
        process.terminate()
        process.wait()
    for name in set(POLICIES) - known:
        dbcare.unregister_policy(name)
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_examples(page: Path, reader: Reader) -> None:
    """What a page shows is what its code prints; `...` stands for anything."""
    for language, text in BLOCK.findall(page.read_text()):
        reader.read(language, text)


def test_every_promise_is_checked(reader: Reader) -> None:
    """Negative controls: wrong output, a command that fails, and a bad experiment are noticed."""
    reader.read("python", "print(1)\n")
    reader.read("text", "1\n")
    reader.read("python", "# module.py\nprint(2)\n")
    reader.read("python", "# module.py, continued\nprint(3)\n")
    reader.read("text", "2\n3\n")
    reader.read("python", "# test_module.py\ndef test_nothing():\n    assert False\n")
    for language, text in (
        ("text", "4\n"),
        ("console", "$ dbcare --help\nnonsense\n"),
        ("console", "$ pytest -q test_module.py\n"),
        ("toml", "# wrong.toml\nnonsense = 1\n"),
        ("toml", "nonsense = 1\n"),
    ):
        with pytest.raises((AssertionError, dbcare.DbcareError)):
            reader.read(language, text)


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_page)
def test_links(page: Path) -> None:
    """Links within the project lead somewhere."""
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_every_page_can_be_reached() -> None:
    """By links, from the README."""
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            targets = [(page.parent / target).resolve() for target in LINK.findall(page.read_text())]
            waiting += [target for target in targets if target.suffix == ".md"]
    assert set(DOCUMENTS) - reached == set()


def find_object(name: str) -> object:
    """Return what a dotted name such as `studies.study.Study.tell` means, below `dbcare`."""
    found: Any = dbcare
    path = "dbcare"
    for part in name.split("."):
        path = f"{path}.{part}"
        with contextlib.suppress(ImportError):
            importlib.import_module(path)
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "developer").glob("*.md")), ids=name_page)
def test_names_in_the_code_exist(page: Path) -> None:
    """Developers are sent to functions that are there."""
    names = {name for name in CODE_NAME.findall(page.read_text()) if name.split(".")[0] in PARTS}
    for name in sorted(names):
        if name.rpartition(".")[2] not in ("py", "md", "html", "js", "css", "toml"):
            find_object(name)
