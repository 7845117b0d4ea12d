"""Nodes on every runtime: handlers, replies, timeouts and death."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

from fakekafka import Simulation
from fakekafka.actors.interfaces import Process
from fakekafka.actors.node import Node, handler_name
from fakekafka.actors.runtime.runtime import Runtime
from fakekafka.actors.runtime.virtual import VirtualRuntime
from fakekafka.protocol.awaiting import Disconnected, RequestTimeout
from fakekafka.protocol.control import LeaderAndIsrRequest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.values import message
from fakekafka.tests.support.present import present
from fakekafka.tests.support.runtimes import Settle


@message
class AddRequest:
    left: int
    right: int


@message
class SlowRequest:
    number: int


@message
class SilentRequest:
    number: int


@message
class RefusedRequest:
    number: int


@message
class RelayRequest:
    number: int


class Server(Node):
    """Answers at once, late, never, or with an error."""

    def __init__(self, runtime: Runtime, name: str, process: Process) -> None:
        super().__init__(runtime, name, process)
        self.order: list[Any] = []

    def on_add_request(self, request: Any, _delivery: Any) -> Any:
        return request.left + request.right

    async def on_slow_request(self, request: Any, _delivery: Any) -> Any:
        self.order.append(("begin", request.number))
        await self.ask("other", AddRequest(request.number, 1), 1000)
        self.order.append(("end", request.number))
        return request.number

    def on_silent_request(self, _request: Any, _delivery: Any) -> Any:
        return None

    def on_refused_request(self, _request: Any, _delivery: Any) -> None:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "ask somebody else")


class OneAtATime(Server):
    handles_one_at_a_time = True


class Client(Node):
    """Records the outcomes of its requests in order."""

    def __init__(self, runtime: Runtime, name: str, process: Process) -> None:
        super().__init__(runtime, name, process)
        self.outcomes: list[Any] = []

    def go(self, destination: Any, request: Any, timeout_ms: int = 1000) -> None:
        pending = self.ask(destination, request, timeout_ms)
        pending.add_done_callback(
            lambda done: self.outcomes.append(done.exception or done.result())
        )


def _spawn(runtime: Runtime, server_class: Any = Server) -> Any:
    server = runtime.spawn(server_class, "server", runtime.process("server"))
    runtime.spawn(Server, "other", runtime.process("other"))
    client = runtime.spawn(Client, "client", runtime.process("client"))
    return server, client


def _ask(runtime: Runtime, client: Any, *requests: Any, **options: Any) -> None:
    def ask() -> None:
        for request in requests:
            client.go("server", request, **options)

    runtime.run_in(client.process, ask)


class Table:
    """Handlers outside their node."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def add(self, request: Any, delivery: Any) -> None:
        self._node.reply(delivery, -(request.left + request.right))

    async def slow(self, request: Any, _delivery: Any) -> Any:
        return await self._node.ask("other", AddRequest(request.number, 100), 1000)


def test_registered_functions_take_precedence_over_methods(
    runtime: Runtime, settle: Settle
) -> None:
    """Registered functions take precedence over methods; a coroutine's result is the reply."""
    server, client = _spawn(runtime)
    table = Table(server)
    handlers = {AddRequest: table.add, SlowRequest: table.slow}
    runtime.run_in(server.process, lambda: server.register_handlers(handlers))
    _ask(runtime, client, AddRequest(1, 2), RefusedRequest(1), SlowRequest(7))
    settle(lambda: len(client.outcomes) == 3)
    assert client.outcomes[0] == -3
    assert client.outcomes[1].code is ErrorCode.NOT_CONTROLLER
    assert client.outcomes[2] == 107
    assert server.order == []


def test_handler_names_follow_the_message_types() -> None:
    assert handler_name(LeaderAndIsrRequest) == "on_leader_and_isr_request"
    assert handler_name(AddRequest) == "on_add_request"


def test_the_reply_to_a_request_is_the_value_that_its_handler_returns(
    runtime: Runtime, settle: Settle
) -> None:
    _, client = _spawn(runtime)
    _ask(runtime, client, AddRequest(2, 3))
    settle(lambda: client.outcomes)
    assert client.outcomes == [5]


def test_a_coroutine_handler_parks_and_is_resumed_by_the_reply(
    runtime: Runtime, settle: Settle
) -> None:
    _, client = _spawn(runtime)
    _ask(runtime, client, SlowRequest(7))
    settle(lambda: client.outcomes)
    assert client.outcomes == [7]


def test_coroutine_handlers_of_an_ordinary_node_overlap(runtime: Runtime, settle: Settle) -> None:
    server, client = _spawn(runtime)
    runtime.network.hold(lambda delivery: delivery.target.name == "other")
    _ask(runtime, client, SlowRequest(1), SlowRequest(2))
    settle(lambda: len(server.order) == 2)
    runtime.run_in(server.process, runtime.network.release)
    settle(lambda: len(client.outcomes) == 2)
    assert server.order[:2] == [("begin", 1), ("begin", 2)]


