"""The dashboard without a browser: who gets in, what forms must bring along, and what pages say."""

import html
import itertools
import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx2 as httpx
import pytest
from helpers.service_process import service

from dbcare.live.stores.sql.store import SqlStore
from dbcare.live.studies import create_study, load_study
from dbcare.server import pages
from dbcare.server.access.gate import COOKIE
from dbcare.server.access.keys import Keys

ROLES = ("viewer", "worker", "admin")
NASTY = "<img src=x onerror=alert(1)>"
NASTY_ARM = "</td><script>alert(2)</script>"
GONE = "event: gone\ndata: \n\n"
MARKS = ("good", "warn", "bad")
SPENT = re.compile(r"<dt>Spent</dt><dd>([^<]*)</dd>")

_hosts = itertools.count(2)


@dataclass
class Server:
    """A service that asks for keys."""

    address: str
    storage: str
    keys: dict[str, str]
    opened: ExitStack

    def browser(self) -> httpx.Client:
        """With an address of its own, so that sign-ins of other tests do not count against it."""
        transport = httpx.HTTPTransport(local_address=f"127.0.0.{next(_hosts)}")
        return self.opened.enter_context(httpx.Client(base_url=self.address, transport=transport, timeout=30.0))

    def signed_in(self, role: str) -> httpx.Client:
        browser = self.browser()
        assert browser.post("/login", data={"key": self.keys[role]}).status_code == 303
        return browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    storage = f"sqlite:///{tmp_path_factory.mktemp('pages') / 'studies.db'}"
    store = Keys(SqlStore(storage))
    keys = {role: store.create(f"a {role}", role)[1] for role in ROLES}
    create_study("ads", ["A", "B", "C"], price=0.4, value=20_000, binary=True, storage=storage, unit="EUR")
    create_study(NASTY, [NASTY_ARM, "B"], price=1, value=9, sigma=1, storage=storage).add([(NASTY_ARM, 1.0), ("B", 0)])
    with service(storage) as address, ExitStack() as opened:
        yield Server(address, storage, keys, opened)


def token(browser: httpx.Client) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', browser.get("/").text)
    assert found
    return found[1]


@pytest.mark.parametrize("path", ["/", "/new", "/studies/ads"])
def test_strangers_are_shown_the_way_in_and_back(server: Server, path: str) -> None:
    answer = server.browser().get(path)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={path}")


def test_the_way_back_holds_for_any_name(server: Server) -> None:
    name = "50% off? #1 & é+ü"
    create_study(name, ["A", "B"], price=1, value=9, sigma=1, storage=server.storage)
    browser = server.browser()
    answer = browser.get(f"/studies/{quote(name, safe='')}")
    form = browser.get(answer.headers["location"]).text
    (way_back,) = re.findall(r'name="next" value="([^"]*)"', form)
    answer = browser.post("/login", data={"key": server.keys["viewer"], "next": html.unescape(way_back)})
    page = browser.get(answer.headers["location"])
    assert page.status_code == 200
    assert f'<h1 class="long">{html.escape(name)}</h1>' in page.text
    (link,) = re.findall(r'href="(/studies/50[^"]*)"', browser.get("/").text)
    assert browser.get(link).text == page.text


@pytest.mark.parametrize("name", ["ads", "none"])
def test_strangers_get_no_news(server: Server, name: str) -> None:
    assert server.browser().get(f"/studies/{name}/events").text == GONE


@pytest.mark.parametrize("name", ["none", "%07", "x" * 300])
def test_there_are_no_news_of_what_is_no_study(server: Server, name: str) -> None:
    assert server.signed_in("viewer").get(f"/studies/{name}/events").text == GONE


def test_a_stranger_changes_nothing(server: Server) -> None:
    answer = server.browser().post("/studies/ads/pause")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert load_study("ads", server.storage).status().state == "running"


def test_a_wrong_key_gets_a_friendly_word(server: Server) -> None:
    for key in ("", "dbc_0_0", server.keys["admin"][:-1], "ключ"):
        answer = server.browser().post("/login", data={"key": key})
        assert answer.status_code == 401
        assert "This key is not known here, or has been revoked." in answer.text
        assert COOKIE not in answer.headers.get("set-cookie", "")


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(server: Server) -> None:
    cookie = server.browser().post("/login", data={"key": server.keys["viewer"]}).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie


def test_the_cookie_stays_on_https_where_there_is_https(server: Server) -> None:
    with httpx.Client(base_url=server.address) as proxy:  # on this machine, as uvicorn expects of a proxy
        answer = proxy.post(
            "/login", data={"key": server.keys["viewer"]}, headers={"X-Forwarded-Proto": "https", "Host": "a.example"}
        )
    assert "Secure" in answer.headers["set-cookie"].split("; ")


