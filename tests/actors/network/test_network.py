"""The network: order, delay, loss, cuts and holds; and determinism of virtual time."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from fakekafka.actors.interfaces import Process
from fakekafka.actors.network.latency import Constant, Lognormal, Uniform
from fakekafka.actors.node import Node
from fakekafka.actors.runtime.runtime import Runtime
from fakekafka.actors.runtime.virtual import VirtualRuntime
from fakekafka.protocol.errors import UsageError
from fakekafka.protocol.values import message


@message
class Number:
    value: int


class Sink(Node):
    """Records each message with its time of arrival."""

    def __init__(self, runtime: Runtime, name: str, process: Process) -> None:
        super().__init__(runtime, name, process)
        self.received: list[tuple[int, str, int]] = []

    def on_number(self, number: Any, delivery: Any) -> None:
        self.received.append((self.runtime.now_us(), delivery.sender.name, number.value))


def _world(seed: int = 1, machines: tuple[str, ...] = ("a", "b", "c")) -> Any:
    runtime = VirtualRuntime(seed)
    return runtime, [runtime.spawn(Sink, name, runtime.process(name)) for name in machines]


def _values(sink: Any) -> Any:
    return [value for _, _, value in sink.received]


@pytest.mark.parametrize(
    "model", [Constant(1), Uniform(0, 5), Lognormal(1, 1.5)], ids=["constant", "uniform", "log"]
)
def test_a_link_keeps_its_order_whatever_its_delay(model: Any) -> None:
    runtime, (a, b, _) = _world()
    runtime.network.set_latency(model)
    for value in range(200):
        runtime.call_later(a, value * 100, lambda value=value: a.send("b", Number(value)))
    runtime.run(None)
    assert _values(b) == list(range(200))


def test_a_link_keeps_its_order_though_there_are_rules() -> None:
    """Each link keeps its order although a loss on one link makes all messages check rules."""
    runtime, (a, b, _) = _world()
    runtime.network.set_latency(Uniform(0, 5))
    runtime.network.set_loss(0.5, "a", "c")
    for value in range(200):
        runtime.call_later(a, value * 100, lambda value=value: a.send("b", Number(value)))
    runtime.run(None)
    assert _values(b) == list(range(200))


def test_a_constant_delay_is_exact() -> None:
    runtime, (a, b, _) = _world()
    runtime.network.set_latency(Constant(1.5))
    a.send("b", Number(1))
    runtime.run(None)
    assert b.received == [(1500, "a", 1)]


def test_a_link_with_a_bandwidth_sends_one_message_after_another() -> None:
    """A link sends messages in turn: 100 bytes at 0.1 MB/s take 1 ms before the latency."""
    runtime, (a, b, c) = _world()
    runtime.network.set_latency(Constant(1))
    runtime.network.set_bandwidth(0.1)
    for value in range(3):
        a.send("b", Number(value))
    a.send("c", Number(3))
    b.send("a", Number(4))
    runtime.run(None)
    assert [time for time, _, _ in b.received] == [2000, 3000, 4000]
    assert (c.received, a.received) == ([(2000, "a", 3)], [(2000, "b", 4)])
    a.send("b", Number(5))  # the link has been idle since
    runtime.run(None)
    assert b.received[-1] == (6000, "a", 5)


def test_one_direction_of_one_link_can_be_narrow() -> None:
    """A limit applies to one direction of one link; after its end nothing is overtaken."""
    runtime, (a, b, c) = _world()
    runtime.network.set_latency(Constant(1))
    runtime.network.set_bandwidth(0.1, "a", "b")
    for target in "bc":
        for value in range(2):
            a.send(target, Number(value))
    b.send("a", Number(2))
    assert runtime.network.rules().link_bandwidths == {("a", "b"): 0.1}
    runtime.network.clear_bandwidths()
    a.send("b", Number(3))
    runtime.run(None)
    assert [time for time, _, _ in b.received] == [2000, 3000, 3000]
    assert _values(b) == [0, 1, 3]
    assert [time for time, _, _ in c.received] == [1000, 1000]
    assert a.received == [(1000, "b", 2)]


def test_links_without_a_limit_play_the_same_run_beside_a_narrow_one() -> None:
    """A bandwidth rule draws no random number, so that delays of other links do not change."""

    def times(narrow: bool) -> list[int]:
        runtime, (a, b, _) = _world(seed=7)
        runtime.network.set_latency(Uniform(1, 5))
        if narrow:
            runtime.network.set_bandwidth(0.001, "b", "c")
        for value in range(50):
            a.send("b", Number(value))
        runtime.run(None)
        return [time for time, _, _ in b.received]

    assert times(narrow=True) == times(narrow=False)


def test_nothing_overtakes_when_the_delay_shrinks() -> None:
    runtime, (a, b, _) = _world()
    runtime.network.set_latency(Constant(10))
    a.send("b", Number(1))
    runtime.network.set_latency(Constant(1))
    a.send("b", Number(2))
    runtime.run(None)
    assert _values(b) == [1, 2]


def test_a_one_way_cut_stops_one_direction_only() -> None:
    runtime, (a, b, _) = _world()
    runtime.network.cut("a", "b")
    a.send("b", Number(1))
    b.send("a", Number(2))
    runtime.run(None)
    assert (_values(a), _values(b)) == ([2], [])
    runtime.network.heal()
    a.send("b", Number(3))
    runtime.run(None)
    assert _values(b) == [1, 3], "TCP sends again what was under way, and in order"


def test_loss_is_drawn_from_the_seed() -> None:
    def received(seed: int) -> Any:
        runtime, (a, b, _) = _world(seed)
        runtime.network.set_loss(0.5)
        for value in range(100):
            a.send("b", Number(value))
        runtime.run(None)
        return _values(b)

    assert received(3) == received(3)
    assert received(3) != received(4)
    assert 30 < len(received(3)) < 70


def test_held_messages_arrive_in_order_after_release() -> None:
    runtime, (a, b, c) = _world()
    runtime.network.hold(lambda delivery: delivery.target is b)
    for value in range(3):
        a.send("b", Number(value))
        a.send("c", Number(value))
    runtime.run(None)
    assert (_values(b), _values(c)) == ([], [0, 1, 2])
    assert runtime.network.release() == 3
    runtime.run(None)
    assert _values(b) == [0, 1, 2]


def test_released_messages_do_not_overtake_messages_in_flight() -> None:
    """A held message's delay starts at its release, and no message is overtaken."""
    runtime, (a, b, _) = _world()
    holding = [True]
    runtime.network.set_latency(Constant(5))
    runtime.network.hold(lambda delivery: holding[0])
    a.send("b", Number(0))
    runtime.network.set_latency(Constant(1))
    a.send("b", Number(1))
    holding[0] = False
    runtime.network.set_latency(Constant(9))
    a.send("b", Number(2))
    runtime.network.release()
    a.send("b", Number(3))
    runtime.run(None)
    assert sorted(_values(b)) == [0, 1, 2, 3]
    held = [entry for entry in b.received if entry[2] < 2]
    assert [value for _, _, value in held] == [0, 1]
    assert all(time >= 9000 for time, _, _ in b.received)


