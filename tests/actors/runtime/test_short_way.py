"""The virtual network's fast path, which gives the same events as its rules."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from fakekafka.actors.interfaces import Process
from fakekafka.actors.network.latency import Constant, Uniform
from fakekafka.actors.node import Node
from fakekafka.actors.runtime.runtime import Runtime
from fakekafka.actors.runtime.virtual import VirtualRuntime
from fakekafka.protocol.values import message


@message
class Question:
    number: int


class Peer(Node):
    """Answers twice the number, and records questions and answers with their times."""

    def __init__(self, runtime: Runtime, name: str, process: Process) -> None:
        super().__init__(runtime, name, process)
        self.seen: list[Any] = []

    def on_question(self, question: Any, delivery: Any) -> Any:
        self.seen.append((self.runtime.now_us(), delivery.sender.name, question.number))
        return question.number * 2

    def put(self, destination: Any, number: Any) -> None:
        self.ask_then(
            destination,
            Question(number),
            1000,
            lambda answer: self.seen.append((self.runtime.now_us(), destination, answer)),
        )


def _world(model: Any, seed: int = 1) -> Any:
    runtime = VirtualRuntime(seed)
    runtime.network.set_latency(model)
    return runtime, [runtime.spawn(Peer, name, runtime.process(name)) for name in "abc"]


def _talk(runtime: VirtualRuntime, peers: Any) -> Any:
    for number in range(60):
        asker, asked = peers[number % 3], peers[(number + 1) % 3]
        runtime.call_later(asker, number * 40, partial(asker.put, asked.name, number))
    runtime.run(None)
    return [peer.seen for peer in peers], runtime.network.messages_sent, runtime.now_us()


@pytest.mark.parametrize("model", [Constant(0.5), Uniform(0.1, 1)], ids=["constant", "uniform"])
def test_watched_or_not_every_message_arrives_at_the_same_time(model: Any) -> None:
    runtime, peers = _world(model)
    watched, others = _world(model)
    arrived: list[Any] = []
    watched.network.observe(arrived.append)
    outcome = _talk(runtime, peers)
    assert _talk(watched, others) == outcome
    assert len(arrived) == outcome[1] == 120


def test_a_new_observer_sees_messages_already_in_flight() -> None:
    runtime, (a, b, _) = _world(Uniform(1, 1))
    a.put("b", 1)
    a.put("b", 2)
    arrived: list[Any] = []
    runtime.call_later(None, 500, lambda: runtime.network.observe(arrived.append))
    runtime.run(None)
    assert [d.message for d in arrived if not d.is_reply] == [Question(1), Question(2)]
    assert len({delivery.message_id for delivery in arrived}) == 4
    assert [number for _, _, number in b.seen] == [1, 2]


def test_a_rule_for_one_link_leaves_the_others_unchanged() -> None:
    runtime, (a, b, c) = _world(Uniform(1, 1))
    for destination in "bc":
        a.put(destination, 0)
    runtime.run(5_000)
    runtime.network.cut("a", "b")
    for destination in "bc":
        a.put(destination, 1)
    runtime.run(10_000)
    assert (len(b.seen), len(c.seen)) == (1, 2)
    runtime.network.heal()
    runtime.run(20_000)
    assert [number for _, _, number in b.seen] == [0, 1]


def test_a_paused_process_gets_its_messages_when_it_resumes() -> None:
    runtime, (a, b, _) = _world(Constant(1))
    a.put("b", 1)
    runtime.run(5_000)
    runtime.pause(b.process)
    a.put("b", 2)
    runtime.run(10_000)
    assert [number for _, _, number in b.seen] == [1]
    runtime.resume(b.process)
    runtime.run(20_000)
    assert [number for _, _, number in b.seen] == [1, 2]


def test_an_event_cannot_run_events() -> None:
    runtime, (a, _, _) = _world(Constant(1))
    runtime.call_later(a, 1, lambda: runtime.run(None))
    runtime.run(None)
    [(name, error)] = runtime.failures
    assert (name, type(error)) == ("a", RuntimeError)


def test_events_due_at_the_limit_run_and_later_ones_do_not() -> None:
    runtime, (a, _, _) = _world(Constant(1))
    fired = []
    for delay_us in (5, 5, 6):
        runtime.call_later(a, delay_us, lambda: runtime.call_later(a, 0, lambda: fired.append(1)))
    assert runtime.run(5) == 4
    assert (len(fired), runtime.now_us(), runtime.next_time_us()) == (2, 5, 6)


def test_a_condition_ends_a_run_and_leaves_the_rest_for_the_next() -> None:
    runtime, (a, _, _) = _world(Constant(1))
    fired = []
    for delay_us in range(1, 5):
        runtime.call_later(a, delay_us, lambda: fired.append(1))
    assert runtime.run(None, until=lambda: len(fired) == 2) == 2
    assert runtime.condition_held
    assert runtime.run(1000) == 2
    assert not runtime.condition_held
    assert (runtime.now_us(), runtime.next_time_us(), runtime.step()) == (1000, None, False)


def test_stopping_from_within_an_event_ends_the_run() -> None:
    runtime, (a, _, _) = _world(Constant(1))
    runtime.call_later(a, 1, runtime.stop)
    runtime.call_later(a, 2, runtime.stop)
    assert runtime.run(None) == 1
    assert runtime.next_time_us() is None


def test_a_timer_and_a_message_due_at_the_same_time_keep_the_order_of_scheduling() -> None:
    runtime, (a, b, _) = _world(Constant(1))
    a.put("b", 0)
    runtime.run(10_000)  # the links are known from here on
    order = b.seen = []
    runtime.call_later(b, 1000, lambda: order.append("before"))
    a.put("b", 1)
    runtime.call_later(b, 1000, lambda: order.append("after"))
    runtime.run(20_000)
    assert order == ["before", (11_000, "a", 1), "after"]


def test_single_steps_handle_the_same_events_as_a_whole_run() -> None:
    runtime, peers = _world(Uniform(0.1, 1))
    stepped, others = _world(Uniform(0.1, 1))
    for world in (peers, others):
        for number in range(40):
            asker = world[number % 3]
            asker.runtime.call_later(asker, number * 90, lambda a=asker, n=number: a.put("b", n))
    runtime.run(None)
    steps = 0
    while stepped.step():
        steps += 1
    assert steps == runtime.handled == stepped.handled
    assert [peer.seen for peer in peers] == [peer.seen for peer in others]


class Careful(Peer):
    """Asks another node before it answers, and handles one request at a time."""

    handles_one_at_a_time = True

    async def on_question(self, question: Any, delivery: Any) -> Any:
        self.seen.append(("begins", question.number))
        answer = await self.ask("c", question)
        self.seen.append(("ends", question.number))
        return answer


def test_a_busy_node_gets_the_next_request_when_it_has_finished() -> None:
    runtime, (a, _, _) = _world(Constant(1))
    careful = runtime.spawn(Careful, "careful", runtime.process("careful"))
    a.put("careful", 0)
    runtime.run(20_000)
    careful.seen.clear()
    for number in (1, 2, 3):
        a.put("careful", number)
    runtime.run(100_000)
    expected = [(event, number) for number in (1, 2, 3) for event in ("begins", "ends")]
    assert careful.seen == expected
    assert a.seen[-1][2] == 6


def test_a_rule_that_holds_requests_lets_responses_through() -> None:
    runtime, (a, b, _) = _world(Constant(1))
    for asker, asked in ((a, "b"), (b, "a")):
        asker.put(asked, 0)
    runtime.run(10_000)
    pending = b.ask("a", Question(1))

    async def answered() -> None:
        await pending

    b.hold_back(b.start_task(answered()))
    a.put("b", 2)
    runtime.run(20_000)
    assert pending.result() == 2
    assert [number for _, _, number in b.seen if number == 2] == []
    b.hold_back(None)
    assert b.seen[-1][2] == 2


class Sorter(Peer):
    """Sees every request before its handler is looked up."""

    def handle(self, delivery: Any) -> None:
        self.seen.append(("sorted", delivery.message.number))
        super().handle(delivery)


def test_a_node_that_overrides_request_handling_gets_every_request() -> None:
    runtime, (a, _, _) = _world(Constant(1))
    sorter = runtime.spawn(Sorter, "sorter", runtime.process("sorter"))
    for number in range(3):
        a.put("sorter", number)
        runtime.run(runtime.now_us() + 10_000)
    assert [entry for entry in sorter.seen if entry[0] == "sorted"] == [
        ("sorted", number) for number in range(3)
    ]
    assert [number for _, _, number in a.seen] == [0, 2, 4]
