"""The pages on the Python API: directives from which Sphinx renders docstrings, one page per topic.

Every name in `dbcare.__all__` goes to the topic of the module that defines it. A name whose module has no topic is an
error, so none can be forgotten.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import dbcare
import dbcare.errors
import dbcare.sklearn
import dbcare.theory
from dbcare import client, comparing, engines, planner, policies, problem, replay, studies


@dataclass(frozen=True)
class Topic:
    """A page: its title, what it is about, and the modules whose public names it shows."""

    title: str
    about: str
    modules: tuple[str, ...]


TOPICS: dict[str, Topic] = {
    "problem": Topic(
        "Rewards, bandits, and risk",
        "What there is to decide: how rewards come about, what an observation costs, and what a wrong choice loses.",
        ("dbcare.problem", "dbcare.base.numbers"),
    ),
    "policies": Topic(
        "Policies",
        "When to pull which arm, when to stop, and what to recommend. "
        "[Which policy when](../../guides/choosing_a_policy.md) helps to choose one.",
        ("dbcare.policies", "dbcare.base.look"),
    ),
    "evaluation": Topic(
        "Evaluation",
        "How good a policy is on a known truth. [How the engines work](../../explanation/engines.md).",
        ("dbcare.engines",),
    ),
    "planner": Topic(
        "Planner",
        "What an experiment would cost, before any data. [Planning an experiment](../../planning.md).",
        ("dbcare.planner",),
    ),
    "studies": Topic(
        "Studies",
        "Decisions in progress, kept in a database. [Run a live study](../../studies.md).",
        ("dbcare.studies",),
    ),
    "logs": Topic(
        "Logs and replays",
        "What a policy would have done with data you have. [Import logs](../../guides/importing_logs.md).",
        ("dbcare.replay",),
    ),
    "stores": Topic(
        "Stores",
        "Where studies are kept. [Add a store](../../developer/add_a_store.md).",
        ("dbcare.studies.stores",),
    ),
    "comparing": Topic(
        "Comparisons",
        "Prompts and models on the same questions. [Compare prompts and models](../../comparing_prompts.md).",
        ("dbcare.comparing",),
    ),
    "client": Topic(
        "Client",
        "Studies on a server, with the methods of local ones. [The service](../../service.md).",
        ("dbcare.client",),
    ),
    "sklearn": Topic(
        "Searches for scikit-learn",
        "In `dbcare.sklearn`. [Search for parameters](../../searching_parameters.md).",
        ("dbcare.sklearn",),
    ),
    "errors": Topic("Errors and warnings", "All errors are in `dbcare.errors`.", ("dbcare.errors",)),
    "theory": Topic("Theory", "The paper's budgets and bounds, and ours, in `dbcare.theory`.", ()),
}
THEORY_MODULES = ("budgets", "lower", "upper", "breakeven")
INTRODUCTION = """# Python API

