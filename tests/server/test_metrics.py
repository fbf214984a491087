"""What an operator sees: health and metrics whatever the database does, and alert rules that match the metrics."""

import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import httpx2 as httpx
import psycopg
import pytest
import sqlalchemy as sa

from dbcare.errors import StorageError
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.server.access.roles import Role
from dbcare.studies.stores.open import open_store
from dbcare.studies.stores.sql.store import SqlStore
from tests.helpers.api_client import STUDY
from tests.helpers.postgres import Server, run_server
from tests.helpers.service_process import run_service

pytestmark = pytest.mark.service

ALERTS = Path(__file__).parents[2] / "deploy" / "alerts.yml"
# The promise is one second; on a busy machine, a process may have to wait for longer than that for a processor.
# `python -m benchmarks monitoring` measures it. Without the promise, these requests hung until the database was back.
ANSWER_SECONDS = 12.0
MAX_SECONDS = 60.0  # until the service has noticed
FEW = {"observations": [{"arm": "A", "reward": 0.5}]}
METRIC = re.compile(r"\b(dbcare_\w+)")


@contextmanager
def run_watched(storage: str) -> Iterator[httpx.Client]:
    """Run a service with a study and an admin's key; yield its client, which waits no longer than promised."""
    key = Keys(open_records(open_store(storage, create=True))).create("me", Role.ADMIN)[1]
    with (
        run_service(storage) as url,
        httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=ANSWER_SECONDS) as client,
    ):
        client.post("/v1/studies", json=STUDY).raise_for_status()
        wait_for(client, ready=True)
        yield client


def wait_for(client: httpx.Client, *, ready: bool) -> None:
    """Wait until the service says whether it is ready; all three addresses answer meanwhile."""
    until = time.monotonic() + MAX_SECONDS
    while True:
        response, metrics = client.get("/readyz"), client.get("/metrics")
        assert client.get("/healthz").json()["status"] == "ok"
        assert metrics.status_code == HTTPStatus.OK
        if response.is_success == ready == bool(read_metric(metrics.text, "dbcare_ready")):
            break
        assert time.monotonic() < until, response.text
        time.sleep(0.2)
    if not ready:
        assert response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        assert response.headers["retry-after"] == "1"
        assert response.headers["content-type"] == "application/problem+json"


def read_metric(text: str, series: str) -> float:
    """Return the value of a series."""
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    assert found is not None, series
    return float(found[1])


def test_health_and_metrics_answer_whatever_postgresql_does() -> None:
    with run_server() as server, run_watched(server.create_database()) as client:
        with server.hanging():
            wait_for(client, ready=False)
        wait_for(client, ready=True)
        server.kill()
        wait_for(client, ready=False)
        server.start()
        wait_for(client, ready=True)
        assert client.post("/v1/studies/ads/ask", json={}).json()["trials"]


