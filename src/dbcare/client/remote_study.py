"""A study on a server: the methods, results and errors of `Study`."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dbcare import validation
from dbcare.client.responses import listed, made, made_status, part
from dbcare.errors import InvalidRewardError, InvalidValueError
from dbcare.live.export import TrialRow
from dbcare.live.leases import Lease, seconds_of
from dbcare.live.report import HistoryPoint, Pending, Recommendation, Status
from dbcare.live.settings import Settings
from dbcare.live.stored_study import LONGEST_REASON, Study
from dbcare.live.tell import Trial, number_of

if TYPE_CHECKING:
    from dbcare.client.transport import Transport


MOST = 1000  # trials that a server gives at once


class RemoteStudy(Study):
    """A study on a server; get one from a `Client`. Safe to use from several threads.

    What can be refused without the server is refused here, in the same words. Asking and telling are repeated if an
    answer gets lost, and happen once all the same; `add` and `retire` are not repeated (AnswerLostError).
    """

    def __init__(self, transport: Transport, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self._transport = transport

    def ask(  # type: ignore[override]  # overloaded there
        self,
        n: int | None = None,
        lease: Lease = "30m",
        worker: str | None = None,
        *,
        timeout_reward: float | None = None,
        key: str | None = None,
    ) -> Trial | list[Trial] | None:
        """As `Study.ask`; a server gives at most 1,000 trials at once."""
        wanted = {
            "n": 1 if n is None else min(MOST, validation.whole("n", n, at_least=1)),
            "lease": seconds_of(lease),
            "worker": None if worker is None else validation.text("worker", worker),
            "timeout_reward": None
            if timeout_reward is None
            else self.settings.counted("timeout_reward", timeout_reward),
        }
        unique = uuid.uuid4().hex if key is None else _header(validation.text("key", key))
        trials = [made(Trial, each) for each in part(self._post("ask", wanted, key=unique), "trials")]
        return trials if n is not None else (trials[0] if trials else None)

    def tell(
        self, trial: Trial | int, reward: float | None = None, *, failed: bool = False, charged: bool = True
    ) -> None:
        """As `Study.tell`."""
        if failed is not (reward is None):
            raise InvalidValueError(f"Either `reward` or failed=True must be given but got {reward!r} and {failed!r}.")
        if failed:
            self._post("fail", {"trial": number_of(trial), "charged": charged})
        else:
            self._post("tell", self._answer(trial, reward))

    def tell_many(self, answers: Iterable[tuple[Trial | int, float]]) -> None:
        """As `Study.tell_many`."""
        checked = []
        for trial, reward in answers:
            if reward is None:
                raise InvalidValueError(f"`reward` of trial {number_of(trial)} must be a real number but got None.")
            checked.append(self._answer(trial, reward))
        self._post("tell-many", {"answers": checked})

    def add(self, observations: Iterable[tuple[str, float]]) -> None:
        """As `Study.add`; not repeated where the answer gets lost."""
        checked = [
            {"arm": self.settings.arms[self._arm(arm)], "reward": self.settings.counted("reward", reward)}
            for arm, reward in observations
        ]
        self._post("add", {"observations": checked}, once=True)

    def should_stop(self) -> bool:
        """As `Study.should_stop`."""
        return self.status().state == "stopped"

    def recommendation(self) -> Recommendation:
        """As `Study.recommendation`."""
        return made(Recommendation, self._get("recommendation"))

    def status(self) -> Status:
        """As `Study.status`."""
        return made_status(self._get("status"))

    def pending(self) -> list[Pending]:
        """As `Study.pending`."""
        return [made(Pending, each) for each in listed(self._get("pending"))]

    def history(self) -> list[HistoryPoint]:
        """As `Study.history`."""
        return [made(HistoryPoint, each) for each in listed(self._get("history"))]

    def explain(self) -> list[str]:
        """As `Study.explain`."""
        return [str(each) for each in listed(self._get("explain"))]

    def trials(self) -> list[TrialRow]:
        """As `Study.trials`."""
        return [made(TrialRow, each) for each in listed(self._get("export"))]

    def pause(self) -> None:
        """As `Study.pause`."""
        self._post("pause")

    def resume(self) -> None:
        """As `Study.resume`."""
        self._post("resume")

    def stop(self, reason: str = "stopped by hand") -> None:
        """As `Study.stop`."""
        self._post("stop", {"reason": validation.text("reason", reason, longest=LONGEST_REASON)})

    def retire(self, arm: str, reason: str = "withdrawn") -> None:
        """As `Study.retire`; not repeated where the answer gets lost."""
        note = validation.text("reason", reason, longest=LONGEST_REASON)
        self._post("retire", {"arm": self.settings.arms[self._arm(arm)], "reason": note}, once=True)

    def check(self) -> int:
        """As `Study.check`, done by the server."""
        return int(part(self._get("check"), "events"))

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r}, arms={list(self.settings.arms)}, address={self._transport.address!r})"

    def _answer(self, trial: Trial | int, reward: Any) -> dict[str, Any]:
        number = number_of(trial)
        try:
            return {"trial": number, "reward": self.settings.counted("reward", reward)}
        except InvalidValueError as refused:
            of = f", of {trial.arm}" if isinstance(trial, Trial) else ""
            raise InvalidRewardError(f"Trial {number}{of}: {refused}") from None

    def _get(self, what: str) -> Any:
        return self._transport.call("GET", f"{path_of(self.name)}/{what}")

    def _post(self, what: str, body: Any = None, **how: Any) -> Any:
        return self._transport.call("POST", f"{path_of(self.name)}/{what}", body, **how)


def path_of(name: str) -> str:
    """Where a study is on its server."""
    return f"/v1/studies/{quote(name, safe='')}"


def _header(key: str) -> str:
    """A key as it can travel: what no header holds is hashed."""
    return key if key.isascii() and key == key.strip() else hashlib.sha256(key.encode()).hexdigest()