Everything that `dbcare` and its packages offer, from the docstrings. Every example runs as a test.
"""


def find_topic(module: str) -> str:
    """Return the topic of a module: the one that names it, or else its closest package."""
    owners = {each: key for key, topic in TOPICS.items() for each in topic.modules}
    while module not in owners:
        module, dot, _ = module.rpartition(".")
        if not dot:
            raise LookupError(f"no topic has the module of a public name: add {module} to TOPICS")
    return owners[module]


def list_public_packages() -> tuple[ModuleType, ...]:
    """Return the packages that offer public names."""
    return (dbcare, client, comparing, engines, planner, policies, problem, replay, studies)


def list_public_names() -> dict[str, list[str]]:
    """Return the full names of everything public, by topic."""
    names: dict[str, list[str]] = {key: [] for key in TOPICS}
    for module in (*list_public_packages(), dbcare.sklearn):
        for name in module.__all__:
            value = getattr(module, name)
            if name != "__version__":
                topic = find_topic(getattr(value, "__module__", module.__name__))
                names[topic].append(f"{module.__name__}.{name}")
    return names


def write_directive(name: str, value: Any) -> str:
    """Return the directive that renders a docstring."""
    if isinstance(value, type):
        base = find_public_base(value)
        if issubclass(value, BaseException):  # what exceptions inherit is known to everyone
            options = ""
        elif base is None:
            options = "   :inherited-members: BaseEstimator,BaseSearchCV,str,tuple,dict\n"
        else:
            repeated = ", ".join(list_repeated_members(value, base))
            options = f"   :inherited-members: {base.__name__}\n   :exclude-members: {repeated}\n"
        return f".. autoclass:: {name}\n   :members:\n{options}"
    return f".. autofunction:: {name}\n" if inspect.isroutine(value) else f".. autodata:: {name}\n"


def find_public_base(value: type) -> type | None:
    """Return the public class that a public class extends, whose members need not be shown again."""
    names = ((package, name) for package in list_public_packages() for name in package.__all__)
    public = {found for package, name in names if isinstance(found := getattr(package, name), type)}
    return next((base for base in value.__mro__[1:] if base in public), None)


def find_public_name(value: type) -> str:
    """Return the full name by which a class is public."""
    (package,) = (each for each in list_public_packages() if value.__name__ in each.__all__)
    return f"{package.__name__}.{value.__name__}"


def list_repeated_members(value: type, base: type) -> list[str]:
    """Return the members of a base class about which the docstrings of a class say nothing new."""
    return [
        name
        for name in dir(base)
        if not name.startswith("_") and find_docstring(value, name) in (None, find_docstring(base, name))
    ]


def find_docstring(value: type, member: str) -> str | None:
    """Return the docstring that a class has for a member; numbers and texts have none of their own."""
    found = inspect.getattr_static(value, member)
    return found.__doc__ if inspect.isroutine(found) or isinstance(found, property | classmethod) else None


def write_topic(topic: Topic, names: Iterable[str]) -> str:
    """Return a page with everything on one topic, in the order of the alphabet."""
    directives = []
    for name in sorted(names, key=str.lower):
        module, _, attribute = name.rpartition(".")
        value = getattr(sys.modules[module], attribute)
        directives.append(f"## {attribute}\n\n```{{eval-rst}}\n{write_directive(name, value)}```\n")
        base = find_public_base(value) if isinstance(value, type) else None
        if base is not None:
            directives.append(f"It also has the members of {{py:obj}}`{base.__name__} <{find_public_name(base)}>`.\n")
    return "\n".join([f"# {topic.title}\n", topic.about, "", *directives])


def write_module(name: str, *without: str) -> str:
    """Return the directive for a module with all of its members but some."""
    exclusion = f"   :exclude-members: {', '.join(without)}\n" if without else ""
    return f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n   :member-order: bysource\n{exclusion}```\n"


def quote_docstring(module: ModuleType) -> str:
    """Return a module's docstring as it is, which keeps its tables and trees."""
    return f"```text\n{inspect.getdoc(module)}\n```\n"


def write_pages() -> dict[str, str]:
    """Return all pages by name."""
    names = list_public_names()
    pages = {key: write_topic(topic, names[key]) for key, topic in TOPICS.items()}
    others = write_module("dbcare.errors", "DbcareError")  # that one is public by its own name
    pages["errors"] = "\n".join([pages["errors"], "## dbcare.errors\n", quote_docstring(dbcare.errors), others])
    sections = [f"## dbcare.theory.{each}\n\n{write_module(f'dbcare.theory.{each}')}" for each in THEORY_MODULES]
    pages["theory"] = "\n".join([pages["theory"], quote_docstring(dbcare.theory), *sections])
    pages["index"] = write_index(names)
    return pages


def write_index(names: dict[str, list[str]]) -> str:
    """Return the page that lists all names with their first sentences."""
    parts = [INTRODUCTION]
    for key, topic in TOPICS.items():
        parts.append(f"## [{topic.title}]({key}.md)\n")
        for name in sorted(names[key], key=str.lower):
            module, _, attribute = name.rpartition(".")
            value = getattr(sys.modules[module], attribute)
            headline = (inspect.getdoc(value) or "").partition("\n")[0]
            parts.append(f"{{py:obj}}`{attribute} <{name}>`\n: {headline}\n")
    entries = "\n".join(TOPICS)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{entries}\n```\n")
    return "\n".join(parts)
