"""What people decide about a study: to pause or stop it, to withdraw an arm, to describe or check it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from dbcare import validation
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

    def stop(self, reason: str = "stopped by hand") -> None:
        """Stop the study for good."""
        self._stop(validation.text("reason", reason, longest=MAX_REASON_LENGTH))

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
        self._retire(self._arm_index(arm), validation.text("reason", reason, longest=MAX_REASON_LENGTH))

    @abstractmethod
    def _retire(self, arm: int, reason: str) -> None:
        """Withdraw an arm, given by its index; both arguments have been checked."""

    @abstractmethod
    def check(self) -> int:
        """Replay all events and compare with the stored summary; return their number, or raise what differs."""

    def _arm_index(self, name: str, argument: str = "arm") -> int:
        return self.settings.arms.index(validation.one_of(argument, name, self.settings.arms))
