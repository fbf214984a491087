"""The API of a real server: its responses, and what it refuses with which words."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2 as httpx
import pytest

from dbcare.server.limits import REPORT_SECURITY_POLICY
from tests.helpers.api_client import STUDY, ApiServer, assert_refused

pytestmark = [pytest.mark.service, pytest.mark.long]

COMMAND = Path(sys.executable).with_name("dbcare")


def test_a_study_over_http(admin: httpx.Client) -> None:
    assert [trial["id"] for trial in admin.post("ask", json={"n": 5, "worker": "w"}).json()["trials"]] == [1, 2]
    assert admin.post("tell", json={"trial": 1, "reward": 0.25}).status_code == 204
    assert admin.post("tell-many", json={"answers": [{"trial": 2, "reward": 1.0}]}).status_code == 204
    assert admin.post("add", json={"observations": [{"arm": "A", "reward": 0.5}]}).status_code == 204
    third = admin.post("ask", json={}).json()["trials"][0]["id"]
    assert admin.post("fail", json={"trial": third, "charged": False}).status_code == 204
    status = admin.get("status").json()
    assert [arm["trials"] for arm in status["arms"]] == [2, 1]
    assert status["arms"][0]["mean"] == 0.375
    assert status["arms"][1]["interval"] is None  # with so few rewards
    assert status["expected_loss"] > 0.0
    assert status["spent"] == pytest.approx(1.2)
    assert admin.get("recommendation").json()["arm"] == "B"
    rows = admin.get("export").json()
    assert [(row["trial"], row["status"], row["reward"]) for row in rows] == [
        (1, "told", 0.25),
        (2, "told", 1.0),
        (3, "told", 0.5),
        (4, "failed", None),
    ]
    lines = admin.get("export", params={"format": "csv"}).text.splitlines()
    assert lines[0].startswith("trial,arm,status,reward")
    assert len(lines) == 5
    report = admin.get("report")
    assert report.headers["content-type"] == "text/html; charset=utf-8"
    assert report.headers.get_list("content-security-policy") == [REPORT_SECURITY_POLICY]
    assert "B leads so far" in report.text
    assert report.text.endswith("</html>\n")
    assert admin.get("check").json() == {"events": 8}
    assert admin.post("retire", json={"arm": "A"}).status_code == 204
    assert admin.post("ask", json={}).json() == {"trials": [], "stopped": True}
    assert admin.get("explain").json() == ["A was retired: withdrawn", "only B is left"]
    assert admin.delete(str(admin.base_url).rstrip("/")).status_code == 204
    assert_refused(admin.get("status"), 404, "Study 'test_a_study_over_http' not found.")


def test_pause_resume_stop(admin: httpx.Client) -> None:
    for path, state in (("pause", "paused"), ("resume", "running")):
        assert admin.post(path).status_code == 204
        assert admin.get("status").json()["state"] == state
    assert admin.post("stop", json={"reason": "over"}).status_code == 204
    assert admin.get("recommendation").json()["reason"] == "over"


def test_repeating_an_idempotency_key_gives_the_same_response(server: ApiServer, admin: httpx.Client) -> None:
    """No trial is asked twice, and the study that exists is returned; without a key each request is a new one."""
    first = admin.post("ask", json={"n": 1}, headers={"Idempotency-Key": "a 1"}).json()
    assert admin.post("ask", json={"n": 1}, headers={"Idempotency-Key": "a 1"}).json() == first
    assert admin.post("ask", json={"n": 1}, headers={"Idempotency-Key": "a 2"}).json() != first
    assert admin.get("status").json()["asked"] == 2
    with server.client() as client:
        new = STUDY | {"name": "created twice"}
        for _ in range(2):
            response = client.post("/v1/studies", json=new, headers={"Idempotency-Key": "c"})
            assert response.status_code == 201
            assert response.json()["name"] == "created twice"
        assert_refused(client.post("/v1/studies", json=new), 409, "Study 'created twice' already exists.")
        other = client.post("/v1/studies", json=new | {"value": 10}, headers={"Idempotency-Key": "c"})
        assert_refused(other, 409, "Study 'created twice' exists with different settings: cost: 0.04 given")


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("tell", {"trial": 9, "reward": 1}, 404, "There is no trial 9; trials asked so far: 0."),
        ("tell", {"trial": 1}, 422, "`reward`: Field required"),
        ("tell", {"trial": 1, "reward": "much"}, 422, "`reward`: Input should be a valid number"),
        ("ask", {"n": 0}, 422, "`n`: Input should be greater than or equal to 1"),
        ("ask", {"lease": "soon"}, 422, "`lease` must be a duration such as"),
        ("ask", {"m": 3}, 422, "`m`: Extra inputs are not permitted"),
        ("retire", {"arm": "Z"}, 422, "`arm` must be one of A, B but got 'Z'."),
        ("add", {"observations": [{"arm": "Z", "reward": 1}]}, 422, "`arm` must be one of A, B but got 'Z'."),
        ("nothing", {}, 404, "Not Found"),
    ],
)
def test_refusals_use_the_messages_of_the_library(
    server: ApiServer, path: str, body: dict[str, Any], status: int, words: str
) -> None:
    with server.client() as client:
        client.post("/v1/studies", json=STUDY | {"name": "refusals"}, headers={"Idempotency-Key": "r"})
        assert_refused(client.post(f"/v1/studies/refusals/{path}", json=body), status, words)


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (
            "plan",
            {"arms": "A"},
            "`arms`: Input should be a valid integer, unable to parse string as an integer, or a valid list",
        ),
        (
            "plan",
            {"arms": ["A", 1]},
            "`arms`: Input should be a valid integer; `arms.1`: Input should be a valid string",
        ),
        (
            "studies",
            STUDY | {"blocks": 1.5},
            "`blocks`: Input should be a valid integer, got a number with a fractional part",
        ),
        (
            "studies",
            STUDY | {"price": "much"},
            "unable to parse string as a number, or a valid list, or a valid dictionary",
        ),
        (
            "studies",
            STUDY | {"\ud800": 1},
            "`body`: Input should be a valid string, unable to parse raw data as a unicode",
        ),
        ("studies", STUDY | {"x" * 1_000: 1}, f"`{'x' * 80}...`: Extra inputs are not permitted"),
    ],
)
def test_refusals_name_no_types_of_ours(server: ApiServer, path: str, body: dict[str, Any], words: str) -> None:
    """A field that takes values of several types is named once, and shown as far as that helps."""
    with server.client() as client:
        content = json.dumps(body)  # which escapes what UTF-8 does not have
        response = client.post(f"/v1/{path}", content=content, headers={"Content-Type": "application/json"})
        assert_refused(response, 422, words)
        assert "constrained" not in response.text


def test_a_refusal_is_short(server: ApiServer) -> None:
    with server.client() as client:
        response = client.post("/v1/studies", json=STUDY | {f"key {number}": 1 for number in range(10_000)})
        assert_refused(response, 422, "`key 9`: Extra inputs are not permitted; and 9,990 more")
        assert len(response.content) < 1_000


def test_telling_another_reward_is_refused(admin: httpx.Client) -> None:
    admin.post("ask", json={})
    admin.post("tell", json={"trial": 1, "reward": 1.0})
    response = admin.post("tell", json={"trial": 1, "reward": 2.0})
    assert_refused(response, 409, "Trial 1 is already recorded as 1.0 but got 2.0.")
    assert response.json()["error"] == "AlreadyToldError"


def test_a_plan(server: ApiServer) -> None:
    with server.client("viewer") as client:
        wanted = {"arms": 2, "price": 4, "value": 1000, "sigma": 0.5, "gaps": [0.2]}
        plan = client.post("/v1/plan", json=wanted).json()
        assert {row["policy"] for row in plan["rows"]} >= {"breakeven", "decide-now"}
        assert plan["advice"]


def test_names_with_special_characters(server: ApiServer) -> None:
    name = "50% off? #1 & <b>\N{SNOWMAN} é"
    with server.client() as client:
        client.post("/v1/studies", json=STUDY | {"name": name}).raise_for_status()
        assert client.get(f"/v1/studies/{quote(name, safe='')}").json()["name"] == name
        assert name in [study["name"] for study in client.get("/v1/studies", params={"q": name}).json()]


def test_the_server_conforms_to_its_description(server: ApiServer, tmp_path: Path) -> None:
    """Schemathesis sends examples, edge cases, random requests and sequences: responses as described, and no 5xx."""
    with server.client() as client:
        client.post("/v1/studies", json=STUDY)
    command = [
        str(COMMAND.with_name("schemathesis")), "run", f"{server.url}/v1/openapi.json",
        "--header", f"Authorization: Bearer {server.keys['admin']}",
        "--exclude-path", "/v1/plan",  # it takes seconds, and has its own test
        "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        "--max-examples", "6", "--seed", "1", "--generation-database", "none", "--no-color",
        "--request-timeout", "60",  # the machine may be busy
    ]  # fmt: skip
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path)
    assert process.returncode == 0, process.stdout[-4000:]
    generated = re.search(r"(\d+) generated", process.stdout)
    assert generated is not None
    assert int(generated[1]) > 300


def test_rewards_must_be_finite(admin: httpx.Client) -> None:
    admin.post("ask", json={})
    for text in ("NaN", "Infinity", "1e400"):
        body = f'{{"trial": 1, "reward": {text}}}'
        assert admin.post("tell", content=body, headers={"content-type": "application/json"}).status_code == 422
    assert admin.get("status").json()["waiting"] == 1


def test_a_study_re_created_at_once(server: ApiServer) -> None:
    """It is deleted and created again and again while others list and ask: only what must fail does."""
    with server.client() as client, server.client() as other:
        for _ in range(5):
            assert client.post("/v1/studies", json=STUDY | {"name": "re-created"}).status_code == 201
            assert client.post("/v1/studies/re-created/ask", json={}).json()["trials"][0]["id"] == 1
            assert other.get("/v1/studies").status_code == 200
            assert client.delete("/v1/studies/re-created").status_code == 204
            assert other.get("/v1/studies").status_code == 200
            assert client.post("/v1/studies/re-created/ask", json={}).status_code == 404


def test_names_are_not_formulas_in_a_spreadsheet(server: ApiServer) -> None:
    with server.client() as client:
        client.post("/v1/studies", json=STUDY | {"name": "sheet", "arms": ["=1+1", "B"]}).raise_for_status()
        client.post("/v1/studies/sheet/ask", json={"worker": "@sum"})
        text = client.get("/v1/studies/sheet/export", params={"format": "csv"}).text
        assert text.splitlines()[1].startswith("1,'=1+1,asked")
        assert ",'@sum," in text
        assert client.get("/v1/studies/sheet/export").json()[0]["arm"] == "=1+1"


def test_the_description_is_for_readers_of_any_language(server: ApiServer) -> None:
    """Descriptions of schemas do not go on with parameters and examples for Python."""
    with server.client() as client:
        schemas = client.get("/v1/openapi.json").json()["components"]["schemas"]
    assert schemas["Status"]["description"] == "The state of a study: what is counted, and what is pending."
    assert [name for name, schema in schemas.items() if ">>>" in schema.get("description", "")] == []
