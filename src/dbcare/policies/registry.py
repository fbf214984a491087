"""Policies by name: where each class is that ships; what it is called and who may use it, the class itself states.

A package of your own adds policies through entry points of the group `dbcare.policies`, whose values are a `Policy`
class, a function that returns a policy, or a `PolicyEntry`; a program adds them with `register_policy`.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.base.look import Look, PolicyKind
from dbcare.errors import InvalidValueError, PolicyNotLoadedWarning
from dbcare.policies.build import PolicyFacts, check_factory, import_factory, make_policy, own_options
from dbcare.policies.policy import Policy
from dbcare.problem.bandits import Bandit, check_bandit
from dbcare.problem.risk import Risk, check_risk

DEFAULT_POLICY = "breakeven"
BLOCK_POLICY = "breakeven-rounds"  # the default where arms share blocks
GROUP = "dbcare.policies"  # of entry points


NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

# What a class may state about itself.
STATED = {"label": str, "kind": PolicyKind, "look": Look, "live": bool, "planned": bool}
# The policies that ship, in the order in which people see them.
SHIPPED = {
    "breakeven": "policies.breakeven.policy:Breakeven",
    "breakeven-racing": "policies.breakeven.racing:BreakevenRacing",
    "breakeven-rounds": "policies.breakeven.rounds:BreakevenRounds",
    "dbcare": "policies.elimination.dbcare:DBCARE",
    "racing": "policies.elimination.racing:Racing",
    "two-arm-confidence": "policies.elimination.racing:TwoArmConfidence",
    "two-arm-likelihood": "policies.two_arm_likelihood:TwoArmLikelihood",
    "sequential-halving": "policies.planned:SequentialHalving",
    "successive-rejects": "policies.planned:SuccessiveRejects",
    "uniform": "policies.planned:Uniform",
    "lucb": "policies.literature.lucb:LUCB",
    "kl-lucb": "policies.literature.kl_lucb:KLLUCB",
    "lil-ucb": "policies.literature.lil_ucb:LilUCB",
    "ugape": "policies.literature.ugape:UGapE",
    "track-and-stop": "policies.literature.track_and_stop:TrackAndStop",
    "eb-tci": "policies.literature.eb_tci:EBTCI",
    "kn": "policies.literature.kn:KN",
    "ugape-budget": "policies.literature.ugape:UGapEBudget",
    "ocba": "policies.literature.ocba:OCBA",
    "chick-frazier": "policies.literature.chick_frazier:ChickFrazier",
    "two-arm-chick-frazier": "policies.literature.chick_frazier:TwoArmChickFrazier",
    "kg-star": "policies.literature.kg_star:KGStar",
    "adaptive": "policies.literature.adaptive:Adaptive",
    "known-gap-oracle": "policies.planned:KnownGapOracle",
    "known-gap-sprt": "engines.sprt:BestSPRT",
    "guess": "policies.planned:Guess",
}


@dataclass(frozen=True)
class PolicyEntry:
    """A policy by name: how to build it, and how to show it.

    Parameters
    ----------
    name : str
        Lowercase words joined by hyphens, such as "my-lucb".
    source : type or callable
        The policy's class, or a function that returns a policy. Its parameters may be those of `PolicyFacts.known`, and
        options of its own.
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
    source: Callable[..., Policy]
    label: str = Policy.label
    kind: PolicyKind = Policy.kind
    look: Look = Policy.look
    live: bool = Policy.live
    planned: bool = Policy.planned

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise InvalidValueError(
                f"`name` must be lowercase words joined by hyphens, such as my-lucb, but got {show(self.name)}."
            )
        check_factory(self.name, self.source)
        for what, kind in STATED.items():
            if not isinstance(value := getattr(self, what), kind):
                raise InvalidValueError(f"`{what}` must be of type {kind.__name__} but got {show(value)}.")
        if self.planned and not self.live:
            raise InvalidValueError(f"`planned` requires live=True, which {self.name} lacks.")
        checks.set_fields(self, label=self.label or self.name)

    @classmethod
    def of(cls, name: str, source: Callable[..., Policy], **given: Any) -> PolicyEntry:
        """Return the entry of a class by what the class itself states, apart from what is `given` and not None."""
        stated = getattr(source, "__dict__", {})
        chosen = {what: stated[what] for what in STATED if what in stated}
        return cls(name, source, **chosen | {what: value for what, value in given.items() if value is not None})

    @property
    def options(self) -> list[str]:
        """The policy's own options, which no problem fixes."""
        return own_options(self.source)

    def build(self, facts: PolicyFacts, options: Mapping[str, Any] | None = None) -> Policy:
        """Build the policy for a problem, with options of its own."""
        return make_policy(self.name, self.source, facts, options or {})


