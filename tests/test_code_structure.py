"""Rules about the code itself, read from its syntax trees: names exist once, options too, and no state is global."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import dbcare
from dbcare.base.options import named_options, read_options
from dbcare.planner.options import LocalPlanOptions
from dbcare.planner.plan import plan
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES
from dbcare.studies.api import create_study
from dbcare.studies.options import StudyOptions

PACKAGE = Path(dbcare.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@cache  # not when this file is imported, which every worker does
def parse(module: str) -> ast.Module:
    return ast.parse((PACKAGE / module).read_text())


# Where policies may be named: their registry, the parts of some of them, and what the paper and we say about others.
NAMING_MODULES = (
    "policies/registry.py",
    "policies/literature/adaptive.py",
    "lab/claims.py",
    "lab/bounds.py",
    "lab/guarantees.py",
)
# Texts that happen to be the name of a policy, but mean something else: the package itself, and the word.
OTHER_MEANINGS = {"dbcare"}


def is_docstring(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    return isinstance(parents.get(node), ast.Expr)


def parents_in(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}


def policy_names_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Find places that name a policy: any text that is its name, other than a docstring.

    A text with another meaning counts only where it is compared, or listed next to the name of another policy.
    """
    parents = parents_in(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or node.value not in POLICIES:
            continue
        if is_docstring(node, parents):
            continue
        if node.value in OTHER_MEANINGS:
            parent = parents[node]
            listed = [item.value for item in ast.iter_child_nodes(parent) if isinstance(item, ast.Constant)]
            is_list = isinstance(parent, ast.List | ast.Tuple | ast.Set | ast.Dict)
            names_others = any(item in POLICIES for item in listed if item != node.value and isinstance(item, str))
            if not isinstance(parent, ast.Compare | ast.MatchValue) and not (is_list and names_others):
                continue
        yield node.lineno, node.value


def test_no_module_lists_policies_or_compares_with_one() -> None:
    found = {module: list(policy_names_in(parse(module))) for module in MODULES if module not in NAMING_MODULES}
    assert {module: places for module, places in found.items() if places} == {}


def test_templates_and_scripts_name_no_policy() -> None:
    for path in [*PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.js")]:
        text = path.read_text()
        quoted = [name for name in POLICIES if name not in OTHER_MEANINGS and f'"{name}"' in text]
        assert quoted == [], path


@pytest.mark.parametrize(
    "code",
    [
        'if policy == "breakeven":\n    pass',
        'if policy == "dbcare":\n    pass',
        'LIVE = ("racing", "dbcare")',
        'LOOKS = {"guess": 1}',
        'def create(policy="breakeven"):\n    pass',
        'match policy:\n    case "uniform":\n        pass',
        'from typing import Literal\nkind: Literal["breakeven", "dbcare"]',
    ],
)
def test_the_search_for_policy_names_finds_them(code: str) -> None:
    """Negative control."""
    assert list(policy_names_in(ast.parse(code)))


def test_claims_and_experiments_name_policies_that_exist() -> None:
    """Every text in a module of claims that looks like a policy's name is one."""
    for module in NAMING_MODULES[1:]:
        names = [name for _, name in policy_names_in(parse(module))]
        assert set(names) <= set(POLICIES)
    assert DEFAULT_POLICY in POLICIES


def signatures(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """Find the functions of a module and the names of their parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            yield node.name, {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


@pytest.mark.parametrize(
    ("options", "owner"),
    [(StudyOptions, ("studies/api.py", "create_study")), (LocalPlanOptions, ("planner/plan.py", "plan"))],
)
def test_options_are_spelled_out_once(options: type, owner: tuple[str, str]) -> None:
    """No other signature has most of them; `create_study` and `plan` have all."""
    names = set(read_options(options))
    found = {
        (module, function): parameters & names
        for module in MODULES
        for function, parameters in signatures(parse(module))
        if len(parameters & names) > len(names) // 2
    }
    assert found.pop(owner) == names
    others = {("studies/api.py", "create_study"), ("planner/plan.py", "plan")} - {owner}
    assert set(found) <= others


@pytest.mark.parametrize(("options", "function"), [(StudyOptions, create_study), (LocalPlanOptions, plan)])
def test_help_texts_state_the_defaults(options: type, function: Callable[..., object]) -> None:
    """The command line shows defaults in its help texts: each is that of the function."""
    for named in named_options(options, function):
        stated = re.search(r"Default: (\w+)\.$", named.option.help)
        if named.default not in (None, False):
            assert stated is not None, named.name
            default = named.default
            assert stated[1] == (f"{default:g}" if isinstance(default, float) else str(default))


def test_a_class_name_exists_once() -> None:
    homes = defaultdict(list)
    for module in MODULES:
        for node in ast.walk(parse(module)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


# Objects that hold state for the whole process, and why they must.
PROCESS_WIDE = {
    ("engines/kernels/compile.py", "_LOADED"),  # compiled kernels are shared by all threads
    ("engines/kernels/compile.py", "_PARTS"),  # and so are the functions that kernels share
}
CONTAINERS = {"dict", "list", "set", "defaultdict", "OrderedDict", "deque", "WeakKeyDictionary", "Counter"}


def mutable_state(tree: ast.Module) -> Iterator[str]:
    """Find names at module level that start as an empty container, to be filled later."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            value = node.value
            is_empty = isinstance(value, ast.Dict | ast.List | ast.Set) and not ast.unparse(value).strip("{}[]")
            is_call = isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in CONTAINERS
            if is_empty or (is_call and not value.args):  # type: ignore[attr-defined]  # a call
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (ast.unparse(target) for target in targets)


def test_no_module_has_mutable_state() -> None:
    assert {(module, name) for module in MODULES for name in mutable_state(parse(module))} == PROCESS_WIDE


@pytest.mark.parametrize("code", ["_open = set()", "CACHE: dict[str, int] = {}", "pictures = WeakKeyDictionary()"])
def test_the_search_for_mutable_state_finds_it(code: str) -> None:
    """Negative control."""
    assert list(mutable_state(ast.parse(code)))


def test_no_stub_raises_for_a_description() -> None:
    """`NotImplementedError` is left to suites whose users must define a method."""
    raising = {
        module
        for module in MODULES
        for node in ast.walk(parse(module))
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node)
    }
    assert {module for module in raising if not module.startswith("testing/")} == set()
