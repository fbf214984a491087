"""Every public name has a docstring with parameters, returns and an example, and the examples run."""

import doctest
import inspect
import re
from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest

import dbcare
import dbcare.sklearn
from dbcare import client, comparing, engines, planner, policies, problem, replay, studies

PACKAGES = (dbcare, client, comparing, engines, planner, policies, problem, replay, studies)
SEARCHES = {name: getattr(dbcare.sklearn, name) for name in dbcare.sklearn.__all__}
PUBLIC = {
    name: getattr(package, name) for package in PACKAGES for name in package.__all__ if name != "__version__"
} | SEARCHES
NEVER_CALLED = {"Client", "Comparison", "Run"}  # `connect`, `compare`, and `Policy.start` make them
SECTION = re.compile(r"^(\w+)\n-+$", re.MULTILINE)


def sections(value: Any) -> set[str]:
    return set(SECTION.findall(inspect.getdoc(value) or ""))


def is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def parameters(value: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]


def undocumented(value: Any) -> list[str]:
    """Return the parameters that a docstring says nothing about; those of a base class are in its own."""
    documented = ""
    for each in inspect.getmro(value) if isinstance(value, type) else (value,):
        for section in ("Parameters", "Attributes"):
            documented += (inspect.getdoc(each) or "").partition(f"{section}\n")[2].partition("\n\n")[0] + "\n"
    return [each for each in parameters(value) if not re.search(rf"^(\*\*)?{each}\b|, {each}\b", documented, re.M)]


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_are_complete(name: str) -> None:
    """NumPy style: functions say what they take, return and raise; classes what makes them; all have an example."""
    value = PUBLIC[name]
    doc = inspect.getdoc(value) or ""
    assert doc.splitlines()[0].endswith("."), "the first line is a sentence"
    found = sections(value)
    assert "Examples" in found
    if inspect.isfunction(value):
        assert "Parameters" in found
        assert undocumented(value) == []
        returns = inspect.signature(value).return_annotation
        assert "Returns" in found or returns in (None, "None")
        assert "Raises" in found
    elif not is_exception(value) and not issubclass(value, Enum):
        assert name in NEVER_CALLED or undocumented(value) == []


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_document_every_parameter(name: str) -> None:
    doc = (inspect.getdoc(SEARCHES[name]) or "").partition("Parameters\n")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^(\w+) : ", doc, re.M)) == sorted(parameters(SEARCHES[name]))


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_run(name: str) -> None:
    value = PUBLIC[name]
    finder = doctest.DocTestFinder(recurse=False)
    tests = [test for test in finder.find(value, name, globs={}) if test.examples]
    assert tests, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in tests:
        output: list[str] = []
        runner.run(test, out=output.append)
        assert runner.failures == 0, "".join(output)


def test_a_parameter_can_be_missing() -> None:
    """Negative control."""

    def add(one: int, two: int) -> int:
        """Add numbers.

        Parameters
        ----------
        one : int
            The first.
        """
        return one + two

    assert undocumented(add) == ["two"]


def test_an_example_can_fail() -> None:
    """Negative control."""

    def wrong() -> None:
        """Add numbers.

        >>> 1 + 1
        3
        """

    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(wrong, "wrong", globs={}):
        runner.run(test, out=lambda _text: None)
    assert runner.failures == 1
