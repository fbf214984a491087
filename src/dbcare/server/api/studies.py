"""Routes for studies, each the method of `Study` that its name says."""

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from starlette.concurrency import run_in_threadpool

from dbcare.live.create import checked_name, create_in
from dbcare.live.outlook import Pending, Point, Recommendation, Status
from dbcare.live.rows import Row, csv_text
from dbcare.live.study import Study
from dbcare.server.access.gate import Gate
from dbcare.server.access.roles import Role
from dbcare.server.api import bodies
from dbcare.server.api.bodies import Name
from dbcare.server.catalogue import Catalogue
from dbcare.server.metrics import Metrics

KEY = "Idempotency-Key"
FORMULA = ("=", "+", "-", "@")  # what one begins with
Key = Annotated[
    str | None, Header(alias=KEY, min_length=1, max_length=200, description="The same key again: the same answer.")
]


def routes(gate: Gate, catalogue: Catalogue, metrics: Metrics) -> APIRouter:
    """All routes under /v1/studies."""
    router = APIRouter(prefix="/v1/studies", tags=["studies"])
    viewer, worker, admin = (Depends(gate.needs(role)) for role in Role)

    async def study(name: Annotated[Name, Path(examples=["ads"])]) -> Study:
        opened = catalogue.opened(name)
        return await run_in_threadpool(catalogue.study, name) if opened is None else opened

    Found = Annotated[Study, Depends(study)]  # noqa: N806  # a type

    def does(path: str, role: Any, **more: Any) -> Callable[..., Any]:
        """A route that changes something and has nothing to say."""
        return router.post(
            "/{name}/" + path, dependencies=[role], status_code=HTTPStatus.NO_CONTENT, response_class=Response, **more
        )

    # The two that are used most come first, since routes are looked through in order.
    @router.post("/{name}/ask", dependencies=[worker], response_model=bodies.Asked)
    def ask(found: Found, wanted: bodies.Ask, key: Key = None) -> Response:
        """The next trials. With an Idempotency-Key, asking again gives the same ones."""
        trials = found.ask(wanted.n, wanted.lease, wanted.worker, timeout_reward=wanted.timeout_reward, key=key)
        metrics.trials.labels("asked").inc(len(trials))
        asked = bodies.Asked(
            trials=[bodies.TrialOut(id=each.id, arm=each.arm, expires=each.expires) for each in trials],
            stopped=not trials and found.should_stop(),
        )
        return Response(asked.model_dump_json(), media_type="application/json")

    @does("tell", worker)
    def tell(found: Found, answer: bodies.Answer) -> None:
        """The reward of a trial; the same again changes nothing."""
        found.tell(answer.trial, answer.reward)
        metrics.trials.labels("told").inc()

    @router.get("", dependencies=[viewer])
    def listed() -> list[bodies.Listed]:
        """All studies, the oldest first."""
        return catalogue.each(bodies.Listed.of)

    @router.post("", dependencies=[admin], status_code=HTTPStatus.CREATED)
    def create(new: bodies.NewStudy, key: Key = None) -> bodies.StudyOut:
        """A new study. With an Idempotency-Key, one that exists with these very settings is as good as new."""
        return bodies.StudyOut.of(create_in(catalogue.store, load_if_exists=key is not None, **new.model_dump()))

    @router.get("/{name}", dependencies=[viewer])
    def look(found: Found) -> bodies.StudyOut:
        """Its settings, where it stands, and what it recommends."""
        return bodies.StudyOut.of(found)

    @router.delete("/{name}", dependencies=[admin], status_code=HTTPStatus.NO_CONTENT, response_class=Response)
    def delete(name: Name) -> None:
        """Remove a study and all that happened in it."""
        catalogue.store.delete(checked_name(name))
        catalogue.forget(name)

    @does("tell-many", worker)
    def tell_many(found: Found, many: bodies.Answers) -> None:
        """Many rewards at once, all of them or none."""
        found.tell_many((each.trial, each.reward) for each in many.answers)
        metrics.trials.labels("told").inc(len(many.answers))

    @does("fail", worker)
    def fail(found: Found, failure: bodies.Failure) -> None:
        """A trial that gave no reward: another one takes its place."""
        found.tell(failure.trial, failed=True, charged=failure.charged)
        metrics.trials.labels("failed").inc()

    @does("add", worker)
    def add(found: Found, many: bodies.Observations) -> None:
        """Observations made elsewhere."""
        found.add((each.arm, each.reward) for each in many.observations)

    @does("pause", admin)
    def pause(found: Found) -> None:
        """Hand out no trials until it is resumed."""
        found.pause()

    @does("resume", admin)
    def resume(found: Found) -> None:
        """Go on after a pause."""
        found.resume()

    @does("stop", admin)
    def stop(found: Found, why: bodies.Stop) -> None:
        """End it for good."""
        found.stop(why.reason)

    @does("retire", admin)
    def retire(found: Found, which: bodies.Retire) -> None:
        """Withdraw an arm; the others are decided among as if it had never been."""
        found.retire(which.arm, which.reason)

    @router.get("/{name}/status", dependencies=[viewer])
    def status(found: Found) -> Status:
        """Where it stands."""
        return found.status()

    @router.get("/{name}/recommendation", dependencies=[viewer])
    def recommendation(found: Found) -> Recommendation:
        """The arm to choose as things stand."""
        return found.recommendation()

    @router.get("/{name}/explain", dependencies=[viewer])
    def explain(found: Found) -> list[str]:
        """Every elimination and the stop, a sentence each."""
        return found.explain()

    @router.get("/{name}/pending", dependencies=[viewer])
    def pending(found: Found) -> list[Pending]:
        """Trials that have not been counted."""
        return found.pending()

    @router.get("/{name}/history", dependencies=[viewer])
    def history(found: Found) -> list[Point]:
        """How spending and expected loss went."""
        return found.history()

    @router.get("/{name}/check", dependencies=[viewer])
    def check(found: Found) -> bodies.Checked:
        """Replay all events and compare with the stored summary."""
        return bodies.Checked(events=found.check())

    @router.get(
        "/{name}/export",
        dependencies=[viewer],
        response_model=list[Row],
        responses={200: {"content": {"text/csv": {}}}},
    )
    def export(found: Found, format: Annotated[Literal["json", "csv"], Query()] = "json") -> Any:  # noqa: A002  # its name
        """All trials, as JSON or CSV."""
        rows = found.trials()
        if format == "json":
            return rows
        return Response(csv_text([_harmless(row) for row in rows]), media_type="text/csv")

    return router


def _harmless(row: Row) -> Row:
    """Names that a spreadsheet would take for a formula, as texts: the file is opened by people."""
    changed = {name: f"'{text}" for name in ("arm", "worker") if (text := str(getattr(row, name))).startswith(FORMULA)}
    return replace(row, **changed)  # type: ignore[arg-type]  # both are texts
