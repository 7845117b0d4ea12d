"""Connections on asyncio and uvloop: frames, order, backpressure, acks=0 and disconnects."""

from __future__ import annotations

import asyncio
import datetime
import logging
import socket
import struct
from typing import Any

import pytest
from fakekafka.protocol.awaiting import Disconnected
from fakekafka.protocol.data import (
    MetadataRequest,
    MetadataResponse,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
)
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.groups import OffsetFetchRequest, OffsetFetchResponse
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.kafka_listener import MakeWire, Wire, parse_response, request_frame
from fakekafka.tests.support.present import present
from fakekafka.wire.kafka.connection import Connection
from kio.schema.produce.v9.request import PartitionProduceData, TopicProduceData
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import Records, i32

METADATA = MetadataResponse((), "cluster", -1, ())


def produce_fields(
    records: bytes = b"batch", acks: int = -1, partitions: tuple[int, ...] = (0,)
) -> Any:
    return {
        "acks": acks,
        "timeout": datetime.timedelta(seconds=1),
        "topic_data": (
            TopicProduceData(
                name=TopicName("orders"),
                partition_data=tuple(
                    PartitionProduceData(index=i32(number), records=Records(records))
                    for number in partitions
                ),
            ),
        ),
    }


def produced(error: ErrorCode = ErrorCode.NONE) -> Any:
    result = ProducePartitionResponse(TopicPartition("orders", 0), error, 41, -1, 0)
    return ProduceResponse((result,))


async def test_a_request_reaches_the_backend_with_its_context_and_its_answer_the_client(
    wire: Wire,
) -> None:
    """Client id, version and host travel with the request; the correlation id comes back."""
    client = await wire.connect()
    wire.backend.answer = lambda request: METADATA
    client.request(3, 9, 77, topics=None, include_cluster_authorized_operations=False,
                   include_topic_authorized_operations=False)  # fmt: skip
    correlation_id, response = await client.response(3, 9)
    assert (correlation_id, response.cluster_id, response.controller_id) == (77, "cluster", -1)
    assert MetadataRequest(None) == wire.backend.requests[0]
    context = wire.backend.contexts[0]
    assert (context.client_id, context.api_version, context.client_host) == ("raw", 9, "127.0.0.1")


async def test_a_null_client_id_is_accepted(wire: Wire) -> None:
    """DP-123: the client id of a request may be null; anything else malformed disconnects."""
    client = await wire.connect()
    wire.backend.answer = lambda request: produced()
    body = struct.pack(">hhih", 0, 2, 6, -1) + struct.pack(">hii", 1, 1000, 0)
    client.send(struct.pack(">i", len(body)) + body)
    assert await client.frame() == struct.pack(
        ">iih6siihqqi", 6, 1, 6, b"orders", 1, 0, 0, 41, -1, 0
    )
    assert wire.backend.contexts[0].client_id == ""


async def test_pipelined_requests_are_processed_one_by_one_and_answered_in_order(
    wire: Wire,
) -> None:
    """The second frame waits until the first request is answered, as on a muted channel."""
    client = await wire.connect()
    for correlation_id in range(5):
        client.request(3, 1, correlation_id, topics=())
    await wire.until(lambda: wire.backend.requests)
    await asyncio.sleep(0.005)
    assert len(wire.backend.requests) == 1
    for correlation_id in range(5):
        await wire.until(lambda: wire.backend.responders)
        wire.backend.responders.pop()(METADATA)
        assert correlation_id == (await client.response(3, 1))[0]
    assert len(wire.backend.requests) == 5


async def test_a_frame_may_come_byte_by_byte(wire: Wire) -> None:
    """A frame is complete when its last byte arrives, and not before."""
    client = await wire.connect()
    wire.backend.answer = lambda request: METADATA
    for byte in request_frame(3, 1, 5, topics=()):
        client.send(bytes([byte]))
        await asyncio.sleep(0)
    assert (await client.response(3, 1))[0] == 5


