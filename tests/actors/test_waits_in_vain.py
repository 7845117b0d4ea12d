"""Causes of timeouts: what a timeout triggers is caused by the wait, on every runtime."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from fakekafka import Event
from fakekafka.actors.network.past_rules import PastRules
from fakekafka.actors.node import Node
from fakekafka.actors.runtime.runtime import Runtime
from fakekafka.actors.silence import Silence, describe_wait
from fakekafka.protocol.awaiting import RequestTimeout
from fakekafka.protocol.values import message
from fakekafka.tests.support.runtimes import Settle
from fakekafka.tracing.recording.locked_recorder import LockedRecorder


@message
class QuestionRequest:
    number: int


class Mute(Node):
    """Never answers."""

    def on_question_request(self, request: QuestionRequest, _delivery: Any) -> None:
        """Return without an answer."""


class Asker(Node):
    """Sends requests and records their outcomes."""

    outcomes: tuple[tuple[int, Any], ...] = ()

    def put_question(self, number: int, timeout_ms: float) -> None:
        def answered(outcome: Any) -> None:
            self.runtime.note("note", self.name, f"answer {number}")
            self.outcomes = (*self.outcomes, (number, outcome))

        self.ask_then("mute", QuestionRequest(number), timeout_ms, answered)


@pytest.fixture
def recorder(runtime: Runtime) -> LockedRecorder:
    recorder = LockedRecorder()
    runtime.record(recorder)
    return recorder


@pytest.fixture
def asker(runtime: Runtime, recorder: LockedRecorder) -> Asker:
    runtime.note("start", "scenario", "begins")
    runtime.cause = None
    runtime.spawn(Mute, "mute", runtime.process("server"))
    runtime.cause = None
    asker: Asker = runtime.spawn(Asker, "asker", runtime.process("client"))
    runtime.cause = None
    return asker


def put(runtime: Runtime, asker: Asker, number: int, timeout_ms: float) -> None:
    """Send a request caused by a step of its own."""

    def step() -> None:
        runtime.cause = None
        runtime.current_step = f"question {number}"
        asker.put_question(number, timeout_ms)
        runtime.cause = None

    runtime.run_in(asker.process, step)


def led_to(events: list[Event], text: str) -> list[Event]:
    """Return the causes of a note, the latest first."""
    event = next(event for event in events if event.why == text)
    chain = []
    while event.cause is not None:
        event = events[event.cause]
        chain.append(event)
    return chain


def test_each_timeout_is_caused_by_the_sending_of_its_own_request(
    runtime: Runtime, recorder: LockedRecorder, asker: Asker, settle: Settle
) -> None:
    """Requests that one timer times out are each caused by their own sending."""
    for number, timeout_ms in enumerate((30, 20, 20)):
        put(runtime, asker, number, timeout_ms)
    settle(lambda: len(asker.outcomes) == 3)
    assert all(isinstance(outcome, RequestTimeout) for _, outcome in asker.outcomes)
    events = list(recorder.events)
    for number in range(3):
        wait, begun = led_to(events, f"answer {number}")
        assert (wait.kind, wait.actor, wait.peer, wait.type) == (
            "expire", "asker", "mute", "Waited",
        )  # fmt: skip
        assert wait.why == "waited 0.0 s for mute"
        assert (begun.kind, begun.why) == ("step", f"question {number}")
        assert wait.fields["request"] == begun.seq
    assert not [event for event in events if event.type == "Port._expire"]


def test_a_wait_for_a_paused_process_is_caused_by_the_pause(
    runtime: Runtime, recorder: LockedRecorder, asker: Asker, settle: Settle
) -> None:
    server = runtime.process("server")

    def pause() -> None:
        runtime.cause = None
        runtime.note("fault", "server", "paused")
        runtime.pause(server)
        runtime.cause = None

    runtime.run_in(server, pause)
    put(runtime, asker, 7, 20)
    settle(lambda: asker.outcomes)
    wait, fault = led_to(list(recorder.events), "answer 7")
    assert wait.why == "waited 0.0 s for mute, which was paused"
    assert fault.why == "paused"


def test_a_shared_timer_is_an_event_only_if_it_serves_no_callback_that_is_one(
    runtime: Runtime, recorder: LockedRecorder, asker: Asker, settle: Settle
) -> None:
    """A shared timer is recorded only if it served no callback that is an event itself."""
    fired: list[int] = []

    def serve() -> None:
        runtime.record_due_entry("asker", "entry", 0)
        fired.append(1)

    def tick() -> None:
        fired.append(2)

    for callback in (serve, tick):
        runtime.run_in(
            asker.process, functools.partial(runtime.set_shared_timer, asker, 2000, callback)
        )
    settle(lambda: len(fired) == 2 and len([*recorder.events]) >= 6)
    fires = [event for event in recorder.events if event.kind == "timer_fire"]
    assert [event.type for event in fires if event.cause == 0] == ["entry"]
    assert len(fires) == 2


def test_a_wait_is_described_in_words() -> None:
    """Peers with the same state are listed together in the text of a wait."""
    paused, off = Silence.PAUSED, Silence.OFF
    told: dict[str, list[tuple[str, Silence | None]]] = {
        "waited 20.0 s for broker-1, which was off": [("broker-1", off)],
        "waited 20.0 s for broker-1": [("broker-1", None)],
        "waited 20.0 s for b and c, which were paused": [("b", paused), ("c", paused)],
        "waited 20.0 s for a, b and c, which were off": [("a", off), ("b", off), ("c", off)],
        "waited 20.0 s for b, which was paused, and c, which was off": [
            ("b", paused), ("c", off),
        ],
        "waited 20.0 s": [],
    }  # fmt: skip
    for text, peers in told.items():
        assert describe_wait(20_000, peers) == text


def test_a_wait_is_blamed_on_the_rule_that_disturbed_the_link() -> None:
    """A link's own rule, in either direction, is blamed before one of all links, if bad enough."""
    known = PastRules()

    def blamed(since_us: int, least: float = 1) -> int | None:
        return known.find_event("a", "b", since_us, lambda amount: amount >= least)

    assert blamed(0) is None
    known.begin(None, 1, 5, 100)
    known.begin(("b", "a"), 2, 9, 200)
    known.begin(("a", "c"), 3, 9, 200)
    assert blamed(0) == blamed(1000) == 2
    known.end_links(300)
    assert blamed(250) == 2
    assert blamed(300) == 1
    assert blamed(300, least=6) is None
    known.begin(None, 4, 0, 400)
    assert blamed(350) == 1
    assert blamed(400) is None
    known.begin(None, None, 9, 500)  # the setting of the cluster's start
    assert blamed(600) is None
