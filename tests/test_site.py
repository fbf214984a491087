"""The documentation site, built and walked in a real browser: links, the console, search, and both color schemes."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, ViewportSize, expect

import dbcare
import dbcare.sklearn
from tests.helpers.browser import BrowserWindow, launch_chromium, open_window

pytestmark = [pytest.mark.service, pytest.mark.long]

ROOT = Path(__file__).parents[1]
PHONE: ViewportSize = {"width": 390, "height": 844}
WIDE: ViewportSize = {"width": 1280, "height": 900}
OTHER_HOSTS = ("github.com", "127.0.0.1")  # of the theme, and of services that examples start
# The pages of the site, and where their links lead; scripts are not needed to read them.
READ_PAGE = """() => ({
  links: [...document.querySelectorAll('a[href]')].map(link => link.href),
  anchors: [...document.querySelectorAll('[id]')].map(element => element.id),
  text: document.body.innerText,
})"""


# As `build.py` does, but in one process: several would take less time if nothing else ran, but a fifth more work.
BUILD = """
import pathlib, sys, build, render
place = render.OPTIONS.index("-j")
render.OPTIONS = render.OPTIONS[:place] + render.OPTIONS[place + 2 :]
sys.exit(build.build_site(pathlib.Path(sys.argv[1])))
"""
# Renders several sites, since loading Sphinx takes longer, and prints what each ends with.
RENDER = """
import pathlib, sys, render
for folder in map(pathlib.Path, sys.argv[1:]):
    print(render.render_pages(folder / "pages", folder / "site"))
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, *arguments]
    return subprocess.run(call, cwd=ROOT / "website", capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    process = python("-c", BUILD, str(folder))
    assert process.returncode == 0, process.stderr
    return folder


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  # as in the base class
        """Print nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch_chromium() as launched:
        yield launched


@pytest.fixture
def window(browser: Browser, address: str) -> Iterator[BrowserWindow]:
    """A window whose console must stay empty, and which must load from the site alone."""
    with open_window(browser, address) as opened:
        yield opened


def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    """One site per link; the first link is not dead."""
    folders = []
    for number, link in enumerate(("page.md", "nowhere.md", "page.md#nothing")):
        folders.append(tmp_path / str(number))
        pages = folders[-1] / "pages"
        pages.mkdir(parents=True)
        (pages / "index.md").write_text(f"# Home\n\n[A page]({link})\n\n```{{toctree}}\npage\n```\n")
        (pages / "page.md").write_text("# A page\n\nWith text.\n")
    process = python("-c", RENDER, *map(str, folders))
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == ["0", "1", "1"], process.stderr
    no_page, no_place = process.stderr.splitlines()
    assert str(folders[1]) in no_page  # after a color, where CI is set
    assert "'nowhere.md'" in no_page
    assert str(folders[2]) in no_place
    assert "'nothing'" in no_place


def list_pages(site: Path) -> list[str]:
    return sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))


def test_no_link_is_dead_and_every_page_fits_a_phone(window: BrowserWindow, site: Path, address: str) -> None:
    """All pages are reached from the first one; links to other sites are listed, not followed."""
    page = window.page
    page.set_viewport_size(PHONE)
    read: dict[str, dict[str, Any]] = {}
    waiting = [urljoin(address, "index.html")]
    while waiting:
        url = waiting.pop()
        if url in read or not urlsplit(url).path.endswith(".html"):
            continue
        response = page.goto(url)
        assert response is not None
        assert response.ok, url
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], url
        read[url] = page.evaluate(READ_PAGE)
        targets = {urldefrag(link).url for link in read[url]["links"] if link.startswith(address)}
        waiting += [target + "index.html" if target.endswith("/") else target for target in targets]
    for url, content in read.items():
        for link in content["links"]:
            target, anchor = urldefrag(link)
            if target in read:
                assert not anchor or anchor in read[target]["anchors"], f"{url} links to {link}"
            elif link.startswith(address):
                assert (site / urlsplit(target).path.lstrip("/")).is_file(), f"{url} links to {link}"
            else:
                assert urlsplit(link).hostname in OTHER_HOSTS, f"{url} links to another site: {link}"
    reached = {urlsplit(url).path.lstrip("/") for url in read}
    assert set(list_pages(site)) - reached <= {"search.html", "404.html"}
    names = [name for module in (dbcare, dbcare.sklearn) for name in module.__all__ if name != "__version__"]
    anchors = {anchor for content in read.values() for anchor in content["anchors"]}
    assert [name for name in names if not {f"dbcare.{name}", f"dbcare.sklearn.{name}"} & anchors] == []


@pytest.mark.parametrize(
    ("words", "page"), [("Breakeven", "explanation/breakeven"), ("create_study", "reference/python/studies")]
)
def test_search_finds(window: BrowserWindow, words: str, page: str) -> None:
    window.page.goto("index.html")
    window.page.set_viewport_size(WIDE)
    box = window.page.get_by_role("textbox", name="Search")
    box.fill(words)
    box.press("Enter")
    results = window.page.locator(f"#search-results a[href*='{page}.html']")
    expect(results.first).to_be_visible()
    window.page.goto("search.html?q=zzzqqq")  # negative control
    expect(window.page.locator("#search-results")).to_contain_text("did not match any documents")
    assert window.page.locator("#search-results a").count() == 0


def test_search_in_files_says_what_is_missing(browser: Browser, site: Path, window: BrowserWindow) -> None:
    """From a file, results have no excerpts, which is said; from a server they have, and nothing is said."""
    with browser.new_context() as context, context.new_page() as page:
        page.goto((site / "search.html").as_uri() + "?q=Breakeven")
        expect(page.locator("#search-results a").first).to_be_visible()
        expect(page.locator("#search-note")).to_contain_text("No excerpts")
        assert page.locator("#search-results p.context").count() == 0
    window.page.goto("search.html?q=Breakeven")
    expect(window.page.locator("#search-results p.context").first).to_be_visible()
    assert window.page.locator("#search-note").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_follow_the_color_scheme(browser: Browser, address: str, scheme: Any) -> None:
    with open_window(browser, address, color_scheme=scheme) as window:
        window.page.goto("tutorial.html")
        color = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
        is_light = int(color.split("(")[1].split(",", maxsplit=1)[0]) > 128
        assert is_light is (scheme == "light")


def test_printed_sentences_wrap_and_tables_keep_their_columns(window: BrowserWindow) -> None:
    window.page.set_viewport_size(PHONE)
    window.page.goto("planning.html")
    is_too_wide = "blocks => blocks.map(block => block.scrollWidth > block.clientWidth)"
    wrapped = window.page.locator(".wrapped pre").evaluate_all(is_too_wide)
    tables = window.page.locator(".highlight-text:not(.wrapped) pre").evaluate_all(is_too_wide)
    assert len(wrapped) >= 5
    assert not any(wrapped)
    assert any(tables)


def test_every_environment_variable_is_listed() -> None:
    listed = (ROOT / "docs/reference/environment.md").read_text()
    found = {
        word.strip("\"'`.,();:$={}")
        for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "deploy").iterdir()]
        for word in path.read_text().replace("=", " ").split()
        if "DBCARE_" in word
    }
    names = {name for name in found if name.isupper()}
    assert len(names) >= 7
    assert [name for name in sorted(names) if f"`{name}`" not in listed] == []
