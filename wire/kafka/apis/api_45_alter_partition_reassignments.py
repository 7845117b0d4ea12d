"""AlterPartitionReassignments (key 45): move replicas, or cancel a move (KIP-455).

Version 0, flexible. Null replicas cancel.
"""

from __future__ import annotations

from ....protocol.admin import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from ....protocol.values import TopicPartition
from ..api import Api
from ..primitives import Reader, Writer
from .api_43_elect_leaders import encode_partition_errors


def decode(reader: Reader, version: int) -> AlterPartitionReassignmentsRequest:
    timeout_ms = reader.int32()
    reassignments: list[tuple[TopicPartition, tuple[int, ...] | None]] = []
    for _ in range(reader.array()):
        topic = reader.string()
        for _ in range(reader.array()):
            partition = TopicPartition(topic, reader.int32())
            reassignments.append((partition, reader.nullable_int32s()))
            reader.tags()
        reader.tags()
    reader.tags()
    return AlterPartitionReassignmentsRequest(tuple(reassignments), timeout_ms)


def encode(
    writer: Writer,
    version: int,
    response: AlterPartitionReassignmentsResponse,
    request: AlterPartitionReassignmentsRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    writer.nullable_string(response.error_message)
    encode_partition_errors(writer, response.partitions)
    writer.tags()


API = Api(45, "AlterPartitionReassignments", 0, 0, flexible_from=0, decode=decode, encode=encode)