class PolicyRegistry(Mapping[str, PolicyEntry]):
    """Entries by name: those that ship first, then those of installed packages, then those added at run time.

    What ships is given as paths, `module:class` below this package, and imported when it is needed. Installed packages
    are imported when a name is first looked up that does not ship, or when names are listed.
    """

    def __init__(self, shipped: Mapping[str, str]) -> None:
        self.shipped = shipped
        self._entries: dict[str, PolicyEntry] = {}  # of those that were needed so far
        self._added: dict[str, PolicyEntry] = {}
        self._lock = threading.RLock()
        self._loaded = False

    def __getitem__(self, name: str) -> PolicyEntry:
        if name not in self.shipped:
            self._load_packages()
            return self._added[name]
        if name not in self._entries:
            self._entries[name] = PolicyEntry.of(name, import_factory(f"dbcare.{self.shipped[name]}"))
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            self._load_packages()
            return iter([*self.shipped, *self._added])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def entry(self, name: object, argument: str = "policy", *, live: bool = False) -> PolicyEntry:
        """Return an entry; a name that is unknown, or not live where that is required, is an error listing names."""
        if isinstance(name, str) and name in self.shipped and (self[name].live or not live):
            return self[name]
        return self[checks.one_of(argument, name, self.live if live else self)]

    @property
    def live(self) -> list[str]:
        """Names of the policies that live studies may use."""
        return [name for name, entry in self.items() if entry.live]

    @property
    def planned(self) -> list[str]:
        """Names of the policies that every plan compares."""
        return [name for name, entry in self.items() if entry.planned]

    def kind(self, name: str) -> PolicyKind:
        """Return the kind of a policy; that of a function named `module:function` is OTHER."""
        return PolicyKind.OTHER if ":" in name else self.entry(name).kind

    def add(self, entry: PolicyEntry) -> None:
        """Add an entry; its name must be new."""
        with self._lock:
            if entry.name in self:
                raise InvalidValueError(
                    f"Policy {entry.name!r} is already registered as {show(self[entry.name].source)}; "
                    "choose another name, or call unregister_policy first."
                )
            self._added[entry.name] = entry

    def remove(self, name: str) -> None:
        """Remove an entry that was added; those that ship stay."""
        with self._lock:
            self._load_packages()
            del self._added[checks.one_of("name", name, self._added)]

    def _load_packages(self) -> None:
        with self._lock:
            if self._loaded:
                return
            self._loaded = True
            failures = [failure for point in entry_points(group=GROUP) if (failure := self._load(point)) is not None]
        for failure in failures:
            warnings.warn(failure, PolicyNotLoadedWarning, stacklevel=4)

    def _load(self, point: EntryPoint) -> str | None:
        """Add an installed policy; return why that failed, if it did."""
        try:
            loaded = point.load()
            entry = loaded if isinstance(loaded, PolicyEntry) else PolicyEntry.of(point.name, loaded)
            self.add(replace(entry, name=point.name))
        except Exception as failure:  # whatever a stranger's module does, the other policies stay usable
            return f"Policy {point.name!r} ({point.value}) could not be loaded: {failure}"
        return None


POLICIES = PolicyRegistry(SHIPPED)


def register_policy(
    name: str,
    source: Callable[..., Policy],
    *,
    label: str | None = None,
    kind: PolicyKind | None = None,
    look: Look | None = None,
    live: bool | None = None,
) -> None:
    """Register a policy of your own, so that it can be used by name.

    The name then works in `evaluate`, `build_policy`, sweep files, live studies, plans and the command line of this
    process. To have it everywhere, let a package declare it as an entry point of the group `dbcare.policies`.

    Parameters
    ----------
    name : str
        Lowercase words joined by hyphens, such as "my-lucb".
    source : type or callable
        A `Policy` class, or a function that returns a policy. It is called with those of `risk`, `arms`, `sigma`,
        `bound`, `gap`, `family` and `max_pulls` that are among its parameters, and with options of its own.
    label, kind, look, live : optional
        As in `PolicyEntry`. Default: what the class states.

    Raises
    ------
    InvalidValueError
        If the name is taken or malformed, or the class or its rule is incomplete: the message says what is missing.

    See Also
    --------
    unregister_policy : Remove it again, such as before a changed version is registered.

    Examples
    --------
    >>> from dbcare import Bandit, Risk, evaluate, register_policy, unregister_policy
    >>> from dbcare.policies import Uniform
    >>> register_policy("ten-each", lambda arms: Uniform(arms, pulls=10))
    >>> evaluate("ten-each", Bandit.two_arm(0.5), Risk.simple_regret(1e-3)).pulls.mean
    20.0
    >>> unregister_policy("ten-each")
    """
    POLICIES.add(PolicyEntry.of(name, source, label=label, kind=kind, look=look, live=live))


def unregister_policy(name: str) -> None:
    """Remove a policy that was registered or installed; those that ship with dbcare stay.

    Parameters
    ----------
    name : str
        Its name.

    Raises
    ------
    InvalidValueError
        If no such policy was added.

    Examples
    --------
    >>> from dbcare import register_policy, unregister_policy
    >>> from dbcare.policies import Guess
    >>> register_policy("coin", Guess)
    >>> unregister_policy("coin")
    """
    POLICIES.remove(name)


def build_policy(name: str, bandit: Bandit, risk: Risk, /, **options: Any) -> Policy:
    """Build a policy by name for a problem whose truth is known, as `evaluate` does for a name.

    Parameters
    ----------
    name : str
        A registered name, or `module:function` for a function of your own.
    bandit : Bandit
        The truth, which fixes the number of arms and sigma, and for yardsticks the gap.
    risk : Risk
        What a pull costs and what a wrong choice loses.
    **options
        The policy's own options, such as `delta` or `budget`; for those with a budget also `budget_per_arm`.

    Returns
    -------
    Policy
        The policy.

    Raises
    ------
    InvalidValueError
        If the name or an option is unknown: the message lists what exists.

    Examples
    --------
    >>> from dbcare import Bandit, Risk, build_policy
    >>> build_policy("racing", Bandit.two_arm(0.5), Risk.simple_regret(1e-3), delta=0.1)
    Racing(arms=2, delta=0.1, sigma=1.0, max_pulls=10000)
    """
    return build_from_facts(name, PolicyFacts.from_bandit(check_bandit(bandit), check_risk(risk)), options)


def build_from_facts(name: str, facts: PolicyFacts, options: Mapping[str, Any]) -> Policy:
    """Build a policy by name, or by `module:function`, from what is known of a problem."""
    if isinstance(name, str) and ":" in name:
        return make_policy(name, import_factory(name), facts, options)
    return POLICIES.entry(name).build(facts, options)
