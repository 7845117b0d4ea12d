"""The page of a trace in a browser, used as people use it; screenshots can be kept.

Needs Chromium (Debian's package ``chromium``); without it these tests are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.tests.support.chromium import CHROMIUM, chromium
from fakekafka.tests.support.trace_page import open_state, press, shown, until, wait_for_event
from fakekafka.tests.support.traces import header
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.recording.writer import TraceWriter
from fakekafka.tracing.trace_file import TraceReader
from fakekafka.tracing.web.page import write_page

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("trace page")]

PICTURES = os.environ.get("FAKEKAFKA_PICTURES")
"""Folder for the screenshots, or None."""


def record(path: Path, seed: int) -> None:
    """Record a leader's death while a producer sends."""
    with Simulation(topics={"orders": 2}, seed=seed) as simulation:
        producer = simulation.producer("shop")
        for number in range(8):
            producer.produce(("orders", number % 2), f"record {number}".encode())
        simulation.run_for(2_000)
        leader = simulation.partition("orders", 0).leader
        assert leader is not None
        simulation.broker(leader).kill()
        for number in range(4):
            producer.produce(("orders", 0), f"later {number}".encode())
        simulation.run_for(20_000)
        simulation.save(path)


def record_pause(path: Path) -> None:
    """Record a paused follower, an isolated leader that returns, and producers that retry."""
    config = {"replica.lag.time.max.ms": 1500, "zookeeper.session.timeout.ms": 4000}
    topics = {"orders": {"assignment": {0: [1, 2, 3]}}}
    with Simulation(topics=topics, config=config, seed=1) as simulation:
        producer = simulation.producer("shop", request_timeout_ms=2000)

        def go_on(for_ms: int) -> None:
            producer.produce(("orders", 0), b"v")
            simulation.run_for(for_ms)

        go_on(1_000)
        simulation.broker(3).pause()
        go_on(3_000)
        simulation.broker(3).resume()
        go_on(2_000)
        simulation.network.isolate(1)
        go_on(9_000)
        simulation.network.heal()
        go_on(3_000)
        simulation.save(path)


