"""An entry of the registry: a policy by name, how to build it, and how to show it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.policies.factory import check_factory, import_factory, make_policy, own_options
from dbcare.policies.facts import PolicyFacts
from dbcare.policies.look import PLAIN, Look, PolicyKind
from dbcare.policies.policy import Policy
from dbcare.validation import show

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True)
class PolicyEntry:
    """A policy by name: how to build it, and how to show it.

    Parameters
    ----------
    name : str
        Lowercase words joined by hyphens, such as "my-lucb".
    source : type, callable or str
        The policy's class, a function that returns a policy, or "module:name" to import one of them when it is needed.
        Its parameters may be those of `PolicyFacts.known` and options of its own.
    label : str
        What figures and tables call the policy. Default: its name.
    kind : PolicyKind
        What it is compared with, which also decides its dashes in figures.
    look : Look
        Its color and marker in figures.
    live : bool
        Whether live studies may use it: all parameters that a study cannot know must have defaults.
    planned : bool
        Whether every plan compares it.

    Examples
    --------
    >>> from dbcare.policies.registry import POLICIES
    >>> POLICIES["racing"].label, POLICIES["racing"].live
    ('racing', False)
    """

    name: str
    source: Callable[..., Policy] | str
    label: str = ""
    kind: PolicyKind = PolicyKind.OTHER
    look: Look = PLAIN
    live: bool = True
    planned: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise InvalidValueError(
                f"`name` must be lowercase words joined by hyphens, such as my-lucb, but got {show(self.name)}."
            )
        if not isinstance(self.source, str):
            check_factory(self.name, self.source)
        for what, value, kind in (
            ("label", self.label, str),
            ("kind", self.kind, PolicyKind),
            ("look", self.look, Look),
        ):
            if not isinstance(value, kind):
                raise InvalidValueError(f"`{what}` must be of type {kind.__name__} but got {show(value)}.")
        if validation.flag("planned", self.planned) and not validation.flag("live", self.live):
            raise InvalidValueError(f"`planned` requires live=True, which {self.name} lacks.")
        validation.set_fields(self, label=self.label or self.name)

    @property
    def factory(self) -> Callable[..., Policy]:
        """The class or function that builds the policy."""
        return import_factory(self.source) if isinstance(self.source, str) else self.source

    @property
    def options(self) -> list[str]:
        """The policy's own options, which no problem fixes."""
        return own_options(self.factory)

    def build(self, facts: PolicyFacts, options: Mapping[str, Any] | None = None) -> Policy:
        """Build the policy for a problem, with options of its own."""
        return make_policy(self.name, self.factory, facts, options or {})
