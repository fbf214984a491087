"""Routes for studies, each named after the method of `Study` that it calls."""

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from dbcare.live.export import TrialRow, format_csv
from dbcare.live.status import HistoryPoint, Pending, Recommendation, Status
from dbcare.live.studies import check_name, create_in
from dbcare.live.study import Study
from dbcare.server.access.gate import Gate
from dbcare.server.access.roles import Role
from dbcare.server.api import schemas
from dbcare.server.api.fast_route import IDEMPOTENCY_KEY, make_fast_route
from dbcare.server.api.option_models import NewStudy
from dbcare.server.api.schemas import Name
from dbcare.server.metrics import Metrics
from dbcare.server.open_studies import OpenStudies

FORMULA_STARTS = ("=", "+", "-", "@")  # in a spreadsheet
Key = Annotated[
    str | None,
    Header(
        alias=IDEMPOTENCY_KEY,
        min_length=1,
        max_length=200,
        description="Repeating a request with the same key returns the same response.",
    ),
]


class StudyRoutes:
    """The routes under /v1/studies, and the dependencies that they share."""

    def __init__(self, gate: Gate, studies: OpenStudies, metrics: Metrics) -> None:
        self.gate = gate
        self.studies = studies
        self.metrics = metrics
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

        async def find(request: Request, name: Annotated[Name, Path(examples=["ads"])]) -> Study:
            await enter(request)
            opened = self.studies.find(name)
            return await run_in_threadpool(self.studies.get, name) if opened is None else opened

        return Depends(find)

    def _post(self, path: str, **how: Any) -> Callable[..., Any]:
        """Return a decorator for a route that changes something and responds without content."""
        return self.router.post("/{name}/" + path, status_code=HTTPStatus.NO_CONTENT, response_class=Response, **how)

    def _add_trial_routes(self) -> None:
        Worked = Annotated[Study, self._find_study(Role.WORKER)]  # noqa: N806  # a type
        trials = self.metrics.trials
        fast = make_fast_route(self.gate.needs(Role.WORKER), self.studies)

        def ask(study: Worked, wanted: schemas.Ask, key: Key = None) -> schemas.Asked:
            """Ask for the next trials. With an Idempotency-Key, asking again returns the same ones."""
            asked = study.ask(wanted.n, wanted.lease, wanted.worker, timeout_reward=wanted.timeout_reward, key=key)
            trials.labels("asked").inc(len(asked))
            return schemas.Asked(
                trials=[schemas.TrialOut(id=trial.id, arm=trial.arm, expires=trial.expires) for trial in asked],
                stopped=not asked and study.should_stop(),
            )

        def tell(study: Worked, answer: schemas.Answer) -> None:
            """Report a trial's reward; repeating it changes nothing."""
            study.tell(answer.trial, answer.reward)
            trials.labels("told").inc()

        self.router.add_api_route("/{name}/ask", ask, methods=["POST"], route_class_override=fast)
        self.router.add_api_route(
            "/{name}/tell",
            tell,
            methods=["POST"],
            status_code=HTTPStatus.NO_CONTENT,
            response_class=Response,
            route_class_override=fast,
        )

        @self._post("tell-many")
        def tell_many(study: Worked, many: schemas.Answers) -> None:
            """Report many rewards at once, all of them or none."""
            study.tell_many((answer.trial, answer.reward) for answer in many.answers)
            trials.labels("told").inc(len(many.answers))

        @self._post("fail")
        def fail(study: Worked, failure: schemas.Failure) -> None:
            """Mark a trial as failed; another one takes its place."""
            study.tell(failure.trial, failed=True, charged=failure.charged)
            trials.labels("failed").inc()

        @self._post("add")
        def add(study: Worked, many: schemas.Observations) -> None:
            """Add observations made elsewhere."""
            study.add((observation.arm, observation.reward) for observation in many.observations)

    def _add_collection_routes(self) -> None:
        router, studies = self.router, self.studies
        viewer, admin = Depends(self.gate.needs(Role.VIEWER)), Depends(self.gate.needs(Role.ADMIN))

        @router.get("", dependencies=[viewer])
        def list_studies() -> list[schemas.Listed]:
            """List all studies, oldest first."""
            return studies.view_all(schemas.Listed.from_study)

        @router.post("", dependencies=[admin], status_code=HTTPStatus.CREATED)
        def create(new: NewStudy, key: Key = None) -> schemas.StudyOut:  # type: ignore[valid-type]  # built from options
            """Create a study. With an Idempotency-Key, returns the existing study if its settings match."""
            options = new.model_dump()  # type: ignore[attr-defined]  # as above
            return schemas.StudyOut.from_study(create_in(studies.store, load_if_exists=key is not None, **options))

        @router.delete("/{name}", dependencies=[admin], status_code=HTTPStatus.NO_CONTENT, response_class=Response)
        def delete(name: Name) -> None:
            """Delete a study and everything that happened in it."""
            studies.store.delete(check_name(name))
            studies.forget(name)

    def _add_control_routes(self) -> None:
        Controlled = Annotated[Study, self._find_study(Role.ADMIN)]  # noqa: N806  # a type

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

        @self._post("describe")
        def describe(study: Controlled, what: schemas.Describe) -> None:
            """Change the description."""
            study.describe(what.description)

        @self._post("retire")
        def retire(study: Controlled, which: schemas.Retire) -> None:
            """Retire an arm; the study continues as if it had never existed."""
            study.retire(which.arm, which.reason)

    def _add_report_routes(self) -> None:
        router = self.router
        Viewed = Annotated[Study, self._find_study(Role.VIEWER)]  # noqa: N806  # a type

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
        def check(study: Viewed) -> schemas.Checked:
            """Replay all events and compare with the stored summary."""
            return schemas.Checked(events=study.check())

        @router.get("/{name}/export", response_model=list[TrialRow], responses={200: {"content": {"text/csv": {}}}})
        def export(study: Viewed, format: Annotated[Literal["json", "csv"], Query()] = "json") -> Any:  # noqa: A002  # as in the URL
            """Return all trials, as JSON or CSV."""
            rows = study.trials()
            if format == "json":
                return rows
            return Response(format_csv([_defuse_formulas(row) for row in rows]), media_type="text/csv")


def _defuse_formulas(row: TrialRow) -> TrialRow:
    """Mark names as text that a spreadsheet would take for a formula."""
    changed = {
        name: f"'{text}" for name in ("arm", "worker") if (text := str(getattr(row, name))).startswith(FORMULA_STARTS)
    }
    return replace(row, **changed)  # type: ignore[arg-type]  # both are strings