def record_deletion(path: Path) -> None:
    """Record a topic's deletion while a broker is down; two of fourteen partitions have load."""
    with Simulation(topics={"orders": 14, "old": 2}, seed=3) as simulation:
        producer = simulation.producer()
        for number in range(20):
            producer.produce(("orders", 11 + number % 2), b"v")
            producer.produce(("old", 1), b"v")
        simulation.run_for(2_000)
        lost = simulation.broker(3)
        lost.kill()
        simulation.delete_topic("old")
        simulation.run_for(25_000)
        lost.start()
        simulation.run_for(10_000)
        simulation.save(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages of one run and of two compared."""
    folder = tmp_path_factory.mktemp("pages")
    for seed in (1, 2):
        record(folder / f"{seed}.fktrace", seed)
    with TraceReader(folder / "1.fktrace") as one, TraceReader(folder / "2.fktrace") as two:
        write_page(one, folder / "run.html")
        write_page(one, folder / "compared.html", two)
    record_pause(folder / "paused.fktrace")
    with TraceReader(folder / "paused.fktrace") as trace:
        write_page(trace, folder / "paused.html")
    record_deletion(folder / "deletion.fktrace")
    with TraceReader(folder / "deletion.fktrace") as trace:
        write_page(trace, folder / "deletion.html")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Any]:
    if CHROMIUM is None:
        pytest.skip("the page is looked at in Chromium: apt-get install chromium")
    with chromium(tmp_path_factory.mktemp("chromium")) as context:
        yield context


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, folder: Path) -> Iterator[Open]:
    """Return a function that opens a page at its first event; errors in the page fail the test."""
    complaints: list[str] = []
    pages = []

    def open_at(name: str = "run.html", hash_: str = "") -> Any:
        page = browser.new_page()
        pages.append(page)
        page.set_default_timeout(30_000)
        page.set_viewport_size({"width": 1366, "height": 800})
        page.on(
            "console",
            lambda said: (
                complaints.append(said.text) if said.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((folder / name).as_uri() + hash_)
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield open_at
    for page in pages:
        page.close()
    assert complaints == []


def picture(page: Any, name: str, tmp_path: Path) -> bytes:
    """Take a screenshot of the page."""
    shot: bytes = page.screenshot(path=Path(PICTURES or tmp_path) / f"{name}.png")
    return shot


def crash_of(folder: Path) -> int:
    with TraceReader(folder / "1.fktrace") as trace:
        return next(event.seq for event in trace.events() if event.kind == "crash")


def test_the_page_opens_at_the_first_fault(open_page: Open, folder: Path, tmp_path: Path) -> None:
    """The page opens at the crash, names it and shows the partition without leader."""
    page = open_page()
    assert shown(page) == crash_of(folder)
    assert "is killed" in page.inner_text("#caption")
    assert page.inner_text(".row[aria-selected=true] .kind") == "crash"
    assert "orders-0" in page.inner_text("#partitions")
    light = picture(page, "light", tmp_path)
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(100)
    assert picture(page, "dark", tmp_path) != light


def test_partitions_with_load_are_shown_and_a_deleted_one_is_no_outage(
    open_page: Open, folder: Path, tmp_path: Path
) -> None:
    """Partitions with records come first, and a deleted topic is not shown as an outage."""
    with TraceReader(folder / "deletion.fktrace") as trace:
        crash, restart = (e.seq for e in trace.events() if e.kind in ("crash", "restart"))
        last = trace.last_seq

    def partitions(seq: int) -> dict[str, str]:
        page = open_page("deletion.html", f"#s={seq}")
        assert shown(page) == seq
        picture(page, f"deletion-{seq}", tmp_path)
        return {
            part.get_attribute("data-name"): part.inner_text()
            for part in page.query_selector_all("#partitions .partition")
        }

    before = partitions(crash)
    assert set(list(before)[:3]) == {"orders-11", "orders-12", "old-1"}
    assert len(before) == 12
    during = partitions(restart - 1)
    assert {name for name, text in during.items() if "being deleted" in text} == {"old-0", "old-1"}
    assert not any("no leader" in text for text in during.values())
    assert "down" not in during["old-1"]
    assert "3 down" in during["orders-11"].replace("\n", " ")
    assert not [name for name in partitions(last) if name.startswith("old")]


def test_steps_forward_and_back(open_page: Open, folder: Path) -> None:
    """Arrow keys step by event; stepping back restores state and position."""
    page = open_page()
    start = shown(page)
    open_state(page)
    state = page.inner_text("#panel")
    for i in range(1, 6):
        assert press(page, "ArrowRight") == start + i
    for i in range(4, -1, -1):
        assert press(page, "ArrowLeft") == start + i
    wait_for_event(page, start)
    assert page.inner_text("#panel") == state


def test_steps_on_a_lane(open_page: Open, folder: Path) -> None:
    """``.`` moves to the next event of the same actor and ``,`` to the previous."""
    page = open_page(hash_="#s=100")
    with TraceReader(folder / "1.fktrace") as trace:
        actor = trace.event(100).actor
        later = next(event.seq for event in trace.events(101) if event.actor == actor)
    assert press(page, ".") == later
    assert press(page, ",") == 100


def test_filter_by_expression_and_by_words(open_page: Open, folder: Path) -> None:
    """A filter lists what the command line finds, and a mistake in it is shown."""
    with TraceReader(folder / "1.fktrace") as trace:
        wanted = [
            event.seq
            for event in trace.events()
            if event.type == "LeaderAndIsrRequest" and event.kind == "deliver"
        ]
    page = open_page()
    page.keyboard.press("/")
    page.keyboard.type('type == "LeaderAndIsrRequest" and kind == deliver')
    until(page, f"() => document.getElementById('found').innerText === '{len(wanted)} found'")
    until(page, "n => document.querySelectorAll('.row:not([hidden])').length === n", len(wanted))
    numbers = "[...document.querySelectorAll('.row:not([hidden]) .seq')].map(e => e.textContent)"
    until(page, f"wanted => {numbers}.join() === wanted", ",".join(f"#{seq}" for seq in wanted))
    page.fill("#filter", "type == NoSuchThing")
    until(
        page, "() => document.getElementById('found').innerText.includes('there is no NoSuchThing')"
    )
    page.fill("#filter", "is killed")
    until(page, "() => document.getElementById('found').innerText === '1 found'")
    assert "f=is+killed" in page.url
    page.keyboard.press("Escape")
    until(page, "() => document.getElementById('found').innerText === ''")


def test_a_worker_looks_through_the_trace(open_page: Open) -> None:
    """A worker searches the trace, so the page stays responsive; a new search replaces the old."""
    page = open_page()
    page.fill("#filter", "deliver")
    page.wait_for_timeout(260)
    page.fill("#filter", "crash")
    until(page, "() => document.getElementById('found').textContent === '1 found'")
    assert len(page.workers) == 1
    assert page.locator(".row:not([hidden])").count() == 1


def test_find_selects_the_next_match(open_page: Open, folder: Path) -> None:
    """Enter finds the next match and ``N`` the previous."""
    with TraceReader(folder / "1.fktrace") as trace:
        found = [event.seq for event in trace.events() if event.type == "WatchEvent"]
    page = open_page(hash_="#s=0")
    page.fill("#search", "WatchEvent")
    page.press("#search", "Enter")
    wait_for_event(page, found[0])
    page.evaluate("document.activeElement.blur()")
    assert press(page, "n") == found[1]
    assert press(page, "N") == found[0]


def test_causes_lead_back_to_the_fault(open_page: Open, folder: Path, tmp_path: Path) -> None:
    """The page folds a chain as ``trace why`` does, and a click follows it."""
    from fakekafka.tracing.reading.causes import why

    with TraceReader(folder / "1.fktrace") as trace:
        seq = next(
            change.event.seq
            for change in _role_changes(trace)
            if change.new == "leader" and change.event.seq > crash_of(folder)
        )
        chain = [event.seq for event in why(trace, seq)]
    assert chain[-1] == crash_of(folder)
    page = open_page(hash_=f"#s={seq}&p=Why")
    links = page.eval_on_selector_all(
        "#panel .link .seq", "all => all.map(e => Number(e.textContent.slice(1)))"
    )
    assert links == chain
    picture(page, "why", tmp_path)
    page.click("#panel .link >> nth=-1")
    wait_for_event(page, chain[-1])
    page.keyboard.press("3")
    page.wait_for_selector("#panel .link")
    assert press(page, "e") > chain[-1]


def _role_changes(trace: TraceReader) -> Any:
    from fakekafka.tracing.reading.state_history import changes

    return changes(trace, "broker-*/orders-0/role")


def test_state_is_that_of_the_trace(open_page: Open, folder: Path) -> None:
    """The page shows the state that Python reads, at events all over the run."""
    from fakekafka.tracing.reading.state_history import state_at

    page = open_page()
    with TraceReader(folder / "1.fktrace") as trace:
        for seq in range(0, len(trace), max(len(trace) // 12, 1)):
            wanted = {path: state_at(trace, seq).changed_at(path) for path in state_at(trace, seq)}
            page.evaluate(f"location.hash = 's={seq}'")
            wait_for_event(page, seq)
            open_state(page)
            actors = page.eval_on_selector_all("#panel option", "all => all.map(o => o.value)")
            got: dict[str, int] = {}
            for actor in actors:
                page.select_option("#panel select", actor)
                until(
                    page, "actor => document.querySelector('#panel select').value === actor", actor
                )
                rows = page.eval_on_selector_all(
                    "#panel .state tr",
                    "all => all.map(r => [r.cells[0].innerText, r.cells[2].innerText])",
                )
                got |= {f"{actor}/{path}": int(at.removeprefix("#")) for path, at in rows}
            assert {path: at for path, at in got.items() if path in wanted} == wanted


def test_a_changed_address_is_followed_although_the_page_overwrites_it(open_page: Open) -> None:
    """A changed address is followed even if the page then writes its previous one."""
    page = open_page()
    page.evaluate("location.hash = 's=40'; history.replaceState(null, '', '#s=7')")
    wait_for_event(page, 40)
    until(page, "() => location.hash.includes('s=40')")


def test_time_and_order(open_page: Open, tmp_path: Path) -> None:
    """``t`` spaces events by time, and the chosen event stays in view."""
    page = open_page()
    chosen = shown(page)
    page.keyboard.press("t")
    page.wait_for_selector(".row[aria-selected=true]")
    assert page.get_attribute("#axis", "aria-pressed") == "true"
    assert shown(page) == chosen
    until(page, "() => location.hash.includes('t=1')")
    picture(page, "time", tmp_path)


def test_a_click_on_the_minimap_selects_a_position(open_page: Open) -> None:
    """A click near the end of the minimap shows an event near the end of the run."""
    page = open_page()
    box = page.locator("#minimap").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 3, box["y"] + 5)
    until(
        page,
        "() => document.getElementById('position').innerText.includes('21.')"
        " || document.getElementById('position').innerText.includes('22.')",
    )


def test_two_runs_are_compared(open_page: Open, folder: Path, tmp_path: Path) -> None:
    """A comparison opens at the first difference and names it; A and B switch between runs."""
    page = open_page("compared.html")
    assert page.inner_text(".row[aria-selected=true] .seq") == "~"
    assert "what differs" in page.inner_text("#panel")
    picture(page, "compare", tmp_path)
    page.click("#view-B")
    until(page, "() => document.getElementById('title').innerText.includes('seed 2')")
    with TraceReader(folder / "2.fktrace") as trace:
        count = f"of {len(trace):,}"
    until(page, "count => document.getElementById('position').innerText.includes(count)", count)


def test_the_page_fits_a_phone(open_page: Open, tmp_path: Path) -> None:
    """On a phone nothing is wider than the screen, and partitions are shown in full."""
    page = open_page()
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_timeout(200)
    picture(page, "phone", tmp_path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    heads = "[...document.querySelectorAll('#lanes button')]"
    assert page.evaluate(f"{heads}.every((head) => head.scrollHeight <= head.clientHeight + 1)")
    partitions = page.query_selector("#partitions").bounding_box()
    assert partitions["height"] > 60


def test_the_page_answers_as_trace_why_does(open_page: Open, folder: Path) -> None:
    """The page's causes equal those of ``trace why`` for errors, retries and waits."""
    from fakekafka.tracing.reading.causes import why

    with TraceReader(folder / "paused.fktrace") as trace:
        asked = [
            event.seq
            for event in trace.events()
            if event.kind in ("client_ok", "client_retry", "expire")
            or "NOT_LEADER" in str(event.fields.get("partitions"))
            or any(path.endswith("/isr") for path, _, _ in event.delta)
        ]
        chains = {seq: [event.seq for event in why(trace, seq)] for seq in asked}
    assert len({chain[-1] for chain in chains.values()}) > 5
    page = open_page("paused.html")
    for seq, chain in chains.items():
        page.evaluate(f"location.hash = 's={seq}&p=Why'")
        wait_for_event(page, seq)
        until(
            page,
            "chain => [...document.querySelectorAll('#panel .link .seq')]"
            ".map(e => e.textContent.slice(1)).join() === chain",
            ",".join(map(str, chain)),
        )


def test_markup_in_a_trace_is_text(open_page: Open, folder: Path) -> None:
    """Markup in names and values of a trace is shown as text and not executed."""
    evil = "<img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script>"
    path = folder / "evil.fktrace"
    with Recorder(TraceWriter(path, header(scenario_name=evil))) as recorder:
        for _ in range(3):
            seq = recorder.event(0, "fault", evil, evil, None, None, None, evil)
            recorder.state(seq, f"{evil}/{evil}", None, evil)
    with TraceReader(path) as trace:
        write_page(trace, folder / "evil.html")
    page = open_page("evil.html")
    assert page.evaluate("window.hacked") is None
    assert evil in page.inner_text("#rows")
    assert evil in page.inner_text("#caption")
    assert evil in page.inner_text("#title")
    for key in "1234":
        page.keyboard.press(key)
        page.wait_for_timeout(50)
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
