"""Measure how large the package is, and how it is cut: `python -m benchmarks structure [FOLDER]`.

FOLDER is the package to read, by default the one in `src`, so that two versions can be compared. Nothing of it runs.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.parts.bars import Bars, make_parser

PACKAGE = Path(__file__).parents[2] / "src" / "dbcare"


def name_module(path: Path, package: Path) -> str:
    """Return a module's dotted name."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def list_imports(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Yield what a module imports when it is imported: modules, each with the names taken from it.

    Imports inside functions, and those for type checkers only, happen later or never.
    """
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", [alias.name for alias in node.names]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def read_imports(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Return which modules of a package each of its modules imports at its top level."""
    trees = {name_module(path, package): ast.parse(path.read_text()) for path in package.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for name, tree in trees.items():
        wanted = {
            inner if (inner := f"{module}.{each}") in trees else module
            for module, names in list_imports(tree)
            for each in names or [""]
        }
        found[name] = (wanted & trees.keys()) - {name}
    return found


def find_cycles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or through others."""
    reached: dict[str, set[str]] = {}
    for name in imports:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            new = imports[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[name] = seen
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in imports}
    return sorted(sorted(group) for group in groups if group)


def list_public(package: Path) -> list[str]:
    """Return the names that the package itself gives to everyone: those in its stub, other than its subpackages."""
    body = ast.parse((package / "__init__.pyi").read_text()).body
    imports = [node for node in body if isinstance(node, ast.ImportFrom) and node.module != package.name]
    return ["__version__", *(alias.name for node in imports for alias in node.names)]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("package", nargs="?", type=Path, default=PACKAGE, metavar="FOLDER")
    bars = Bars(__doc__, options := parser.parse_args())
    package: Path = options.package
    files = sorted(package.rglob("*.py"))
    folders = Counter(path.parent.relative_to(package.parent).as_posix() for path in files if path.stem != "__init__")
    (fullest, most), *_ = folders.most_common(1)
    bars.report("modules", len(files))
    bars.report(f"modules in the fullest folder, {fullest}", most)
    bars.report("import cycles at the top level of modules", len(find_cycles(read_imports(package))), 0)
    bars.report("lines", sum(len(path.read_text().splitlines()) for path in files))
    bars.report("public names at the top level", len(list_public(package)))
    bars.save()
