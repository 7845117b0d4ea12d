"""The full-screen debugger, driven by keys through textual's pilot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakekafka.cli.debug import view
from fakekafka.cli.debug.event_lines import EventLines
from fakekafka.cli.debug.view import DebuggerApp
from fakekafka.debugger.debugger import Debugger
from fakekafka.debugger.moves import Move, Result
from fakekafka.scenarios.file import parse_scenario
from fakekafka.scenarios.run import ScenarioRun, header_of
from fakekafka.tests.support.paths import ROOT
from fakekafka.tests.support.traces import header
from fakekafka.tracing.recording.recorder import Recorder
from textual.binding import Binding
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

SIZE = (150, 48)
Drive = Callable[[Pilot[None], DebuggerApp], Awaitable[None]]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each key take effect before the next one, however busy the machine is."""
    monkeypatch.setattr(view, "_AT_ONCE_S", 60)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "failover.fktrace"
    text = (ROOT / "examples/scenarios/failover.toml").read_text(encoding="utf-8")
    text = text.replace("rate_per_s = 100", "rate_per_s = 10")
    recorder = Recorder()
    run = ScenarioRun(parse_scenario(text, "failover"), 7, recorder)
    run.run()
    recorder.save(path, header_of(run))
    return path


def drive(debugger: Debugger, steps: Drive) -> DebuggerApp:
    """Open the view, press keys, and close it."""
    app = DebuggerApp(debugger, "failover")

    async def go() -> None:
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            await steps(pilot, app)
            app.exit()  # otherwise a timer may draw while the screen is closed

    asyncio.run(go())
    return app


def text_of(app: DebuggerApp, name: str) -> str:
    return str(app.query_one(f"#{name}", Static).render())


async def answer(pilot: Pilot[None], key: str, text: str) -> None:
    """Press a key that opens an input, and submit a text."""
    await pilot.press(key)
    await pilot.pause()
    field = pilot.app.screen.query_one(Input)
    field.value = text
    await pilot.press("enter")
    await pilot.pause()


@pytest.mark.usefixtures("at_once")
def test_keys_go_through_a_run(trace: Path, tmp_path: Path) -> None:
    """Keys move by steps, lanes, faults, causes and changes, and the screenshot shows the panes."""

    async def steps(pilot: Pilot[None], app: DebuggerApp) -> None:
        debugger = app.debugger
        await pilot.press("right", "right", "left")
        assert debugger.position == 1
        await answer(pilot, "b", "change broker-*/orders-0/role if new == 'leader' and old != None")
        await pilot.press("r")
        await pilot.pause()
        elected = debugger.position
        assert "role" in text_of(app, "state")
        assert "is killed" in text_of(app, "chain")
        app.save_screenshot(str(tmp_path / "elected.svg"))
        await pilot.press("c")
        cause = debugger.position
        assert cause < elected
        await pilot.press("e")
        assert cause < debugger.position <= elected
        await pilot.press("left_square_bracket")
        assert debugger.event.kind == "crash"
        await answer(pilot, "g", "9.5s")
        assert 9 < debugger.event.time_us / 1e6 <= 9.5
        await answer(pilot, "w", "broker-1/orders-0/high_watermark")
        assert debugger.event.time_us / 1e6 < 9.5
        await pilot.press("m", "u", "space", "space", "home")
        assert debugger.position == 0
        await answer(pilot, "g", "soon")
        assert debugger.position == 0

    with Debugger.of_trace(trace) as debugger:
        drive(debugger, steps)
    drawn = (tmp_path / "elected.svg").read_text(encoding="utf-8")
    for word in ("lanes", "events", "payload", "why", "LeaderAndIsrRequest"):
        assert word in drawn