@pytest.mark.parametrize("size", [100, 4000, 5000, 70_000, 3_000_000])
async def test_frames_of_any_size_arrive_whole_between_small_ones(wire: Wire, size: int) -> None:
    """Small frames are cut from the receive buffer, large ones are received in place."""
    records = bytes(range(256)) * (size // 256 + 1)
    client = await wire.connect()
    wire.backend.answer = lambda request: (
        produced() if isinstance(request, ProduceRequest) else METADATA
    )
    small = request_frame(3, 1, 1, topics=())
    big = request_frame(0, 9, 2, **produce_fields(records))
    client.send(small + big + small + big + small)
    for key, version, correlation_id in [(3, 1, 1), (0, 9, 2), (3, 1, 1), (0, 9, 2), (3, 1, 1)]:
        assert correlation_id == (await client.response(key, version))[0]
    for request in wire.backend.requests[1:4:2]:
        assert records == bytes(request.partitions[0].records)


async def test_records_of_a_produce_request_are_a_view_of_the_received_frame(wire: Wire) -> None:
    """Records are not copied on the way from the socket to the log."""
    client = await wire.connect()
    client.send(request_frame(0, 9, 2, **produce_fields(b"x" * 100_000, partitions=(0, 1))))
    await wire.until(lambda: wire.backend.requests)
    first, second = wire.backend.requests[0].partitions
    assert isinstance(first.records, memoryview)
    assert first.records.obj is second.records.obj
    assert len(first.records) == 100_000


async def test_acks_zero_is_not_answered_and_the_next_request_is_handled(wire: Wire) -> None:
    """DP: produce with acks=0 gets no response (docs/kafka/produce.md#acknowledgement)."""
    client = await wire.connect()
    wire.backend.answer = lambda request: (
        produced() if isinstance(request, ProduceRequest) else METADATA
    )
    client.request(0, 9, 1, **produce_fields(acks=0))
    client.request(3, 1, 2, topics=())
    assert (await client.response(3, 1))[0] == 2


async def test_a_failure_with_acks_zero_closes_the_connection_without_a_log_line(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    """The disconnect tells the client to refresh its metadata
    (docs/kafka/produce.md#acknowledgement).
    """
    client = await wire.connect()
    wire.backend.answer = lambda request: produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    client.request(0, 9, 1, **produce_fields(acks=0))
    assert await client.ended()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_one_failed_partition_is_enough_with_acks_zero(wire: Wire) -> None:
    """The connection is closed although other partitions were stored
    (``KafkaApis.handleProduceRequest``).
    """
    client = await wire.connect()
    stored, failed = (
        produced(error).partitions[0]
        for error in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    )
    wire.backend.answer = lambda request: ProduceResponse((stored, failed, stored))
    client.request(0, 9, 1, **produce_fields(acks=0, partitions=(0, 1, 2)))
    assert await client.ended()


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.NETWORK_EXCEPTION), Disconnected("gone")])
async def test_an_exception_as_the_answer_closes_the_connection_silently(
    wire: Wire, caplog: pytest.LogCaptureFixture, error: Any
) -> None:
    """A stopped broker or an injected disconnect is not logged."""
    client = await wire.connect()
    wire.backend.answer = lambda request: error
    client.request(3, 1, 1, topics=())
    assert await client.ended()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_failing_backend_is_logged_as_an_error_and_costs_one_connection(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug behind the listener is logged with its traceback, and other clients are served."""
    first, second = await wire.connect(), await wire.connect()
    wire.backend.answer = lambda request: 1 // 0 if request.topics == () else METADATA
    first.request(3, 1, 1, topics=())
    assert await first.ended()
    second.request(3, 1, 2, topics=None)
    assert (await second.response(3, 1))[0] == 2
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (logging.ERROR, ZeroDivisionError) == (record.levelno, present(record.exc_info)[0])


async def test_an_answer_after_the_connection_has_gone_or_a_second_one_is_ignored(
    wire: Wire,
) -> None:
    """A backend may answer late or twice without harm."""
    client = await wire.connect()
    client.request(3, 1, 1, topics=())
    client.request(3, 1, 2, topics=())
    await wire.until(lambda: wire.backend.responders)
    respond = wire.backend.responders.pop()
    respond(METADATA)
    respond(METADATA)
    assert (await client.response(3, 1))[0] == 1
    await wire.until(lambda: wire.backend.responders)
    await client.close()
    await wire.until(lambda: not wire.listener.connections)
    wire.backend.responders.pop()(METADATA)


async def test_several_groups_in_one_offset_fetch_are_requests_of_their_own(wire: Wire) -> None:
    """Wire 3: OffsetFetch 8 and later is batched; the answers keep the order of the groups."""
    from kio.schema.offset_fetch.v8.request import OffsetFetchRequestGroup

    client = await wire.connect()
    groups = tuple(OffsetFetchRequestGroup(group_id=GroupId(name), topics=None) for name in "ab")
    client.request(9, 8, 1, groups=groups)
    await wire.until(lambda: len(wire.backend.responders) == 2)
    assert [OffsetFetchRequest(name, None) for name in "ab"] == wire.backend.requests
    first, second = wire.backend.responders
    second(OffsetFetchResponse(ErrorCode.NONE, ()))
    second(OffsetFetchResponse(ErrorCode.NONE, ()))
    first(OffsetFetchResponse(ErrorCode.NOT_COORDINATOR, ()))
    _, response = await client.response(9, 8)
    assert [(group.group_id, group.error_code.value) for group in response.groups] == [
        ("a", 16),
        ("b", 0),
    ]


async def test_reading_stops_while_many_frames_wait_and_resumes_later(wire: Wire) -> None:
    """A client that sends without reading cannot exhaust the memory."""
    many = 20_000
    client = await wire.connect()
    frame = request_frame(3, 1, 1, topics=())
    client.send(frame * many)
    await wire.until(lambda: wire.backend.responders)
    (connection,) = wire.listener.connections
    await asyncio.sleep(0.02)
    assert len(connection._waiting) < many / 2
    wire.backend.answer = lambda request: METADATA
    wire.backend.responders.pop()(METADATA)
    for _ in range(many):
        await client.frame()
    assert many == len(wire.backend.requests)


async def test_a_client_that_does_not_read_stops_the_processing_of_its_requests(wire: Wire) -> None:
    """Responses to a client that does not read accumulate only up to the transport's limit."""
    many = 300
    big = MetadataResponse((), "x" * 30_000, -1, ())
    client = await wire.connect()
    wire.backend.answer = lambda request: big
    transport: Any = client.writer.transport
    transport.pause_reading()
    for correlation_id in range(many):
        client.request(3, 2, correlation_id, topics=())
    await wire.until(lambda: wire.listener.connections[0]._writing_paused)
    processed = len(wire.backend.requests)
    await asyncio.sleep(0.01)
    assert processed == len(wire.backend.requests) < many
    transport.resume_reading()
    for correlation_id in range(many):
        assert correlation_id == (await client.response(3, 2))[0]


async def test_nagle_is_off(wire: Wire) -> None:
    """Nagle's algorithm is off, so that small responses are sent at once."""
    await wire.connect()
    await wire.until(lambda: wire.listener.connections)
    connection: Connection = wire.listener.connections[0]
    sock = present(connection._transport).get_extra_info("socket")
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_an_idle_client_that_sent_requests_is_disconnected_silently(
    make_wire: MakeWire, caplog: pytest.LogCaptureFixture
) -> None:
    """connections.max.idle.ms closes quietly; a connection that awaits an answer is not idle."""
    wire = make_wire(idle_ms=30)
    client = await wire.connect()
    client.request(3, 1, 1, topics=())
    await asyncio.sleep(0.05)
    wire.backend.responders.pop()(METADATA)
    assert (await client.response(3, 1))[0] == 1
    assert await client.ended()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_large_answers_are_sent_as_stored(wire: Wire) -> None:
    """Stored batches reach the transport as the same objects, in few buffers."""
    from fakekafka.protocol.data import FetchPartitionResponse, FetchResponse
    from fakekafka.protocol.records.batch import RecordBatch

    batches = tuple(RecordBatch(bytes([65 + n]) * 100_000, n, n) for n in range(3))
    response = FetchResponse(
        ErrorCode.NONE,
        0,
        (FetchPartitionResponse(TopicPartition("t", 0), ErrorCode.NONE, 1, 1, 0, batches),),
    )
    parts = wire.service.codec.encode_frame(1, 12, 9, response)
    assert [id(batch.data) for batch in batches] == [id(part) for part in parts[1:4]]
    assert len(parts) == 5
    whole = b"".join(parts)
    assert struct.unpack(">i", whole[:4])[0] == len(whole) - 4
    _, entity = parse_response(1, 12, whole[4:])
    assert b"".join(batch.data for batch in batches) == entity.responses[0].partitions[0].records