def _heard_of_deaths(*nodes: Any) -> list[str]:
    heard: list[str] = []
    for node in nodes:
        node.peer_lost = lambda machine, _names, node=node: heard.append(f"{node.name}: {machine}")
    return heard


@pytest.mark.parametrize(("cut", "told"), [(("a", "b"), ["c: a"]), (("b", "a"), ["b: a", "c: a"])])
def test_the_end_of_a_connection_travels_over_the_link_from_the_dead_process(
    cut: tuple[str, str], told: list[str]
) -> None:
    """A connection's end travels from the dead process, whatever the other direction."""
    runtime, (a, b, c) = _world()
    heard = _heard_of_deaths(b, c)
    runtime.network.set_latency(Constant(1))
    runtime.network.cut(*cut)
    runtime.kill_process(a.process)
    runtime.run(1_000_000)
    assert heard == told


@pytest.mark.parametrize("ending", ["killed", "without power", "back"])
def test_a_peer_behind_a_cut_learns_of_a_death_when_the_link_heals(ending: str) -> None:
    """A peer behind a cut learns of a death after healing, as the machine retransmits, unless that
    lost power or the process is back with new connections.
    """
    runtime, (a, b, _) = _world()
    heard = _heard_of_deaths(b)
    runtime.network.cut("a", "b")
    runtime.kill_process(a.process)
    runtime.run(1_000_000)
    if ending == "without power":
        runtime.network.power_lost("a")
    if ending == "back":
        runtime.spawn(Sink, "a", runtime.process("a"))
    runtime.network.heal()
    runtime.run(2_000_000)
    assert heard == (["b: a"] if ending == "killed" else [])


def test_nodes_of_one_process_are_not_touched_by_the_network() -> None:
    runtime = VirtualRuntime(1)
    process = runtime.process("machine")
    a, b = (runtime.spawn(Sink, name, process) for name in ("a", "b"))
    runtime.network.set_latency(Constant(5))
    runtime.network.set_loss(1.0)
    a.send("b", Number(1))
    runtime.run(None)
    assert b.received == [(0, "a", 1)]


def test_latency_models_refuse_nonsense() -> None:
    with pytest.raises(UsageError, match="delay_ms must be a number of milliseconds >= 0"):
        Constant(-1)
    with pytest.raises(UsageError, match="below low_ms"):
        Uniform(2, 1)
    with pytest.raises(UsageError, match="sigma"):
        Lognormal(1, -1)


def test_events_at_the_same_time_happen_in_the_order_they_were_scheduled() -> None:
    runtime, (a, _, _) = _world()
    order: list[int] = []

    def second() -> None:
        order.append(2)
        runtime.call_later(a, 0, lambda: order.append(4))

    runtime.call_later(a, 10, lambda: order.append(1))
    runtime.call_later(a, 10, second)

    runtime.call_later(a, 10, lambda: order.append(3))
    runtime.run(None)
    assert order == [1, 2, 3, 4]


def test_the_clock_moves_to_the_limit_and_no_further() -> None:
    runtime, (a, _, _) = _world()
    fired = []
    runtime.call_later(a, 1000, lambda: fired.append(runtime.now_us()))
    assert runtime.run(999) == 0
    assert (runtime.now_us(), fired) == (999, [])
    assert runtime.run(2000) == 1
    assert (runtime.now_us(), fired) == (2000, [1000])


def test_lognormal_delays_equal_those_that_python_draws() -> None:
    """Lognormal delays equal Python's, although Python keeps only ``random()`` stable."""
    model, ours, theirs = Lognormal(3, 0.7), random.Random(5), random.Random(5)
    drawn = [model.draw_us(ours) for _ in range(500)]
    assert drawn == [round(theirs.lognormvariate(math.log(3000), 0.7)) for _ in range(500)]
