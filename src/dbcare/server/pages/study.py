"""The page of one study: its view, its pictures, and what its buttons do."""

import asyncio
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

from dbcare.base.axis import Axis
from dbcare.base.numbers import MOST_STATED, Money, format_chance, format_number
from dbcare.base.options import parse_number
from dbcare.errors import InvalidValueError, StudyNotFoundError
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.metrics import Metrics
from dbcare.server.pages.rendering import Pages, quote_segment, render_part
from dbcare.server.stream import Streams, tell_gone
from dbcare.server.studies import OpenStudies
from dbcare.server.turns import Turns
from dbcare.studies.options import MAX_DESCRIPTION_LENGTH
from dbcare.studies.record.events import EventKind
from dbcare.studies.results.status import ArmStatus, Recommendation, Status
from dbcare.studies.results.words import describe_settings, describe_uncounted
from dbcare.studies.settings import Settings
from dbcare.studies.show.export import TrialRow
from dbcare.studies.stored import StoredStudy
from dbcare.studies.study import Study

MAX_PICTURE_BLOCKS, MAX_PICTURE_ARMS = 60, 20  # columns and rows
LEVELS = 7  # colors
TRIALS_PER_CELL = 4  # read for each cell: arms of a pool may be far behind each other
CELL = 16  # width and height of a cell, with its gap


@dataclass(frozen=True)
class BlockCell:
    """A trial, or the lack of one; `look` is the class of its color or mark."""

    column: int
    look: str
    text: str

    @property
    def left(self) -> int:
        """Its horizontal position."""
        return CELL * self.column


@dataclass(frozen=True)
class BlockPicture:
    """Cells by arm; `low` and `high` are the smallest and the largest reward shown, if there are any."""

    rows: list[tuple[str, list[BlockCell]]]
    blocks: list[str]
    low: str | None
    high: str | None

    @property
    def width(self) -> int:
        """Width of a row of cells."""
        return CELL * len(self.blocks)


def draw_blocks(study: StoredStudy, arms: Sequence[str]) -> BlockPicture:
    """Return the picture of the latest blocks, with the first of these arms."""
    shown = arms[:MAX_PICTURE_ARMS]
    names = study.settings.block_names
    rows = [
        row for row in study.recent_trials(TRIALS_PER_CELL * MAX_PICTURE_BLOCKS * len(shown)) if row.block is not None
    ]
    blocks = sorted({row.block for row in rows if row.block is not None}, key=names.find)[-MAX_PICTURE_BLOCKS:]
    trials = {(row.arm, row.block): row for row in rows if row.arm in shown and row.block in blocks}
    rewards = [row.reward for row in trials.values() if row.reward is not None]
    low, high = min(rewards, default=0.0), max(rewards, default=0.0)

    def draw_row(arm: str) -> list[BlockCell]:
        return [
            _make_cell(trials.get((arm, block)), arm, block, place, low, high) for place, block in enumerate(blocks)
        ]

    return BlockPicture(
        rows=[(arm, draw_row(arm)) for arm in shown],
        blocks=blocks,
        low=format_number(low) if rewards else None,
        high=format_number(high) if rewards else None,
    )


def _make_cell(trial: TrialRow | None, arm: str, block: str, column: int, low: float, high: float) -> BlockCell:
    where = f"{arm}, {block}: "
    if trial is None:
        return BlockCell(column, "absent", f"{where}not asked")
    if trial.reward is not None:
        share = (trial.reward - low) / (high - low) if high > low else 0.5
        return BlockCell(
            column, f"level-{min(LEVELS - 1, int(LEVELS * share))}", f"{where}{format_number(trial.reward)}"
        )
    if trial.status == EventKind.ASKED:
        return BlockCell(column, "open", f"{where}pending")
    return BlockCell(column, "missed", f"{where}{trial.status}, no reward")


MAX_ARMS, MAX_PENDING = 100, 12  # rows shown
MAX_UNSORTED_ARMS = 12  # more are shown best first


@dataclass(frozen=True)
class ArmLine:
    """An arm in the table."""

    arm: ArmStatus
    loss: Money | None
    leads: bool

    @property
    def chance(self) -> str | None:
        """The probability of being best, in words."""
        return None if self.arm.probability_best is None else format_chance(self.arm.probability_best)

    @property
    def chance_width(self) -> str:
        """The length of its bar, which claims no more than the words."""
        return f"{100.0 * min(self.arm.probability_best or 0.0, MOST_STATED):.1f}%"

    @property
    def lift(self) -> str | None:
        """The lift over the control: relative to it, if that makes sense."""
        lift = self.arm.lift
        if lift is None:
            return None
        return f"{lift.absolute:+.3g}" if lift.relative is None else f"{100.0 * lift.relative:+.1f}%"


