"""What importing loads, and which package may import which (docs/developer/architecture.md)."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dbcare
from benchmarks.quality import structure
from dbcare.base.extras import say_how_to_install

PACKAGE = Path(dbcare.__file__).parent
SKLEARN = say_how_to_install("sklearn")
PUBLIC_PACKAGES = (
    "dbcare", "dbcare.client", "dbcare.comparing", "dbcare.engines", "dbcare.planner", "dbcare.policies",
    "dbcare.problem", "dbcare.replay", "dbcare.studies",
)  # fmt: skip
HEAVY = {"numba", "scipy", "matplotlib", "sqlalchemy"}

# Each package may import those listed for it, the base and itself; `engines` and `studies` do not know each other.
BASE = {"errors", "base", "problem"}
LAYERS: dict[str, set[str]] = {
    **{part: set() for part in BASE},
    "theory": set(),
    "posterior": {"theory"},
    "policies": {"theory"},
    "testing": {"theory", "policies", "studies", "posterior"},
    "engines": {"theory", "policies"},
    "studies": {"theory", "policies", "posterior"},
    "replay": {"policies", "posterior", "studies"},
    "comparing": {"studies"},
    "integrations": {"studies"},
    "sklearn": {"policies", "posterior", "studies"},
    "client": {"studies", "planner"},  # of the planner its options only
    "planner": {"theory", "policies", "engines"},
    "lab": {"theory", "policies", "engines"},
    "server": {"theory", "policies", "engines", "studies", "planner"},
    "cli": {"theory", "policies", "engines", "studies", "planner", "lab", "server", "comparing", "replay"},
}


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, env=environment)


def loaded_by(code: str) -> set[str]:
    """Return the packages that are loaded once `code` has run."""
    ran = python("-c", f"{code}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})")
    return set(ran.stdout.splitlines()[-1].split())


def test_import_time_of_the_package_itself() -> None:
    """`python -X importtime -c "import dbcare"` names every module it loads."""
    lines = python("-X", "importtime", "-c", "import dbcare").stderr.splitlines()
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines if line.startswith("import time:")}
    assert {"dbcare", "site"} <= loaded
    assert not loaded & (HEAVY | {"numpy"})


def test_stepping_by_hand_needs_only_numpy() -> None:
    """All policies imported, all shipped rules stepped, and the conformance suites: nothing heavy, and no pytest."""
    code = """
import importlib, pkgutil
import dbcare, dbcare.policies, dbcare.testing
for found in pkgutil.walk_packages(dbcare.policies.__path__, "dbcare.policies."):
    importlib.import_module(found.name)
risk = dbcare.Risk.simple_regret(0.01)
for policy in (
    dbcare.DBCARE(risk, arms=3),
    dbcare.policies.Racing(arms=3, delta=0.1, max_pulls=30),
    dbcare.policies.TwoArmConfidence(delta=0.1, max_pulls=30),
    dbcare.policies.SequentialHalving(arms=4, budget=20),
    dbcare.policies.SuccessiveRejects(arms=4, budget=20),
    dbcare.policies.Uniform(arms=2, pulls=3),
    dbcare.policies.KnownGapOracle(risk, gap=0.5),
    dbcare.policies.Guess(arms=2),
):
    run = policy.start(seed=1)
    while (arm := run.ask()) is not None:
        run.tell(float(arm))
    run.why(), run.recommendation()
dbcare.testing.PolicySuite().test_stops_within_its_bound(policy)
"""
    loaded = loaded_by(code)
    assert {"dbcare", "numpy"} <= loaded
    assert not loaded & (HEAVY | {"pytest"})


def test_every_public_name_loads() -> None:
    """Names load when they are first used: each is in dir() before that, and an unknown one is an AttributeError."""
    packages = [importlib.import_module(name) for name in PUBLIC_PACKAGES]
    for package in packages:
        for name in package.__all__:
            if name != "__version__":
                assert getattr(package, name).__name__ == name
        assert set(package.__all__) <= set(dir(package))
    listed = [name for package in packages for name in package.__all__]
    assert len(listed) == len(set(listed)), "each name is public in one place"
    with pytest.raises(AttributeError, match="module 'dbcare' has no attribute 'nonsense'"):
        _ = dbcare.nonsense  # type: ignore[attr-defined]  # on purpose


@pytest.mark.parametrize(
    ("installed", "message"),
    [
        ("None", f"dbcare.sklearn requires scikit-learn: {SKLEARN}."),
        (
            "type(sys)('sklearn'); sys.modules['sklearn'].__version__ = '1.8.2'",
            f"dbcare.sklearn requires scikit-learn 1.9 or later, and 1.8.2 is installed: {SKLEARN}.",
        ),
    ],
)
def test_searches_name_the_extra_that_they_need(installed: str, message: str) -> None:
    """Without scikit-learn, or with one that is too old."""
    code = f"""
import sys
sys.modules["sklearn"] = {installed}
try:
    import dbcare.sklearn
