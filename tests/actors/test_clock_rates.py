"""Machines whose clocks run at rates of their own, on every runtime."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from fakekafka.actors.causes import NodeCauses
from fakekafka.actors.clock import NORMAL_RATE_PPM, Clock, rescaled
from fakekafka.actors.interfaces import Process
from fakekafka.actors.network.latency import Constant
from fakekafka.actors.node import Node
from fakekafka.actors.runtime.runtime import Runtime
from fakekafka.actors.runtime.virtual import VirtualRuntime
from fakekafka.protocol.awaiting import RequestTimeout
from fakekafka.protocol.names import TCP_CLIENTS
from fakekafka.protocol.values import message
from fakekafka.tests.support.examples import examples
from fakekafka.tests.support.runtimes import Settle
from fakekafka.wire.kafka.gateway import ClientRequest
from hypothesis import given, settings
from hypothesis import strategies as st

FAST, SLOW = 10 * NORMAL_RATE_PPM, NORMAL_RATE_PPM // 10


@message
class Question:
    number: int


class Peer(Node):
    """Records the runtime's time of every message and outcome, and does not answer."""

    def __init__(self, runtime: Runtime, name: str, process: Process) -> None:
        super().__init__(runtime, name, process)
        self.seen_us: list[int] = []
        self.outcomes: list[Any] = []

    def on_question(self, _question: Any, _delivery: Any) -> None:
        self.note()

    def note(self) -> None:
        self.seen_us.append(self.runtime.now_us())

    def take(self, outcome: Any) -> None:
        self.outcomes.append(outcome)
        self.note()

    def peer_lost(self, machine: str, names: frozenset[str]) -> None:
        self.note()


def spawn(runtime: Runtime, name: str) -> Peer:
    peer: Peer = runtime.spawn(Peer, name, runtime.process(name))
    return peer


def set_rate(runtime: Runtime, peer: Peer, rate_ppm: int) -> None:
    runtime.run_in(peer.process, lambda: runtime.set_clock_rate(peer.process, rate_ppm))


def elapsed_us(runtime: Runtime, peer: Peer, act: Callable[[], object], settle: Settle) -> int:
    """Return the microseconds between an act and the peer's first note."""
    began_us = runtime.now_us()
    runtime.run_in(peer.process, act)
    settle(lambda: peer.seen_us)
    return peer.seen_us[0] - began_us


@pytest.mark.parametrize("is_pending", [False, True], ids=["set later", "pending"])
@pytest.mark.parametrize(
    ("rate", "wait_ms", "least_us", "most_us"),
    [(FAST, 2000, 195_000, 1_800_000), (SLOW, 10, 95_000, math.inf)],
    ids=["fast", "slow"],
)
def test_a_wait_is_measured_by_the_clock_of_its_machine(
    runtime: Runtime,
    settle: Settle,
    rate: int,
    wait_ms: int,
    least_us: int,
    most_us: float,
    is_pending: bool,
) -> None:
    """A wait follows its machine's clock rate, even if the rate changes during the wait."""
    peer = spawn(runtime, "a")

    def act() -> None:
        if is_pending:
            peer.call_later_ms(wait_ms, peer.note)
        runtime.set_clock_rate(peer.process, rate)
        if not is_pending:
            peer.call_later_ms(wait_ms, peer.note)

    assert least_us <= elapsed_us(runtime, peer, act, settle) < most_us


@pytest.mark.parametrize("is_pending", [False, True], ids=["asked later", "pending"])
def test_requests_time_out_by_the_clock_of_the_sender(
    runtime: Runtime, settle: Settle, is_pending: bool
) -> None:
    """A request times out by the sender's clock, not the receiver's."""
    peer, asked = spawn(runtime, "a"), spawn(runtime, "b")
    set_rate(runtime, asked, SLOW)

    def act() -> None:
        if is_pending:
            peer.ask_then("b", Question(1), 2000, peer.take)
        runtime.set_clock_rate(peer.process, FAST)
        if not is_pending:
            peer.ask_then("b", Question(1), 2000, peer.take)

    assert 195_000 <= elapsed_us(runtime, peer, act, settle) < 1_800_000
    assert [type(outcome) for outcome in peer.outcomes] == [RequestTimeout]


def test_both_clocks_of_a_node_follow_the_rate(runtime: Runtime, settle: Settle) -> None:
    """A node's clocks follow its rate without a jump; other processes are not affected."""
    peer, other = spawn(runtime, "a"), spawn(runtime, "b")
    before = runtime.now_ms(), runtime.wall_ms()
    set_rate(runtime, peer, FAST)
    for clock, since_ms in zip((peer.now_ms, peer.wall_ms), before, strict=True):
        assert 0 <= clock() - since_ms < 1000
    began_us = runtime.now_us()
    runtime.run_in(other.process, lambda: other.call_later_ms(100, other.note))
    settle(lambda: other.seen_us)
    gained_ms = 9 * (runtime.now_us() - began_us) / 1000
    assert gained_ms >= 890
    for ahead_ms in (peer.now_ms() - runtime.now_ms(), peer.wall_ms() - runtime.wall_ms()):
        assert gained_ms - 5 <= ahead_ms < gained_ms + 3000
    assert abs(other.now_ms() - runtime.now_ms()) < 100