def test_a_node_that_takes_one_event_at_a_time_finishes_it_first(
    runtime: Runtime, settle: Settle
) -> None:
    server, client = _spawn(runtime, OneAtATime)
    _ask(runtime, client, SlowRequest(1), SlowRequest(2))
    settle(lambda: len(client.outcomes) == 2)
    assert server.order == [("begin", 1), ("end", 1), ("begin", 2), ("end", 2)]
    assert client.outcomes == [1, 2]


def test_a_refusal_reaches_the_requester_and_is_no_failure(
    runtime: Runtime, settle: Settle
) -> None:
    _, client = _spawn(runtime)
    _ask(runtime, client, RefusedRequest(1))
    settle(lambda: client.outcomes)
    assert isinstance(client.outcomes[0], KafkaError)
    assert client.outcomes[0].code is ErrorCode.NOT_CONTROLLER


def test_a_request_without_an_answer_times_out(runtime: Runtime, settle: Settle) -> None:
    _, client = _spawn(runtime)
    _ask(runtime, client, SilentRequest(1), timeout_ms=20)
    settle(lambda: client.outcomes)
    assert isinstance(client.outcomes[0], RequestTimeout)
    assert "server did not answer client in 20 ms" in str(client.outcomes[0])


def test_timeouts_of_one_length_expire_each_in_its_time(runtime: Runtime, settle: Settle) -> None:
    _, client = _spawn(runtime)
    for number in range(3):
        _ask(runtime, client, SilentRequest(number), timeout_ms=20)
    settle(lambda: len(client.outcomes) == 3)
    assert all(isinstance(outcome, RequestTimeout) for outcome in client.outcomes)


def test_in_virtual_time_a_request_waits_to_the_very_end_and_no_longer() -> None:
    runtime = VirtualRuntime(seed=1)
    _, client = _spawn(runtime)
    ends_us: list[int] = []
    for timeout_ms in (20, 7, 20, 35):
        pending = client.ask("server", SilentRequest(1), timeout_ms)
        pending.add_done_callback(lambda _: ends_us.append(runtime.now_us()))
        runtime.run(runtime.now_us() + 1000)
    runtime.run(None)
    assert ends_us == [8_000, 20_000, 22_000, 38_000]


def test_a_request_to_a_missing_node_is_refused(runtime: Runtime, settle: Settle) -> None:
    client = runtime.spawn(Client, "client", runtime.process("client"))
    runtime.run_in(client.process, lambda: client.go("nobody", AddRequest(1, 1)))
    settle(lambda: client.outcomes)
    assert isinstance(client.outcomes[0], Disconnected)
    assert "nobody is not running" in str(client.outcomes[0])


def test_requests_to_a_killed_process_fail_at_once(runtime: Runtime, settle: Settle) -> None:
    server, client = _spawn(runtime)
    _ask(runtime, client, SilentRequest(1), timeout_ms=60000)
    runtime.run_in(server.process, lambda: runtime.kill_process(server.process))
    settle(lambda: client.outcomes)
    assert isinstance(client.outcomes[0], Disconnected)


def test_requests_to_a_process_that_lost_power_stay_unanswered(
    runtime: Runtime, settle: Settle
) -> None:
    server, client = _spawn(runtime)
    _ask(runtime, client, SilentRequest(1), timeout_ms=30)
    _ask(runtime, client, AddRequest(1, 1))
    settle(lambda: client.outcomes)
    runtime.run_in(server.process, lambda: runtime.kill_process(server.process, silently=True))
    settle(lambda: len(client.outcomes) == 2)
    assert isinstance(client.outcomes[1], RequestTimeout)


def test_a_parked_handler_ends_with_its_node(runtime: Runtime, settle: Settle) -> None:
    server, client = _spawn(runtime)
    runtime.network.hold(lambda delivery: delivery.target.name == "other")
    _ask(runtime, client, SlowRequest(1))
    settle(lambda: server.order)
    runtime.run_in(server.process, lambda: runtime.kill_process(server.process))
    settle(lambda: client.outcomes)
    assert server.order == [("begin", 1)]
    assert server._tasks == {}


def test_messages_to_an_old_incarnation_do_not_reach_the_new_one(
    runtime: Runtime, settle: Settle
) -> None:
    server, client = _spawn(runtime)
    runtime.network.hold(lambda delivery: delivery.target.name == "server")
    _ask(runtime, client, AddRequest(1, 2))
    settle(lambda: runtime.network.held_count == 1)

    def restart() -> Any:
        runtime.kill_process(server.process)
        return runtime.spawn(Server, "server", runtime.process("server"))

    runtime.run_in(server.process, restart)
    runtime.run_in(server.process, runtime.network.release)
    settle(lambda: client.outcomes)
    assert isinstance(client.outcomes[0], Disconnected)


