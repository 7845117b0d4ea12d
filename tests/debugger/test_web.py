"""The debugger in a browser: stepping, breakpoints, killing a broker, and authorization."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import typer
from fakekafka import UsageError
from fakekafka.cli.debug.command import command
from fakekafka.debugger.debugger import Debugger
from fakekafka.debugger.web_server import WebServer
from fakekafka.debugger.web_session import WebSession
from fakekafka.scenarios.file import parse_scenario
from fakekafka.tests.support.chromium import CHROMIUM, chromium
from fakekafka.tests.support.scenario_texts import ORDERS_ON_THREE_BROKERS
from fakekafka.tests.support.trace_page import shown_after
from typer.testing import CliRunner

SCENARIO = f"""
name = "short"
description = "a leader serves"
{ORDERS_ON_THREE_BROKERS}
[workload]
rate_per_s = 20
[stop]
at_ms = 9000
"""


@pytest.fixture
def debugger() -> Iterator[Debugger]:
    with Debugger.of_scenario(parse_scenario(SCENARIO, "short.toml"), 3) as debugger:
        yield debugger


@pytest.fixture
def server(debugger: Debugger) -> Iterator[WebServer]:
    server = WebServer(debugger)
    server.start()
    yield server
    server.close()


def ask(server: WebServer, path: str, asked: Any = None, **headers: str) -> tuple[int, Any]:
    """Return status and body of a request with the token, unless the headers override it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    given = {"Authorization": f"Bearer {server.token}", **named}
    data = None if asked is None else json.dumps(asked).encode()
    request = Request(f"http://127.0.0.1:{server.port}{path}", data, given)
    try:
        with urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()


def test_steps_and_breakpoints(debugger: Debugger) -> None:
    """The page sends its position, and the answer has the new one."""
    session = WebSession(debugger)
    assert session.answer("step", {"seq": 0, "count": 7})["seq"] == 7
    assert session.answer("step", {"seq": 3, "count": 2})["seq"] == 5
    met = session.answer("run", {"seq": 5, "until": "LeaderAndIsrRequest to broker-2"})
    assert debugger.trace.event(met["seq"]).type == "LeaderAndIsrRequest"
    later = session.answer("run_for", {"seq": met["seq"], "ms": 500})
    assert later["time_us"] - met["time_us"] <= 500_000
    assert later["seq"] > met["seq"]


def test_a_fault_makes_the_run_another_one(debugger: Debugger) -> None:
    """A fault keeps the earlier events, kills the broker, and the new scenario can be read."""
    session = WebSession(debugger)
    place = session.answer("run", {"until": "at 3s"})
    before = [event.as_dict() for event in debugger.trace.between(0, place["seq"])]
    told = session.answer(
        "act", {"seq": place["seq"], "action": "kill", "arguments": {"broker": 1}}
    )
    assert told["generation"] == place["generation"] + 1
    assert debugger.trace.event(told["seq"]).kind == "crash"
    assert [event.as_dict() for event in debugger.trace.between(0, place["seq"])] == before
    assert 'action = "kill"' in session.answer("scenario", {})["note"]


@pytest.mark.parametrize(
    ("verb", "asked"),
    [
        ("fly", {}),
        ("step", {"count": "many"}),
        ("step", {"count": 10**9}),
        ("run", {"until": "no such thing !"}),
        ("run", {}),
        ("act", {"action": "explode"}),
        ("act", {"action": "kill", "arguments": [1]}),
        ("step", {"seq": -1, "count": 1}),
    ],
)
def test_a_wrong_request_is_answered_with_an_error(
    debugger: Debugger, verb: str, asked: dict[str, Any]
) -> None:
    """A wrong request raises an error, and the debugger keeps its position."""
    with pytest.raises(UsageError):
        WebSession(debugger).answer(verb, asked)
    assert debugger.position == 0


@pytest.mark.slow
def test_strangers_are_refused(server: WebServer) -> None:
    """Requests without the right token, from another site or for another host are refused."""
    assert ask(server, "/part/index")[0] == 200
    assert ask(server, "/part/index", Authorization="Bearer wrong")[0] == 403
    assert ask(server, "/position", {}, Authorization="")[0] == 403
    assert ask(server, "/")[0] == 403
    assert ask(server, f"/?token={server.token}")[0] == 200
    assert ask(server, "/position", {}, Origin="http://evil.example")[0] == 403
    assert ask(server, "/position", {}, Host="evil.example")[0] == 403
    assert ask(server, "/position", {}, Referer="http://evil.example/page")[0] == 403
    assert ask(server, "/position", {}, Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(server, "/position", {}, Origin=f"http://127.0.0.1:{server.port}")[0] == 200
    assert ask(server, "/part/../../etc")[0] in (403, 404)
    assert ask(server, "/part/chunk-99999")[0] == 404
    assert ask(server, "/step", ["x"])[0] == 400


@pytest.mark.slow
@pytest.mark.xdist_group("trace page")
def test_a_broker_is_killed_in_the_browser(server: WebServer, tmp_path: Path) -> None:
    """In the browser a user steps, runs to a breakpoint, kills the leader and goes back."""
    if CHROMIUM is None:
        pytest.skip("the page is looked at in Chromium: apt-get install chromium")
    complaints: list[str] = []
    with chromium(tmp_path / "profile") as context:
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.set_viewport_size({"width": 1366, "height": 800})
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(server.url)
        page.wait_for_selector("html[data-ready]", state="attached")
        assert shown_after(page, lambda: page.click("#step")) == "1"
        page.fill("#breakpoint", "at 3s")
        shown_after(page, lambda: page.click("#run"))
        assert "leader 1" in page.inner_text("#partitions")
        crash = shown_after(page, lambda: page.click("#kill-1"))
        assert page.locator("#start-1").count() == 1
        assert "crash" in page.inner_text(".row[aria-selected=true]")
        page.fill("#breakpoint", "change broker-2/orders-0/role")
        seq = shown_after(page, lambda: page.click("#run"))
        assert "leader 2" in page.inner_text("#partitions")
        page.screenshot(path=tmp_path / "live.png")
        for _ in range(9):
            if seq == crash:
                break
            seq = shown_after(page, lambda: page.keyboard.press("["))
        assert seq == crash
        page.click("#scenario")
        page.wait_for_selector("dialog pre:has-text('kill')")
    assert complaints == []


def test_the_command_prints_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``debug --web`` listens on 127.0.0.1 only and prints its address with the token."""
    (tmp_path / "short.toml").write_text(SCENARIO)
    monkeypatch.setattr(WebServer, "run", lambda self: None)
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, [str(tmp_path / "short.toml"), "--web"])
    assert result.exit_code == 0, result.output
    assert re.match(r"open http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}\n", result.output)
