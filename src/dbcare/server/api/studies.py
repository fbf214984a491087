"""Routes for studies, each the method of `Study` that its name says."""

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from dbcare.live.export import TrialRow, csv_text
from dbcare.live.report import HistoryPoint, Pending, Recommendation, Status
from dbcare.live.stored_study import Study
from dbcare.live.studies import checked_name, create_in
from dbcare.server.access.gate import Gate
from dbcare.server.access.roles import Role
from dbcare.server.api import schemas
from dbcare.server.api.fast_route import quick_route
from dbcare.server.api.schemas import Name
from dbcare.server.metrics import Metrics
from dbcare.server.open_studies import OpenStudies

KEY = "Idempotency-Key"
FORMULA = ("=", "+", "-", "@")  # what one begins with
Key = Annotated[
    str | None, Header(alias=KEY, min_length=1, max_length=200, description="The same key again: the same answer.")
]


def routes(gate: Gate, catalogue: OpenStudies, metrics: Metrics) -> APIRouter:
    """All routes under /v1/studies."""
    router = APIRouter(prefix="/v1/studies", tags=["studies"])
    viewer, admin = Depends(gate.needs(Role.VIEWER)), Depends(gate.needs(Role.ADMIN))

    def found_by(role: Role) -> Any:
        """A dependency: the study of the address, for who has the role."""
        enter = gate.needs(role)

        async def found(request: Request, name: Annotated[Name, Path(examples=["ads"])]) -> Study:
            await enter(request)
            opened = catalogue.opened(name)
            return await run_in_threadpool(catalogue.study, name) if opened is None else opened

        return Depends(found)

    Viewed = Annotated[Study, found_by(Role.VIEWER)]  # noqa: N806  # a type, as are these
    Worked = Annotated[Study, found_by(Role.WORKER)]  # noqa: N806
    Ruled = Annotated[Study, found_by(Role.ADMIN)]  # noqa: N806

    def does(path: str) -> Callable[..., Any]:
        """A route that changes something and has nothing to say."""
        return router.post("/{name}/" + path, status_code=HTTPStatus.NO_CONTENT, response_class=Response)

    def asked(found: Study, wanted: schemas.Ask, request: Request) -> Response:
        trials = found.ask(
            wanted.n, wanted.lease, wanted.worker, timeout_reward=wanted.timeout_reward, key=request.headers.get(KEY)
        )
        metrics.trials.labels("asked").inc(len(trials))
        answer = schemas.Asked(
            trials=[schemas.TrialOut(id=each.id, arm=each.arm, expires=each.expires) for each in trials],
            stopped=not trials and found.should_stop(),
        )
        return Response(answer.model_dump_json(), media_type="application/json")

    def told(found: Study, answer: schemas.Answer, _request: Request) -> Response:
        found.tell(answer.trial, answer.reward)
        metrics.trials.labels("told").inc()
        return Response(status_code=HTTPStatus.NO_CONTENT)

    def ask(found: Worked, wanted: schemas.Ask, key: Key = None) -> schemas.Asked:
        """The next trials. With an Idempotency-Key, asking again gives the same ones."""
        raise NotImplementedError  # for the description; `asked` answers

    def tell(found: Worked, answer: schemas.Answer) -> None:
        """The reward of a trial; the same again changes nothing."""
        raise NotImplementedError  # for the description; `told` answers

    # The two that are used most come first, since routes are looked through in order.
    enter = gate.needs(Role.WORKER)
    router.add_api_route(
        "/{name}/ask", ask, methods=["POST"], route_class_override=quick_route(enter, catalogue, schemas.Ask, asked)
    )
    router.add_api_route(
        "/{name}/tell",
        tell,
        methods=["POST"],
        status_code=HTTPStatus.NO_CONTENT,
        response_class=Response,
        route_class_override=quick_route(enter, catalogue, schemas.Answer, told),
    )

    @router.get("", dependencies=[viewer])
    def listed() -> list[schemas.Listed]:
        """All studies, the oldest first."""
        return catalogue.each(schemas.Listed.of)

    @router.post("", dependencies=[admin], status_code=HTTPStatus.CREATED)
    def create(new: schemas.NewStudy, key: Key = None) -> schemas.StudyOut:
        """A new study. With an Idempotency-Key, one that exists with these very settings is as good as new."""
        return schemas.StudyOut.of(create_in(catalogue.store, load_if_exists=key is not None, **new.model_dump()))

    @router.get("/{name}")
    def look(found: Viewed) -> schemas.StudyOut:
        """Its settings, where it stands, and what it recommends."""
        return schemas.StudyOut.of(found)

    @router.delete("/{name}", dependencies=[admin], status_code=HTTPStatus.NO_CONTENT, response_class=Response)
    def delete(name: Name) -> None:
        """Remove a study and all that happened in it."""
        catalogue.store.delete(checked_name(name))
        catalogue.forget(name)

    @does("tell-many")
    def tell_many(found: Worked, many: schemas.Answers) -> None:
        """Many rewards at once, all of them or none."""
        found.tell_many((each.trial, each.reward) for each in many.answers)
        metrics.trials.labels("told").inc(len(many.answers))

    @does("fail")
    def fail(found: Worked, failure: schemas.Failure) -> None:
        """A trial that gave no reward: another one takes its place."""
        found.tell(failure.trial, failed=True, charged=failure.charged)
        metrics.trials.labels("failed").inc()

    @does("add")
    def add(found: Worked, many: schemas.Observations) -> None:
        """Observations made elsewhere."""
        found.add((each.arm, each.reward) for each in many.observations)

    @does("pause")
    def pause(found: Ruled) -> None:
        """Hand out no trials until it is resumed."""
        found.pause()

    @does("resume")
    def resume(found: Ruled) -> None:
        """Go on after a pause."""
        found.resume()

    @does("stop")
    def stop(found: Ruled, why: schemas.Stop) -> None:
        """End it for good."""
        found.stop(why.reason)

    @does("retire")
    def retire(found: Ruled, which: schemas.Retire) -> None:
        """Withdraw an arm; the others are decided among as if it had never been."""
        found.retire(which.arm, which.reason)

    @router.get("/{name}/status")
    def status(found: Viewed) -> Status:
        """Where it stands."""
        return found.status()

    @router.get("/{name}/recommendation")
    def recommendation(found: Viewed) -> Recommendation:
        """The arm to choose as things stand."""
        return found.recommendation()

    @router.get("/{name}/explain")
    def explain(found: Viewed) -> list[str]:
        """Every elimination and the stop, a sentence each."""
        return found.explain()

    @router.get("/{name}/pending")
    def pending(found: Viewed) -> list[Pending]:
        """Trials that have not been counted."""
        return found.pending()

    @router.get("/{name}/history")
    def history(found: Viewed) -> list[HistoryPoint]:
        """How spending and expected loss went."""
        return found.history()

    @router.get("/{name}/check")
    def check(found: Viewed) -> schemas.Checked:
        """Replay all events and compare with the stored summary."""
        return schemas.Checked(events=found.check())

    @router.get(
        "/{name}/export",
        response_model=list[TrialRow],
        responses={200: {"content": {"text/csv": {}}}},
    )
    def export(found: Viewed, format: Annotated[Literal["json", "csv"], Query()] = "json") -> Any:  # noqa: A002  # its name
        """All trials, as JSON or CSV."""
        rows = found.trials()
        if format == "json":
            return rows
        return Response(csv_text([_harmless(row) for row in rows]), media_type="text/csv")

    return router


def _harmless(row: TrialRow) -> TrialRow:
    """Names that a spreadsheet would take for a formula, as texts: the file is opened by people."""
    changed = {name: f"'{text}" for name in ("arm", "worker") if (text := str(getattr(row, name))).startswith(FORMULA)}
    return replace(row, **changed)  # type: ignore[arg-type]  # both are texts
