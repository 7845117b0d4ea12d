"""WriteTxnMarkers (key 27): a transaction coordinator ends transactions on partitions.

Versions 0-1. 1: flexible. Sent by brokers, and by administrators who abort a hanging transaction.
"""

from __future__ import annotations

from ....protocol.transactions import (
    TransactionMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ..api import Api
from ..primitives import Reader, Writer
from ..tuple_groups import tuples_by_topic


def decode(reader: Reader, version: int) -> WriteTxnMarkersRequest:
    markers = []
    for _ in range(reader.array()):
        producer_id = reader.int64()
        epoch = reader.int16()
        is_commit = reader.boolean()
        partitions = reader.topic_partitions()
        coordinator_epoch = reader.int32()
        reader.tags()
        markers.append(
            TransactionMarker(producer_id, epoch, is_commit, partitions, coordinator_epoch)
        )
    reader.tags()
    return WriteTxnMarkersRequest(tuple(markers))


def encode(
    writer: Writer,
    version: int,
    response: WriteTxnMarkersResponse,
    request: WriteTxnMarkersRequest | None,
) -> None:
    writer.array(len(response.markers))
    for producer_id, partitions in response.markers:
        writer.int64(producer_id)
        topics = tuples_by_topic(partitions)
        writer.array(len(topics))
        for topic, results in topics:
            writer.string(topic)
            writer.array(len(results))
            for partition, error in results:
                writer.int32(partition.partition)
                writer.int16(error)
                writer.tags()
            writer.tags()
        writer.tags()
    writer.tags()


API = Api(27, "WriteTxnMarkers", 0, 1, flexible_from=1, decode=decode, encode=encode)