def test_a_paused_process_handles_everything_after_it_resumes(
    runtime: Runtime, settle: Settle
) -> None:
    server, client = _spawn(runtime)
    runtime.run_in(server.process, lambda: runtime.pause(server.process))
    _ask(runtime, client, AddRequest(1, 1), AddRequest(2, 2))
    settle(lambda: len(server.process.held) == 2)
    assert client.outcomes == []
    runtime.run_in(server.process, lambda: runtime.resume(server.process))
    settle(lambda: len(client.outcomes) == 2)
    assert client.outcomes == [2, 4]


def test_unhandled_messages_of_a_paused_process_die_with_it(
    runtime: Runtime, settle: Settle
) -> None:
    """Messages not handled before a paused process died are not delivered to its successor."""
    server, client = _spawn(runtime)
    runtime.run_in(server.process, lambda: runtime.pause(server.process))
    _ask(runtime, client, AddRequest(1, 1), AddRequest(2, 2))
    settle(lambda: len(server.process.held) == 2)
    runtime.run_in(server.process, lambda: runtime.kill_process(server.process))
    assert server.process.held == []
    settle(lambda: len(client.outcomes) == 2)
    assert all(isinstance(outcome, Disconnected) for outcome in client.outcomes)


def test_timers_fire_in_order_and_die_with_their_node(runtime: Runtime, settle: Settle) -> None:
    server, client = _spawn(runtime)
    fired = []

    def schedule() -> None:
        client.call_later_ms(20, lambda: fired.append("late"))
        client.call_later_ms(5, lambda: fired.append("early"))
        client.call_later_ms(10, lambda: fired.append("cancelled")).cancel()
        server.call_later_ms(1, lambda: fired.append("dead"))
        runtime.kill_process(server.process)

    runtime.run_in(client.process, schedule)
    settle(lambda: len(fired) == 2)
    assert fired == ["early", "late"]


def test_a_message_without_a_handler_is_reported(runtime: Runtime, settle: Settle) -> None:
    _server, client = _spawn(runtime)
    _ask(runtime, client, RelayRequest(1))
    settle(lambda: client.outcomes)
    assert "no handler on_relay_request" in str(client.outcomes[0])
    assert [name for name, _ in runtime.failures] == ["server"]
    runtime.failures.clear()


def test_stopping_a_runtime_leaves_no_thread_and_no_node(runtime: Runtime, settle: Settle) -> None:
    before = {thread for thread in threading.enumerate() if not thread.name.startswith("fake")}
    server, client = _spawn(runtime)
    _ask(runtime, client, AddRequest(1, 1))
    settle(lambda: client.outcomes)
    reference = weakref.ref(server)
    runtime.stop()
    server = client = None
    gc.collect()
    assert reference() is None
    left = {thread for thread in threading.enumerate() if thread.is_alive()} - before
    assert not [thread for thread in left if thread.name in ("server", "client", "other")]


def test_a_timer_held_back_by_a_pause_can_still_be_cancelled(
    runtime: Runtime, settle: Settle
) -> None:
    """A timer cancelled during a pause does not fire after the resume."""
    server, _client = _spawn(runtime)
    fired, timers = [], []

    def schedule() -> None:
        timers.append(server.call_later_ms(1, lambda: fired.append("held")))
        timers.append(server.call_later_ms(1, lambda: fired.append("due")))
        runtime.pause(server.process)

    runtime.run_in(server.process, schedule)
    settle(lambda: len(server.process.held) == 2)

    def go_on() -> None:
        runtime.resume(server.process)
        timers[0].cancel()

    runtime.run_in(server.process, go_on)
    settle(lambda: fired)
    assert fired == ["due"]


def test_a_process_that_dies_as_it_resumes_does_nothing_more(
    runtime: Runtime, settle: Settle
) -> None:
    server, client = _spawn(runtime)
    fired = []

    def schedule() -> None:
        server.call_later_ms(1, lambda: fired.append("dead"))
        runtime.pause(server.process)

    runtime.run_in(server.process, schedule)
    settle(lambda: server.process.held)

    def die() -> None:
        runtime.resume(server.process)
        runtime.kill_process(server.process)

    runtime.run_in(server.process, die)
    runtime.run_in(client.process, lambda: client.call_later_ms(5, lambda: fired.append("after")))
    settle(lambda: fired)
    assert fired == ["after"]


def test_timers_of_a_node_that_has_died_are_not_kept_for_its_process() -> None:
    """Timers of a dead node are dropped, and the next process's pause and resume fire none."""
    with Simulation(1, trace=False) as simulation:
        called: list[str] = []
        broker = present(simulation.processes[1].broker)
        broker.call_later_ms(50, lambda: called.append("dead"))
        process = broker.process
        simulation.broker(1).kill()
        simulation.run_for(100)
        assert process.held == []
        simulation.broker(1).start()
        simulation.broker(1).pause()
        present(simulation.processes[1].broker).call_later_ms(50, lambda: called.append("alive"))
        simulation.run_for(100)
        assert called == []
        simulation.broker(1).resume()
        simulation.run_for(1)
        assert called == ["alive"]