TOKEN_MARK = secrets.token_hex(16)  # stands for a session's token in what all sessions share


@dataclass(frozen=True)
class StudyView:
    """What the page of a study shows as of some moment, for everybody who looks.

    Parameters
    ----------
    study : StoredStudy
        The study.
    position : int
        How many events it had.
    rendered : float
        When it was rendered, by the monotonic clock.
    parts : dict of str to str
        The pieces that all see alike, as HTML.
    actions : dict of (bool, bool) to str
        The actions, as HTML: for those who may change the study or not, with `TOKEN_MARK` in the forms or without.
    chart : dict
        The chart's data.
    """

    study: StoredStudy
    position: int
    rendered: float
    parts: dict[str, str]
    actions: dict[tuple[bool, bool], str]
    chart: dict[str, Any]

    def parts_for(self, visitor: Visitor) -> dict[str, str]:
        """Return all pieces as a visitor sees them, with their session's token in the forms."""
        session = visitor.session
        actions = self.actions[visitor.role.allows(Role.ADMIN), session is not None]
        own = actions if session is None else actions.replace(TOKEN_MARK, session.csrf)
        return {**self.parts, "actions": Markup(own)}  # already escaped


def make_view(study: StoredStudy) -> StudyView:
    """Render the page of a study."""
    position, rendered = study.position(), time.monotonic()  # first: what happens from now on is yet to be shown
    snapshot = study.snapshot()
    return StudyView(
        study, position, rendered, render_parts(study, snapshot), _render_actions(study, snapshot[0]), make_chart(study)
    )


def _render_actions(study: StoredStudy, status: Status) -> dict[tuple[bool, bool], str]:
    return {
        (may_change, has_session): render_part(
            "actions",
            name=study.name,
            status=status,
            token=TOKEN_MARK if has_session else None,
            may_change=may_change,
            retirable=_list_retirable(status),
            max_description=MAX_DESCRIPTION_LENGTH,
        )
        for may_change in (False, True)
        for has_session in (False, True)
    }


def render_parts(study: StoredStudy, snapshot: tuple[Status, Recommendation]) -> dict[str, str]:
    """Render the pieces of the page that can change, and that all visitors see alike."""
    settings, (status, choice) = study.settings, snapshot
    pending = study.pending()
    lines = [_make_line(settings, choice, arm) for arm in _choose_arms(settings, status)]
    ends = [end for line in lines for end in line.arm.interval or ()]
    lifts = [line.arm.lift for line in lines if line.arm.lift is not None]
    money = {
        "spent": Money(status.spent, settings.currency),
        "limit": None if settings.max_spend is None else settings.money(settings.max_spend),
    }
    parts = {} if not settings.has_blocks else {"blocks": _render_blocks(study, [line.arm.name for line in lines])}
    return (
        parts
        | {
            "state": render_part("state", state=status.state),
            "description": render_part("description", description=status.description),
            "announcement": render_part("announcement", choice=choice),
            "sentence": render_part("sentence", choice=choice),
            "figures": render_part(
                "figures", status=status, money=money, uncounted=describe_uncounted(status, settings.currency)
            ),
            "notes": render_part("notes", notes=status.notes),
            "arms": render_part(
                "arms",
                lines=lines,
                more=len(status.arms) - len(lines),
                axis=Axis.over(ends + [line.arm.mean for line in lines if line.arm.mean is not None]),
                control=settings.control,
                is_over=choice.final,
                lift_axis=Axis.over([0.0, *(end for lift in lifts for end in lift.interval)]),
                has={  # which columns have anything in them
                    "estimates": any(arm.estimate is not None for arm in status.arms),
                    "chances": any(arm.probability_best is not None for arm in status.arms),
                    "lifts": bool(lifts),
                    "cap": settings.cap is not None,
                    "pending": any(arm.out for arm in status.arms),
                    "losses": any(arm.expected_loss is not None for arm in status.arms),
                    "range": settings.spread.range is not None,
                },
            ),
            "pending": render_part(
                "pending",
                pending=pending[:MAX_PENDING],
                more=max(0, len(pending) - MAX_PENDING),
                has_blocks=settings.has_blocks,
            ),
            "log": render_part("log", sentences=_list_decisions(study, status), status=status),
        }
    )


def _render_blocks(study: StoredStudy, arms: list[str]) -> str:
    picture = draw_blocks(study, arms)
    return render_part("blocks", picture=picture, levels=LEVELS, more=len(study.settings.arms) - len(picture.rows))


