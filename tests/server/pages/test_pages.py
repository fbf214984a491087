"""The dashboard without a browser: access, what forms must carry, and what pages show."""

import html
import itertools
import json
import math
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx2 as httpx
import pytest

from dbcare.server import pages
from dbcare.server.access.gate import COOKIE
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.studies.api import create_study, delete_study, list_studies, load_study
from dbcare.studies.stores.open import open_store
from tests.helpers.api_routes import ROUTES
from tests.helpers.service_process import run_service

pytestmark = pytest.mark.service

ROLES = ("viewer", "worker", "admin")
HTML_NAME = "<img src=x onerror=alert(1)>"
HTML_ARM = "</td><script>alert(2)</script>"
GONE = "event: gone\ndata: \n\n"
MARKS = ("good", "warn", "bad")
SPENT = re.compile(r"<dt>Spent</dt><dd>([^<]*)</dd>")

_client_addresses = itertools.count(2)


@dataclass
class Server:
    """A service that requires keys."""

    address: str
    storage: str
    keys: dict[str, str]
    clients: ExitStack

    def browser(self) -> httpx.Client:
        """Return a client with its own address, so that sign-ins of other tests do not count against it."""
        transport = httpx.HTTPTransport(local_address=f"127.0.0.{next(_client_addresses)}")
        return self.clients.enter_context(httpx.Client(base_url=self.address, transport=transport, timeout=30.0))

    def sign_in(self, role: str) -> httpx.Client:
        """Return a client that is signed in with the key of a role."""
        browser = self.browser()
        assert browser.post("/login", data={"key": self.keys[role]}).status_code == 303
        return browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    storage = f"sqlite:///{tmp_path_factory.mktemp('pages') / 'studies.db'}"
    records = Keys(open_records(open_store(storage, create=True)))
    keys = {role: records.create(f"a {role}", role)[1] for role in ROLES}
    create_study("ads", ["A", "B", "C"], price=0.4, value=20_000, binary=True, storage=storage, currency="EUR")
    create_study(HTML_NAME, [HTML_ARM, "B"], price=1, value=9, sigma=1, storage=storage).add(
        [(HTML_ARM, 1.0), ("B", 0)]
    )
    with run_service(storage) as address, ExitStack() as clients:
        yield Server(address, storage, keys, clients)


def find_token(browser: httpx.Client) -> str:
    """Return the token of the forms on a page."""
    match = re.search(r'name="csrf" value="([0-9a-f]{64})"', browser.get("/").text)
    assert match
    return match[1]


@pytest.mark.parametrize("path", ["/", "/new", "/docs", "/studies/ads"])
def test_strangers_are_sent_to_sign_in_and_back(server: Server, path: str) -> None:
    response = server.browser().get(path)
    assert (response.status_code, response.headers["location"]) == (303, f"/login?next={path}")


def test_signing_in_leads_back_to_a_study_with_any_name(server: Server) -> None:
    name = "50% off? #1 & é+ü"
    create_study(name, ["A", "B"], price=1, value=9, sigma=1, storage=server.storage)
    browser = server.browser()
    response = browser.get(f"/studies/{quote(name, safe='')}")
    form = browser.get(response.headers["location"]).text
    (return_path,) = re.findall(r'name="next" value="([^"]*)"', form)
    response = browser.post("/login", data={"key": server.keys["viewer"], "next": html.unescape(return_path)})
    page = browser.get(response.headers["location"])
    assert page.status_code == 200
    assert f'<h1 class="long">{html.escape(name)}</h1>' in page.text
    (link,) = re.findall(r'href="(/studies/50[^"]*)"', browser.get("/").text)
    assert browser.get(link).text == page.text


@pytest.mark.parametrize("name", ["ads", "none"])
def test_strangers_get_no_updates(server: Server, name: str) -> None:
    assert server.browser().get(f"/studies/{name}/events").text == GONE


@pytest.mark.parametrize("name", ["none", "%07", "x" * 300])
def test_there_are_no_updates_of_unknown_or_invalid_names(server: Server, name: str) -> None:
    assert server.sign_in("viewer").get(f"/studies/{name}/events").text == GONE


def test_a_stranger_changes_nothing(server: Server) -> None:
    response = server.browser().post("/studies/ads/pause")
    assert (response.status_code, response.headers["location"]) == (303, "/login")
    assert load_study("ads", server.storage).status().state == "running"