except ImportError as failure:
    print(failure)
"""
    assert python("-c", code).stdout.strip() == message


def test_searches_take_a_later_scikit_learn() -> None:
    """Numbers of versions are no decimals."""
    assert "sklearn" in loaded_by("import sklearn; sklearn.__version__ = '1.10.dev0'; import dbcare.sklearn")


@pytest.mark.parametrize(
    ("command", "extra"), [("serve --storage sqlite:///none.db", "server"), ("bounds --cost 1e-4 --arms 8", "lab")]
)
def test_commands_name_the_extra_that_they_need(command: str, extra: str) -> None:
    """Where nothing but the required packages is installed."""
    code = f"""
import sys
sys.modules.update(dict.fromkeys({["matplotlib", "starlette", "fastapi", "uvicorn", "jinja2", "plotly"]}))
sys.argv[1:] = {command.split()}
from dbcare.cli import main
main()
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (
        2,
        f"Error: this command requires an extra: {say_how_to_install(extra)}.\n",
    )


def _parts() -> set[str]:
    """Return the modules and packages directly below dbcare."""
    modules = {path.stem for path in PACKAGE.glob("*.py")}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return (modules | packages) - {"__init__", "__main__"}


@pytest.mark.parametrize(
    ("part", "unwanted"),
    [
        ("studies", HEAVY | {"numpy"}),
        ("studies.api", HEAVY - {"sqlalchemy"}),
        ("client.client", HEAVY | {"httpx2"}),
        ("policies", HEAVY | {"numpy"}),
        ("cli", HEAVY | {"numpy"}),
    ],
)
def test_parts_start_light(part: str, unwanted: set[str]) -> None:
    loaded = loaded_by(f"import dbcare.{part}")
    assert "dbcare" in loaded
    assert not loaded & unwanted


def _imports(file: Path) -> set[str]:
    """Return the parts of dbcare that a file imports: at the top, within functions, and only for type checking."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    inner = {name.split(".")[1] for name in found if name.startswith("dbcare.")}
    homes = {name: getattr(dbcare, name).__module__.split(".")[1] for name in inner & set(dbcare.__all__)}
    return {homes.get(name, name) for name in inner} & _parts()


def test_every_part_has_its_place() -> None:
    """A new module or package takes its place in LAYERS before it is imported."""
    assert _parts() <= LAYERS.keys()
    assert BASE | {"theory", "policies", "testing"} <= _parts()


@pytest.mark.parametrize("part", sorted(_parts()))
def test_imports_go_one_way(part: str) -> None:
    files = sorted((PACKAGE / part).rglob("*.py")) or [PACKAGE / f"{part}.py"]
    for file in files:
        imported = _imports(file)
        assert imported <= BASE | LAYERS[part] | {part}, f"{file.relative_to(PACKAGE)} imports {sorted(imported)}"


def test_the_base_knows_nothing_of_the_problem() -> None:
    """What every package uses stands at the bottom."""
    for file in sorted((PACKAGE / "base").rglob("*.py")):
        assert _imports(file) <= {"base", "errors"}, file


def test_packages_with_public_names_import_nothing_at_once() -> None:
    """Public names load when first used, so packages that offer some import only what loads them."""
    stubs = sorted(PACKAGE.rglob("__init__.pyi"))
    assert PACKAGE / "__init__.pyi" in stubs
    for stub in stubs:
        body = ast.parse(stub.with_suffix(".py").read_text(encoding="utf-8")).body
        at_once = [ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert at_once == ["from dbcare.base.public import load_names"], stub


def test_the_check_of_imports_sees_what_it_should(tmp_path: Path) -> None:
    """Negative control: imports of all forms are seen, also by a public name; those from elsewhere are not."""
    file = tmp_path / "wrong.py"
    file.write_text(
        "import dbcare.policies.run\nfrom dbcare import studies, Bandit\n"
        "def late():\n    from dbcare.theory.budgets import confidence\nimport numpy\n"
    )
    assert _imports(file) == {"policies", "studies", "problem", "theory"}


def test_no_modules_import_each_other() -> None:
    """At their top level, so that each can be imported first."""
    imports = structure.read_imports(PACKAGE)
    assert imports["dbcare.policies.registry"] >= {"dbcare.errors", "dbcare.policies.policy"}
    assert structure.find_cycles(imports) == []


def test_the_search_for_cycles_finds_them(tmp_path: Path) -> None:
    """Negative control: three modules in a circle, and none through imports that happen later or never."""
    package = tmp_path / "circles"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("from circles import two\n")
    (package / "two.py").write_text("try:\n    from circles.three import x\nexcept ImportError:\n    pass\n")
    (package / "three.py").write_text("import circles.one\n")
    never = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import circles.late\n"
    (package / "later.py").write_text(never + "def f():\n    import circles.late\n")
    (package / "late.py").write_text("import circles.later\n")
    cycles = structure.find_cycles(structure.read_imports(package))
    assert cycles == [["circles.one", "circles.three", "circles.two"]]