@pytest.mark.slow
def test_every_key_of_the_help_does_something(trace: Path) -> None:
    """Every key in the help has an action, and only ``q`` ends the view."""

    async def steps(pilot: Pilot[None], app: DebuggerApp) -> None:
        await answer(pilot, "g", "9.5s")
        await pilot.press("question_mark")
        await pilot.pause()
        told = str(app.screen.query_one(Static).render())
        await pilot.press("escape")
        bindings = [one for one in app.BINDINGS if isinstance(one, Binding)]
        assert told.count("\n") == len(bindings)
        for binding in bindings:
            name = binding.action.partition("(")[0]
            assert hasattr(app, f"action_{name}"), name
            if name == "quit":
                continue
            for key in binding.key.split(","):
                await pilot.press(key)
                await pilot.pause()
                assert app.is_running
                if len(app.screen_stack) > 1:
                    await pilot.press("escape")
                    await pilot.pause()
        await pilot.press("space", "home")
        assert app.debugger.position == 0

    with Debugger.of_trace(trace) as debugger:
        drive(debugger, steps)


def test_playing_pauses_while_an_input_is_open(trace: Path) -> None:
    """Playing pauses while an input is open and continues when it is closed."""

    async def steps(pilot: Pilot[None], app: DebuggerApp) -> None:
        await pilot.press("space", "slash")
        await pilot.pause()
        asked_at = app.debugger.position
        app._play_on()
        assert app.debugger.position == asked_at
        await pilot.press("escape")
        await pilot.pause()
        app._play_on()
        assert app.debugger.position > asked_at

    with Debugger.of_trace(trace) as debugger:
        drive(debugger, steps)


def test_a_filter_shows_only_what_holds(trace: Path) -> None:
    """An empty filter shows all events again, and a wrong one keeps the current rows."""

    async def steps(pilot: Pilot[None], app: DebuggerApp) -> None:
        events = app.query_one(EventLines)
        everything = events.rows
        assert everything == len(app.debugger.trace)
        await answer(pilot, "slash", "kind == crash or kind == restart")
        for _ in range(400):
            if not events.is_filtering:
                break
            await pilot.pause(0.01)
        assert events.rows == 2
        await answer(pilot, "slash", "knid == crash")
        assert events.rows == 2
        await answer(pilot, "slash", "")
        assert events.rows == everything

    with Debugger.of_trace(trace) as debugger:
        drive(debugger, steps)


def test_a_click_goes_to_an_event(trace: Path) -> None:
    """A click selects the event under the pointer."""

    async def steps(pilot: Pilot[None], app: DebuggerApp) -> None:
        await pilot.click("#events", offset=(20, 6))
        await pilot.pause()
        assert app.debugger.position == 5

    with Debugger.of_trace(trace) as debugger:
        drive(debugger, steps)


@pytest.mark.usefixtures("at_once")
def test_a_fault_is_injected_and_saved(tmp_path: Path) -> None:
    """A fault injected in the view changes the live run and is in the saved scenario."""
    text = (ROOT / "examples/scenarios/failover.toml").read_text(encoding="utf-8")

    async def steps(pilot: Pilot[None], app: DebuggerApp) -> None:
        await answer(pilot, "g", "2s")
        await answer(pilot, "i", "kill broker=2")
        await pilot.press("right_square_bracket")
        assert app.debugger.event.kind == "crash"
        assert app.debugger.event.actor == "broker-2"
        await answer(pilot, "s", str(tmp_path / "fork.toml"))

    with Debugger.of_scenario(parse_scenario(text, "failover"), 1) as debugger:
        drive(debugger, steps)
    assert "broker = 2" in (tmp_path / "fork.toml").read_text(encoding="utf-8")


def test_names_from_a_file_are_text(trace: Path) -> None:
    """Markup in a foreign trace is shown as text."""
    recorder = Recorder()
    recorder.event(0, "start", "[red]x[/red]", None, None, None, None, "[link=http://x]y[/link]")
    recorder.event(1, "send", "[/]", "[bold", "[blink]T", 1, 0)
    path = trace.with_name("foreign.fktrace")
    recorder.save(path, header(mode="tcp", scenario_name="[red]x[/red]", kafka_version="[/]"))

    async def steps(pilot: Pilot[None], app: DebuggerApp) -> None:
        await pilot.press("right", "question_mark")
        await pilot.pause()
        await pilot.press("escape", "left")
        assert "[red]x[/red]" in text_of(app, "title")

    with Debugger.of_trace(path) as debugger:
        drive(debugger, steps)


