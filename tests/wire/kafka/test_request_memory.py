"""Memory of connections: buffers grow with the bytes that arrive, and have a common limit."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import struct
import tracemalloc

import pytest
from fakekafka.protocol.data import MetadataResponse
from fakekafka.tests.support.kafka_listener import MakeWire, Wire
from fakekafka.wire import accepting, request_memory

METADATA = MetadataResponse((), "cluster", -1, ())
LARGE = struct.pack(">i", 100_000_000)


def metadata_frame(size: int) -> bytes:
    """Return a Metadata request that long topic names fill up to a size."""
    name = b"x" * 30_000
    topics = (size - 14) // 30_002
    body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", topics)
    body += (struct.pack(">h", len(name)) + name) * topics
    return struct.pack(">i", len(body)) + body


async def test_an_announced_frame_takes_no_memory_before_it_comes(wire: Wire) -> None:
    """Four bytes that announce 100 MB take up four bytes."""
    tracemalloc.start()
    try:
        for _ in range(30):
            (await wire.connect()).send(LARGE + b"x")
        await wire.until(lambda: len(wire.listener._connections) == 30)
        await wire.until(lambda: wire.service.memory.total)
        await asyncio.sleep(0.005)
        assert tracemalloc.get_traced_memory()[0] < 16_000_000
    finally:
        tracemalloc.stop()
    assert 0 < wire.service.memory.total < 3_000_000


async def test_many_frames_of_usual_size_are_announced_in_vain_too(wire: Wire) -> None:
    """The first frames get buffers of their size; with many of them, buffers grow as well."""
    for _ in range(60):
        (await wire.connect()).send(struct.pack(">i", 1_000_000) + b"x")
    await wire.until(lambda: len(wire.service.memory._held) == 60)
    assert wire.service.memory.total < 20_000_000


@pytest.mark.parametrize("size", [900_000, 3_000_000])
async def test_a_frame_that_comes_in_pieces_is_whole(wire: Wire, size: int) -> None:
    """The frame is whole whether its buffer had its full size at once or grew."""
    frame = metadata_frame(size)
    client = await wire.connect()
    wire.backend.answer = lambda request: METADATA
    for start in range(0, len(frame), 70_001):
        client.send(frame[start : start + 70_001])
        await asyncio.sleep(0)
    await client.response(3, 1)
    (request,) = wire.backend.requests
    assert request.topics == ("x" * 30_000,) * ((size - 14) // 30_002)
    assert wire.service.memory.total == 0


async def test_beyond_the_limit_only_the_oldest_reads_on_and_all_are_served_in_turn(
    make_wire: MakeWire,
) -> None:
    """``queued.max.request.bytes``: many half-received requests starve no other request."""
    wire = make_wire(queued_bytes_max=200_000)
    frame = metadata_frame(150_000)
    wire.backend.answer = lambda request: METADATA
    clients = [await wire.connect() for _ in range(6)]
    for client in clients:
        client.send(frame[:100_000])
    await wire.until(lambda: wire.service.memory.is_full)
    for client in reversed(clients):
        client.send(frame[100_000:])
    for client in clients:
        await client.response(3, 1)
    assert wire.service.memory.total == 0
    assert not any(c._reading_paused for c in wire.listener.connections)


async def test_small_requests_are_served_while_the_memory_is_full(make_wire: MakeWire) -> None:
    """Clients that send whole requests do not wait for those that do not."""
    wire = make_wire(queued_bytes_max=100_000)
    wire.backend.answer = lambda request: METADATA
    for _ in range(4):
        (await wire.connect()).send(LARGE + bytes(90_000))
    await wire.until(lambda: wire.service.memory.is_full)
    client = await wire.connect()
    client.request(3, 1, 7, topics=())
    assert (await client.response(3, 1))[0] == 7


async def test_connections_that_keep_the_memory_full_are_cut(
    make_wire: MakeWire, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no request is processed for a while, connections that waited for it are cut and logged."""
    monkeypatch.setattr(request_memory, "STALL_S", 0.02)
    wire = make_wire(queued_bytes_max=100_000)
    wire.backend.answer = lambda request: METADATA
    idle = [await wire.connect() for _ in range(4)]
    for client in idle:
        client.send(LARGE + bytes(90_000))
    await wire.until(lambda: wire.service.memory.is_full)
    for client in idle:
        assert await client.ended()
    assert wire.service.memory.total == 0
    client = await wire.connect()
    client.send(metadata_frame(150_000))
    await client.response(3, 1)
    lines = [record.getMessage() for record in caplog.records if record.name == "fakekafka.wire"]
    assert len(lines) == 4
    assert all("queued.max.request.bytes allows for 100000" in line for line in lines)


@pytest.mark.slow
async def test_an_idle_connection_is_small(wire: Wire) -> None:
    """An idle connection has no buffers: 64 KB each would be 130 MB for two thousand."""
    count = 100
    await wire.connect()
    gc.collect()
    clients = []
    tracemalloc.start()
    try:
        for _ in range(count):
            client = socket.socket()
            clients.append(client)
            client.setblocking(False)
            await wire.loop.sock_connect(client, ("127.0.0.1", wire.listener.port))
        await wire.until(lambda: len(wire.listener._connections) == count + 1)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] / count < 10_000
    finally:
        tracemalloc.stop()
        for client in clients:
            client.close()


async def test_refused_connections_are_logged_at_a_bounded_rate(
    wire: Wire, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that reconnects in a loop causes some lines and a count, and not a full disk."""
    monkeypatch.setattr(accepting, "LINES_MAX", 5)
    for _ in range(12):
        client = await wire.connect()
        client.send(struct.pack(">i", -1))
        assert await client.ended()
    wire.listener.bounded_log.end_period()
    lines = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(lines) == 6
    assert lines[-1] == "broker 7: 7 more lines like the last ones were suppressed"
