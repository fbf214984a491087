"""Studies by name: create one, load it again, list them, delete one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import cast

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.base.numbers import DEFAULT_CURRENCY
from dbcare.base.options import read_options
from dbcare.errors import (
    InvalidValueError,
    StudyExistsError,
    StudyMismatchError,
    StudyNotFoundError,
)
from dbcare.studies.options import StudyOptions
from dbcare.studies.record.ledger import Ledger
from dbcare.studies.results.report import make_standing
from dbcare.studies.settings import Settings
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.base import Store, StudyRecord
from dbcare.studies.stores.open import open_store
from dbcare.studies.study import Study

MAX_COMPARED = 10_000  # names, which takes a tenth of a second


def create_study(
    name: str,
    arms: Sequence[str],
    *,
    price: float | Sequence[float] | Mapping[str, float] | None = None,
    value: float | None = None,
    cost: float | Sequence[float] | Mapping[str, float] | None = None,
    direction: str = Settings.direction,
    risk: str = Settings.risk,
    sigma: float | None = None,
    baseline: float | None = None,
    bounds: tuple[float, float] | None = None,
    binary: bool = Settings.binary,
    sigma_pulls: float = Settings.sigma_pulls,
    cap: float | None = None,
    control: str | None = None,
    policy: str = Settings.policy,
    storage: str | Store | None = None,
    load_if_exists: bool = False,
    description: str | None = None,
    max_spend: float | None = None,
    not_before: int | str | None = None,
    max_ahead: int | None = None,
    timeout_reward: float | None = None,
    missing: str = Settings.missing,
    rounds: bool = Settings.rounds,
    blocks: int | Sequence[str] | None = None,
    only_these_blocks: bool = Settings.only_these_blocks,
    currency: str = DEFAULT_CURRENCY,
    seed: int = Settings.seed,
) -> Study:
    """Create a study: which of `arms` is best, when every trial costs money.

    What a study assumes, and what to do where that fails, is on the page "Assumptions and limitations" of the
    documentation, docs/explanation/assumptions.md.

    Parameters
    ----------
    name : str
        The study's name, without slashes.
    arms : sequence of str
        Names of the options to choose from, 2 to 1,000.
    price : float, sequence of float or mapping, optional
        Price of a trial, or one per arm: in the order of the arms, or by their names.
    value : float, optional
        What one unit of reward is worth in the same currency; with the risk "misidentification", what a wrong choice
        costs.
    cost : float, sequence of float or mapping, optional
        price / value, instead of both.
    direction : {"maximize", "minimize"}
        Whether rewards are good or bad.
    risk : {"simple_regret", "misidentification"}
        What a wrong choice loses: its gap in means, or the same whatever the gap.
    sigma : float, optional
        Standard deviation of a reward. State the spread of the rewards in one way, by `sigma`, `baseline`, `bounds` or
        `binary`, or not at all: it is then learned from the rewards. Only `sigma` and `bounds` go together.
    baseline : float, optional
        For rewards of 0 or 1: their usual rate, such as 0.04.
    bounds : tuple of float, optional
        Range of possible rewards, the lower end first.
    binary : bool
        Whether rewards are 0 or 1, with a rate that nobody knows.
    sigma_pulls : float
        How many rewards the stated spread counts as against those that come in; `math.inf` if it is certain.
    cap : float, optional
        Rewards above it count as the cap, so that a few huge ones cannot decide. The rewards told stay on record.
    control : str, optional
        Name of the arm in use today. Reports then compare the others with it, and a study that stops without data
        keeps it.
    policy : str
        Name of a registered policy that runs live.
    storage : str or Store, optional
        Where to keep the study: an address such as "sqlite:///ads.db" or "postgresql://me@host/studies", or a store of
        your own. Default: the environment variable DBCARE_STORAGE, or else the memory of this process.
    load_if_exists : bool
        Whether to load a study of that name if it exists with the same settings.
    description : str, optional
        What the study is about, at most 500 characters. `Study.describe` changes it; `load_if_exists` ignores it.
    max_spend : float, optional
        Stop the study before it spends more than this: in money, or in units of the loss without a `value`.
    not_before : int or str, optional
        Do not stop before this many rewards have been counted, or before a duration such as "14d" has passed since the
        first trial was asked. A budget, or a person, may still stop the study.
    max_ahead : int, optional
        Maximum number of pending trials. Default: no limit (but a million) for asks with a `unit`, and in a study with
        a `timeout_reward`; otherwise twice the number of workers, and at least one per arm. `Study.set_max_ahead`
        changes it.
    timeout_reward : float, optional
        Reward to record when a trial's lease expires, such as 0 where no answer means no. Default: the trial is
        replaced, or its block does without it.
    missing : {"unknown", "at random"}
        "at random" states that whether an answer comes does not depend on what it would have been. Otherwise, a study
        of rates asks about that in its notes once a trial has expired without a `timeout_reward`.
    rounds : bool
        Whether arms are compared only within rounds: trials of all arms that matter, run at the same time, so that what
        changes over time cancels. `Trial.block` is the number of the round. Implies the policy "breakeven-rounds".
    blocks : int or sequence of str, optional
        Blocks that all arms share, such as questions or folds: their number, or 2 to 100,000 names. Arms are compared
        only on blocks that both have answered, and each takes them in one random order by `seed`; `Trial.block` is the
        block's name. Implies the policy "breakeven-rounds".
    only_these_blocks : bool
        Whether the decision is about these blocks alone, rather than about more like them.
    currency : str
        Currency of all amounts; without a `value`, amounts are in units of the loss.
    seed : int
        Random seed for breaking ties, and for the order of the blocks.

    Returns
    -------
    Study
        The study, ready for `ask` and `tell`.

    Raises
    ------
    InvalidValueError
        If an argument is invalid.
    StudyExistsError
        If a study of that name exists and `load_if_exists` is False.
    StudyMismatchError
        If it exists with different settings.
    StorageError
        If the storage cannot be used.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("create example", arms=["A", "B"], price=0.4, value=20_000, sigma=0.5)
    >>> study.ask().arm
    'A'
    """
    arguments = locals()
    options = cast(StudyOptions, {name: arguments[name] for name in read_options(StudyOptions)})
    settings = Settings.from_options(arms, **options)
    check_name(name)
    return create_in(open_store(storage, create=True), name, settings, load_if_exists=load_if_exists)


def create_in(
    store: Store, name: str, settings: Settings, *, load_if_exists: bool = False, by: str | None = None
) -> StoredStudy:
    """Create a study as `create_study` does, in an open store; `by` is the name of the key it is created with."""
    standing = make_standing(Ledger(settings))
    try:
        store.create(check_name(name), settings.to_dict(), time.time(), by, standing)
    except StudyExistsError:
        if not load_if_exists:
            raise
        study = StoredStudy(store, name)
        if differences := settings.differences(study.settings):
            raise StudyMismatchError(
                f"Study {name!r} exists with different settings: {'; '.join(differences)}."
            ) from None
        return study
    return StoredStudy(store, name)


def load_study(name: str, storage: str | Store | None = None) -> Study:
    """Load a study.

    Parameters
    ----------
    name : str
        Its name.
    storage : str or Store, optional
        Where it is kept, as in `create_study`.

    Returns
    -------
    Study
        The study.

    Raises
    ------
    StudyNotFoundError
        If there is no such study.
    StorageError
        If the storage cannot be used.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("load example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> dbcare.load_study("load example").settings == study.settings
    True
    """
    store, name = open_store(storage), check_name(name)
    with suggesting_names(name, store.names):
        return StoredStudy(store, name)


@contextmanager
def suggesting_names(name: str, list_names: Callable[[], list[str]]) -> Iterator[None]:
    """Say which studies have similar names if there is none of that name; only the newest are compared."""
    try:
        yield
    except StudyNotFoundError as missing:
        similar = get_close_matches(name, list_names()[-MAX_COMPARED:], n=2)
        hint = f" Did you mean {' or '.join(map(repr, similar))}?" if similar else ""
        raise StudyNotFoundError(f"{missing}{hint}") from None


def delete_study(name: str, storage: str | Store | None = None) -> None:
    """Delete a study and everything that happened in it.

    Parameters
    ----------
    name : str
        Its name.
    storage : str or Store, optional
        Where it is kept, as in `create_study`.

    Raises
    ------
    StudyNotFoundError
        If there is no such study.
    StorageError
        If the storage cannot be used.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("delete example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> dbcare.delete_study("delete example")
    >>> "delete example" in dbcare.list_studies()
    False
    """
    store, name = open_store(storage), check_name(name)
    with suggesting_names(name, store.names):
        store.delete(name)


def list_studies(storage: str | Store | None = None) -> list[str]:
    """List the names of all studies, oldest first.

    Parameters
    ----------
    storage : str or Store, optional
        Where they are kept, as in `create_study`.

    Returns
    -------
    list of str
        Their names.

    Raises
    ------
    StorageError
        If the storage cannot be used.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("list example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> "list example" in dbcare.list_studies()
    True
    """
    return open_store(storage).names()


def find_studies(
    search: str = "",
    storage: str | Store | None = None,
    *,
    after: str | None = None,
    limit: int | None = None,
    by_state: bool = False,
) -> list[StudyRecord]:
    """Find studies by name, with how each of them stands, without reading their events.

    Parameters
    ----------
    search : str
        Part of the name; upper and lower case are the same. Default: all studies.
    storage : str or Store, optional
        Where they are kept, as in `create_study`.
    after : str, optional
        Name of the last study on the previous page.
    limit : int, optional
        Maximum number of studies. Default: all.
    by_state : bool
        Whether running studies come first, then paused and stopped ones, each newest first. Default: oldest first.

    Returns
    -------
    list of StudyRecord
        The studies.

    Raises
    ------
    StudyNotFoundError
        If there is no study called `after`.
    StorageError
        If the storage cannot be used.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("find example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> [record.name for record in dbcare.find_studies("FIND ex")]
    ['find example']
    """
    return find_in(open_store(storage), search, after=after, limit=limit, by_state=by_state)


def find_in(
    store: Store, search: str, *, after: str | None = None, limit: int | None = None, by_state: bool = False
) -> list[StudyRecord]:
    """Find studies by name, if the arguments are valid: a database refuses some texts that no name can contain."""
    if limit is not None:
        limit = checks.whole("limit", limit, at_least=1)
    if not isinstance(search, str) or not search.isprintable():
        raise InvalidValueError(f"`search` must be part of a name, of printable characters, but got {show(search)}.")
    if after is not None:
        after = check_name(after)
    checks.flag("by_state", by_state)
    return store.find(search, after=after, limit=limit, by_state=by_state)


def check_name(name: object) -> str:
    """Return a study's name, if it is valid: it becomes part of URLs and file names."""
    checked = checks.text("name", name)
    if "/" in checked or checked in (".", ".."):
        raise InvalidValueError(f"`name` must not contain a slash, or be . or .., but got {show(checked)}.")
    return checked
