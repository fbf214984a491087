"""The API's routes for studies, and the stream of their trials."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from itertools import chain, islice
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Send

from dbcare.engines.simulate.halt import Halt
from dbcare.errors import DbcareError
from dbcare.server.access.gate import VISITOR, Gate, Visitor
from dbcare.server.access.roles import Role
from dbcare.server.api import schemas
from dbcare.server.api.schemas import MAX_KEY_LENGTH, MAX_STUDIES_PER_PAGE, STUDIES_PER_PAGE, Name, NewStudy
from dbcare.server.limits import REPORT_SECURITY_POLICY
from dbcare.server.metrics import Metrics
from dbcare.server.request_log import STUDY
from dbcare.server.request_trace import trace_trial
from dbcare.server.studies import OpenStudies
from dbcare.server.turns import Turns
from dbcare.studies.api import check_name, create_in, find_in
from dbcare.studies.options import MAX_NAME_LENGTH
from dbcare.studies.results.status import HistoryPoint, Pending, Recommendation, Status
from dbcare.studies.settings import Settings
from dbcare.studies.show.export import TextFormat, TrialRow, format_trials
from dbcare.studies.show.page import make_page
from dbcare.studies.stored import StoredStudy
from dbcare.studies.study import Study

LOG = logging.getLogger("dbcare")
MEDIA_TYPES: dict[TextFormat, str] = {"json": "application/json", "csv": "text/csv", "jsonl": "application/jsonl"}


class TrialStream(StreamingResponse):
    """All trials of a study; each piece is made in a turn of its own, and none once the client has disconnected.

    The first trial is read at once, so that an error then is reported as usual. After a later one the connection is
    closed without the end of the response, so that no client takes it for complete.
    """

    def __init__(
        self, study: Study, kind: TextFormat, take_turn: Callable[[], AbstractAsyncContextManager[None]]
    ) -> None:
        rows = study.trials()
        begun = chain(list(islice(rows, 1)), rows)
        super().__init__(_make_in_turns(format_trials(begun, kind), take_turn), media_type=MEDIA_TYPES[kind])
        self.study = study

    async def stream_response(self, send: Send) -> None:
        """Send the pieces; if there is an error on the way, return without the end of the response."""
        try:
            await super().stream_response(send)
        except DbcareError as error:
            LOG.error("The export of study %r ended early: %s", self.study.name, error)


async def _make_in_turns(
    pieces: Iterator[str], take_turn: Callable[[], AbstractAsyncContextManager[None]]
) -> AsyncIterator[str]:
    while True:
        async with take_turn():
            piece = await run_in_threadpool(next, pieces, None)
        if piece is None:
            return
        yield piece


LINK = {"description": 'The next page, as `<URL>; rel="next"`.', "schema": {"type": "string"}}
EXPORT_TYPES: dict[str, Any] = {media_type: {} for media_type in MEDIA_TYPES.values()}
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_KEY_LENGTH,
        description="Repeating a request with the same key returns the same response.",
    ),
]

Result = TypeVar("Result")


class StudyRoutes:
    """The routes under /v1/studies, and the dependencies that they share."""

    def __init__(self, gate: Gate, studies: OpenStudies, metrics: Metrics, looks: Turns, long_work: Turns) -> None:
        self.gate = gate
        self.studies = studies
        self.metrics = metrics
        self.looks = looks
        self.long_work = long_work
        self.router = APIRouter(prefix="/v1/studies", tags=["studies"])

    def build(self) -> APIRouter:
        """Return all routes; the two busiest come first, since routes are tried in order."""
        self._add_trial_routes()
        self._add_collection_routes()
        self._add_control_routes()
        self._add_report_routes()
        return self.router

    def _find_study(self, role: Role) -> Any:
        """Return a dependency: the study named in the path, for visitors with the role."""
        enter = self.gate.needs(role)

        async def find(
            visitor: Annotated[Visitor, enter], name: Annotated[Name, Path(examples=["ads"])]
        ) -> StoredStudy:
            return (await self.studies.open(name)).on_behalf_of(visitor.name)

        return Depends(find)

    def _look_at_study(self) -> Any:
        """Return a dependency: the study named in the path, for viewers, when their turn comes."""

        async def look(
            request: Request, study: Annotated[StoredStudy, self._find_study(Role.VIEWER)]
        ) -> AsyncIterator[StoredStudy]:
            async with self.looks.take_for(request):
                yield study

        return Depends(look, scope="function")

    async def _work_long(self, request: Request, study: StoredStudy, work: Callable[[StoredStudy], Result]) -> Result:
        """Do what replays a study, when its turn comes; it ends when the client disconnects."""

        def replay(halt: Halt) -> Result:
            return work(study.replaying(halt.check))

        return await self.long_work.run_for(request, replay)

    def _post(self, path: str, **how: Any) -> Callable[..., Any]:
        """Return a decorator for a route that changes something and responds without content."""
        return self.router.post("/{name}/" + path, status_code=HTTPStatus.NO_CONTENT, response_class=Response, **how)

    def _add_trial_routes(self) -> None:
        Worked = Annotated[StoredStudy, self._find_study(Role.WORKER)]  # noqa: N806  # a type
        metrics = self.metrics

        @self.router.post("/{name}/ask")
        def ask(study: Worked, wanted: schemas.Ask, key: Key = None) -> schemas.Asked:
            """Ask for the next trials. With an Idempotency-Key or a unit, asking again returns the same ones."""
            result = study.carry_out(study.ask_later(study.check_ask(**dict(wanted), key=key)))
            metrics.count_ask(study.name, result)
            return schemas.Asked.from_result(result)

        @self._post("tell")
        def tell(study: Worked, answer: schemas.Answer) -> None:
            """Report a trial's reward; repeating it changes nothing."""
            trace_trial(answer.trial)
            study.tell(answer.identify(), answer.reward, price=answer.price)
            metrics.count_told(study.name)

        @self.router.post("/{name}/assign")
        def assign(study: Worked, wanted: schemas.Assign) -> schemas.Assigned:
            """Return the arm to show a unit, such as a visitor, and its trial if it has one."""
            request = study.check_assign(**dict(wanted))
            found, outcome = study.carry_out(study.assign_later(request, wanted.fallback, wanted.within))
            metrics.count_ask(study.name, outcome)
            return schemas.Assigned.from_assignment(found)

        @self.router.post("/{name}/tell-unit")
        def tell_unit(study: Worked, outcome: schemas.UnitOutcome) -> schemas.Recorded:
            """Report the outcome of a unit's trial; repeating it changes nothing."""
            recorded = study.tell(failed=outcome.reward is None, **dict(outcome))
            if outcome.reward is None:
                metrics.failed.inc(recorded)
            else:
                metrics.count_told(study.name, int(recorded))
            return schemas.Recorded(recorded=recorded)

        @self.router.post("/{name}/give-back")
        def give_back(study: Worked, which: schemas.GiveBack) -> schemas.Recorded:
            """Give back the trial of a unit that was shown something else, because the trial was granted too late."""
            return schemas.Recorded(recorded=study.give_back(which.unit, which.tag))

        @self._post("tell-many")
        def tell_many(study: Worked, many: schemas.Answers) -> None:
            """Report many rewards at once, all of them or none."""
            study.tell_many((answer.identify(), answer.reward, answer.price) for answer in many.answers)
            metrics.count_told(study.name, len(many.answers))

        @self._post("fail")
        def fail(study: Worked, failure: schemas.Failure) -> None:
            """Mark a trial as failed; another one takes its place, or its block does without the arm."""
            trace_trial(failure.trial)
            trial, charged = failure.identify(), failure.charged
            study.tell(trial, failed=True, charged=charged, price=failure.price, reason=failure.reason)
            metrics.failed.inc()

        @self.router.post("/{name}/give-up")
        def give_up(study: Worked, which: schemas.GiveUp) -> schemas.GivenUp:
            """Mark pending trials as failed, at no charge: those listed, or all, so that the study goes on."""
            count = study.give_up(**dict(which))
            metrics.failed.inc(count)
            return schemas.GivenUp(given_up=count)

        @self._post("add")
        def add(study: Worked, many: schemas.Observations) -> None:
            """Add observations made elsewhere."""
            study.add(
                (each.arm, each.reward) if each.block is None else (each.arm, each.reward, each.block)
                for each in many.observations
            )

    def _add_collection_routes(self) -> None:
        router, studies = self.router, self.studies
        viewer, admin = self.gate.needs(Role.VIEWER), self.gate.needs(Role.ADMIN)
        Admin = Annotated[Visitor, admin]  # noqa: N806  # a type

        async def look(request: Request, _: Annotated[Visitor, viewer]) -> AsyncIterator[None]:
            async with self.looks.take_for(request):
                yield

        @router.get("", dependencies=[Depends(look, scope="function")], responses={200: {"headers": {"Link": LINK}}})
        def list_studies(
            response: Response,
            limit: Annotated[int, Query(ge=1, le=MAX_STUDIES_PER_PAGE)] = STUDIES_PER_PAGE,
            after: Annotated[Name | None, Query(description="Name of the last study on the previous page.")] = None,
            q: Annotated[str, Query(max_length=MAX_NAME_LENGTH, description="Part of the name.")] = "",
        ) -> list[schemas.Listed]:
            """List studies, oldest first, a page at a time; the next page is in the `Link` header."""
            found = find_in(studies.store, q, after=after, limit=limit + 1)
            if len(found) > limit:
                search = {"q": q} if q else {}
                page = urlencode({"limit": limit, "after": found[limit - 1].name, **search})
                response.headers["Link"] = f'</v1/studies?{page}>; rel="next"'
            return [schemas.Listed.from_record(record) for record in found[:limit]]

        @router.post("", status_code=HTTPStatus.CREATED)
        def create(request: Request, new: NewStudy, visitor: Admin, key: Key = None) -> schemas.StudyOut:  # type: ignore[valid-type]  # built from options
            """Create a study. With an Idempotency-Key, returns the existing study if its settings match."""
            options: dict[str, Any] = dict(new)
            request.scope[STUDY] = name = options.pop("name")
            settings = Settings.from_options(**options)
            study = create_in(studies.store, name, settings, load_if_exists=key is not None, by=visitor.name)
            return schemas.StudyOut.from_study(study)

        @router.delete("/{name}", dependencies=[admin], status_code=HTTPStatus.NO_CONTENT, response_class=Response)
        def delete(name: Name) -> None:
            """Delete a study and everything that happened in it."""
            studies.store.delete(check_name(name))
            studies.forget(name)

    def _add_control_routes(self) -> None:
        Controlled = Annotated[StoredStudy, self._find_study(Role.ADMIN)]  # noqa: N806  # a type

        @self._post("pause")
        def pause(study: Controlled) -> None:
            """Pause the study: no trials are handed out until it is resumed."""
            study.pause()

        @self._post("resume")
        def resume(study: Controlled) -> None:
            """Resume a paused study."""
            study.resume()

        @self._post("stop")
        def stop(study: Controlled, why: schemas.Stop) -> None:
            """Stop the study for good."""
            study.stop(why.reason)

        @self._post("max-ahead")
        def set_max_ahead(study: Controlled, limit: schemas.MaxAhead) -> None:
            """Change how many trials may be pending."""
            study.set_max_ahead(limit.max_ahead)

        @self._post("describe")
        def describe(study: Controlled, what: schemas.Describe) -> None:
            """Change the description."""
            study.describe(what.description)

        @self._post("retire")
        async def retire(request: Request, study: Controlled, which: schemas.Retire) -> None:
            """Retire an arm; the study continues as if it had never existed."""
            await self._work_long(request, study, lambda replaying: replaying.retire(which.arm, which.reason))

    def _add_report_routes(self) -> None:
        router = self.router
        Viewed = Annotated[StoredStudy, self._look_at_study()]  # noqa: N806  # a type
        Found = Annotated[StoredStudy, self._find_study(Role.VIEWER)]  # noqa: N806  # a type

        @router.get("/{name}")
        def show(study: Viewed) -> schemas.StudyOut:
            """Return the study's settings, status and recommendation."""
            return schemas.StudyOut.from_study(study)

        @router.get("/{name}/status")
        def status(study: Viewed) -> Status:
            """Return what is counted, and what is pending."""
            return study.status()

        @router.get("/{name}/recommendation")
        def recommendation(study: Viewed) -> Recommendation:
            """Return the arm to choose as things stand."""
            return study.recommendation()

        @router.get("/{name}/explain")
        def explain(study: Viewed) -> list[str]:
            """Explain why each arm left and why the study stopped, one sentence each."""
            return study.explain()

        @router.get("/{name}/pending")
        def pending(study: Viewed) -> list[Pending]:
            """List the trials that have not been counted."""
            return study.pending()

        @router.get("/{name}/history")
        def history(study: Viewed) -> list[HistoryPoint]:
            """Return spend and expected loss over time."""
            return study.history()

        @router.get("/{name}/check")
        async def check(request: Request, study: Found) -> schemas.Checked:
            """Replay all events and compare with the stored summary."""
            return schemas.Checked(events=await self._work_long(request, study, lambda replaying: replaying.check()))

        @router.get("/{name}/report", response_class=HTMLResponse)
        def report(study: Viewed) -> HTMLResponse:
            """Return the decision as one HTML page to print and file away."""
            return HTMLResponse(make_page(study, None), headers={"Content-Security-Policy": REPORT_SECURITY_POLICY})

        @router.get("/{name}/export", response_model=list[TrialRow], responses={200: {"content": EXPORT_TYPES}})
        def export(request: Request, study: Viewed, format: Annotated[TextFormat, Query()] = "json") -> Response:  # noqa: A002  # as in the URL
            """Stream all trials, as a JSON list, as CSV, or as JSON Lines."""
            return TrialStream(study, format, lambda: self.looks.take(request.scope[VISITOR]))
