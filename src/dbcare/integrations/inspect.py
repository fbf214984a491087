"""Early stopping for inspect_ai: of the samples of several tasks, only those are run that a study asks for.

A study with `blocks` is shared by one task for each arm, all over the same dataset; a block is a sample's id. Inspect
asks for each sample whether to run it. All samples wait for that answer until the study asks for theirs, which is how a
hook that can only skip samples follows the study's order. So all tasks run in one `eval`, with room for all samples:

    stopping = StudyStopping(study)
    tasks = [Task(..., model=model, early_stopping=stopping.for_arm(arm)) for arm, model in models.items()]
    eval(tasks, max_tasks=len(tasks), max_samples=len(dataset))

What it cannot do: a sample has one answer, so epochs are not supported, and a failed sample is not asked again; inspect
does not tell the hook that a sample failed, so with `fail_on_error=False` the study waits for its lease to expire;
prices are those of the study, as inspect does not say what a sample cost; and every sample is loaded, so that very
large datasets are better compared by `dbcare.compare`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import anyio
from inspect_ai.scorer import value_to_float
from inspect_ai.util import EarlyStop

from dbcare.base import checks
from dbcare.base.times import Lease
from dbcare.errors import InvalidValueError
from dbcare.studies.study import Study
from dbcare.studies.trial import Trial

LOOK_SECONDS = 1.0  # between looks for leases that have expired
START_SECONDS = 60.0  # within which all tasks must have started

Place = tuple[str, str]  # an arm and a block


class StudyStopping:
    """Shares a study among the tasks of its arms.

    Parameters
    ----------
    study : Study
        A study with `blocks`: the ids of the dataset's samples.
    at_once : int
        Samples that run at the same time, over all tasks.
    scorer : str, optional
        Name of the scorer whose score counts. Default: the only one.
    lease : str, float, timedelta or None
        How long a sample may take, as in `Study.ask`. A failed sample whose task goes on holds its place that long, and
        forever without a limit.
    start_seconds : float
        How long to wait until the tasks of all arms have started.
    """

    def __init__(
        self,
        study: Study,
        *,
        at_once: int = 8,
        scorer: str | None = None,
        lease: Lease = "30m",
        start_seconds: float = START_SECONDS,
    ) -> None:
        if study.settings.blocks is None:
            raise InvalidValueError("`study` must have blocks, the ids of the samples, but has none.")
        self.study = study
        self._workers = [f"sample {number + 1}" for number in range(checks.whole("at_once", at_once, at_least=1))]
        self._scorer = scorer
        self._lease = lease
        self._start_seconds = checks.positive("start_seconds", start_seconds)
        self._samples: dict[str, int] = {}  # how many there are, by arm
        self._waiting: dict[Place, anyio.Event] = {}
        self._trials: dict[Place, Trial] = {}  # all that were released
        self._running: set[Place] = set()  # those whose outcome is awaited
        self._opened = False
        self._over: str | None = None  # why no more samples are run

    def for_arm(self, arm: str) -> ArmStopping:
        """Return the early stopping of an arm's task."""
        return ArmStopping(self, checks.one_of("arm", arm, self.study.settings.arms))

    def start(self, arm: str, samples: list[str]) -> None:
        """Note that an arm's task has started; its samples must be the study's blocks."""
        names = self.study.settings.block_names
        numbers = {names.find(block) for block in samples}
        missing = [number for number in range(names.count or 0) if number not in numbers]
        if missing:
            raise InvalidValueError(
                f"The dataset of {arm} must have a sample for each of the study's {names.count:,} blocks but has none "
                f"for {names.name(missing[0])!r}; create the study with the ids of the samples that are run."
            )
        self._samples[arm] = len(samples)

    async def wait_for(self, place: Place) -> str | None:
        """Wait until a sample is to be run, or is to be skipped for the reason that is returned."""
        if place in self._trials:  # a retry
            return None if place in self._running else "its lease has expired"
        self._waiting[place] = anyio.Event()
        began = anyio.current_time()
        try:
            self._hand_out()
            while place not in self._trials and self._over is None:
                looks = self._is_looking(place)
                with anyio.move_on_after(LOOK_SECONDS if looks else None):
                    await self._waiting[place].wait()
                self._waiting[place] = anyio.Event()
                if looks:
                    self._hand_out()
                    if not self._opened and anyio.current_time() - began > self._start_seconds:
                        self._refuse_start()
        except BaseException:
            self._end(f"the task of {place[0]} failed")
            raise
        finally:
            looked = self._is_looking(place)
            del self._waiting[place]
            if looked and self._waiting:
                next(iter(self._waiting.values())).set()
        return None if place in self._trials else self._over

    def _is_looking(self, place: Place) -> bool:
        """Return whether a waiting sample is the one that looks for expired leases: the first is enough."""
        return next(iter(self._waiting)) == place

    def _refuse_start(self) -> None:
        started, arms = ", ".join(self._samples) or "none", self.study.settings.arms
        raise InvalidValueError(
            f"Only {started} of the tasks for {', '.join(arms)} have all their samples waiting after "
            f"{self._start_seconds:g} s; run them in one eval with max_tasks={len(arms)} and max_samples="
            f"{max(self._samples.values())}."
        )

    def finish(self, place: Place, reward: float | None) -> None:
        """Tell the study about a sample; None if it has no score."""
        trial = self._trials[place]
        self._running.discard(place)
        if reward is None:
            self.study.tell(trial, failed=True)
        else:
            self.study.tell(trial, reward)
        self._hand_out()

    def _hand_out(self) -> None:
        """Let samples run that the study asks for, once the tasks of all arms are ready; or none if it has stopped."""
        if self._over is not None:
            return
        if not self._opened:
            expected = sum(self._samples.values())
            if len(self._samples) < len(self.study.settings.arms) or len(self._waiting) < expected:
                return
            self._opened = True
            for pending in self._list_awaited():  # of an earlier run
                self._release(pending)
        self._running.intersection_update((pending.arm, str(pending.block)) for pending in self._list_awaited())
        for worker in self._workers[len(self._running) :]:
            trial = self.study.ask(lease=self._lease, worker=worker)
            if trial is None:
                break
            self._release(trial)
        if not self._running and self.study.should_stop():
            self._end(self.study.recommendation().reason)

    def _list_awaited(self) -> list[Trial]:
        """Return the trials that the study waits for; not those that have expired, which nobody may report."""
        return [
            Trial(pending.trial, pending.arm, None, block=pending.block)
            for pending in self.study.pending()
            if not pending.told and (pending.left is None or pending.left > 0.0)
        ]

    def _release(self, trial: Trial) -> None:
        place = trial.arm, str(trial.block)
        self._trials[place] = trial
        self._running.add(place)
        self._waiting[place].set()

    def _end(self, reason: str) -> None:
        """Skip all samples that are waiting."""
        self._over = self._over or reason
        for event in self._waiting.values():
            event.set()

    def read_reward(self, scores: dict[str, Any]) -> float | None:
        """Return the score that counts, as a number; None if there is none."""
        if self._scorer is None and len(scores) > 1:
            raise InvalidValueError(f"`scorer` must be one of {', '.join(scores)} but got None.")
        chosen = next(iter(scores.values()), None) if self._scorer is None else scores.get(self._scorer)
        if chosen is None:
            return None
        convert: Callable[[Any], float] = value_to_float()
        reward = float(convert(chosen.score.value))
        return reward if math.isfinite(reward) else None


