"""Virtual time that would stand still forever raises an error."""

from __future__ import annotations

import pytest
from fakekafka import Simulation
from fakekafka.actors.delivery import Delivery
from fakekafka.actors.node import Node
from fakekafka.actors.runtime import virtual
from fakekafka.actors.runtime.virtual import VirtualRuntime
from fakekafka.protocol.errors import UsageError

pytestmark = pytest.mark.pure  # replaces a constant, which compiled code does not look up


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "_EVENTS_AT_INSTANT_MAX", 1000)


def test_the_error_names_a_call_that_repeats_without_time_passing() -> None:
    """The error names the call that repeats at one time, and the runtime stays usable."""
    runtime = VirtualRuntime()
    goes_on = True

    def again() -> None:
        if goes_on:
            runtime.call_later(None, 0, again)

    runtime.call_later(None, 2500, again)
    wrong = r"1,000 events have run at 2.5 ms .*; next is a call of .*again\. .* a latency"
    with pytest.raises(UsageError, match=wrong):
        runtime.run(10_000)
    goes_on = False
    runtime.run(10_000)
    assert runtime.now_us() == 10_000


def test_the_error_names_messages_that_circulate_without_latency() -> None:
    """Messages that circulate without latency, as in a closed loop, are named."""
    with Simulation(1, latency_ms=0) as simulation:
        simulation.create_topic("orders", 1, 1)
        producer = simulation.producer(linger_ms=0)

        def send(*_answer: object) -> None:
            producer.produce(("orders", 0), b"x", callback=send)

        send()
        with pytest.raises(UsageError, match=r"1,000 events .*; next is (a call of )?\w+"):
            simulation.run_for(1000)


def test_many_events_at_different_times_are_no_loop() -> None:
    runtime = VirtualRuntime()
    called = []

    def tick() -> None:
        called.append(runtime.now_us())
        runtime.call_later(None, 0, lambda: called.append(0))
        runtime.call_later(None, 1, tick)

    tick()
    runtime.run(3000)
    assert len(called) > 6000


def test_a_delivery_is_named_by_its_message() -> None:
    runtime = VirtualRuntime()
    node = runtime.spawn(Node, "a", runtime.process("a"))
    error = runtime._endless_loop_error(Delivery(node, node, "the message", 0, False))
    assert "next is str at a." in str(error)