def make_chart(study: Study) -> dict[str, Any]:
    """Return the chart's data: spending, the loss that the policy weighs, and the expected loss of stopping."""
    history = study.history()
    return {
        "currency": study.settings.currency or "units of the loss",
        "rewards": [point.rewards for point in history],
        "spent": [point.spent for point in history],
        "loss": [point.policy_loss for point in history],
        "expected": [point.expected_loss for point in history],
        "at": [None if point.at is None else 1000.0 * point.at for point in history],
        "stopped": study.should_stop(),
    }


def _list_decisions(study: Study, status: Status) -> list[str]:
    """List what the policy decided, without what people did, which is shown with their names."""
    done = {f"{activity.arm} was retired: {activity.note}" for activity in status.activities}
    done |= {str(activity.note) for activity in status.activities if activity.what == "stopped"}
    return [sentence for sentence in study.explain() if sentence not in done]


def _choose_arms(settings: Settings, status: Status) -> list[ArmStatus]:
    """Return the arms to show, active ones first; of many, the best first, and of very many those only."""
    arms = sorted(status.arms, key=lambda arm: arm.left is not None)
    if len(arms) > MAX_UNSORTED_ARMS:
        arms.sort(key=lambda arm: (arm.left is not None, arm.mean is None, -settings.sign * (arm.mean or 0.0)))
    return arms[:MAX_ARMS]


def _make_line(settings: Settings, choice: Recommendation, arm: ArmStatus) -> ArmLine:
    leads = arm.name == choice.arm and choice.mean is not None
    loss = None if arm.expected_loss is None else Money(arm.expected_loss, settings.currency)
    return ArmLine(arm, loss, leads)


def _list_retirable(status: Status) -> list[str]:
    """List the arms that can be retired; the last active one cannot."""
    active = [arm.name for arm in status.arms if not arm.is_retired]
    return active if len(active) > 1 else []


MAX_VIEWS = 64  # kept at a time
KEPT_SECONDS = 60.0  # since the last look, so that studies that nobody looks at can be closed
REDRAW_SECONDS = 10.0  # after which the ages of trials are updated although nothing has happened
MIN_PAUSE_SECONDS = 0.5  # between two looks at a study for its open pages
PAUSE_PER_LOOK = 4.0  # times what a look takes, so that open pages take a fifth of a processor at most


@dataclass(frozen=True)
class SharedLook:
    """A view that was up to date when the look began, and how long the look took."""

    view: StudyView
    began: float
    seconds: float


class SharedViews:
    """The views of studies that somebody looked at lately."""

    def __init__(self, studies: OpenStudies, looks: Turns) -> None:
        self._studies = studies
        self._turns = looks
        self._looks: OrderedDict[str, SharedLook] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[None]] = {}

    async def get(self, name: str) -> StudyView:
        """Return what a study's page shows now."""
        return await self._get_since(name, time.monotonic())

    async def watch(self, name: str) -> StudyView:
        """Return what a study's page shows now or showed a moment ago; the longer a look takes, the fewer there are."""
        last = self._looks.get(name)
        pause = 0.0 if last is None else max(MIN_PAUSE_SECONDS, PAUSE_PER_LOOK * last.seconds)
        return await self._get_since(name, time.monotonic() - pause)

    async def _get_since(self, name: str, since: float) -> StudyView:
        while (last := self._looks.get(name)) is None or last.began < since:
            earlier = self._under_way.get(name)
            if earlier is not None:  # it may have begun too early, or fail for a reason that is gone
                await asyncio.wait([earlier])
                continue
            task = self._under_way[name] = asyncio.create_task(self._look(name))
            task.add_done_callback(partial(self._forget, name))
            await asyncio.shield(task)  # a client that leaves must not end what others wait for
        return last.view

    def _forget(self, name: str, done: asyncio.Task[None]) -> None:
        del self._under_way[name]
        if not done.cancelled():
            done.exception()  # known, even if whoever waited has left

    async def _look(self, name: str) -> None:
        try:
            async with self._turns.take(f"page of {name}"):
                look = await run_in_threadpool(self._look_now, name, self._looks.get(name))
        except BaseException:
            self._looks.pop(name, None)
            raise
        self._looks[name] = look
        self._looks.move_to_end(name)
        while len(self._looks) > MAX_VIEWS or next(iter(self._looks.values())).began < look.began - KEPT_SECONDS:
            self._looks.popitem(last=False)

    def _look_now(self, name: str, last: SharedLook | None) -> SharedLook:
        began = time.monotonic()
        study = self._studies.get(name)
        view = None if last is None or last.view.study is not study else last.view
        if view is None or began - view.rendered > REDRAW_SECONDS or view.position != study.position():
            view = make_view(study)
        return SharedLook(view, began, time.monotonic() - began)


