"""``Simulation.break_on``, ``step``, and a plain debugger inside a handler."""

from __future__ import annotations

import io
import pdb
import sys
from typing import Any

import pytest
from fakekafka import Simulation, UsageError, WaitTimeout
from fakekafka.protocol.data import FetchRequest


def test_break_on_stops_a_simulation_right_after_the_event() -> None:
    """``break_on`` stops right after the event, at the event's time."""
    with Simulation(3, seed=4, topics={"orders": 1}) as simulation:
        leader = simulation.partition("orders", 0).leader
        assert leader is not None
        simulation.broker(leader).kill(expire_session=True)
        event = simulation.break_on("change broker-*/orders-0/role if new == 'leader'")
        assert simulation.partition("orders", 0).leader != leader
        assert event.time_us == simulation.now_ms * 1000
        assert simulation.step()
        later = simulation.break_on(lambda event: event.kind == "timer_fire")
        assert later.seq > event.seq
        with pytest.raises(WaitTimeout):
            simulation.break_on("crash of broker-9", timeout_ms=50)
        with pytest.raises(UsageError, match="use run_until"):
            simulation.break_on("when alive(1)")


def test_a_python_debugger_in_a_handler_sees_the_whole_call_stack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``breakpoint()`` stops in the test's thread; the stack leads from test to handler."""
    output = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("where\np request\ncontinue\n"), stdout=output)
    debugger.use_rawinput = False
    monkeypatch.setattr("sys.breakpointhook", lambda: debugger.set_trace(sys._getframe(1)))
    with Simulation(3, seed=4, topics={"orders": 1}) as simulation:
        leader = simulation.partition("orders", 0).leader
        assert leader is not None
        broker = simulation.processes[leader].broker
        assert broker is not None
        handlers: dict[type, Any] = broker.port.handlers
        plain = handlers[FetchRequest]
        stopped: list[int] = []

        def handle_fetch(request: Any, delivery: Any) -> Any:
            if not stopped:
                stopped.append(simulation.runtime.now_us())
                breakpoint()
            return plain(request, delivery)

        handlers[FetchRequest] = handle_fetch
        simulation.run_for(2000)
        assert stopped
        assert simulation.runtime.now_us() > stopped[0]
    told = output.getvalue()
    assert "handle_fetch" in told
    assert "test_a_python_debugger" in told
    assert "FetchRequest(" in told
