"""Produce requests that would delay all others are handled one partition at a time."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.data import (
    MetadataRequest,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.hostile_payloads import batch, produce
from fakekafka.tests.support.kafka_listener import Wire
from fakekafka.tests.support.wire_trees import frame

METADATA = frame(3, 1, {"topics": [{"name": "x"}]})
PACKED = batch(b"x" * 100_000, 1, 1)


def results(request: Any) -> ProduceResponse:
    return ProduceResponse(
        tuple(
            ProducePartitionResponse(
                entry.topic_partition, ErrorCode.NONE, 10 + entry.topic_partition.partition, -1, 0
            )
            for entry in request.partitions
        )
    )


@pytest.mark.parametrize(
    "records", [PACKED, batch(b"", 60_000), batch(b"x" * 70_000, 60_000, 4)], ids=len
)
async def test_partitions_are_handed_out_one_by_one_and_answered_together(
    wire: Wire, records: bytes
) -> None:
    """Requests of other clients are handled in between, and the client gets one response."""
    busy, other = await wire.connect(), await wire.connect()

    def answer(request: Any) -> Any:
        if len(wire.backend.requests) == 4:  # the first part of the second request
            other.send(METADATA)
        return results(request) if isinstance(request, ProduceRequest) else RuntimeError("no")

    wire.backend.answer = answer
    busy.send(produce("t", [records] * 3, 7))
    response = (await busy.response(0, 7))[1]
    assert [type(one) for one in wire.backend.requests] == [ProduceRequest] * 3
    numbers = [one.partitions[0].topic_partition.partition for one in wire.backend.requests]
    assert numbers == [0, 1, 2]
    (topic,) = response.responses
    assert [p.base_offset for p in topic.partition_responses] == [10, 11, 12]
    busy.send(produce("t", [records] * 40, 7))
    await wire.until(lambda: len(wire.backend.requests) == 44)
    at = [type(one) for one in wire.backend.requests].index(MetadataRequest)
    assert at < 43


@pytest.mark.parametrize(
    "records", [[PACKED], [batch(b"x" * 1000, 10, 1)] * 3, [batch(b"x" * 100_000, 10)] * 3], ids=len
)
async def test_other_requests_stay_whole(wire: Wire, records: list[bytes]) -> None:
    """A request of one partition, few bytes, or few and uncompressed records is not split."""
    client = await wire.connect()
    client.send(produce("t", records, 7))
    await wire.until(lambda: wire.backend.requests)
    (request,) = wire.backend.requests
    assert len(request.partitions) == len(records)


async def test_a_failure_closes_the_connection_and_later_answers_come_too_late(wire: Wire) -> None:
    """The connection is closed as for a request that is handled in one go."""
    client = await wire.connect()
    client.send(produce("t", [PACKED] * 3, 7))
    await wire.until(lambda: len(wire.backend.responders) == 3)
    first, second, third = wire.backend.responders
    request = wire.backend.requests[0]
    first(results(request))
    second(RuntimeError("a bug"))
    third(results(request))
    await client.ended()