def test_a_wrong_key_is_refused_in_words(server: Server) -> None:
    for key in ("", "dbc_0_0", server.keys["admin"][:-1], "ключ"):
        response = server.browser().post("/login", data={"key": key})
        assert response.status_code == 401
        assert "Unknown, expired, or revoked key." in response.text
        assert COOKIE not in response.headers.get("set-cookie", "")


def test_the_cookie_is_hidden_from_scripts_and_other_sites(server: Server) -> None:
    cookie = server.browser().post("/login", data={"key": server.keys["viewer"]}).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie


def test_the_cookie_is_for_https_only_if_the_server_uses_https(server: Server) -> None:
    with httpx.Client(base_url=server.address) as proxy:  # uvicorn trusts proxies on this machine
        response = proxy.post(
            "/login", data={"key": server.keys["viewer"]}, headers={"X-Forwarded-Proto": "https", "Host": "a.example"}
        )
    assert "Secure" in response.headers["set-cookie"].split("; ")


def test_signing_in_replaces_a_planted_session(server: Server) -> None:
    browser = server.browser()
    browser.cookies.set(COOKIE, "planted")
    response = browser.post("/login", data={"key": server.keys["viewer"]})
    cookie = response.cookies[COOKIE]
    assert cookie != "planted"
    assert server.browser().get("/", headers={"Cookie": f"{COOKIE}=planted"}).status_code == 303
    assert server.browser().get("/", headers={"Cookie": f"{COOKIE}={cookie}"}).status_code == 200


def test_signing_in_again_ends_the_earlier_session(server: Server) -> None:
    browser = server.sign_in("viewer")
    before = browser.cookies[COOKIE]
    browser.post("/login", data={"key": server.keys["viewer"]})
    assert browser.cookies[COOKIE] != before
    assert server.browser().get("/", headers={"Cookie": f"{COOKIE}={before}"}).status_code == 303


def test_signing_out_ends_the_session_on_the_server(server: Server) -> None:
    browser = server.sign_in("viewer")
    before = browser.cookies[COOKIE]
    assert browser.post("/logout", data={"csrf": "0" * 64}).status_code == 403
    assert browser.get("/").status_code == 200
    assert browser.post("/logout", data={"csrf": find_token(browser)}).headers["location"] == "/login"
    assert COOKIE not in browser.cookies
    assert server.browser().get("/", headers={"Cookie": f"{COOKIE}={before}"}).status_code == 303


