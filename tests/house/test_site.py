"""The site in a browser: every page at the width of a laptop and of a phone.

Needs Chromium (Debian's package ``chromium``); without it these tests are skipped, or fail in CI.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from fakekafka.docs import trace_gallery
from fakekafka.tests.support.chromium import CHROMIUM, chromium
from fakekafka.tests.support.pages import HARD_TO_READ, WIDER_THAN_THE_SCREEN
from fakekafka.tests.support.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]

LAPTOP_PX, PHONE_PX = 1280, 390
CONTENT = ".md-content"
TRACE_PAGE = "-trace.html"
"""End of the names of pages of traces, which do not use the site's theme and have their
own tests.
"""
ON_BLACK = """palette => {
    document.body.dataset.mdColorScheme = palette;
    return [...document.querySelectorAll('.md-content img[src$=".svg"]')]
        .filter(picture => palette === 'slate'
            && getComputedStyle(picture).backgroundColor !== 'rgb(255, 255, 255)')
        .map(picture => picture.src + ' has no white ground');
}"""
"""JavaScript that selects a palette and finds pictures drawn for white on a black background."""


def build(source: Path, target: Path) -> None:
    """Build the site of a tree, and fail at a warning."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target)],
        cwd=source,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    build(ROOT, target)
    return target


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def dead_links(site: Path) -> list[str]:
    """Return links of pages to files and anchors of the site that do not exist."""
    pages = {
        path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if not path.name.endswith(TRACE_PAGE)
    }
    found = []
    for name, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(urljoin(f"http://site/{name}", link))
            if parts.netloc != "site":
                continue
            target = unquote(parts.path).removeprefix("/") or "index.html"
            if not (site / target).is_file():
                found.append(f"{name}: {link} leads nowhere")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {link}: no such anchor")
    return found


def test_no_link_of_the_site_is_dead(site: Path) -> None:
    """Links between pages, into generated sections, and to assets exist; 404.html links from the
    root.
    """
    found = [finding for finding in dead_links(site) if not finding.startswith("404.html")]
    assert found == [], "\n" + "\n".join(found)


def test_every_page_is_in_the_navigation() -> None:
    """Every page can be reached by clicking."""
    named = set(
        re.findall(
            r"^ +- (?:[\w ]+: )?([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
        )
    )
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    made = {path for path in trace_gallery.site_paths() if path.endswith(".md")}
    assert pages | made == named


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing."""

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Any]:
    if CHROMIUM is None:
        pytest.skip("the site is looked at in Chromium: apt-get install chromium")
    with chromium(tmp_path_factory.mktemp("chromium")) as context:
        yield context


def walk(browser: Any, address: str, site: Path, names: list[str]) -> list[str]:
    """Open every page in both palettes and at both widths.

    Return errors of the console, failed requests, texts without contrast and elements beyond the
    width of the page.
    """
    found: list[str] = []
    name = ""
    empty_index = json.loads((site / "search" / "search_index.json").read_text()) | {"docs": []}
    page = browser.new_page()
    page.emulate_media(reduced_motion="reduce")
    # Every page would read the whole index of the search again, for seconds.
    page.route("**/search_index.json", lambda route: route.fulfill(body=json.dumps(empty_index)))
    page.on(
        "console",
        lambda said: (
            found.append(f"{name}: {said.text}") if said.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda error: found.append(f"{name}: {error}"))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((address, "data:", "blob:"))
            else found.append(f"{name}: asks for {request.url}")
        ),
    )
    for name in names:
        page.goto(address + name, wait_until="load")
        page.add_style_tag(content="* { transition: none !important; }")
        for palette in ("default", "slate"):
            texts = page.evaluate(ON_BLACK, palette) + page.evaluate(HARD_TO_READ, CONTENT)
            found += [f"{name} in {palette}: {text}" for text in texts]
        for width_px in (LAPTOP_PX, PHONE_PX):
            page.set_viewport_size({"width": width_px, "height": 900})
            texts = page.evaluate(WIDER_THAN_THE_SCREEN, CONTENT + " *")
            found += [f"{name} at {width_px} px: {text}" for text in texts]
    page.close()
    return found


@pytest.mark.timeout(300)
def test_every_page_is_sound_in_a_browser(site: Path, browser: Any, address: str) -> None:
    """There is no error in the console, nothing loaded from elsewhere, nothing wider than the
    screen, and no text without contrast on light or dark.
    """
    names = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    assert len(names) > 50
    others = ("404.html", TRACE_PAGE)
    found = walk(browser, address, site, [name for name in names if not name.endswith(others)])
    assert found == [], "\n" + "\n".join(found)


@pytest.mark.parametrize(("scheme", "palette"), [("dark", "slate"), ("light", "default")])
def test_a_reader_who_prefers_dark_gets_a_dark_page(
    browser: Any, address: str, scheme: str, palette: str, tmp_path: Path
) -> None:
    """No click is needed; the screenshot is for people to look at."""
    page = browser.new_page()
    page.set_viewport_size({"width": LAPTOP_PX, "height": 900})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.add_init_script("localStorage.clear()")  # the theme remembers the palette of a visit
    page.goto(address + "reference/state-machines.html", wait_until="load")
    shown = page.evaluate("document.body.dataset.mdColorScheme")
    page.screenshot(path=tmp_path / f"{scheme}.png")
    page.close()
    assert shown == palette


@pytest.mark.parametrize("opened_as", ["served", "file"])
def test_the_search_finds_a_page(browser: Any, address: str, site: Path, opened_as: str) -> None:
    """A word of a page leads to the page, even without a server, from files alone."""
    page = browser.new_page()
    page.set_viewport_size({"width": LAPTOP_PX, "height": 900})
    page.goto({"served": address, "file": f"{site.as_uri()}/"}[opened_as] + "index.html")
    page.click(".md-search__input")
    page.keyboard.type("min.insync.replicas")
    page.wait_for_selector(".md-search-result__link")
    links = [link.get_attribute("href") for link in page.query_selector_all(".md-search-result a")]
    page.close()
    assert any("stories/min-isr.html" in link for link in links), links


BAD_PAGE = """<!doctype html><title>Bad</title><body><div class="md-content">
<p style="color: #999; background: #aaa">pale</p><p>plain</p><img src="a.svg">
<div style="width: 2000px">wide</div>
<div style="overflow-x: auto; width: 300px"><div style="width: 3000px">framed</div></div>
</div><script>console.error("a complaint"); nowhere();</script>
<a href="gone.html"></a><a href="#gone"></a><a href="https://example.org/"></a>"""


def test_a_bad_page_is_found(browser: Any, address: str, site: Path, tmp_path: Path) -> None:
    """Errors, excessive width and dead links are found; an element that scrolls in its own frame is
    fine.
    """
    (tmp_path / "bad.html").write_text(BAD_PAGE)
    assert dead_links(tmp_path) == [
        "bad.html: #gone: no such anchor",
        "bad.html: a.svg leads nowhere",
        "bad.html: gone.html leads nowhere",
    ]
    (site / "bad.html").write_text(BAD_PAGE)
    try:
        found = "\n".join(walk(browser, address, site, ["bad.html"]))
    finally:
        (site / "bad.html").unlink()
    assert "in default: P. 1.23" in found
    assert "in slate: P. 1.23" in found
    assert found.count("P. ") == 2
    assert "in slate: http" in found
    assert "in default: http" not in found
    assert "a complaint" in found
    assert "nowhere is not defined" in found
    assert "at 390 px: DIV to 2" in found
    assert "framed" not in found
