"""Nonsense on a socket closes that connection with one log line, and has no other effect."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from typing import Any

import pytest
from fakekafka.protocol.api_versions import API_NAMES
from fakekafka.protocol.data import MetadataResponse
from fakekafka.protocol.errors import ClientError
from fakekafka.tests.support.examples import examples
from fakekafka.tests.support.kafka_listener import MakeWire, Wire
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.registry import CODEC_RANGES
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

METADATA = MetadataResponse((), "cluster", -1, ())


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int, rest: bytes = b"") -> bytes:
    return struct.pack(">hhih", key, version, 1, -1) + rest


NONSENSE = {
    "negative length": (struct.pack(">i", -5), "a frame of -5 bytes"),
    "huge length": (struct.pack(">i", 2**31 - 1), "a frame of 2147483647 bytes"),
    "length over the limit": (struct.pack(">i", 104857601), "socket.request.max.bytes"),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "a frame of 1195725856 bytes"),
    "empty frame": (frame(b""), "a request of 0 bytes is too short"),
    "short header": (frame(b"\0\3\0\1"), "a request of 4 bytes is too short"),
    "unknown API": (frame(header(999, 0)), "API key 999 is not offered"),
    "API between brokers": (frame(header(4, 1)), r"API key 4 \(LeaderAndIsr\) is not offered"),
    "API without a codec": (frame(header(71, 0)), "API key 71 is not offered"),
    "version too new": (frame(header(3, 99)), "Metadata version 99 is not offered; versions 0 to"),
    "version too old": (
        frame(header(8, -1)),
        "OffsetCommit version -1 is not offered; versions 0 to",
    ),
    "no body": (frame(header(2, 1)), "ListOffsets version 1 cannot be decoded"),
    "client id beyond the end": (
        frame(struct.pack(">hhih", 3, 1, 1, 500)),
        "ends inside its header",
    ),
    "client id of bad bytes": (
        frame(struct.pack(">hhih", 3, 1, 1, 2) + b"\xff\xfe"),
        "the client id is not UTF-8",
    ),
    "huge array": (
        frame(header(3, 1, struct.pack(">i", 2**31 - 1))),
        "an array of 2147483647 elements with 0 bytes remaining",
    ),
    "endless varint": (frame(header(3, 9, b"\0" + b"\xff" * 9)), "a varint of more than 5"),
}


@pytest.mark.parametrize("what", NONSENSE)
async def test_nonsense_closes_that_connection_with_one_log_line(
    wire: Wire, caplog: pytest.LogCaptureFixture, what: Any
) -> None:
    """DP-123: unknown keys, versions and headers disconnect; the line names peer, broker and
    reason.

    Another client's request in process is answered.
    """
    sent, reason = NONSENSE[what]
    other = await wire.connect()
    other.request(3, 1, 1, topics=())
    await wire.until(lambda: wire.backend.responders)
    nonsense = await wire.connect()
    nonsense.send(sent)
    assert await nonsense.ended()
    peer = nonsense.writer.get_extra_info("sockname")
    wire.backend.responders.pop()(METADATA)
    assert (await other.response(3, 1))[0] == 1
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("fakekafka.wire", logging.WARNING)
    text = record.getMessage()
    assert text.startswith(f"broker 7 closed the connection from {peer[0]}:{peer[1]}: ")
    assert record.exc_info is None
    assert "\n" not in text
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(text)
    assert len(wire.backend.requests) == 1


@pytest.mark.parametrize("sent", [b"\0", b"\0\0\0\x20abc", struct.pack(">i", 9000) + b"x" * 99])
async def test_a_truncated_frame_is_logged_when_the_connection_ends(
    wire: Wire, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    """A disconnect in the middle of a frame is logged."""
    client = await wire.connect()
    client.send(sent)
    await wire.until(lambda: wire.listener.connections)
    await asyncio.sleep(0.005)
    await client.close()
    await wire.until(lambda: not wire.listener.connections)
    (record,) = caplog.records
    assert "the connection ended inside a frame" in record.getMessage()


async def test_a_connection_closed_between_frames_is_no_nonsense(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    """Disconnects of clients between frames, and port probes, are not logged."""
    probe = await wire.connect()
    await probe.close()
    client = await wire.connect()
    client.request(3, 1, 1, topics=())
    await wire.until(lambda: wire.backend.requests)
    await client.close()
    await wire.until(lambda: not wire.listener.connections)
    assert [r for r in caplog.records if r.name.startswith("fakekafka")] == []


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\x20abc"])
async def test_a_half_open_connection_is_closed_after_the_idle_time_with_one_log_line(
    make_wire: MakeWire, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    """A peer that never completes a request is disconnected by connections.max.idle.ms."""
    wire = make_wire(idle_ms=20)
    client = await wire.connect()
    client.send(sent)
    assert await client.ended()
    (record,) = caplog.records
    assert "no complete request within 20 ms" in record.getMessage()


async def test_a_reset_connection_takes_nothing_else_down(wire: Wire) -> None:
    """The connection ends by RST instead of FIN, with a request in process."""
    client = await wire.connect()
    client.request(3, 1, 1, topics=())
    await wire.until(lambda: wire.backend.responders)
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.writer.transport.abort()
    await wire.until(lambda: not wire.listener.connections)
    wire.backend.responders.pop()(METADATA)
    again = await wire.connect()
    wire.backend.answer = lambda request: METADATA
    again.request(3, 1, 2, topics=())
    assert (await again.response(3, 1))[0] == 2


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.binary(min_size=1, max_size=300), framed=st.booleans())
def test_random_bytes_end_in_a_closed_connection_and_one_log_line(
    wire: Wire, caplog: pytest.LogCaptureFixture, data: Any, framed: Any
) -> None:
    """The listener survives any bytes, and logs one line for each connection that it closes."""
    wire.listener.bounded_log.end_period()  # otherwise the lines of many examples are suppressed
    caplog.clear()

    async def send() -> None:
        client = await wire.connect()
        wire.backend.answer = lambda request: ConnectionError("the stub does not answer")
        client.send(frame(data) if framed else data)
        await asyncio.sleep(0)
        client.writer.write_eof()
        await client.ended()
        await client.close()
        await wire.until(lambda: not wire.listener.connections)

    wire.loop.run_until_complete(asyncio.wait_for(send(), 20))
    lines = [record for record in caplog.records if record.name.startswith("fakekafka")]
    assert len(lines) <= 1


@settings(max_examples=examples(400), deadline=None)
@given(
    choice=st.sampled_from(sorted(CODEC_RANGES)),
    version=st.integers(0, 17),
    body=st.binary(max_size=120),
)
@example(choice=3, version=9, body=b"\x02" + bytes(16) + b"\xff\xff\xff\xff\x0f")
def test_random_bodies_are_decoded_or_refused_as_client_errors(
    choice: Any, version: int, body: Any
) -> None:
    """A decoder fails in no other way than by ``ClientError``."""
    version = min(version, CODEC_RANGES[choice].maximum)
    try:
        Codec("3.9").decode(choice, version, memoryview(body))
    except ClientError as error:
        text = str(error)
        assert text.startswith(f"{API_NAMES[choice]} version {version} cannot be decoded: ")