def test_a_session_planted_beforehand_is_not_the_one_after_signing_in(server: Server) -> None:
    browser = server.browser()
    browser.cookies.set(COOKIE, "planted")
    answer = browser.post("/login", data={"key": server.keys["viewer"]})
    given = answer.cookies[COOKIE]
    assert given != "planted"
    assert server.browser().get("/", headers={"Cookie": f"{COOKIE}=planted"}).status_code == 303
    assert server.browser().get("/", headers={"Cookie": f"{COOKIE}={given}"}).status_code == 200


def test_signing_in_again_ends_the_session_before(server: Server) -> None:
    browser = server.signed_in("viewer")
    before = browser.cookies[COOKIE]
    browser.post("/login", data={"key": server.keys["viewer"]})
    assert browser.cookies[COOKIE] != before
    assert server.browser().get("/", headers={"Cookie": f"{COOKIE}={before}"}).status_code == 303


def test_signing_out_ends_the_session_on_the_server(server: Server) -> None:
    browser = server.signed_in("viewer")
    before = browser.cookies[COOKIE]
    assert browser.post("/logout", data={"csrf": "0" * 64}).status_code == 403
    assert browser.get("/").status_code == 200
    assert browser.post("/logout", data={"csrf": token(browser)}).headers["location"] == "/login"
    assert COOKIE not in browser.cookies
    assert server.browser().get("/", headers={"Cookie": f"{COOKIE}={before}"}).status_code == 303