class ArmStopping:
    """The early stopping of one arm's task, as inspect_ai calls it; get it from `StudyStopping.for_arm`."""

    def __init__(self, shared: StudyStopping, arm: str) -> None:
        self._shared = shared
        self._arm = arm

    async def start_task(self, task: Any, samples: list[Any], epochs: int) -> str:
        """Check that the samples are the study's blocks; return the name of this early stopping."""
        if epochs != 1:
            raise InvalidValueError(f"`epochs` must be 1, as a sample has one answer in a study, but got {epochs}.")
        self._shared.start(self._arm, [str(sample.id) for sample in samples])
        return f"dbcare study {self._shared.study.name}"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:  # noqa: A002  # as inspect calls it
        """Wait until the study asks for a sample, or skip it once it never will."""
        reason = await self._shared.wait_for((self._arm, str(id)))
        return None if reason is None else EarlyStop(id=id, epoch=epoch, reason=reason)

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, Any]) -> None:  # noqa: A002  # as above
        """Tell the study the score of a sample."""
        self._shared.finish((self._arm, str(id)), self._shared.read_reward(scores))

    async def complete_task(self) -> dict[str, Any]:
        """Return what the study says so far, for the log."""
        choice = self._shared.study.recommendation()
        return {"recommendation": str(choice), "spent": choice.spent, "final": choice.final}
