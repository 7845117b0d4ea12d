"""DescribeProducers (key 61): the producers that the leader of a partition knows (KIP-664).

Version 0, flexible.
"""

from __future__ import annotations

from ....protocol.transactions import (
    ActiveProducer,
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from ..api import Api
from ..primitives import Reader, Writer, by_topic


def decode(reader: Reader, version: int) -> DescribeProducersRequest:
    partitions = reader.topic_partitions()
    reader.tags()
    return DescribeProducersRequest(partitions)


def encode(
    writer: Writer,
    version: int,
    response: DescribeProducersResponse,
    request: DescribeProducersRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    topics = by_topic(response.partitions)
    writer.array(len(topics))
    for topic, results in topics:
        writer.string(topic)
        writer.array(len(results))
        for result in results:
            writer.int32(result.topic_partition.partition)
            writer.int16(result.error)
            writer.nullable_string(result.error_message)
            writer.array(len(result.producers))
            for producer in result.producers:
                _encode_producer(writer, producer)
            writer.tags()
        writer.tags()
    writer.tags()


def _encode_producer(writer: Writer, producer: ActiveProducer) -> None:
    writer.int64(producer.producer_id)
    writer.int32(producer.producer_epoch)
    writer.int32(producer.last_sequence)
    writer.int64(producer.last_timestamp)
    writer.int32(producer.coordinator_epoch)
    writer.int64(producer.transaction_start_offset)
    writer.tags()


API = Api(61, "DescribeProducers", 0, 0, flexible_from=0, decode=decode, encode=encode)
