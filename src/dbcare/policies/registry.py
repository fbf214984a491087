"""Policies by name: one entry per policy, read by everything that lets people choose one.

A package of your own adds policies through entry points of the group `dbcare.policies`, whose values are a `Policy`
class, a function that returns a policy, or a `PolicyEntry`; a program adds them with `register_policy`.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dbcare import validation
from dbcare.bandit import Bandit, check_bandit
from dbcare.errors import InvalidValueError, PolicyNotLoadedWarning
from dbcare.policies.entry import PolicyEntry
from dbcare.policies.factory import import_factory, make_policy
from dbcare.policies.facts import PolicyFacts
from dbcare.policies.look import BLUE, GREEN, ORANGE, PLAIN, PURPLE, RED, SKY, VIOLET, YELLOW, Look, PolicyKind
from dbcare.policies.policy import Policy
from dbcare.risk import Risk, check_risk
from dbcare.validation import show

DEFAULT_POLICY = "breakeven"
BLOCK_POLICY = "breakeven-rounds"  # the default where arms share blocks
GROUP = "dbcare.policies"  # of entry points


class PolicyRegistry(Mapping[str, PolicyEntry]):
    """Entries by name: those that ship first, then those of installed packages, then those added at run time.

    Installed packages are imported when a name is first looked up that does not ship, or when names are listed.
    """

    def __init__(self, entries: Iterable[PolicyEntry]) -> None:
        self._shipped = {entry.name: entry for entry in entries}
        self._added: dict[str, PolicyEntry] = {}
        self._lock = threading.RLock()
        self._loaded = False

    def __getitem__(self, name: str) -> PolicyEntry:
        if name in self._shipped:
            return self._shipped[name]
        self._load_packages()
        return self._added[name]

    def __iter__(self) -> Iterator[str]:
        return iter([entry.name for entry in self._entries()])

    def __len__(self) -> int:
        return len(self._entries())

    def _entries(self) -> list[PolicyEntry]:
        with self._lock:
            self._load_packages()
            return [*self._shipped.values(), *self._added.values()]

    def entry(self, name: object, argument: str = "policy", *, live: bool = False) -> PolicyEntry:
        """Return an entry; a name that is unknown, or not live where that is required, is an error listing names."""
        if isinstance(name, str) and name in self._shipped and (self._shipped[name].live or not live):
            return self._shipped[name]
        return self[validation.one_of(argument, name, self.live if live else self)]

    @property
    def live(self) -> list[str]:
        """Names of the policies that live studies may use."""
        return [entry.name for entry in self._entries() if entry.live]

    @property
    def planned(self) -> list[str]:
        """Names of the policies that every plan compares."""
        return [entry.name for entry in self._entries() if entry.planned]

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
            del self._added[validation.one_of("name", name, self._added)]

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
            entry = loaded if isinstance(loaded, PolicyEntry) else PolicyEntry(point.name, loaded)
            self.add(replace(entry, name=point.name))
        except Exception as failure:  # whatever a stranger's module does, the other policies stay usable
            return f"Policy {point.name!r} ({point.value}) could not be loaded: {failure}"
        return None


def _shipped(name: str, source: str, label: str, kind: PolicyKind, look: Look, **uses: bool) -> PolicyEntry:
    return PolicyEntry(name, f"dbcare.{source}", label, kind, look, **{"live": False} | uses)


POLICIES = PolicyRegistry(
    [
        _shipped("breakeven", "policies.breakeven:Breakeven", "Breakeven", PolicyKind.OURS,
                 Look((VIOLET,), "o"), live=True, planned=True),
        _shipped("breakeven-racing", "policies.breakeven_racing:BreakevenRacing", "BreakevenRacing", PolicyKind.OURS,
                 Look((VIOLET,), "s", hollow=True), live=True),
        _shipped("breakeven-rounds", "policies.breakeven_rounds:BreakevenRounds", "BreakevenRounds", PolicyKind.OURS,
                 Look((VIOLET,), "^", hollow=True), live=True),
        _shipped("dbcare", "policies.dbcare:DBCARE", "DBCARE", PolicyKind.PAPER,
                 Look((BLUE,)), live=True, planned=True),
        _shipped("racing", "policies.racing:Racing", "racing", PolicyKind.FIXED_CONFIDENCE, Look((SKY, GREEN))),
        _shipped("two-arm-confidence", "policies.racing:TwoArmConfidence", "two-arm confidence",
                 PolicyKind.FIXED_CONFIDENCE, Look((SKY, GREEN))),
        _shipped("two-arm-likelihood", "policies.two_arm_likelihood:TwoArmLikelihood",
                 "two-arm likelihood ratio", PolicyKind.FIXED_CONFIDENCE, Look((SKY, GREEN), "x")),
        _shipped("sequential-halving", "policies.halving:SequentialHalving", "Sequential Halving",
                 PolicyKind.FIXED_BUDGET, Look((ORANGE, RED))),
        _shipped("successive-rejects", "policies.halving:SuccessiveRejects", "Successive Rejects",
                 PolicyKind.FIXED_BUDGET, Look((RED, ORANGE))),
        _shipped("uniform", "policies.fixed:Uniform", "uniform", PolicyKind.FIXED_BUDGET, Look((YELLOW,))),
        _shipped("lucb", "policies.adaptive.lucb:LUCB", "LUCB", PolicyKind.FIXED_CONFIDENCE,
                 Look((GREEN,), "v", hollow=True), live=True),
        _shipped("kl-lucb", "policies.adaptive.kl_lucb:KLLUCB", "KL-LUCB", PolicyKind.FIXED_CONFIDENCE,
                 Look((GREEN,), "v"), live=True),
        _shipped("lil-ucb", "policies.adaptive.lil_ucb:LilUCB", "lil'UCB", PolicyKind.FIXED_CONFIDENCE,
                 Look((RED,), "<", hollow=True), live=True),
        _shipped("ugape", "policies.adaptive.ugape:UGapE", "UGapE", PolicyKind.FIXED_CONFIDENCE,
                 Look((SKY,), ">", hollow=True), live=True),
        _shipped("track-and-stop", "policies.adaptive.track_and_stop:TrackAndStop", "Track-and-Stop",
                 PolicyKind.FIXED_CONFIDENCE, Look((BLUE,), "P", hollow=True), live=True),
        _shipped("eb-tci", "policies.adaptive.eb_tci:EBTCI", "EB-TCI", PolicyKind.FIXED_CONFIDENCE,
                 Look((PURPLE,), "X", hollow=True), live=True),
        _shipped("kn", "policies.adaptive.kn:KN", "KN", PolicyKind.FIXED_CONFIDENCE, Look((YELLOW,), "d", hollow=True)),
        _shipped("ugape-budget", "policies.adaptive.ugape:UGapEBudget", "UGapE, fixed budget",
                 PolicyKind.FIXED_BUDGET, Look((SKY,), ">")),
        _shipped("ocba", "policies.adaptive.ocba:OCBA", "OCBA", PolicyKind.FIXED_BUDGET, Look((ORANGE,), "h")),
        _shipped("chick-frazier", "policies.adaptive.chick_frazier:ChickFrazier", "Chick-Frazier",
                 PolicyKind.COST_AWARE, Look((RED,), "p"), live=True),
        _shipped("two-arm-chick-frazier", "policies.adaptive.two_arm_chick_frazier:TwoArmChickFrazier",
                 "Chick-Frazier, two arms in turn", PolicyKind.COST_AWARE, Look((RED,), "p", hollow=True)),
        _shipped("kg-star", "policies.adaptive.kg_star:KGStar", "KG*", PolicyKind.COST_AWARE,
                 Look((ORANGE,), "*"), live=True),
        _shipped("adaptive", "policies.adaptive.adaptive:Adaptive", "two parts", PolicyKind.COST_AWARE, PLAIN),
        _shipped("known-gap-oracle", "policies.fixed:KnownGapOracle", "known-gap oracle",
                 PolicyKind.YARDSTICK, Look((PURPLE,))),
        _shipped("known-gap-sprt", "engines.best_sprt:BestSPRT", "known-gap SPRT",
                 PolicyKind.YARDSTICK, Look((YELLOW,))),
        _shipped("guess", "policies.fixed:Guess", "guess", PolicyKind.YARDSTICK, Look((YELLOW,))),
    ]
)  # fmt: skip


def register_policy(
    name: str,
    source: Callable[..., Policy],
    *,
    label: str = "",
    kind: PolicyKind = PolicyKind.OTHER,
    look: Look = PLAIN,
    live: bool = True,
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
    label : str
        What figures and tables call the policy. Default: its name.
    kind : PolicyKind
        What the policy is compared with.
    look : Look
        Its color and marker in figures. Default: the next free color.
    live : bool
        Whether live studies may use it.

    Raises
    ------
    InvalidValueError
        If the name is taken or malformed, or the class or its rule is incomplete: the message says what is missing.

    See Also
    --------
    unregister_policy : Remove it again, such as before a changed version is registered.

    Examples
    --------
    >>> from dbcare import Bandit, Risk, Uniform, evaluate, register_policy, unregister_policy
    >>> register_policy("ten-each", lambda arms: Uniform(arms, pulls=10))
    >>> evaluate("ten-each", Bandit.two_arm(0.5), Risk.simple_regret(1e-3)).pulls.mean
    20.0
    >>> unregister_policy("ten-each")
    """
    POLICIES.add(PolicyEntry(name, source, label, kind, look, live))


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
    >>> from dbcare import Guess, register_policy, unregister_policy
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
