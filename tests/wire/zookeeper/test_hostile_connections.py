"""Connections that send nonsense, too much or nothing, or do not read, harm only themselves."""

from __future__ import annotations

import contextlib
import logging
import os
import struct
from typing import Any

import pytest
from fakekafka.tests.support.zookeeper_servers import Ensemble
from fakekafka.wire import request_memory
from kazoo.protocol import serialization as kz
from kazoo.security import OPEN_ACL_UNSAFE as ACL

pytestmark = pytest.mark.timeout(60)


def connect_frame() -> bytes:
    body = kz.Connect(0, 0, 6000, 0, bytes(16), False).serialize()
    return struct.pack(">i", len(body)) + bytes(body)


NONSENSE = {
    "negative length": (struct.pack(">i", -5), "a frame of -5 bytes"),
    "over the limit": (struct.pack(">i", 0x100000), "jute.maxbuffer is 1048575"),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "a frame of 1195725856 bytes"),
    "four letters": (b"ruok", "a frame of 1920298859 bytes"),
    "empty frame": (struct.pack(">i", 0), "a frame of 0 bytes is not a connect request"),
    "another version": (
        struct.pack(">iiqiqi", 28, 3, 0, 0, 0, -1),
        "protocol version 3 is not supported; only 0 is",
    ),
    "unknown opcode": (connect_frame() + struct.pack(">iii", 8, 1, 4711), "opcode 4711 is unknown"),
    "bad body": (connect_frame() + struct.pack(">iii", 8, 1, 3), "opcode 3 that cannot be decoded"),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_closes_that_connection_with_one_log_line(
    server: Ensemble, caplog: pytest.LogCaptureFixture, what: Any
) -> None:
    """The line names peer, server and reason, and other clients are not disturbed."""
    data, reason = NONSENSE[what]
    bystander = server.raw()
    bystander.connect()
    raw = server.raw()
    peer = "{}:{}".format(*raw.socket.getsockname())
    with caplog.at_level(logging.DEBUG, logger="fakekafka.wire"):
        raw.socket.sendall(data)
        while not raw.ended():
            pass
        server.until(lambda: server.tcp.connection_count == 1)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"ZooKeeper server 1 closed the connection from {peer}" in record.message
    assert reason in record.message
    bystander.ask(kz.Exists("/", None))


def test_a_connection_that_ends_inside_a_frame_is_logged(
    server: Ensemble, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection that ends inside a frame is logged with the number of its bytes."""
    raw = server.raw()
    with caplog.at_level(logging.WARNING, logger="fakekafka.wire"):
        raw.socket.sendall(connect_frame()[:20])
        raw.close()
        server.until(lambda: caplog.records)
    assert "the connection ended inside a frame, after 20 bytes" in caplog.text


@pytest.mark.slow
def test_a_client_that_never_requests_a_session_is_disconnected(
    server: Ensemble, caplog: pytest.LogCaptureFixture
) -> None:
    """The connection ends after ZooKeeper's timeout for connections without a session."""
    (listener,) = server.tcp._listeners.values()
    listener.service.connect_timeout_ms = 50
    with caplog.at_level(logging.WARNING, logger="fakekafka.wire"):
        assert server.raw().ended()
        server.until(lambda: caplog.records)
    assert "no connect request within 50 ms" in caplog.text


def test_a_packet_over_the_servers_limit_costs_its_sender_the_connection(server: Ensemble) -> None:
    """As in ZooKeeper, the packet is not answered, and the session lives on."""
    raw = server.raw()
    opened = raw.connect()
    with contextlib.suppress(ConnectionError):  # the connection may end during this
        raw.call(kz.Create("/big", bytes(0xFFFFF), ACL, 0))
    assert raw.ended()
    again = server.raw()
    assert again.connect(session_id=opened.session_id, password=opened.passwd) == opened


def test_a_client_that_sends_without_reading_is_held_back(server: Ensemble) -> None:
    """Thousands of requests at once are all answered, in order."""
    raw = server.raw()
    raw.connect()
    raw.ask(kz.Create("/a", bytes(2000), ACL, 0))
    request = kz.GetData("/a", None)
    frames = bytearray()
    for xid in range(5000):
        body = struct.pack(">ii", xid, request.type) + request.serialize()
        frames += struct.pack(">i", len(body)) + body
    raw.socket.sendall(frames)
    assert [raw.reply()[0].xid for _ in range(5000)] == list(range(5000))


def test_no_request_is_handled_while_the_client_does_not_read(server: Ensemble) -> None:
    """The transport calls ``pause_writing`` while its buffer is full, then ``resume_writing``."""
    raw = server.raw()
    raw.connect()
    (listener,) = server.tcp._listeners.values()
    (connection,) = listener.connections
    bystander = server.raw()
    bystander.connect()
    listener.loop.call_soon_threadsafe(connection.pause_writing)
    server.until(lambda: connection._reading_paused)
    raw.call(kz.Exists("/", None))
    bystander.ask(kz.Exists("/", None))
    frame = struct.pack(">iii", 8, -2, 11)  # a ping that the transport had read before
    listener.loop.call_soon_threadsafe(connection.data_received, frame)
    bystander.ask(kz.Exists("/", None))
    assert len(connection._frames) == len(frame)
    raw.socket.settimeout(0.001)
    with pytest.raises(TimeoutError):
        raw.socket.recv(1)
    raw.socket.settimeout(10)
    listener.loop.call_soon_threadsafe(connection.resume_writing)
    assert [raw.reply()[0].xid for _ in range(2)] == [-2, 1]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
def test_two_hundred_connections_leave_nothing_behind(server: Ensemble) -> None:
    """Nothing is left whether the session was closed or the connection just broke."""
    server.raw().connect()
    before = descriptors(), len(server.runtime.network.nodes)
    for index in range(200):
        raw = server.raw()
        raw.connect(timeout_ms=100)
        raw.ask(kz.GetChildren("/", print))
        if index % 2:
            raw.call(kz.CloseInstance)
            raw.reply()
            assert raw.ended()
        raw.close()
    server.until(lambda: server.tcp.connection_count == 1)
    assert (descriptors(), len(server.runtime.network.nodes)) == before
    server.until(lambda: server.call(1, lambda core: len(core.storage.tree.sessions)) == 1)
    assert server.call(1, lambda core: len(core.connections.by_id)) == 1
    assert server.call(1, lambda core: len(core.watches)) == 0


def test_packets_that_never_end_hold_a_limited_memory(
    server: Ensemble, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of many clients that send half a packet, the oldest are cut, and others are served."""
    monkeypatch.setattr(request_memory, "STALL_S", 0.02)
    (listener,) = server.tcp._listeners.values()
    listener.service.memory = request_memory.RequestMemory(listener.loop, 1_000_000)
    idle = [server.raw() for _ in range(4)]
    for raw in idle:
        raw.socket.sendall(struct.pack(">i", 900_000) + bytes(400_000))
    for raw in idle:
        assert raw.ended()
    assert "unprocessed requests of all connections hold" in caplog.text
    raw = server.raw()
    raw.connect()
    raw.ask(kz.Exists("/", None))
    server.until(lambda: listener.service.memory.total == 0)
