"""`Study`: ask for trials, tell their rewards, and read what is known; the base of all studies."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.base.files import check_figure_path, check_path, replacing
from dbcare.base.frames import list_rows
from dbcare.base.times import DEFAULT_LEASE, Lease, parse_lease
from dbcare.errors import InvalidValueError
from dbcare.studies.assignment import Assignment, TimelyAssignments
from dbcare.studies.results.status import HistoryPoint, Pending, Recommendation, Status
from dbcare.studies.run import TrialRunner
from dbcare.studies.settings import Settings, check_description, check_max_ahead
from dbcare.studies.show.export import TrialRow, make_data_frame, write_trials
from dbcare.studies.trial import (
    MAX_REASON_LENGTH,
    MAX_TAG_LENGTH,
    AskRequest,
    Observation,
    Trial,
    TrialReference,
    get_trial_number,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from narwhals.typing import IntoFrame

    from dbcare.studies.show.page import FiledPlan


class StudyManagement(ABC):
    """The part of `Study` for those who are responsible for it."""

    settings: Settings

    @abstractmethod
    def pause(self) -> None:
        """Hand out no trials until `resume`; outcomes are still accepted."""

    @abstractmethod
    def resume(self) -> None:
        """Resume after `pause`."""

    def give_up(
        self, trials: Iterable[int] | None = None, *, worker: str | None = None, older_than: Lease = None
    ) -> int:
        """Give up pending trials that nobody will answer, such as those of a worker that crashed.

        They count as failed, at no charge, and the study goes on without them before their leases end. Either all of
        them are given up, or none. Trials that have an outcome are left alone, so that repeating this is harmless.
        Whoever tells one of these trials later gets an AlreadyToldError.

        Parameters
        ----------
        trials : iterable of int, optional
            Numbers of the trials, as `pending` lists them. Default: all pending trials.
        worker : str, optional
            Only trials of this worker.
        older_than : str, float or timedelta, optional
            Only trials that were asked longer ago than this, such as "10m".

        Returns
        -------
        int
            How many trials were given up.

        Raises
        ------
        InvalidValueError
            If an argument is invalid.
        StudyNotFoundError
            If one of the trials was never asked.
        """
        if trials is not None:
            numbers = checks.items("trials", trials, "numbers of trials")
            trials = [checks.whole("trials", number, at_least=1) for number in numbers]
        if worker is not None:
            checks.text("worker", worker)
        return self._give_up(trials, worker, parse_lease(older_than, "older_than"))

    @abstractmethod
    def _give_up(self, trials: list[int] | None, worker: str | None, older_than: float | None) -> int:
        """Give up trials; the arguments have been checked, and `older_than` is in seconds."""

    def stop(self, reason: str = "stopped by hand") -> None:
        """Stop the study for good."""
        self._stop(checks.text("reason", reason, longest=MAX_REASON_LENGTH))

    @abstractmethod
    def _stop(self, reason: str) -> None:
        """Stop the study; the reason has been checked."""

    def set_max_ahead(self, max_ahead: int | None) -> None:
        """Change how many trials may be pending; None for the default, as in `create_study`.

        `create_study` with `load_if_exists` goes on comparing the number that the study was created with.
        """
        self._set_max_ahead(check_max_ahead(max_ahead))

    @abstractmethod
    def _set_max_ahead(self, max_ahead: int | None) -> None:
        """Change how many trials may be pending; the number has been checked."""

    def describe(self, description: str | None) -> None:
        """Change the description, which `status` and the dashboard show; None removes it."""
        self._describe(check_description(description))

    @abstractmethod
    def _describe(self, description: str | None) -> None:
        """Change the description, which has been checked."""

    def retire(self, arm: str, reason: str = "withdrawn") -> None:
        """Withdraw an arm for a reason outside the study.

        The study then decides among the others as if this one had never been in it, and may need more trials for that
        even if it had stopped. Past spend still counts.
        """
        self._retire(self._arm_index(arm), checks.text("reason", reason, longest=MAX_REASON_LENGTH))

    @abstractmethod
    def _retire(self, arm: int, reason: str) -> None:
        """Withdraw an arm, given by its index; both arguments have been checked."""

    @abstractmethod
    def check(self) -> int:
        """Replay all events and compare with the stored summary; return their number, or raise what differs."""

    def _arm_index(self, name: str, argument: str = "arm") -> int:
        return self.settings.arms.index(checks.one_of(argument, name, self.settings.arms))


class StudyReports(ABC):
    """The part of a `Study` that reads and changes nothing."""

    name: str
    settings: Settings

    @abstractmethod
    def should_stop(self) -> bool:
        """Return whether the study has stopped."""

    @abstractmethod
    def recommendation(self) -> Recommendation:
        """Return the arm to choose as things stand, and how certain that is."""

    @abstractmethod
    def status(self) -> Status:
        """Return the state of the study: what is counted, and what is pending."""

    def snapshot(self) -> tuple[Status, Recommendation]:
        """Return the status and the recommendation, of one moment where the study is at hand."""
        return self.status(), self.recommendation()

    @abstractmethod
    def pending(self) -> list[Pending]:
        """Return the trials that have not been counted, in the order asked."""

    @abstractmethod
    def history(self) -> list[HistoryPoint]:
        """Return spend and expected loss over time; a study that breaks even stops where they meet."""

    @abstractmethod
    def explain(self) -> list[str]:
        """Explain every elimination and the stop, in one sentence each with its numbers."""

    @abstractmethod
    def trials(self) -> Iterator[TrialRow]:
        """Iterate over the trials asked so far, in order, each with its outcome.

        A few thousand are read at a time, as they are at that moment; nothing is locked in between.
        """

    def to_dataframe(self, library: str | None = None) -> Any:
        """Return the trials as a data frame, with times in UTC.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            Whose data frame. Default: the first of these that is installed.
        """
        return make_data_frame(self.trials(), library)

    def export(self, path: str | Path) -> Path:
        """Write the trials to a .csv, .jsonl or .parquet file."""
        return write_trials(self.trials(), path)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw what is known of the arms, and how spending and expected loss went.

        Parameters
        ----------
        path : str or Path, optional
            A .png, .svg or .pdf file to write it to.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which notebooks show. This requires the extra `lab`.
        """
        wanted = None if path is None else check_figure_path(path)
        from dbcare.studies.show.figure import draw_study  # noqa: PLC0415  # matplotlib is an extra

        return draw_study(self).saved(wanted)

    def report(self, path: str | Path, plan: FiledPlan | None = None) -> Path:
        """Write the decision as one HTML page to print and file away, and return its path.

        It has the result, every number with its meaning, the settings and their digest, the plan, the rule that stops
        the study, and what people did to it. It loads nothing from elsewhere, and is written whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file.
        plan : Plan, optional
            What `dbcare.plan` said before the study, to be filed with it.

        Raises
        ------
        InvalidValueError
            If the plan is for other arms, prices, or another value.
        OSError
            If the file cannot be written.
        """
        from dbcare.studies.show.page import make_page  # noqa: PLC0415  # only for reports

        target = check_path(path)
        page = make_page(self, plan)
        with replacing(target) as draft:
            draft.write_text(page, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        from dbcare.studies.show.notebook import display_study  # noqa: PLC0415  # only for notebooks

        return display_study(self)


DEFAULT_MAX_FAILURES = 5
MAX_WORKERS = 1000


class Study(StudyReports, StudyManagement):
    """A decision in progress; many workers can share it, and it survives whatever happens to them.

    Get one with `create_study` or `load_study`, or from a server with `connect`. A study may be used from several
    threads.

    Attributes
    ----------
    name : str
        The study's name.
    settings : Settings
        What it was created with.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("study example", arms=["A", "B"], price=0.4, value=100.0, sigma=0.5)
    >>> while not study.should_stop():
    ...     if trial := study.ask():
    ...         study.tell(trial, {"A": 0.9, "B": 0.1}[trial.arm])
    >>> study.recommendation().arm
    'A'
    """

    @overload
    def ask(
        self,
        n: None = None,
        lease: Lease = DEFAULT_LEASE,
        worker: str | None = None,
        *,
        timeout_reward: float | None = None,
        key: str | None = None,
        unit: str | None = None,
    ) -> Trial | None: ...
    @overload
    def ask(
        self,
        n: int,
        lease: Lease = DEFAULT_LEASE,
        worker: str | None = None,
        *,
        timeout_reward: float | None = None,
        key: str | None = None,
        unit: str | None = None,
    ) -> list[Trial]: ...
    def ask(
        self,
        n: int | None = None,
        lease: Lease = DEFAULT_LEASE,
        worker: str | None = None,
        *,
        timeout_reward: float | None = None,
        key: str | None = None,
        unit: str | None = None,
    ) -> Trial | list[Trial] | None:
        """Return the next trial, or up to `n` of them.

        Parameters
        ----------
        n : int, optional
            How many trials; without it, a single one is returned rather than a list.
        lease : str, float, timedelta or None
            How long the trial may take: "90s", "30m", "2h", "1d", "2w", a number of seconds, or None for no limit. A
            trial that is not told within its lease is replaced, or counts as `timeout_reward`; a block does without it.
        worker : str, optional
            Who asks. Twice as many trials as there are workers may be pending.
        timeout_reward : float, optional
            Reward to record when the lease expires. Default: the study's own, if it has one.
        key : str, optional
            Asking again with the same key returns the same trials, for when a response may have been lost.
        unit : str, optional
            Who or what the trial is for, such as a visitor. A unit that comes back gets the trial it has, not another
            one, so that it always sees the same arm and counts once; `Trial.told` says whether its outcome has been
            recorded. It gets a new trial if the one it has failed, or expired without a reward, or if the arm was
            retired. Takes the place of `key`.

        Returns
        -------
        Trial, list of Trial or None
            None, or fewer than `n`, while the policy waits for rewards, and after it has stopped; with `rounds=True`,
            also because all trials returned are of one round. A unit that has a trial of an active arm gets it even
            then.

        Raises
        ------
        InvalidValueError
            If an argument is invalid.
        StorageError
            If the storage fails; nothing was handed out.
        """
        trials = self._ask(self.check_ask(1 if n is None else n, lease, worker, timeout_reward, key, unit))
        return trials if n is not None else (trials[0] if trials else None)

    def check_ask(self, n: Any, lease: Lease, worker: Any, timeout_reward: Any, key: Any, unit: Any) -> AskRequest:
        """Return the arguments of `ask`, if they are valid."""
        wanted = checks.whole("n", n, at_least=1)
        for name, text in (("worker", worker), ("key", key), ("unit", unit)):
            if text is not None:
                checks.text(name, text)
        if unit is not None and wanted > 1:
            raise InvalidValueError(f"`n` must be 1 for a `unit` but got {wanted}.")
        if unit is not None and key is not None:
            raise InvalidValueError(f"Pass `key` or `unit`, not both, but got {show(key)} and {show(unit)}.")
        if timeout_reward is not None:
            timeout_reward = self.settings.check_reward("timeout_reward", timeout_reward)
        return AskRequest(wanted, parse_lease(lease), worker, timeout_reward, key, unit)

    @abstractmethod
    def _ask(self, request: AskRequest) -> list[Trial]:
        """Hand out the trials of a request, which has been checked."""

    def assign(
        self,
        unit: str,
        fallback: str | None = None,
        within: float = 0.5,
        *,
        lease: Lease = DEFAULT_LEASE,
        worker: str | None = None,
    ) -> Assignment:
        """Return the arm to show a unit, such as a visitor: always one, and with a `fallback` in time.

        The arm is that of the unit's own trial; else of a new one; else the winner, once the study has stopped; else
        the `fallback`; else the control.

        With a `fallback`, this returns within the stated time and does not raise because the storage or the server is
        slow or down: the unit then gets the fallback and is not in the study. If a trial is granted too late, it is
        given back at no charge as soon as the study answers; until then, this process shows the unit the fallback. If
        the process ends before that, the trial stays pending until its lease expires, although its arm was never shown.

        Parameters
        ----------
        unit : str
            Who or what is shown the arm; the same unit gets the same arm as long as it has a trial.
        fallback : str, optional
            Name of the arm to show where the study has none to try, or does not answer in time.
        within : float
            Seconds to wait for an answer before the fallback is returned; without a `fallback`, there is no limit.
        lease : str, float, timedelta or None
            How long a new trial may take, as in `ask`.
        worker : str, optional
            Name of the process that asks, which reports show.

        Returns
        -------
        Assignment
            The arm, why it is this one, and the trial if the unit has one. Report the outcome with `tell(unit=...)`.

        Raises
        ------
        InvalidValueError
            If an argument is invalid, or if there is no arm to return: the study has no trial, winner or control, and
            no `fallback` was passed.
        StorageError
            Without a `fallback`, if the storage fails.
        """
        if fallback is None:
            return self._assign(self.check_assign(unit, None, None, lease, worker), None, None)
        within = checks.positive("within", within)
        request = self.check_assign(unit, fallback, within, lease, worker, secrets.token_hex(8))
        return self._timely_assignments.assign(request, fallback, within)

    def check_assign(
        self, unit: Any, fallback: Any, within: Any, lease: Lease, worker: Any, tag: Any = None
    ) -> AskRequest:
        """Return the request of `assign`, if its arguments are valid."""
        checks.text("unit", unit)
        if fallback is not None:
            self._arm_index(fallback, "fallback")
        if within is not None:
            checks.positive("within", within)
        if tag is not None:
            checks.text("tag", tag, longest=MAX_TAG_LENGTH)
        return replace(self.check_ask(1, lease, worker, None, None, unit), tag=tag)

    @cached_property
    def _timely_assignments(self) -> TimelyAssignments:
        return TimelyAssignments(self._assign, self._give_back)

    @abstractmethod
    def _assign(self, request: AskRequest, fallback: str | None, within: float | None) -> Assignment:
        """Find an arm for a unit; after `within` seconds, hand out no new trial."""

    def give_back(self, unit: str, tag: str) -> bool:
        """Give back a unit's trial at no charge if it is open and was asked with this tag; return whether it was.

        `assign` does this for trials that were granted too late to be shown.
        """
        return self._give_back(checks.text("unit", unit), checks.text("tag", tag, longest=MAX_TAG_LENGTH))

    @abstractmethod
    def _give_back(self, unit: str, tag: str) -> bool:
        """Give back a unit's trial; both arguments have been checked."""

    @overload
    def tell(
        self,
        trial: TrialReference,
        reward: float | None = None,
        *,
        failed: bool = False,
        charged: bool = True,
        price: float | None = None,
        reason: str | None = None,
    ) -> None: ...
    @overload
    def tell(
        self,
        *,
        unit: str,
        reward: float | None = None,
        failed: bool = False,
        charged: bool = True,
        price: float | None = None,
        reason: str | None = None,
    ) -> bool: ...
    def tell(
        self,
        trial: TrialReference | None = None,
        reward: float | None = None,
        *,
        unit: str | None = None,
        failed: bool = False,
        charged: bool = True,
        price: float | None = None,
        reason: str | None = None,
    ) -> bool | None:
        """Record the outcome of a trial: its reward, or that it failed.

        Parameters
        ----------
        trial : Trial or int, optional
            The trial, or its number. A bare number does not tell whether the study was restored from a backup since.
        reward : float, optional
            The trial's reward.
        unit : str, optional
            The unit whose trial this is, in place of `trial`.
        failed : bool
            Whether the trial gave no reward; it is then replaced.
        charged : bool
            Whether a failed trial cost its price anyway.
        price : float, optional
            What this trial cost: in money, or in units of the loss without a `value`. Default: the arm's price.
        reason : str, optional
            Why the trial failed, in a line of at most 1,000 characters; `trials` and exports show it.

        Returns
        -------
        bool or None
            With a `unit`, whether it has a trial: one that was shown the fallback has none, and nothing is recorded.

        Raises
        ------
        AlreadyToldError
            If a different outcome was recorded before. Repeating the same outcome is harmless.
        InvalidRewardError
            If the study does not accept the reward; the trial still waits for one.
        InvalidValueError
            If another argument is invalid, such as a negative price; the trial still waits for its outcome.
        StudyNotFoundError
            If no such trial was asked.
        StaleTrialError
            If the study was restored from a backup, or copied, and has another trial of this number now.
        """
        if (trial is None) is (unit is None):
            raise InvalidValueError(f"Pass either `trial` or `unit` but got {show(trial)} and {show(unit)}.")
        if failed is not (reward is None):
            raise InvalidValueError(f"Pass either `reward` or failed=True but got {show(reward)} and {show(failed)}.")
        if price is not None and not checks.flag("charged", charged):
            raise InvalidValueError(f"`price` requires charged=True but got {show(price)} and charged=False.")
        checks.flag("charged", charged)
        if reason is not None and not failed:
            raise InvalidValueError(f"`reason` requires failed=True but got {show(reason)}.")
        why = None if reason is None else checks.text("reason", reason, longest=MAX_REASON_LENGTH)
        if trial is None:
            return self._tell_unit(checks.text("unit", unit), reward, charged, price, why)
        self._tell(trial, reward, charged, price, why)
        return None

    @abstractmethod
    def _tell_unit(
        self, unit: str, reward: float | None, charged: bool, price: float | None, reason: str | None
    ) -> bool:
        """Record the outcome of a unit's trial, as `_tell` does; return whether it has one."""

    @abstractmethod
    def _tell(
        self,
        trial: TrialReference,
        reward: float | None,
        charged: bool,
        price: float | None,
        reason: str | None,
    ) -> None:
        """Record a reward, or a failure where it is None; what the trial cost, and why it failed, if that is known."""

    def tell_many(
        self,
        outcomes: Iterable[tuple[TrialReference, float] | tuple[TrialReference, float, float | None]] | IntoFrame,
    ) -> None:
        """Record many rewards at once, all or none; each outcome is a trial and its reward, and maybe its price.

        A data frame with the columns `trial`, `reward`, and maybe `price` is accepted, too.
        """
        rows = list_rows("outcomes", outcomes, ("trial", "reward"), ("price",))
        what = "pairs of a trial and its reward, with or without a price,"
        listed = [(*outcome, None)[:3] for outcome in checks.tuples("outcomes", rows, what, 2, 3)]
        for trial, reward, _ in listed:
            if reward is None:
                raise InvalidValueError(
                    f"`reward` of trial {get_trial_number(trial)} must be a real number but got None."
                )
        self._tell_many(listed)

    @abstractmethod
    def _tell_many(self, outcomes: list[tuple[TrialReference, float, float | None]]) -> None:
        """Record rewards, each with its price if that is reported, all or none."""

    def add(self, observations: Iterable[tuple[str, float] | tuple[str, float, str]] | IntoFrame) -> None:
        """Add observations made elsewhere, each an arm's name and a reward: charged, and counted in this order.

        In a study with `blocks`, each also has the name of its block, which the arm must not have answered. Like
        rewards of trials, they wait for pending trials. Observations after the policy stops have no effect. A data
        frame of pandas, polars or Arrow with the columns `arm`, `reward`, and `block` is accepted, too.
        """
        if self.settings.rounds:
            raise InvalidValueError(
                f"Study {self.name!r} compares arms within rounds, which observations made elsewhere have no part in; "
                "create a study with `blocks` instead."
            )
        has_blocks = self.settings.blocks is not None
        columns = ("arm", "reward", "block") if has_blocks else ("arm", "reward")
        rows = list_rows("observations", observations, columns)
        what = "triples of an arm's name, a reward and a block" if has_blocks else "pairs of an arm's name and a reward"
        listed = checks.tuples("observations", rows, what, len(columns))
        self._add([self._check_observation(*observation) for observation in listed])

    def _check_observation(self, arm: Any, reward: Any, *block: Any) -> Observation:
        number = self.settings.block_names.find(*block) if block else None
        return Observation(self._arm_index(arm), self.settings.check_reward("reward", reward), number)

    @abstractmethod
    def _add(self, observations: list[Observation]) -> None:
        """Add observations, which have been checked."""

    def run(
        self,
        function: Callable[[Trial], Any],
        *,
        workers: int = 1,
        lease: Lease = DEFAULT_LEASE,
        max_failures: int = DEFAULT_MAX_FAILURES,
        progress: bool = True,
    ) -> Recommendation:
        """Ask for trials, measure them with a function, and tell their rewards, until the study stops.

        Others may work on the same study at the same time. While no trial is available, or the study is paused, this
        waits. Ctrl-C, or an error of the storage, gives trials under way back: they count as failed, at no cost, and
        whatever their functions still return is ignored.

        Parameters
        ----------
        function : callable
            Takes a `Trial`, which has an `arm`, and a `block` if the study has blocks; returns its reward, or a
            `Priced` reward. A trial whose call raises an exception, or returns what the study does not accept, is told
            as failed with that as its reason, and charged. It may be a coroutine function.
        workers : int
            Calls at the same time, each in a thread of its own.
        lease : str, float, timedelta or None
            How long a call may take, as in `ask`.
        max_failures : int
            How often an arm may fail in a row; then the run ends with an error.
        progress : bool
            Whether to show progress and failures on standard error.

        Returns
        -------
        Recommendation
            The result.

        Raises
        ------
        TrialsFailedError
            If an arm failed `max_failures` times in a row.
        InvalidValueError
            If an argument is invalid.
        StorageError
            If the storage fails.
        """
        from rich.console import Console  # noqa: PLC0415  # only for people

        from dbcare.studies.show.progress import StudyProgress  # noqa: PLC0415  # only for people

        if not callable(function):
            raise InvalidValueError(f"`function` must be a function of a trial but got {show(function)}.")
        runner = TrialRunner(
            self,
            function,
            checks.whole("workers", workers, at_least=1, at_most=MAX_WORKERS),
            parse_lease(lease),
            checks.whole("max_failures", max_failures, at_least=1),
        )
        if checks.flag("progress", progress):
            with StudyProgress(self, Console(stderr=True, highlight=False)) as shown:
                runner.run(shown.show)
        else:
            runner.run(lambda _sentences: None)
        return self.recommendation()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, arms={list(self.settings.arms)})"