def test_network_events_ignore_the_clock_rate_of_the_machine() -> None:
    """A connection's end arrives by network time, whatever the machine's clock rate."""
    runtime = VirtualRuntime(1)
    runtime.network.set_latency(Constant(100))
    peer, other = spawn(runtime, "a"), spawn(runtime, "b")
    runtime.kill_process(other.process)
    set_rate(runtime, peer, FAST)
    runtime.run(None)
    assert peer.seen_us == [100_000]


def test_messages_take_as_long_as_before() -> None:
    runtime = VirtualRuntime(1)
    runtime.network.set_latency(Constant(5))
    peer, other = spawn(runtime, "a"), spawn(runtime, "b")
    for rate_ppm in (FAST, SLOW):
        set_rate(runtime, peer, rate_ppm)
        set_rate(runtime, other, rate_ppm)
        peer.send("b", Question(1))
        runtime.run(None)
    assert other.seen_us == [5_000, 10_000]


def test_a_request_ends_exactly_at_its_timeout() -> None:
    """A request's timeout is exact although its clock's rate changes twice."""
    runtime = VirtualRuntime(1)
    peer = spawn(runtime, "a")
    spawn(runtime, "b")
    peer.ask_then("b", Question(1), 4000, peer.take)
    peer.ask_then("b", Question(2), 5000, peer.take)
    runtime.run(1_000_000)
    set_rate(runtime, peer, 2 * NORMAL_RATE_PPM)
    runtime.run(1_500_000)
    set_rate(runtime, peer, NORMAL_RATE_PPM // 2)
    runtime.run(None)
    assert peer.seen_us == [5_500_000, 7_500_000]


def test_a_shared_timer_follows_the_clock_rate() -> None:
    """A shared timer, such as that of delayed operations, follows the clock rate."""
    runtime = VirtualRuntime(1)
    peer = spawn(runtime, "a")
    set_rate(runtime, peer, 2 * NORMAL_RATE_PPM)
    NodeCauses(runtime, peer).set_shared_timer_ms(1000, peer.note)
    runtime.run(None)
    assert peer.seen_us == [500_000]


def test_a_process_that_starts_has_the_rate_of_its_machine() -> None:
    runtime = VirtualRuntime(1)
    runtime.set_clock_rate(runtime.process("a"), 2 * NORMAL_RATE_PPM)
    runtime.run(1_000_000)
    peer = spawn(runtime, "a")
    assert peer.now_ms() - runtime.now_ms() == peer.wall_ms() - runtime.wall_ms() == 1000
    spawn(runtime, "b")
    peer.ask_then("b", Question(1), 1000, peer.take)
    runtime.run(None)
    assert peer.seen_us == [1_500_000]


RATES = st.integers(100_000, 10_000_000)


@given(st.integers(0, 10**7), st.lists(st.tuples(RATES, st.integers(0, 10**6)), max_size=8), RATES)
@settings(max_examples=examples(100))
def test_a_timer_fires_when_its_clock_has_advanced_by_the_delay(
    delay_us: int, changes: list[tuple[int, int]], last_ppm: int
) -> None:
    """A clock never jumps at a change of rate, and a timer fires neither early nor much late."""
    runtime = VirtualRuntime(1)
    peer = spawn(runtime, "a")
    clock = peer.process.clock
    fired_us: list[int] = []

    def own_us() -> int:
        return runtime.now_us() + clock.ahead_us(runtime.now_us())

    def note() -> None:
        fired_us.append(own_us())

    peer.call_later_ms(delay_us / 1000, note)
    due_us = own_us() + int(delay_us / 1000 * 1000)
    for rate_ppm, span_us in [*changes, (last_ppm, 0)]:
        before_us, before_ms = own_us(), peer.now_ms()
        set_rate(runtime, peer, rate_ppm)
        assert own_us() == before_us
        assert peer.now_ms() == before_ms == peer.wall_ms()
        runtime.run(runtime.now_us() + span_us)
    runtime.run(None)
    assert due_us <= fired_us[0] <= due_us + 11 * (len(changes) + 2)


@given(RATES, RATES, st.integers(0, 10**12))
def test_a_wait_is_never_cut_short(before_ppm: int, after_ppm: int, span_us: int) -> None:
    """When a wait is over, the clock has advanced by at least its duration."""
    clock = Clock()
    clock.set_rate(before_ppm, 17)
    lasts_us = clock.to_runtime_us(span_us)
    assert clock.ahead_us(17 + lasts_us) + lasts_us >= span_us
    assert rescaled(lasts_us, before_ppm, after_ppm) * after_ppm >= lasts_us * before_ppm


def test_a_delay_for_a_tcp_client_follows_no_machines_clock_rate(
    runtime: Runtime, settle: Settle
) -> None:
    """A delay for a TCP client, as of an injection, follows no machine's clock rate."""
    peer = spawn(runtime, "a")
    asker = ClientRequest("client", TCP_CLIENTS, peer.take, has_byte_faults=False)

    def act() -> None:
        runtime.call_later_by_runtime_clock(asker, 20_000, peer.note)
        runtime.call_later(asker, 20_000, peer.note)
        set_rate(runtime, peer, SLOW)

    runtime.run_in(peer.process, act)
    settle(lambda: len(peer.seen_us) == 2)
    assert not runtime.failures
