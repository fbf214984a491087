"""What people decide about a study: to pause or stop it, to withdraw an arm, to describe or check it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from dbcare.base import checks
from dbcare.base.times import Lease, parse_lease
from dbcare.live.settings import Settings, check_description, check_max_ahead
from dbcare.live.trial import MAX_REASON_LENGTH


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
