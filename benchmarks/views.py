"""The time until the views of a long trace open, and how long they stall."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.figures import line, sized
from benchmarks.traces import EVENTS, record_long

SIZE = (150, 48)
KEYS = ("right", "left", "full_stop", "comma", "right_square_bracket", "c", "e", "pagedown", "end")
OBSERVER = """
window.tasks = []
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) window.tasks.push(duration)
}).observe({ type: 'longtask', buffered: true })
"""
PLACES = sized(40, 2)
FILTERS = ("deliver", "broker-1 fetch", 'type == "FetchRequest" and kind == "drop"')
FILTER_MS = 300_000


def measure() -> None:
    """Print how the terminal view and the page perform with a million events."""
    from fakekafka import open_trace
    from fakekafka.tracing.web.page import write_page

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.fktrace"
        count = record_long(path, EVENTS)
        asyncio.run(_terminal(path, count))
        page = Path(folder) / "run.html"
        started = time.perf_counter()
        with open_trace(path) as trace:
            size = write_page(trace.stored, page)
        written_s = time.perf_counter() - started
        line("writing the page", f"{written_s:.0f} s, {size / 1e6:.0f} MB")
        measure_page(page, Path(folder))


async def _terminal(path: Path, count: int) -> None:
    from fakekafka.cli.debug.view import DebuggerApp
    from fakekafka.debugger.debugger import Debugger

    started = time.perf_counter()
    with Debugger.of_trace(path) as debugger:
        app = DebuggerApp(debugger, "run")
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            opened_s = time.perf_counter() - started
            title = f"terminal view of {count:,} events opens"
            line(title, f"{opened_s:.2f} s", "<= 1 s", opened_s <= 1)
            slowest = "", 0.0
            for place in (0, count // 2, count - 1):
                debugger.goto(place)
                for key in KEYS:
                    started = time.process_time()
                    await pilot.press(key)
                    await pilot.pause()
                    slowest = max(
                        slowest, (key, time.process_time() - started), key=lambda timing: timing[1]
                    )
            key, spent_s = slowest
            line(f"  the slowest key ({key}), CPU time", f"{spent_s * 1000:.0f} ms")


def measure_page(page_file: Path, folder: Path) -> None:
    """Print how fast a page opens, scrolls and filters in Chromium."""
    from fakekafka.tests.support.chromium import CHROMIUM, chromium

    if CHROMIUM is None:
        line("page in Chromium", "no Chromium here")
        return
    with chromium(folder / "profile") as context:
        page = context.new_page()
        page.set_default_timeout(FILTER_MS)
        page.set_viewport_size({"width": 1366, "height": 768})
        page.add_init_script(OBSERVER)
        started = time.perf_counter()
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        opened_s = time.perf_counter() - started
        line("page opens in Chromium", f"{opened_s:.2f} s", "<= 3 s", opened_s <= 3)
        page.wait_for_timeout(1000)
        _stalls(context, page, "scrolls", _scroll)
        for text in FILTERS:
            _stalls(context, page, f"filters by {text[:24]}", lambda p, t=text: _filter(p, t))
        _stalls(context, page, "scrolls what the last filter but one found", _scroll_filtered)


def _scroll(page: Any) -> None:
    for place in range(PLACES):
        page.evaluate(
            "share => { const e = document.getElementById('events');"
            " e.scrollTop = share * e.scrollHeight }",
            place / PLACES,
        )
        page.mouse.move(600, 500)
        page.mouse.wheel(0, 600)
        page.wait_for_timeout(60)


def _scroll_filtered(page: Any) -> None:
    _filter(page, FILTERS[1])
    _scroll(page)


def _filter(page: Any, text: str) -> None:
    page.evaluate("document.getElementById('found').textContent = ''")
    page.fill("#filter", text)
    for _ in range(FILTER_MS // 100):
        status = page.inner_text("#found")
        if status and "%" not in status:
            return
        page.wait_for_timeout(100)
    raise TimeoutError(f"filtering by {text} has not finished")


def _stalls(context: Any, page: Any, title: str, act: Any) -> None:
    """Print the longest task of the page during an action, and the maximum CPU time of a task."""
    session = context.new_cdp_session(page)
    events: list[dict[str, Any]] = []
    ended: list[object] = []
    session.on("Tracing.dataCollected", lambda data: events.extend(data["value"]))
    session.on("Tracing.tracingComplete", lambda data: ended.append(data))
    session.send(
        "Tracing.start", {"transferMode": "ReportEvents", "categories": "toplevel,__metadata"}
    )
    page.evaluate("window.tasks.length = 0")
    started = time.perf_counter()
    act(page)
    elapsed_s = time.perf_counter() - started
    page.wait_for_timeout(200)
    longest_ms = max(page.evaluate("window.tasks"), default=0)
    session.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(20)
    session.detach()
    cpu_ms = _longest_task_cpu_ms(events)
    line(
        f"  {title}: the longest task (its CPU time)",
        f"{longest_ms:.0f} ms ({cpu_ms:.0f} ms)",
        f"<= 100 ms, {elapsed_s:.1f} s in all",
        longest_ms <= 100,
    )


def _longest_task_cpu_ms(events: list[dict[str, Any]]) -> float:
    """Return the maximum CPU time of a task on the page's main thread in milliseconds."""
    main_threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    cpu_times_ms = [
        event.get("tdur", 0) / 1000 for event in events
        if event.get("ph") == "X" and (event["pid"], event["tid"]) in main_threads
    ]  # fmt: skip
    return max(cpu_times_ms, default=0)


if __name__ == "__main__":  # measure an existing page
    with tempfile.TemporaryDirectory() as scratch:
        measure_page(Path(sys.argv[1]), Path(scratch))
