"""ListPartitionReassignments (key 46): the moves of replicas that are going on (KIP-455).

Version 0, flexible. Null topics ask for all.
"""

from __future__ import annotations

from ....protocol.admin import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse
from ..api import Api
from ..primitives import Reader, Writer, by_topic


def decode(reader: Reader, version: int) -> ListPartitionReassignmentsRequest:
    timeout_ms = reader.int32()
    partitions = reader.nullable_topic_partitions()
    reader.tags()
    return ListPartitionReassignmentsRequest(partitions, timeout_ms)


def encode(
    writer: Writer,
    version: int,
    response: ListPartitionReassignmentsResponse,
    request: ListPartitionReassignmentsRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    writer.nullable_string(response.error_message)
    topics = by_topic(response.reassignments)
    writer.array(len(topics))
    for topic, reassignments in topics:
        writer.string(topic)
        writer.array(len(reassignments))
        for ongoing in reassignments:
            writer.int32(ongoing.topic_partition.partition)
            writer.int32s(ongoing.replicas)
            writer.int32s(ongoing.adding)
            writer.int32s(ongoing.removing)
            writer.tags()
        writer.tags()
    writer.tags()


API = Api(46, "ListPartitionReassignments", 0, 0, flexible_from=0, decode=decode, encode=encode)