def test_a_locked_table_fails_fast(postgres: Server) -> None:
    """Asks wait for as long as the address says, here a second, and health checks need none of their connections."""
    address = postgres.create_database()
    statuses: list[tuple[int, str | None]] = []
    with run_watched(f"{address}&lock_timeout=1&pool_size=2") as client, psycopg.connect(address) as other:
        other.execute("LOCK TABLE events")

        def ask() -> None:
            response = client.post("/v1/studies/ads/ask", json={}, timeout=MAX_SECONDS)
            statuses.append((response.status_code, response.headers.get("retry-after")))

        threads = [threading.Thread(target=ask) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()  # while the table is still locked: it was not before, but for a minute each
        assert set(statuses) == {(503, "1")}
        wait_for(client, ready=False)
        other.rollback()
        wait_for(client, ready=True)
        assert client.post("/v1/studies/ads/ask", json={}).json()["trials"]


def test_a_full_disk_is_noticed_and_so_is_its_end(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        with run_watched(f"sqlite:///{disk / 'studies.db'}") as client:
            ballast = disk / "ballast"
            ballast.write_bytes(bytes(200_000))
            many = {"observations": [{"arm": "A", "reward": 0.5}] * 200}
            while client.post("/v1/studies/ads/add", json=many).status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                pass
            while client.post("/v1/studies/ads/add", json=FEW).status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                pass
            wait_for(client, ready=False)
            ballast.unlink()
            wait_for(client, ready=True)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_settings_of_the_address_come_before_those_of_a_role_and_those_before_defaults(postgres: Server) -> None:
    address = postgres.create_database()
    open_store(address, create=True).close()
    postgres.execute("CREATE ROLE careful SUPERUSER LOGIN")
    postgres.execute("ALTER ROLE careful SET lock_timeout = '3s'; ALTER ROLE careful SET statement_timeout = 0")
    as_role = address.replace("postgres@", "careful@")
    for storage, expected in {
        address: ("10s", "30s", "1min"),
        as_role: ("3s", "0", "1min"),
        f"{as_role}&lock_timeout=0.5&statement_timeout=4": ("500ms", "4s", "1min"),
        f"{as_role}&options=-c%20lock_timeout%3D7s&statement_timeout=4": ("7s", "4s", "1min"),
    }.items():
        store = open_store(storage)
        assert isinstance(store, SqlStore)
        with store.transaction(write=False) as connection:
            names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
            assert tuple(connection.execute(sa.text(f"SHOW {name}")).scalar() for name in names) == expected
        store.close()


@pytest.mark.parametrize("option", ["lock_timeout=soon", "statement_timeout=-1", "pool_size=0", "pool_size=2.5"])
def test_settings_that_are_no_numbers_are_refused(option: str) -> None:
    with pytest.raises(StorageError, match=f"`{option.split('=', maxsplit=1)[0]}` in .* must be a number of"):
        open_store(f"postgresql://me@localhost/studies?{option}")


def test_a_slow_statement_ends(postgres: Server) -> None:
    store = open_store(f"{postgres.create_database()}&statement_timeout=0.2", create=True)
    assert isinstance(store, SqlStore)
    with pytest.raises(StorageError, match="took too long"), store.transaction(write=False) as connection:
        connection.execute(sa.text("SELECT pg_sleep(60)"))
    store.close()


def test_every_metric_of_an_alert_exists_from_the_start(tmp_path: Path) -> None:
    """Series that increases are taken of exist at zero: an increase does not see the first event otherwise."""
    rules = ALERTS.read_text()
    with run_service(f"sqlite:///{tmp_path / 's.db'}") as url:
        text = httpx.get(f"{url}/metrics", timeout=ANSWER_SECONDS).text
    known = set(METRIC.findall("\n".join(line for line in text.splitlines() if not line.startswith("# HELP"))))
    used = {name for line in rules.splitlines() if "runbook" not in line for name in METRIC.findall(line)}
    assert len(used) >= 10
    assert used - {"dbcare_key"} <= known
    route = 'route="/v1/studies/{name}/ask"'
    for status in (200, 401, 409, 429, 500, 503):
        assert read_metric(text, f'dbcare_requests_total{{method="POST",{route},status="{status}"}}') == 0.0
    for series in (
        'dbcare_refusals_total{reason="connections"}',
        'dbcare_empty_answers_total{reason="pending"}',
        'dbcare_webhook_attempts_total{outcome="gave up"}',
        "dbcare_oldest_pending_seconds",
        "dbcare_notes",
    ):
        assert read_metric(text, series) == 0.0


def test_alert_rules_are_valid() -> None:
    """As Prometheus itself sees them, and each names its own section of the runbook."""
    rules = ALERTS.read_text()
    names = re.findall(r"- alert: (\w+)", rules)
    sections = re.findall(r"runbook: runbook\.md#(\S+)", rules)
    assert [re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in names] == sections
    promtool = shutil.which("promtool", path=f"{Path(sys.executable).parent}") or shutil.which("promtool")
    if promtool is None:
        pytest.skip("No promtool, so Prometheus does not read the alert rules; apt-get install prometheus")
    checked = subprocess.run([promtool, "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(names)} rules found" in checked.stdout