def test_breakpoints_are_listed_and_deleted(trace: Path) -> None:
    """``B`` lists breakpoints with their hits, and ``d`` deletes one; an empty list closes."""

    async def steps(pilot: Pilot[None], app: DebuggerApp) -> None:
        for text in ("crash", "at 2s"):
            app.debugger.break_on(text)
        await pilot.press("B")
        await pilot.pause()
        shown = app.screen.query_one(OptionList)
        assert [str(option.prompt) for option in shown.options] == [
            "crash  (0 hits)", "at 2s  (0 hits)",
        ]  # fmt: skip
        await pilot.press("down", "d")
        await pilot.pause()
        assert len(app.debugger.breakpoints) == 1
        await pilot.press("home", "d")
        await pilot.pause()
        assert app.debugger.breakpoints == []
        assert len(app.screen_stack) == 1

    with Debugger.of_trace(trace) as debugger:
        drive(debugger, steps)


def drawn(app: DebuggerApp) -> list[str]:
    """Return the rows of the screen as text."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30)])
def test_a_small_terminal_leaves_room_for_events(trace: Path, width: int, height: int) -> None:
    """A small terminal shows ten events or more, each with its number, time and message type. Every
    other pane has a line, and the footer names the main keys.
    """

    async def look(app: DebuggerApp) -> None:
        async with app.run_test(size=(width, height)) as pilot:
            await answer(pilot, "g", "12s")
            rows = drawn(app)
            start = next(number for number, row in enumerate(rows) if "─ events ─" in row)
            shown = rows[start + 1 : start + 11]
            assert all(row.startswith("│") and row.endswith("│") for row in shown)
            held = [app.debugger.trace.stored.event(int(row[2:].split()[0])) for row in shown]
            here = app.debugger.position
            assert here in [event.seq for event in held]
            for row, event in zip(shown, held, strict=True):
                assert (event.type or event.kind)[:12] in row
            for name in ("state-box", "payload-box", "chain-box"):
                assert app.query_one(f"#{name}").content_size.height >= 3
            for key in ("b break", "r run", "? help", "q quit"):
                assert key in rows[-1]

    with Debugger.of_trace(trace) as debugger:
        asyncio.run(look(DebuggerApp(debugger, "failover")))


def test_lanes_are_hidden_where_they_leave_no_room(trace: Path) -> None:
    """Lanes, with the current event, are hidden if there is no room; ``v`` toggles them."""

    async def look(app: DebuggerApp, size: tuple[int, int], is_shown: bool) -> None:
        async with app.run_test(size=size) as pilot:
            await answer(pilot, "g", "12s")
            lanes = app.query_one("#lanes", Static)
            for _ in range(2):
                assert lanes.display is is_shown
                if is_shown:
                    rows = str(lanes.render()).splitlines()[: lanes.content_size.height]
                    assert any(f" {app.debugger.position} " in row for row in rows)
                is_shown = not is_shown
                await pilot.press("v")
                await pilot.pause()

    with Debugger.of_trace(trace) as debugger:
        for size, is_shown in (((80, 24), False), ((80, 40), True), ((150, 24), True)):
            asyncio.run(look(DebuggerApp(debugger, "failover"), size, is_shown))


SLICES = 4
NOWHERE = "if kind == note and actor == 'nobody'"
"""Breakpoint that checks every event and never stops."""


class Held:
    """Holds a debugger's runs after some slices, until it is released."""

    def __init__(self) -> None:
        self.is_held = True
        self.is_closed = False

    def of(self, way: Callable[[], Move[Result]]) -> Callable[[], Move[Result]]:
        def held() -> Move[Result]:
            move = way()
            slices = 0
            try:
                while True:
                    try:
                        progress = next(move)
                    except StopIteration as end:
                        result: Result = end.value
                        return result
                    slices += 1
                    yield progress
                    while slices >= SLICES and self.is_held:
                        yield progress
            finally:
                move.close()
                self.is_closed = True

        return held


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the view check for keys after every slice."""
    for name, value in (("_AT_ONCE_S", 0), ("_SLICES_S", 0), ("_PAUSE_S", 0.02)):
        monkeypatch.setattr(view, name, value)


@contextmanager
def opened(kind: str, trace: Path) -> Iterator[Debugger]:
    text = (ROOT / "examples/scenarios/failover.toml").read_text(encoding="utf-8")
    if kind == "trace":
        made = Debugger.of_trace(trace)
    else:
        made = Debugger.of_scenario(parse_scenario(text, "failover"), 1)
    with made as debugger:
        yield debugger


async def until(pilot: Pilot[None], holds: Callable[[], object]) -> None:
    for _ in range(2000):
        if holds():
            return
        await pilot.pause(0.002)
    raise AssertionError("it never came to hold")


@pytest.mark.slow
@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("kind", ["scenario", "trace"])
def test_ctrl_c_stops_a_long_run_at_its_current_position(trace: Path, kind: str) -> None:
    """During a run the title shows the position and keys are ignored; Ctrl-C stops it there."""
    held = Held()

    async def steps(pilot: Pilot[None], app: DebuggerApp) -> None:
        debugger = app.debugger
        last = debugger.trace.stored.last_seq
        await pilot.press("r")
        await until(pilot, lambda: "running #" in text_of(app, "title"))
        assert "Ctrl-C stops" in text_of(app, "title")
        if kind == "trace":
            assert f" of {last:,}  t=" in text_of(app, "title")
        await until(pilot, lambda: app.query_one(EventLines).here >= 4 * 200)
        reached = debugger.position
        assert f"#{reached:,}" in text_of(app, "title")
        await pilot.press("R", "right", "r", "g", "home")
        assert debugger.position == reached
        assert len(app.screen_stack) == 1
        assert len(app.workers) == 1
        app.query_one(EventLines).post_message(EventLines.Chosen(5))
        await pilot.pause()
        assert debugger.position == reached
        await pilot.press("question_mark")
        await pilot.pause()
        assert len(app.screen_stack) == 2
        await pilot.press("escape", "ctrl+c")
        await until(pilot, lambda: held.is_closed)
        await pilot.pause()
        assert f"#{reached:,}/" in text_of(app, "title")
        assert debugger.position == reached
        if kind == "trace":
            assert reached < last
        await pilot.press("right")
        assert debugger.position == reached + 1

    with opened(kind, trace) as debugger:
        debugger.break_on(NOWHERE)
        vars(debugger)["run_in_slices"] = held.of(debugger.run_in_slices)
        drive(debugger, steps)


@pytest.mark.slow
@pytest.mark.usefixtures("small_slices")
def test_a_run_back_is_stopped_or_left_as_well(trace: Path) -> None:
    """A run in reverse goes to the start unless Ctrl-C stops it or ``q`` ends the view."""
    held = Held()

    async def steps(pilot: Pilot[None], app: DebuggerApp) -> None:
        debugger = app.debugger
        last = debugger.trace.stored.last_seq
        debugger.goto(last)
        await pilot.press("R")
        await until(pilot, lambda: "running #" in text_of(app, "title"))
        await until(pilot, lambda: debugger.position < last - 2000)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: held.is_closed)
        assert 0 < debugger.position < last
        held.is_closed = held.is_held = False
        await pilot.press("R")
        await until(pilot, lambda: held.is_closed)
        await pilot.pause()
        assert debugger.position == 0
        debugger.goto(last)
        held.is_closed, held.is_held = False, True
        await pilot.press("R")
        await until(pilot, lambda: "running #" in text_of(app, "title"))
        await pilot.press("q")

    with opened("trace", trace) as debugger:
        debugger.break_on(NOWHERE)
        vars(debugger)["run_back_in_slices"] = held.of(debugger.run_back_in_slices)
        drive(debugger, steps)
        assert held.is_closed


def test_nothing_is_drawn_once_the_view_is_left(trace: Path) -> None:
    """A run that is still active after ``q`` may call ``show`` without an error."""

    async def steps(_pilot: Pilot[None], app: DebuggerApp) -> None:
        app.exit()
        await app.query_one("#panes").remove()  # as at the end of the view, one by one
        app.show()

    with opened("trace", trace) as debugger:
        drive(debugger, steps)