Text = Annotated[str, Form(max_length=2000)]


def study_url(name: str) -> str:
    """Return the URL of a study's page."""
    return f"/studies/{quote_segment(name)}"


def make_routes(pages: Pages, studies: OpenStudies, streams: Streams, metrics: Metrics) -> APIRouter:
    """Return all pages under /studies."""
    router = pages.router()
    views = SharedViews(studies, pages.looks)
    Viewer = Annotated[Visitor, Depends(pages.needs(Role.VIEWER))]  # noqa: N806  # a type
    Admin = Annotated[Visitor, Depends(pages.needs(Role.ADMIN))]  # noqa: N806  # a type

    async def find_view(request: Request, name: str, _: Viewer) -> AsyncIterator[StudyView]:
        view = await views.get(name)
        async with pages.looks.take_for(request):
            yield view

    @router.get("/studies/{name}")
    def show(visitor: Viewer, view: Annotated[StudyView, Depends(find_view, scope="function")]) -> HTMLResponse:
        study = view.study
        return pages.render(
            "study.html",
            visitor,
            name=study.name,
            parts=view.parts_for(visitor),
            chart=json.dumps(view.chart),
            settings=describe_settings(study.settings, study.status().max_ahead),
            breaks_even=study.settings.built_policy.breaks_even,
            patience=study.settings.built_policy.patience,
            cap=study.settings.cap,
            in_rounds=study.settings.rounds,
        )

    @router.get("/studies/{name}/events")
    def events(request: Request, name: str) -> Response:
        visitor = pages.gate.identify(request, None)  # other sites are refused
        if visitor is None:  # a script cannot see a redirect
            return tell_gone()
        look = _watch(lambda: pages.gate.identify(request, None), lambda: views.watch(name))
        return streams.stream(request, visitor.name, look)

    def act(name: str, visitor: Visitor, action: Callable[[Study], object]) -> Response:
        action(studies.get(name).on_behalf_of(visitor.name))
        return RedirectResponse(study_url(name), HTTPStatus.SEE_OTHER)

    @router.post("/studies/{name}/pause")
    def pause(name: str, visitor: Admin) -> Response:
        return act(name, visitor, lambda study: study.pause())

    @router.post("/studies/{name}/resume")
    def resume(name: str, visitor: Admin) -> Response:
        return act(name, visitor, lambda study: study.resume())

    @router.post("/studies/{name}/stop")
    def stop(name: str, visitor: Admin, reason: Text = "") -> Response:
        return act(name, visitor, lambda study: study.stop(reason))

    @router.post("/studies/{name}/describe")
    def describe(name: str, visitor: Admin, description: Text = "") -> Response:
        return act(name, visitor, lambda study: study.describe(" ".join(description.split()) or None))

    @router.post("/studies/{name}/give-up")
    def give_up(name: str, visitor: Admin, older_than: Text = "") -> Response:
        age = older_than.strip() or None
        return act(name, visitor, lambda study: metrics.failed.inc(study.give_up(older_than=age)))

    @router.post("/studies/{name}/max-ahead")
    def set_max_ahead(name: str, visitor: Admin, max_ahead: Text = "") -> Response:
        limit: Any = parse_number("max_ahead", max_ahead) if max_ahead.strip() else None
        return act(name, visitor, lambda study: study.set_max_ahead(limit))

    @router.post("/studies/{name}/retire")
    def retire(name: str, visitor: Admin, arm: Text = "", reason: Text = "") -> Response:
        return act(name, visitor, lambda study: study.retire(arm, reason))

    return router


def _watch(
    identify: Callable[[], Visitor | None], find_view: Callable[[], Awaitable[StudyView]]
) -> Callable[[], Awaitable[str | None]]:
    """Return a function that returns what last changed on the page, as JSON; None if the page must not be shown."""
    shown: dict[str, object] = {}
    seen: tuple[Visitor, StudyView] | None = None
    last = ""

    async def look() -> str | None:
        nonlocal last, seen
        visitor = await run_in_threadpool(identify)  # None after signing out, or once the key is revoked
        if visitor is None:
            return None
        try:
            view = await find_view()
        except (StudyNotFoundError, InvalidValueError):  # the latter if the name is invalid
            return None
        if seen is not None and seen[0] == visitor and seen[1] is view:  # the usual case
            return last
        seen = visitor, view
        now: dict[str, object] = {**view.parts_for(visitor), "chart": view.chart}
        changed = {name: piece for name, piece in now.items() if shown.get(name) != piece}
        if changed:
            shown.update(changed)
            last = json.dumps(changed)
        return last

    return look
