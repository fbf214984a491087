"""Lists of studies: in pages, searched, from what is stored with the events; and who did what to a study."""

import re
from contextlib import closing
from pathlib import Path

import httpx2 as httpx
import pytest
from typer.testing import CliRunner

import dbcare
from dbcare.cli import app
from dbcare.studies.record.events import EventKind
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.open import open_store
from dbcare.studies.stores.sql.store import SqlStore
from tests.helpers.api_client import STUDY, ApiServer, assert_refused
from tests.helpers.service_process import run_service

pytestmark = pytest.mark.service

COUNT = 130


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a database with studies that stand differently; the newest has stopped."""
    address = f"sqlite:///{tmp_path_factory.mktemp('lists') / 'many.db'}"
    for number in range(COUNT):
        study = dbcare.create_study(f"ads {number} %", ["A", "B"], price=1, value=1000, sigma=1, storage=address)
        if number % 10 == 0:
            study.add([("A", 0.5), ("B", 0.25)])
        if number % 50 == 7:
            study.pause()
    study.stop("over")
    return address


def test_standings_follow_from_the_events(storage: str) -> None:
    """What a list shows is what the study itself says."""
    records = dbcare.find_studies("ads", storage)
    assert [record.name for record in records] == dbcare.list_studies(storage)
    for record in records[::7] + records[-1:]:
        study, standing = dbcare.load_study(record.name, storage), record.standing
        status, choice = study.status(), study.recommendation()
        assert (standing.state, standing.asked, standing.rewards) == (status.state, status.asked, status.rewards)
        assert (standing.spent, standing.expected_loss) == (status.spent, status.expected_loss)
        assert (standing.recommended or None, standing.verdict) == (choice.arm, choice.verdict)
        assert standing.reason == (choice.reason if choice.final else "")
        history = [
            (point.spent / 1000, point.expected_loss and point.expected_loss / 1000) for point in study.history()
        ]
        drawn = [tuple(map(float, point.split())) for point in standing.curve.split(",") if point]
        assert [point[0] for point in drawn] == pytest.approx([spent for spent, _ in history], rel=1e-3)
    assert records[-1].standing.state == "stopped"


def test_pages_of_the_api(storage: str) -> None:
    with run_service(storage) as service, httpx.Client(base_url=service) as client:
        names, sizes, link = [], [], "/v1/studies"
        while link:
            response = client.get(link)
            names += [study["name"] for study in response.json()]
            sizes.append(len(response.json()))
            found = re.fullmatch(r'<(/v1/studies\?.*)>; rel="next"', response.headers.get("link", ""))
            link = found[1] if found else ""
        assert names == dbcare.list_studies(storage)
        assert sizes == [100, COUNT - 100]
        response = client.get("/v1/studies", params={"q": "ADS 12", "limit": 5, "after": "ads 12 %"})
        assert [study["name"] for study in response.json()] == [f"ads {number} %" for number in range(120, 125)]
        assert "q=ADS+12" in response.headers["link"]
        assert client.get("/v1/studies", params={"q": "_"}).json() == []  # no wildcard
        first = client.get("/v1/studies", params={"limit": 1}).json()[0]
        assert (first["rewards"], first["spent"], first["currency"], first["recommended"]) == (2, 2.0, "USD", "A")
        assert_refused(client.get("/v1/studies", params={"limit": 1001}), 422, "`limit`")
        assert_refused(client.get("/v1/studies", params={"after": "gone"}), 404, "Study 'gone' not found.")
        with dbcare.connect(str(client.base_url)) as connection:
            assert connection.list_studies() == names
        check_pages_for_people(client)


def check_pages_for_people(client: httpx.Client) -> None:
    """Check the list in the dashboard: running studies first, 50 per page."""
    seen: list[str] = []
    link = "/"
    while link:
        page = client.get(link).text
        seen += re.findall(r'<a href="/studies/[^"]*">(ads \d+ %)</a>', page)
        found = re.search(r'<a href="(/\?[^"]*)" rel="next">', page)
        link = found[1].replace("&amp;", "&") if found else ""
    stopped, paused = {"ads 129 %"}, {"ads 7 %", "ads 57 %", "ads 107 %"}
    assert len(seen) == len(set(seen)) == COUNT
    assert seen[0] == "ads 128 %"
    assert set(seen[-4:-1]) == paused
    assert set(seen[-1:]) == stopped
    page = client.get("/", params={"q": "ads 115"}).text
    assert "1 study matching" in page
    assert "ads 115 %" in page
    assert "No studies match" in client.get("/", params={"q": "none"}).text


def test_the_command_line_searches(storage: str) -> None:
    result = CliRunner().invoke(app, ["studies", "--storage", storage, "--search", "ads 3 "])
    assert result.output == "ads 3 %\n"


def test_who_did_it(server: ApiServer) -> None:
    """What a person did carries the name of their key, over the API and from the dashboard."""
    name = "who did it"
    with server.client("admin") as admin, server.client("worker") as worker:
        admin.post("/v1/studies", json=STUDY | {"name": name, "arms": ["A", "B", "C"]}).raise_for_status()
        for path, body in (
            ("pause", None), ("resume", None), ("describe", {"description": "Which ad?"}),
            ("retire", {"arm": "C", "reason": "sold out"}), ("stop", {"reason": "the end"}),
        ):  # fmt: skip
            assert admin.post(f"/v1/studies/{name}/{path}", json=body).status_code == 204
        worker.post(f"/v1/studies/{name}/add", json={"observations": [{"arm": "A", "reward": 1}]}).raise_for_status()
        status = admin.get(f"/v1/studies/{name}/status").json()
        listed = admin.get("/v1/studies", params={"q": name}).json()
    assert status["created_by"] == listed[0]["created_by"] == "admin"
    assert [(did["what"], did["arm"], did["note"], did["by"]) for did in status["activities"]] == [
        ("paused", None, None, "admin"),
        ("resumed", None, None, "admin"),
        ("described", None, "Which ad?", "admin"),
        ("retired", "C", "sold out", "admin"),
        ("stopped", None, "the end", "admin"),
    ]
    with open_store(server.storage).session(name, write=False) as session:
        added = session.events_of_trials(1, 1)
    assert [(event.kind, event.worker) for event in added] == [(EventKind.ASKED, "worker"), (EventKind.TOLD, None)]


def test_activities_survive_a_summary(tmp_path: Path) -> None:
    """What people did last, up to 50 times, is known however long the study runs."""
    with closing(SqlStore(f"sqlite:///{tmp_path / 's.db'}")) as store:
        study = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=600, storage=store)
        for _ in range(30):
            study.pause()
            study.resume()
        study.tell_many((trial, 0.5) for trial in study.ask(600))
        with store.session("s", write=False) as session:
            assert session.summary() is not None
        activities = StoredStudy(store, "s").status().activities
        assert activities == study.status().activities
        assert [activity.what for activity in activities] == ["paused", "resumed"] * 25
