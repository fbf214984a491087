"""A study on a server."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dbcare.client.responses import (
    build,
    build_recommendation,
    build_row,
    build_status,
    require_list,
    require_part,
)
from dbcare.errors import InvalidRewardError, InvalidValueError
from dbcare.studies.assignment import Assignment
from dbcare.studies.results.status import HistoryPoint, Pending, Recommendation, Status
from dbcare.studies.settings import Settings
from dbcare.studies.show.export import TrialRow
from dbcare.studies.study import Study
from dbcare.studies.trial import AskRequest, Observation, TaggedNumber, Trial, TrialReference, get_trial_number

if TYPE_CHECKING:
    from dbcare.client.transport import Transport


MAX_TRIALS_PER_REQUEST = 1000


class RemoteStudy(Study):
    """A study on a server; get one from a `Client`.

    What can be refused without the server is refused here, in the same words. `ask` and `tell` are retried if a
    response gets lost, and take effect once all the same; `add` and `retire` are not retried (AnswerLostError).
    """

    def __init__(self, transport: Transport, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self._transport = transport

    def _ask(self, request: AskRequest) -> list[Trial]:
        body = {
            "n": min(MAX_TRIALS_PER_REQUEST, request.wanted),
            "lease": request.lease,
            "worker": request.worker,
            "timeout_reward": request.timeout_reward,
            "unit": request.unit,
        }
        response = self._post("ask", body, key=_make_key(request))
        return [build(Trial, plain) for plain in require_part(response, "trials")]

    def _tell(
        self,
        trial: TrialReference,
        reward: float | None,
        charged: bool,
        price: float | None,
        reason: str | None,
    ) -> None:
        cost = self._price(trial, price)
        if reward is None:
            why = {} if reason is None else {"reason": reason}
            self._post("fail", {**_identify(trial), "charged": charged, **cost, **why})
        else:
            self._post("tell", {**self._outcome(trial, reward), **cost})

    def _tell_unit(
        self, unit: str, reward: float | None, charged: bool, price: float | None, reason: str | None
    ) -> bool:
        body: dict[str, Any] = {"unit": unit, "charged": charged}
        if reward is not None:
            body["reward"] = self.settings.check_reward("reward", reward)
        if price is not None:
            body["price"] = self.settings.check_price(price)
        if reason is not None:
            body["reason"] = reason
        return bool(require_part(self._post("tell-unit", body), "recorded"))

    def _assign(self, request: AskRequest, fallback: str | None, within: float | None) -> Assignment:
        body: dict[str, Any] = {
            "unit": request.unit,
            "fallback": fallback,
            "lease": request.lease,
            "worker": request.worker,
        }
        how: dict[str, Any] = {}
        if within is not None:
            body |= {"within": within, "tag": request.tag}
            how = {"patience": within, "once": True}
        found = self._post("assign", body, **how)
        trial = require_part(found, "trial")
        return build(Assignment, {**found, "trial": trial and build(Trial, trial), "problem": None})

    def _give_back(self, unit: str, tag: str) -> bool:
        return bool(require_part(self._post("give-back", {"unit": unit, "tag": tag}, patience=0.0), "recorded"))

    def _price(self, trial: TrialReference, price: float | None) -> dict[str, float]:
        if price is None:
            return {}
        return {"price": self._check(trial, InvalidValueError, self.settings.check_price, price)}

    def _tell_many(self, outcomes: list[tuple[TrialReference, float, float | None]]) -> None:
        answers = [{**self._outcome(trial, reward), **self._price(trial, price)} for trial, reward, price in outcomes]
        self._post("tell-many", {"answers": answers})

    def _add(self, observations: list[Observation]) -> None:
        rows = [
            {
                "arm": self.settings.arms[each.arm],
                "reward": each.reward,
                **({} if each.block is None else {"block": self.settings.name_block(each.block)}),
            }
            for each in observations
        ]
        self._post("add", {"observations": rows}, once=True)

    def should_stop(self) -> bool:
        return self.status().state == "stopped"

    def recommendation(self) -> Recommendation:
        return build_recommendation(self._get("recommendation"))

    def status(self) -> Status:
        return build_status(self._get("status"))

    def pending(self) -> list[Pending]:
        return [build(Pending, plain) for plain in require_list(self._get("pending"))]

    def history(self) -> list[HistoryPoint]:
        return [build(HistoryPoint, plain) for plain in require_list(self._get("history"))]

    def explain(self) -> list[str]:
        return [str(sentence) for sentence in require_list(self._get("explain"))]

    def trials(self) -> Iterator[TrialRow]:
        return map(build_row, self._transport.stream_lines(f"{make_study_path(self.name)}/export?format=jsonl"))

    def pause(self) -> None:
        self._post("pause")

    def resume(self) -> None:
        self._post("resume")

    def _give_up(self, trials: list[int] | None, worker: str | None, older_than: float | None) -> int:
        body = {"trials": trials, "worker": worker, "older_than": older_than}
        # Repeated, it would give up what was asked since, unless it names the trials.
        return int(require_part(self._post("give-up", body, once=trials is None), "given_up"))

    def _stop(self, reason: str) -> None:
        self._post("stop", {"reason": reason})

    def _set_max_ahead(self, max_ahead: int | None) -> None:
        self._post("max-ahead", {"max_ahead": max_ahead})

    def _describe(self, description: str | None) -> None:
        self._post("describe", {"description": description})

    def _retire(self, arm: int, reason: str) -> None:
        self._post("retire", {"arm": self.settings.arms[arm], "reason": reason}, once=True)

    def check(self) -> int:
        return int(require_part(self._get("check"), "events"))

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r}, arms={list(self.settings.arms)}, address={self._transport.address!r})"

    def _outcome(self, trial: TrialReference, reward: Any) -> dict[str, Any]:
        check = partial(self.settings.check_reward, "reward")
        return {**_identify(trial), "reward": self._check(trial, InvalidRewardError, check, reward)}

    def _check(
        self, trial: TrialReference, error: type[InvalidValueError], check: Callable[[Any], float], value: Any
    ) -> float:
        """Return a number, if `check` accepts it; an error names the trial."""
        number = get_trial_number(trial)
        try:
            return check(value)
        except InvalidValueError as refused:
            arm = f", of {trial.arm}" if isinstance(trial, Trial) else ""
            raise error(f"Trial {number}{arm}: {refused}") from None

    def _get(self, what: str) -> Any:
        return self._transport.call("GET", f"{make_study_path(self.name)}/{what}")

    def _post(self, what: str, body: Any = None, **how: Any) -> Any:
        return self._transport.call("POST", f"{make_study_path(self.name)}/{what}", body, **how)


def make_study_path(name: str) -> str:
    """Return where a study is on its server."""
    return f"/v1/studies/{quote(name, safe='')}"


def _identify(trial: TrialReference) -> dict[str, Any]:
    """Return a trial's number, and its tag if it has one."""
    tag = trial.tag if isinstance(trial, Trial | TaggedNumber) else None
    return {"trial": get_trial_number(trial), **({} if tag is None else {"tag": tag})}


def _make_key(request: AskRequest) -> str | None:
    """Return the key that makes an ask safe to repeat, hashed if no header can hold it; a unit needs none."""
    if request.unit is not None:
        return None
    key = uuid.uuid4().hex if request.key is None else request.key
    return key if key.isascii() and key == key.strip() else hashlib.sha256(key.encode()).hexdigest()