def test_revoking_a_key_ends_its_sessions_and_streams(server: Server) -> None:
    keys = Keys(open_records(open_store(server.storage, create=True)))
    key, text = keys.create("temporary", "viewer")
    browser = server.browser()
    browser.post("/login", data={"key": text})
    with browser.stream("GET", "/studies/ads/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("data: {")
        keys.revoke(key.id)
        assert "event: gone" in itertools.takewhile(lambda line: line != ": still here", lines)
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize("fields", [{}, {"csrf": ""}, {"csrf": "0" * 64}])
def test_a_form_without_its_token_is_refused(server: Server, fields: dict[str, str]) -> None:
    browser = server.sign_in("admin")
    response = browser.post("/studies/ads/pause", data=fields)
    assert response.status_code == 403
    assert "This form has expired. Go back, reload, and try again." in response.text
    assert response.headers["content-type"].startswith("text/html")
    assert load_study("ads", server.storage).status().state == "running"


@pytest.mark.parametrize("header", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_forms_of_other_sites_are_refused_even_with_a_token(server: Server, header: dict[str, str]) -> None:
    browser = server.sign_in("admin")
    response = browser.post("/studies/ads/pause", data={"csrf": find_token(browser)}, headers=header)
    assert response.status_code == 403
    assert server.browser().post("/login", data={"key": server.keys["admin"]}, headers=header).status_code == 403


def count_failed(browser: httpx.Client) -> float:
    """Return how many trials have failed on the server, by its metrics."""
    found = re.search(r'^dbcare_trials_total\{what="failed"\} (\S+)', browser.get("/metrics").text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_buttons_work(server: Server) -> None:
    create_study("buttons", ["A", "B"], price=1, value=1000, sigma=1, storage=server.storage)
    study, browser = load_study("buttons", server.storage), server.sign_in("admin")

    def press(button: str, **fields: str) -> httpx.Response:
        return browser.post(f"/studies/buttons/{button}", data={"csrf": find_token(browser), **fields})

    response = press("pause")
    assert (response.status_code, response.headers["location"]) == (303, "/studies/buttons")
    assert study.status().state == "paused"
    press("resume")
    assert study.status().state == "running"
    press("describe", description="Which ad\nsells <b>best</b>?")
    assert study.status().description == "Which ad sells <b>best</b>?"
    assert "Which ad sells &lt;b&gt;best&lt;/b&gt;?" in browser.get("/studies/buttons").text
    press("describe", description="")
    assert study.status().description is None
    study.ask(2, worker="dead")
    failed = count_failed(browser)
    press("give-up", older_than="10m")
    assert "Give these trials up" in browser.get("/studies/buttons").text
    assert study.status().waiting == 2
    assert count_failed(browser) == failed
    press("give-up", older_than=" ")
    assert count_failed(browser) == failed + 2
    assert "Give these trials up" not in browser.get("/studies/buttons").text
    assert study.status().waiting == 0
    assert "`older_than` must be a duration" in press("give-up", older_than="soon").text
    press("retire", arm="A", reason="out of stock")
    assert study.explain() == ["A was retired: out of stock", "only B is left"]
    refused = press("retire", arm="B", reason="too")
    assert refused.status_code == 422
    assert "must be an active arm (B) and not the only one" in refused.text
    assert press("stop", reason=" ").status_code == 422
    press("stop", reason="the season is over")
    assert study.recommendation().reason == "the season is over"


@pytest.mark.parametrize("role", ["viewer", "worker"])
def test_a_lesser_role_sees_no_buttons_and_cannot_use_them(server: Server, role: str) -> None:
    browser = server.sign_in(role)
    page = browser.get("/studies/ads").text
    assert "Export CSV" in page
    assert "Pause" not in page
    assert "/new" not in browser.get("/").text
    assert browser.get("/new").status_code == 403
    for path in (
        "/new",
        *(f"/studies/ads/{button}" for button in ("pause", "resume", "stop", "retire", "describe", "give-up")),
    ):
        response = browser.post(path, data={"csrf": find_token(browser)})
        assert response.status_code == 403
        assert f"This requires the role admin; a {role} has the role {role}." in response.text


def test_names_are_shown_as_text(server: Server) -> None:
    browser = server.sign_in("admin")
    first = browser.get("/").text
    (address,) = re.findall(r'href="(/studies/%3C[^"]*)"', first)
    page = browser.get(address).text
    with browser.stream("GET", f"{address}/events") as stream:
        update = json.loads(next(stream.iter_lines()).removeprefix("data: "))
    wrong = browser.post(
        "/new", data={"csrf": find_token(browser), "name": HTML_NAME, "arms": HTML_ARM, "price": HTML_NAME}
    ).text
    for page_text in (first, page, wrong, update["sentence"] + update["arms"] + update["actions"] + update["log"]):
        assert "<img src=x" not in page_text
        assert "<script>alert" not in page_text
        assert "&lt;img src=x" in page_text or "&lt;script&gt;alert" in page_text


def test_the_reference_shows_every_route_with_its_role_and_every_link_on_it_leads_somewhere(server: Server) -> None:
    page = server.sign_in("viewer").get("/docs").text
    row = re.compile(
        r'<span class="method">(\w+)</span> ([^<]+)</a></th>\s*<td[^>]*>[^\0]*?</td>\s*<td[^>]*>(\w+)</td>'
    )
    shown = {(method.lower(), path): role for method, path, role in row.findall(page)}
    assert shown == {route: role or "everyone" for route, role in ROUTES.items()}
    links, anchors = re.findall(r'href="#([^"]+)"', page), re.findall(r' id="([^"]+)"', page)
    assert len(links) > 2 * len(ROUTES)
    assert set(links) <= set(anchors)
    assert len(set(anchors)) == len(anchors)
    assert "Price of a trial, or one per arm" in page  # an option of a study
    assert "Trials asked and not told yet." in page  # a field that the library's docstring describes


def test_pages_load_nothing_from_other_sites_and_have_nothing_inline(server: Server) -> None:
    browser = server.sign_in("admin")
    for path in ("/", "/new", "/docs", "/studies/ads", "/studies/none"):
        response = browser.get(path)
        policy = response.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?![^>]* src=)|<style|<[^<>]*\s(style|on\w+)=|javascript:", response.text)
        assert set(re.findall(r'(?:src|href)="(.)', response.text)) <= {"/", "#"}


def test_colors_have_enough_contrast_in_both_schemes() -> None:
    style = (Path(pages.__file__).parent / "static" / "style.css").read_text()
    light, dark = (dict(re.findall(r"--([\w-]+): #(\w{6});", block)) for block in style.split(":root {")[1:3])
    assert light.keys() == dark.keys()
    for scheme in (light, dark):
        for background in ("background", "card", "raised"):
            assert min(contrast(scheme[ink], scheme[background]) for ink in ("text", "quiet", "accent")) >= 4.5
        marks = [(mark, f"{mark}-background") for mark in MARKS]
        for ink, background in (("on-accent", "accent"), ("bad", "card"), *marks):
            assert contrast(scheme[ink], scheme[background]) >= 4.5
        assert min(contrast(scheme[line], scheme["card"]) for line in ("edge", "loss", "spent")) >= 3.0


def contrast(ink: str, background: str) -> float:
    """Return the contrast of two colors, as WCAG 2 defines it."""

    def luminance(color: str) -> float:
        shares = [int(color[start : start + 2], 16) / 255 for start in (0, 2, 4)]
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted((luminance(ink), luminance(background)))
    return (lighter + 0.05) / (darker + 0.05)


def test_files_are_compressed_and_cached_forever(server: Server) -> None:
    browser = server.browser()
    page = server.sign_in("viewer").get("/studies/ads").text
    (plotly,) = re.findall(r'src="(/static/plotly-[\d.]+\.min\.js)"', page)
    for address in {plotly, *re.findall(r'"(/static/[^"]+)"', page)}:
        response = browser.get(address)
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert response.headers["content-encoding"] == "gzip"
        assert response.content == browser.get(address, headers={"Accept-Encoding": "identity"}).content
    assert browser.get("/static/style.css").status_code == 404
    assert browser.get("/static/..%2Froutes.py").status_code == 404


def test_an_unknown_study_is_an_error_page(server: Server) -> None:
    response = server.sign_in("viewer").get("/studies/none")
    assert response.status_code == 404
    assert "Study &#39;none&#39; not found." in response.text
    assert response.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example", "x"])
def test_signing_in_never_leads_to_another_site(server: Server, target: str) -> None:
    response = server.browser().post("/login", data={"key": server.keys["viewer"], "next": target})
    assert response.headers["location"] == "/"


def test_failed_sign_ins_are_limited_per_address(server: Server) -> None:
    attacker = server.browser()
    codes = [attacker.post("/login", data={"key": f"dbc_0_{number}"}).status_code for number in range(12)]
    assert codes[:10] == [401] * 10
    assert codes[-1] == 429
    response = attacker.post("/login", data={"key": "another guess"})
    assert response.status_code == 429
    assert 1 <= int(response.headers["retry-after"]) <= 5
    assert "Too many attempts" in response.text
    assert attacker.post("/login", data={"key": server.keys["viewer"]}).status_code == 303  # accepted


VALID_FORM = {"name": "created", "arms": "A\r\nB b\r\n\r\n", "price": "0.4", "value": "20000", "rewards": "binary"}


def test_the_form_creates_a_study(server: Server) -> None:
    browser = server.sign_in("admin")
    fields = {
        **VALID_FORM,
        "rewards": "bounds",
        "low": "-1",
        "high": "3",
        "sigma": "0.5",
        "sigma_pulls": "inf",
        "cap": "2",
        "price": "B b=2, A=1",
        "policy": "breakeven",
        "max_spend": "500",
        "max_ahead": "9",
        "timeout_reward": "0",
        "direction": "minimize",
        "currency": "EUR",
        "seed": "7",
    }
    response = browser.post("/new", data={"csrf": find_token(browser), **fields})
    assert (response.status_code, response.headers["location"]) == (303, "/studies/created")
    settings = load_study("created", server.storage).settings
    assert (settings.arms, settings.bounds, settings.direction) == (("A", "B b"), (-1.0, 3.0), "minimize")
    assert (settings.sigma, settings.sigma_pulls, settings.cap) == (0.5, math.inf, 2.0)
    page = browser.get("/studies/created").text
    assert "<dd>-1 to 3, standard deviation 0.5 (known for certain), capped at 2</dd>" in page
    assert settings.costs == pytest.approx((1 / 20_000, 2 / 20_000))
    assert (settings.max_spend, settings.max_ahead, settings.timeout_reward) == (500 / 20_000, 9, 0.0)
    assert (settings.currency, settings.seed) == ("EUR", 7)


@pytest.mark.parametrize(
    ("wrong", "status", "message", "field"),
    [
        ({"price": "cheap"}, 422, "Price of a trial must be a number but got &#39;cheap&#39;.", "price"),
        ({"value": ""}, 422, "Value is required here.", "value"),
        ({"price": " ; "}, 422, "Price of a trial is required here.", "price"),
        ({"sigma": "?", "name": "ads"}, 409, "Study &#39;ads&#39; already exists.", "name"),
        ({"arms": "A"}, 422, "Arms: List should have at least 2 items", "arms"),
        ({"arms": "A\nA"}, 422, "Arms must be 2 or more different names", "arms"),
        ({"name": "ads"}, 409, "Study &#39;ads&#39; already exists.", "name"),
        ({"name": "a/b"}, 422, "Name must not contain a slash", "name"),
        ({"rewards": "sigma"}, 422, "Standard deviation (sigma) is required here.", "sigma"),
        ({"rewards": "baseline", "baseline": "4"}, 422, "Usual rate must lie strictly between 0 and 1", "baseline"),
        ({"rewards": "bounds", "low": "2", "high": "1"}, 422, "Range must be two numbers, the lower one first", "low"),
        ({"rewards": "odd"}, 422, "What rewards look like must be one of baseline, binary,", "rewards"),
        ({"sigma_pulls": "0"}, 422, "Weight of the stated spread must be positive but got 0.0", "sigma_pulls"),
        ({"price": "A=1"}, 422, "Price of a trial must have an entry for each arm but got none for &#39;B b", "price"),
        ({"max_ahead": "1.5"}, 422, "Max pending trials: Input should be a valid integer", "max_ahead"),
        ({"policy": "guess"}, 422, "Policy: Input should be one of", "policy"),
        ({"value": "inf"}, 422, "Value: Input should be a finite number", "value"),
    ],
)
def test_an_invalid_form_comes_back_with_an_error(
    server: Server, wrong: dict[str, str], status: int, message: str, field: str
) -> None:
    browser = server.sign_in("admin")
    response = browser.post(
        "/new", data={"csrf": find_token(browser), **VALID_FORM, "name": "other", "currency": "CHF", **wrong}
    )
    assert response.status_code == status
    assert message in response.text
    assert 'name="currency" value="CHF"' in response.text
    assert re.search(rf'name="{field}"[^>]*aria-invalid="true"', response.text)
    assert "other" not in list_studies(server.storage)


def test_updates_are_what_changed_until_the_study_is_deleted(server: Server) -> None:
    study = create_study("updates", ["A", "B"], price=1, value=1000, sigma=1, storage=server.storage)
    browser = server.sign_in("viewer")
    page = browser.get("/studies/updates").text
    with browser.stream("GET", "/studies/updates/events") as stream:
        lines = (line for line in stream.iter_lines() if line)

        def next_update() -> dict[str, str]:
            return dict(json.loads(next(lines).removeprefix("data: ")))

        first = next_update()
        assert all(piece in page for name, piece in first.items() if name != "chart")
        study.pause()
        assert set(next_update()) == {"state", "log"}
        study.add([("A", 1.0), ("B", 0.0), ("A", 1.5)])
        changed = next_update()
        assert {"sentence", "figures", "arms", "chart"} <= set(changed)
        assert "settings" not in changed
        assert SPENT.findall(changed["figures"]) == ["3.00 USD"]
        delete_study("updates", server.storage)
        assert next(lines) == "event: gone"


def test_a_study_with_very_many_trials_is_shown_quickly(server: Server) -> None:
    """In a fraction of the time that it takes to read all trials."""
    study = create_study("large", list("ABCDE"), price=1e-3, value=2e6, sigma=1, storage=server.storage)
    study.add(("ABCDE"[trial % 5], (trial * 7919 % 1000) / 1000) for trial in range(12_000))
    start = time.perf_counter()
    assert sum(1 for _ in study.trials()) == 12_000
    seconds_to_read = time.perf_counter() - start
    browser = server.sign_in("viewer")
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        assert "12,000" in browser.get("/studies/large").text
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < min(0.3, seconds_to_read / 4)


def test_what_is_charged_without_being_counted_is_shown(server: Server) -> None:
    study = create_study("charges", ["A", "B"], price=2, value=1000, sigma=1, storage=server.storage)
    failed, late = study.ask(2)
    study.tell(failed, failed=True)
    study.stop()
    study.tell(late, 0.5)
    page = server.sign_in("viewer").get("/studies/charges").text
    figures = re.findall(r"<dt>Rewards counted</dt>(.*?)</div>", page, re.DOTALL)
    assert re.findall(r"<dd[^>]*>([^<]*)</dd>", figures[0]) == [
        "0",
        "of 2 trials asked",
        "1 answered after the stop (2.00 USD)",
        "1 failed and charged (2.00 USD)",
    ]


def test_only_the_best_of_very_many_arms_are_shown(server: Server) -> None:
    arms = [f"arm {number}" for number in range(1000)]
    study = create_study("many", arms, price=1, value=1e5, sigma=1, storage=server.storage, direction="minimize")
    study.add((arm, -float(number)) for number, arm in enumerate(arms))
    page = server.sign_in("viewer").get("/studies/many").text
    rows = re.findall(r'<th scope="row"><span class="long">([^<]*)', page)
    assert rows == arms[:-101:-1]
    assert "Showing the best 100 arms; the API has 900 more." in page


def test_until_a_key_exists_this_machine_has_access_but_no_other_site(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'open.db'}"
    with run_service(storage) as address, httpx.Client(base_url=address) as browser:
        first = browser.get("/").text
        assert "No API key exists, so anyone on this machine has full access." in first
        assert "No studies yet" in first
        assert browser.get("/login").headers["location"] == "/"
        for header in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
            refused = browser.post("/new", data=VALID_FORM, headers=header)
            assert refused.status_code == 403
            assert "No API key exists yet, so only this machine can use this server." in refused.text
        assert list_studies(storage) == []
        assert browser.post("/new", data=VALID_FORM, headers={"Origin": address}).status_code == 303
        Keys(open_records(open_store(storage, create=True))).create("me", "admin")
        assert browser.get("/").headers["location"] == "/login?next=/"


def test_a_study_with_blocks_shows_them(server: Server) -> None:
    """A picture of arms by blocks, how many are used, and the block of each pending trial; others have none of it."""
    study = create_study("folds", ["A", HTML_ARM], cost=1e-9, blocks=[HTML_NAME, "fold 2"], storage=server.storage)
    first, second = study.ask(2)
    study.tell(first, 0.25)
    study.tell(second, failed=True)
    study.ask(1)
    page = server.sign_in("viewer").get("/studies/folds").text
    assert '<dt>Blocks used</dt><dd>2</dd><dd class="quiet">of 2</dd>' in page
    assert f"<title>A, {html.escape(str(first.block))}: 0.25</title>" in page
    assert f"<title>{html.escape(HTML_ARM)}, {html.escape(str(first.block))}: failed, no reward</title>" in page
    assert '<th scope="col">Block</th>' in page
    assert "a pool of 2; more like them matter too" in page
    assert not re.search(r"<script>alert|<img src=x", page)
    without = server.sign_in("viewer").get("/studies/ads").text
    assert 'data-part="blocks"' in page
    assert 'data-part="blocks"' not in without
    assert "<dt>Blocks used</dt>" not in without


def test_blocks_are_typed_into_the_form(server: Server) -> None:
    admin = server.sign_in("admin")
    form = {"name": "typed blocks", "arms": "A\nB", "price": "0.01", "value": "1000", "rewards": "unknown"}
    form |= {"csrf": find_token(admin), "blocks": "q1, q2, q1"}
    refused = admin.post("/new", data=form)
    assert refused.status_code == 422
    assert "Blocks must be different names but got &#39;q1&#39; twice." in refused.text
    assert admin.post("/new", data=form | {"blocks": "q1, q2, q3"}).status_code == 303
    assert load_study("typed blocks", server.storage).settings.blocks == ("q1", "q2", "q3")
