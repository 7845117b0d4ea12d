"""Requests that are never answered, and answers after which the connection is closed."""

from __future__ import annotations

from fakekafka.protocol.data import MetadataResponse
from fakekafka.protocol.errors import ClosingAnswer, ErrorCode
from fakekafka.tests.support.kafka_listener import Wire

METADATA = MetadataResponse((), "cluster", -1, ())


async def test_a_connection_is_closed_behind_a_closing_answer(wire: Wire) -> None:
    """The answer arrives first, like that to a produce request whose records are null (2.8)."""
    client = await wire.connect()
    client.request(3, 1, 7, topics=())
    await wire.until(lambda: wire.backend.responders)
    failed = ErrorCode.UNKNOWN_SERVER_ERROR
    wire.backend.responders.pop()(ClosingAnswer(failed, METADATA))
    correlation, _ = await client.response(3, 1)
    assert correlation == 7
    assert await client.ended()


async def test_an_offset_fetch_of_no_group_is_never_answered(wire: Wire) -> None:
    """Kafka fails to count the errors of the answer (OffsetFetchResponse.errorCounts of 3.0)."""
    client = await wire.connect()
    client.request(9, 8, 1, groups=())
    client.request(3, 1, 2, topics=())
    await wire.until(lambda: wire.listener.connections)
    (connection,) = wire.listener.connections
    await wire.until(lambda: connection._waiting)
    assert wire.backend.requests == []
