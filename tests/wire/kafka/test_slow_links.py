"""Connections over slow links in virtual time: latency delays each message and limits no rate."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
from fakekafka import Cluster, Simulation
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.tests.fidelity.sides.virtual_lines import VirtualListener
from fakekafka.tests.support.virtual_clients import VirtualClient, api_versions, header, metadata
from fakekafka.wire.kafka.paced_queue import PacedQueue

LINK = ("clients", "broker-1")


def produce(correlation_id: int, acks: int, value: bytes = b"v") -> bytes:
    records = build_batch([Record(0, 1_700_000_000_000, None, value)])
    return (
        header(0, 3, correlation_id)
        + struct.pack(">hhiih", -1, acks, 1000, 1, 6)
        + b"orders"
        + struct.pack(">iii", 1, 0, len(records))
        + records
    )


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with Simulation(1, seed=4, trace=False) as made:
        made.create_topic("orders", partitions=1)
        yield made


def test_requests_written_at_once_are_answered_after_one_round_trip(simulation: Simulation) -> None:
    """The requests do not wait for each other, and ApiVersions is as late as the others."""
    simulation.network.latency(50)
    client = VirtualClient(simulation)
    client.send(api_versions(0), *[metadata(number) for number in range(1, 10)])
    simulation.run_for(99)
    assert client.answers == []
    simulation.run_for(2)
    assert [number for _, number in client.answers] == list(range(10))
    assert {time_ms for time_ms, _ in client.answers} == {100.0}


def test_a_client_that_sends_all_the_time_is_answered_all_the_time(simulation: Simulation) -> None:
    simulation.network.latency(50)
    client = VirtualClient(simulation)
    for number in range(200):
        client.send(produce(number, acks=-1))
        simulation.run_for(5)
    simulation.run_for(100)
    assert len(client.answers) == 200
    assert client.answers[-1] == (199 * 5 + 100, 199)


def test_answers_keep_their_order_whatever_the_delay_of_each(simulation: Simulation) -> None:
    simulation.network.latency(uniform_ms=(1, 50))
    client = VirtualClient(simulation)
    for number in range(100):
        client.send(metadata(number))
        simulation.run_for(1)
    simulation.run_for(100)
    assert [number for _, number in client.answers] == list(range(100))
    assert len({time_ms for time_ms, _ in client.answers}) > 10
    assert all(2 <= time_ms - number <= 101 for time_ms, number in client.answers)


def test_a_bandwidth_lowers_the_rate(simulation: Simulation) -> None:
    """At 100 bytes a millisecond one frame follows the other, and each then takes the latency."""
    simulation.network.latency(50)
    simulation.network.bandwidth(0.1, source="clients", target=1)
    client = VirtualClient(simulation)
    frames = [produce(number, acks=1, value=b"v" * 1000) for number in range(4)]
    client.send(*frames)
    simulation.run_for(300)
    size = len(frames[0]) + 4
    expected = [100 + (number + 1) * size / 100 for number in range(4)]
    assert [time_ms for time_ms, _ in client.answers] == pytest.approx(expected, abs=0.1)


def test_answers_in_flight_when_the_client_disconnects_are_dropped(
    simulation: Simulation,
) -> None:
    simulation.network.latency(0)
    simulation.network.latency(30, source=1, target="clients")
    client = VirtualClient(simulation)
    client.send(metadata(1), metadata(2))
    simulation.run_for(20)
    client.connection.connection_lost(None)
    simulation.run_for(100)
    assert client.answers == []


@pytest.mark.parametrize("more", [0, 1])
def test_a_frame_of_the_largest_size_is_accepted(simulation: Simulation, more: int) -> None:
    """``socket.request.max.bytes`` is the size up to which a request is accepted."""
    client = VirtualClient(simulation)
    frame = metadata(1) + bytes(more)
    client.service.max_request_bytes = len(metadata(1))
    client.send(frame)
    simulation.run_for(10)
    assert [number for _, number in client.answers] == ([] if more else [1])
    assert (client.transport.closed_ms is not None) == bool(more)


def test_one_direction_of_the_link_may_be_slow(simulation: Simulation) -> None:
    simulation.network.latency(0)
    simulation.network.latency(30, source=1, target="clients")
    client = VirtualClient(simulation)
    client.send(metadata(1), metadata(2))
    simulation.run_for(100)
    assert client.answers == [(30.0, 1), (30.0, 2)]


def test_messages_do_not_overtake_earlier_ones_when_the_link_becomes_fast(
    simulation: Simulation,
) -> None:
    simulation.network.latency(50)
    client = VirtualClient(simulation)
    client.send(metadata(1))
    simulation.network.latency(0)
    client.send(metadata(2))
    simulation.run_for(100)
    assert client.answers == [(50.0, 1), (50.0, 2)]


def test_the_broker_still_handles_one_request_of_a_connection_at_a_time(
    simulation: Simulation,
) -> None:
    """A fetch that waits at the broker delays the next request, which the link does not."""
    simulation.network.latency(50)
    client = VirtualClient(simulation)
    fetch = header(1, 4, 1) + struct.pack(">iiiib", -1, 200, 1, 1 << 20, 0)
    fetch += struct.pack(">ih", 1, 6) + b"orders" + struct.pack(">iiqi", 1, 0, 0, 1 << 20)
    client.send(fetch, metadata(2))
    simulation.run_for(1000)
    assert [number for _, number in client.answers] == [1, 2]
    assert [time_ms for time_ms, _ in client.answers] == pytest.approx([300, 300], abs=1)


def test_a_delay_that_is_injected_is_the_brokers_own(simulation: Simulation) -> None:
    """An injected delay applies to each request in turn."""
    simulation.network.latency(50)
    simulation.inject("Metadata", delay_ms=30, times=3)
    client = VirtualClient(simulation)
    client.send(metadata(1), metadata(2), metadata(3))
    simulation.run_for(300)
    assert client.answers == [(130.0, 1), (160.0, 2), (190.0, 3)]


def test_requests_sent_before_a_client_closes_are_handled(simulation: Simulation) -> None:
    """Records sent without acknowledgement are stored before the broker closes the connection."""
    simulation.network.latency(50)
    client = VirtualClient(simulation)
    client.send(*[produce(number, acks=0) for number in range(5)], metadata(6))
    assert client.connection.eof_received()
    simulation.run_for(40)
    assert simulation.partition("orders", 0).log_end_offset == 0
    simulation.run_for(100)
    assert simulation.partition("orders", 0).log_end_offset == 5
    assert client.answers == [(100.0, 6)]
    assert client.transport.closed_ms == 100.0


def test_a_client_without_open_requests_is_closed_at_its_end_of_file(
    simulation: Simulation,
) -> None:
    client = VirtualClient(simulation)
    client.send(metadata(1))
    simulation.run_for(1)
    assert not client.connection.eof_received()


def test_messages_in_flight_are_lost_with_the_connection(simulation: Simulation) -> None:
    simulation.network.latency(50)
    client = VirtualClient(simulation)
    client.send(*[produce(number, acks=1) for number in range(3)])
    simulation.run_for(60)
    client.send(produce(4, acks=1))
    client.connection.close()
    simulation.run_for(500)
    assert client.answers == []
    assert simulation.partition("orders", 0).log_end_offset == 3
    assert client.service.memory.total == 0


def test_a_cut_delays_requests_still_on_the_link(simulation: Simulation) -> None:
    """TCP retransmits the requests when the cut heals."""
    simulation.network.latency(50)
    client = VirtualClient(simulation)
    client.send(metadata(1), metadata(2))
    simulation.run_for(10)
    simulation.network.partition(["clients"], [1])
    simulation.run_for(1000)
    assert client.answers == []
    simulation.network.heal()
    simulation.run_for(100)
    assert client.answers == [(1060.0, 1), (1060.0, 2)]


def test_a_long_link_takes_no_more_memory_than_is_allowed(simulation: Simulation) -> None:
    """With more than 4 MiB in flight, no more is read until some of it has arrived."""
    simulation.network.latency(60_000)
    client = VirtualClient(simulation)
    sent = 0
    while client.transport.is_reading:
        client.send(*[produce(number, acks=1, value=b"v" * 60_000) for number in range(10)])
        sent += 600_000
        assert sent < 6 * 1024 * 1024
    assert sent > 3 * 1024 * 1024
    simulation.network.latency(0)
    simulation.run_for(61_000)
    assert client.transport.is_reading
    assert simulation.partition("orders", 0).log_end_offset == sent // 60_000


def test_many_tiny_frames_count_with_their_overhead(simulation: Simulation) -> None:
    simulation.network.latency(60_000)
    client = VirtualClient(simulation)
    count = 0
    while client.transport.is_reading:
        client.send(*[metadata(number) for number in range(1000)])
        count += 1000
        assert count < 30_000
    assert count > 10_000


def test_a_broker_resumes_when_enough_answers_have_arrived(simulation: Simulation) -> None:
    """Answers in flight are limited, too, and the requests behind them wait."""
    producer = VirtualClient(simulation)
    for number in range(12):
        producer.send(produce(number, acks=1, value=b"v" * 900_000))
    simulation.run_for(10)
    assert simulation.partition("orders", 0).log_end_offset == 12
    simulation.network.latency(1000, source=1, target="clients")
    client = VirtualClient(simulation)
    for number in range(12):
        fetch = header(1, 4, number) + struct.pack(">iiiib", -1, 200, 1, 1 << 20, 0)
        fetch += struct.pack(">ih", 1, 6) + b"orders"
        client.send(fetch + struct.pack(">iiqi", 1, 0, number, 1 << 20))
    simulation.run_for(1500)
    assert 8 <= len(client.answers) <= 10
    simulation.run_for(1500)
    assert [number for _, number in client.answers] == list(range(12))


# -- the queue -----------------------------------------------------------------------------------


def test_a_queue_delivers_in_order_and_counts_its_bytes(simulation: Simulation) -> None:
    loop = VirtualListener(simulation, 1).loop
    taken: list[tuple[str, int]] = []
    began_ms = simulation.now_ms
    queue: PacedQueue[str] = PacedQueue(
        cast(Any, loop), lambda item: taken.append((item, round(simulation.now_ms - began_ms)))
    )
    queue.put("slow", 10, 0.030)
    queue.put("fast", 5, 0.010)
    assert (len(queue), queue.bytes_held) == (2, 15)
    simulation.run_for(20)
    queue.put("later", 1, 0.020)
    simulation.run_for(11)
    assert taken == [("slow", 30), ("fast", 30)]
    assert (len(queue), queue.bytes_held) == (1, 1)
    queue.clear()
    simulation.run_for(100)
    assert (len(taken), len(queue), queue.bytes_held) == (2, 0, 0)


def test_an_item_queued_during_a_delivery_keeps_its_place(simulation: Simulation) -> None:
    """An item that is due at once waits for earlier items, and a lost item holds up no other."""
    taken: list[str] = []
    queue: PacedQueue[str] = PacedQueue(
        cast(Any, VirtualListener(simulation, 1).loop), taken.append
    )
    queue.put("first", 1, 0.010)
    queue.put("second", 1, 0.0)
    simulation.run_for(9)
    queue.put("third", 1, 0.0)
    assert taken == []
    simulation.run_for(2)
    assert taken == ["first", "second", "third"]
    queue.put("lost", 1, 0.010)
    queue.clear()
    queue.put("fourth", 1, 0.0)
    simulation.run_for(11)
    assert taken == ["first", "second", "third", "fourth"]


def test_a_live_cluster_has_the_same_links() -> None:
    """Over real sockets, ApiVersions and Metadata arrive together after one round trip."""
    with Cluster(1) as cluster:
        host, port = cluster.bootstrap_servers.split(":")
        cluster.network.latency(100)
        frames = [api_versions(0), *[metadata(number) for number in range(1, 40)]]
        with socket.create_connection((host, int(port)), 30) as connection:
            stream = connection.makefile("rb")
            began_s = time.monotonic()
            connection.sendall(b"".join(struct.pack(">i", len(f)) + f for f in frames))
            answered: list[int] = []
            for _ in frames:
                answer = stream.read(*struct.unpack(">i", stream.read(4)))
                answered += struct.unpack_from(">i", answer)
                assert time.monotonic() - began_s >= 0.19
            took_s = time.monotonic() - began_s
            stream.close()
    assert answered == list(range(40))
    assert took_s < 7.9  # one after the other, they would take 8 s