def test_revoking_a_key_ends_its_sessions_and_streams(server: Server) -> None:
    keys = Keys(SqlStore(server.storage))
    key, text = keys.create("for a day", "viewer")
    browser = server.browser()
    browser.post("/login", data={"key": text})
    with browser.stream("GET", "/studies/ads/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("data: {")
        keys.revoke(key.id)
        assert "event: gone" in itertools.takewhile(lambda line: line != ": still here", lines)
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize("given", [{}, {"csrf": ""}, {"csrf": "0" * 64}])
def test_a_form_without_its_token_is_refused(server: Server, given: dict[str, str]) -> None:
    browser = server.signed_in("admin")
    answer = browser.post("/studies/ads/pause", data=given)
    assert answer.status_code == 403
    assert "This must be sent from a page of your session" in answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert load_study("ads", server.storage).status().state == "running"


@pytest.mark.parametrize("header", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_forms_of_other_sites_are_refused_even_with_a_token(server: Server, header: dict[str, str]) -> None:
    browser = server.signed_in("admin")
    answer = browser.post("/studies/ads/pause", data={"csrf": token(browser)}, headers=header)
    assert answer.status_code == 403
    assert server.browser().post("/login", data={"key": server.keys["admin"]}, headers=header).status_code == 403


def test_buttons_do_what_they_say(server: Server) -> None:
    create_study("buttons", ["A", "B"], price=1, value=1000, sigma=1, storage=server.storage)
    study, browser = load_study("buttons", server.storage), server.signed_in("admin")

    def press(button: str, **typed: str) -> httpx.Response:
        return browser.post(f"/studies/buttons/{button}", data={"csrf": token(browser), **typed})

    answer = press("pause")
    assert (answer.status_code, answer.headers["location"]) == (303, "/studies/buttons")
    assert study.status().state == "paused"
    press("resume")
    assert study.status().state == "running"
    press("retire", arm="A", reason="out of stock")
    assert study.explain() == ["A was retired: out of stock", "only B is left"]
    refused = press("retire", arm="B", reason="too")
    assert refused.status_code == 422
    assert "must be one of those left, B, and not the last" in refused.text
    assert press("stop", reason=" ").status_code == 422
    press("stop", reason="the season is over")
    assert study.recommendation().reason == "the season is over"


@pytest.mark.parametrize("role", ["viewer", "worker"])
def test_a_small_role_sees_no_buttons_and_cannot_press_them(server: Server, role: str) -> None:
    browser = server.signed_in(role)
    page = browser.get("/studies/ads").text
    assert "Export CSV" in page
    assert "Pause" not in page
    assert "/new" not in browser.get("/").text
    assert browser.get("/new").status_code == 403
    for path in ("/new", *(f"/studies/ads/{button}" for button in ("pause", "resume", "stop", "retire"))):
        answer = browser.post(path, data={"csrf": token(browser)})
        assert answer.status_code == 403
        assert f"The role must be admin for this but a {role} has {role}." in answer.text


def test_names_are_shown_as_text(server: Server) -> None:
    browser = server.signed_in("admin")
    first = browser.get("/").text
    (address,) = re.findall(r'href="(/studies/%3C[^"]*)"', first)
    page = browser.get(address).text
    with browser.stream("GET", f"{address}/events") as stream:
        news = json.loads(next(stream.iter_lines()).removeprefix("data: "))
    wrong = browser.post("/new", data={"csrf": token(browser), "name": NASTY, "arms": NASTY_ARM, "price": NASTY}).text
    for shown in (first, page, wrong, news["sentence"] + news["arms"] + news["actions"] + news["log"]):
        assert "<img src=x" not in shown
        assert "<script>alert" not in shown
        assert "&lt;img src=x" in shown or "&lt;script&gt;alert" in shown


def test_pages_load_nothing_from_elsewhere_and_have_nothing_inline(server: Server) -> None:
    browser = server.signed_in("admin")
    for path in ("/", "/new", "/studies/ads", "/studies/none"):
        answer = browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?![^>]* src=)|<style|<[^<>]*\s(style|on\w+)=|javascript:", answer.text)
        assert set(re.findall(r'(?:src|href)="(.)', answer.text)) <= {"/", "#"}


def test_colours_contrast_enough_in_both_schemes() -> None:
    style = (Path(pages.__file__).parent / "static" / "style.css").read_text()
    light, dark = (dict(re.findall(r"--([\w-]+): #(\w{6});", block)) for block in style.split(":root {")[1:3])
    assert light.keys() == dark.keys()
    for scheme in (light, dark):
        for ground in ("ground", "card", "raised"):
            assert min(contrast(scheme[ink], scheme[ground]) for ink in ("text", "quiet", "accent")) >= 4.5
        for ink, ground in (("on-accent", "accent"), ("bad", "card"), *((each, f"{each}-ground") for each in MARKS)):
            assert contrast(scheme[ink], scheme[ground]) >= 4.5
        assert min(contrast(scheme[line], scheme["card"]) for line in ("edge", "loss", "spent")) >= 3.0


def contrast(ink: str, ground: str) -> float:
    """Of two colours, as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        shares = [int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted((luminance(ink), luminance(ground)))
    return (lighter + 0.05) / (darker + 0.05)


def test_files_are_packed_and_kept_for_ever(server: Server) -> None:
    browser = server.browser()
    page = server.signed_in("viewer").get("/studies/ads").text
    (plotly,) = re.findall(r'src="(/static/plotly-[\d.]+\.min\.js)"', page)
    for address in {plotly, *re.findall(r'"(/static/[^"]+)"', page)}:
        answer = browser.get(address)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.content == browser.get(address, headers={"Accept-Encoding": "identity"}).content
    assert browser.get("/static/style.css").status_code == 404
    assert browser.get("/static/..%2Froutes.py").status_code == 404


def test_a_study_that_is_not_there_is_a_page_in_words(server: Server) -> None:
    answer = server.signed_in("viewer").get("/studies/none")
    assert answer.status_code == 404
    assert "A study must be stored before it is used" in answer.text
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("elsewhere", ["//evil.example", "https://evil.example", "/\\evil.example", "x"])
def test_signing_in_leads_to_no_other_site(server: Server, elsewhere: str) -> None:
    answer = server.browser().post("/login", data={"key": server.keys["viewer"], "next": elsewhere})
    assert answer.headers["location"] == "/"


def test_attempts_to_sign_in_are_limited_by_address(server: Server) -> None:
    guesser = server.browser()
    codes = [guesser.post("/login", data={"key": f"dbc_0_{guess}"}).status_code for guess in range(12)]
    assert codes[:10] == [401] * 10
    assert codes[-1] == 429
    answer = guesser.post("/login", data={"key": "another guess"})
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 5
    assert "Too many attempts" in answer.text
    assert guesser.post("/login", data={"key": server.keys["viewer"]}).status_code == 303  # a good key is let in


WELL = {"name": "made", "arms": "A\r\nB b\r\n\r\n", "price": "0.4", "value": "20000", "rewards": "binary"}


def test_the_form_makes_a_study(server: Server) -> None:
    browser = server.signed_in("admin")
    typed = {
        **WELL,
        "rewards": "bounds",
        "low": "-1",
        "high": "3",
        "price": "1 2",
        "policy": "breakeven",
        "max_spend": "500",
        "max_ahead": "9",
        "timeout_reward": "0",
        "direction": "minimize",
        "unit": "EUR",
        "seed": "7",
    }
    answer = browser.post("/new", data={"csrf": token(browser), **typed})
    assert (answer.status_code, answer.headers["location"]) == (303, "/studies/made")
    settings = load_study("made", server.storage).settings
    assert (settings.arms, settings.bounds, settings.direction) == (("A", "B b"), (-1.0, 3.0), "minimize")
    assert settings.costs == pytest.approx((1 / 20_000, 2 / 20_000))
    assert (settings.max_spend, settings.max_ahead, settings.timeout_reward) == (500 / 20_000, 9, 0.0)
    assert (settings.unit, settings.seed) == ("EUR", 7)


@pytest.mark.parametrize(
    ("wrong", "status", "said", "at"),
    [
        ({"price": "cheap"}, 422, "`price` must be a number such as 0.40 but got &#39;cheap&#39;.", "price"),
        ({"value": ""}, 422, "`cost`, or both `price` and `value`, must be given", "price"),
        ({"arms": "A"}, 422, "`arms`: List should have at least 2 items", "arms"),
        ({"arms": "A\nA"}, 422, "`arms` must be 2 or more different names", "arms"),
        ({"name": "ads"}, 409, "A study must have a name of its own", "name"),
        ({"name": "a/b"}, 422, "`name` must have no slash", "name"),
        ({"rewards": "sigma"}, 422, "`sigma` must be given here.", "sigma"),
        ({"max_ahead": "1.5"}, 422, "`max_ahead`: Input should be a valid integer", "max_ahead"),
        ({"policy": "guess"}, 422, "`policy`: Input should be", "policy"),
        ({"value": "inf"}, 422, "`value`: Input should be a finite number", "value"),
    ],
)
def test_what_was_typed_comes_back_with_what_is_wrong(
    server: Server, wrong: dict[str, str], status: int, said: str, at: str
) -> None:
    browser = server.signed_in("admin")
    answer = browser.post("/new", data={"csrf": token(browser), **WELL, "name": "other", "unit": "CHF", **wrong})
    assert answer.status_code == status
    assert said in answer.text
    assert 'name="unit" value="CHF"' in answer.text
    assert re.search(rf'name="{at}"[^>]*aria-invalid="true"', answer.text)
    assert "other" not in SqlStore(server.storage).names()


def test_news_are_what_has_changed_until_the_study_is_gone(server: Server) -> None:
    study = create_study("news", ["A", "B"], price=1, value=1000, sigma=1, storage=server.storage)
    browser = server.signed_in("viewer")
    page = browser.get("/studies/news").text
    with browser.stream("GET", "/studies/news/events") as stream:
        lines = (line for line in stream.iter_lines() if line)

        def news() -> dict[str, str]:
            return dict(json.loads(next(lines).removeprefix("data: ")))

        first = news()
        assert all(piece in page for name, piece in first.items() if name != "chart")
        study.pause()
        assert set(news()) == {"state"}
        study.add([("A", 1.0), ("B", 0.0), ("A", 1.5)])
        changed = news()
        assert {"sentence", "figures", "arms", "chart"} <= set(changed)
        assert "settings" not in changed
        assert SPENT.findall(changed["figures"]) == ["3.00 USD"]
        SqlStore(server.storage).delete("news")
        assert next(lines) == "event: gone"


def test_a_study_of_100_000_trials_is_shown_at_once(server: Server) -> None:
    study = create_study("large", list("ABCDE"), price=1e-3, value=2e6, sigma=1, storage=server.storage)
    study.add(("ABCDE"[trial % 5], (trial * 7919 % 1000) / 1000) for trial in range(100_000))
    browser = server.signed_in("viewer")
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        assert "100,000" in browser.get("/studies/large").text
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 0.3


def test_of_very_many_arms_the_best_are_shown(server: Server) -> None:
    arms = [f"arm {number}" for number in range(1000)]
    study = create_study("many", arms, price=1, value=1e5, sigma=1, storage=server.storage, direction="minimize")
    study.add((arm, -float(number)) for number, arm in enumerate(arms))
    page = server.signed_in("viewer").get("/studies/many").text
    rows = re.findall(r'<th scope="row"><span class="long">([^<]*)', page)
    assert rows == arms[:-101:-1]
    assert "The 100 best are shown; 900 more are in the API." in page


def test_without_keys_everybody_on_this_machine_is_let_in_but_no_other_site(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'open.db'}"
    with service(storage) as address, httpx.Client(base_url=address) as browser:
        first = browser.get("/").text
        assert "No key has been made yet" in first
        assert "No studies yet" in first
        assert browser.get("/login").headers["location"] == "/"
        for header in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
            refused = browser.post("/new", data=WELL, headers=header)
            assert refused.status_code == 403
            assert "Without a key, only programs and pages of this machine itself may use this server." in refused.text
        assert SqlStore(storage).names() == []
        assert browser.post("/new", data=WELL, headers={"Origin": address}).status_code == 303
        Keys(SqlStore(storage)).create("me", "admin")
        assert browser.get("/").headers["location"] == "/login?next=/"
