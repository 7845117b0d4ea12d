"""Produce (key 0): record batches for partitions, acknowledged as ``acks`` asks.

Versions 0-11. Below 3 records have the formats v0 and v1, which the log converts when it appends.
1: throttle time. 2: append time. 3: transactional id, format v2 only. 5: log start offset.
8: record errors and message (KIP-467). 9: flexible. 10: the current leader where the wrong broker
was asked (KIP-951). Error codes that old clients do not know are replaced
(docs/kafka/produce.md#answers). The hot path: records stay a view of the received frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from ....protocol.data import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
)
from ....protocol.errors import ErrorCode
from ....protocol.values import TopicPartition
from ..api import Api, SplitRequest
from ..endpoints import current_leader, node_endpoints
from ..primitives import Reader, Writer, by_topic
from ..repetitions import last_of_each

_ACKS_AND_TIMEOUT = Struct(">hi")
_PARTITION_5 = Struct(">ihqqq")
_PARTITION_8 = Struct(">ihqqqih")
"""With the count of record errors and a null message."""
_PARTITION_9 = Struct(">ihqqqBBB")
"""The same in the compact encoding, with no tagged fields."""
_NONE = ErrorCode.NONE
_CURRENT_LEADER_TAG = 0


_COUNT = Struct(">i")
_COUNT_AT, _ATTRIBUTES_AT, _MAGIC_AT = 57, 22, 16
_HEADER_SIZE = 61
_COMPRESSED_BYTES_AT_ONCE = 128 * 1024
_RECORDS_AT_ONCE = 100_000


def decode(reader: Reader, version: int) -> ProduceRequest | SplitRequest:
    transactional_id = reader.nullable_string() if version >= 3 else None
    acks, timeout_ms = reader.unpack(_ACKS_AND_TIMEOUT)
    partitions: Sequence[ProducePartition]
    partitions = named = []
    flexible = reader.flexible
    for _ in range(reader.array()):
        topic = reader.string()
        for _ in range(reader.array()):
            partition = TopicPartition(topic, reader.int32())
            named.append(ProducePartition(partition, reader.nullable_bytes()))
            if flexible:
                reader.tags()
        reader.tags()
    reader.tags()
    partitions = last_of_each(partitions)
    request = ProduceRequest(acks, timeout_ms, tuple(partitions), transactional_id)
    if len(partitions) > 1 and _takes_long(partitions):
        parts = (ProduceRequest(acks, timeout_ms, (p,), transactional_id) for p in partitions)
        return SplitRequest(tuple(parts), request, _join)
    return request


def _takes_long(partitions: Sequence[ProducePartition]) -> bool:
    """Whether these are so many records, or may be when they are decompressed, that others would
    notice it if they were looked through in one go."""
    compressed_bytes = record_count = 0
    for entry in partitions:
        records = entry.records
        if records is None or len(records) < _HEADER_SIZE:
            continue
        magic = records[_MAGIC_AT]
        if magic < 2 or (magic == 2 and records[_ATTRIBUTES_AT] & 7):
            compressed_bytes += len(records)
        if magic == 2:
            record_count += max(0, _COUNT.unpack_from(records, _COUNT_AT)[0])
    return compressed_bytes > _COMPRESSED_BYTES_AT_ONCE or record_count > _RECORDS_AT_ONCE


def _join(responses: tuple[ProduceResponse, ...]) -> ProduceResponse:
    endpoints = dict.fromkeys(end for one in responses for end in one.node_endpoints)
    return ProduceResponse(
        tuple(result for one in responses for result in one.partitions),
        max(one.throttle_time_ms for one in responses),
        tuple(endpoints),
    )


def encode(
    writer: Writer, version: int, response: ProduceResponse, request: ProduceRequest | None
) -> None:
    topics = by_topic(response.partitions)
    writer.array(len(topics))
    layout = _PARTITION_9 if version >= 9 else _PARTITION_8 if version >= 8 else _PARTITION_5
    no_errors = (1, 0, 0) if version >= 9 else (0, -1) if version >= 8 else ()
    pack_partition, parts = layout.pack, writer.parts
    for topic, results in topics:
        writer.string(topic)
        writer.array(len(results))
        for result in results:
            if version < 5 or result.error is not _NONE or result.record_errors:
                _encode_partition(writer, version, result)
                continue
            parts.append(
                pack_partition(
                    result.topic_partition[1],
                    0,
                    result.base_offset,
                    result.log_append_time_ms,
                    result.log_start_offset,
                    *no_errors,
                )
            )
        writer.tags()
    if version >= 1:
        writer.int32(response.throttle_time_ms)
    if version >= 10 and response.node_endpoints:
        writer.tags(node_endpoints(response.node_endpoints, writer.listener))
    else:
        writer.tags()


def _encode_partition(writer: Writer, version: int, result: ProducePartitionResponse) -> None:
    """A partition with all that an error or an old version brings with it."""
    writer.int32(result.topic_partition[1])
    writer.int16(known_error(result.error, version))
    writer.int64(result.base_offset)
    if version >= 2:
        writer.int64(result.log_append_time_ms)
    if version >= 5:
        writer.int64(result.log_start_offset)
    if version >= 8:
        writer.array(len(result.record_errors))
        for index, message in result.record_errors:
            writer.int32(index)
            writer.nullable_string(message)
            writer.tags()
        writer.nullable_string(result.error_message)
    if version >= 10 and result.current_leader is not None:
        writer.tags(current_leader(_CURRENT_LEADER_TAG, result.current_leader))
    else:
        writer.tags()


def known_error(error: ErrorCode, version: int) -> ErrorCode:
    """The code for a client of this version: 56 came with version 4, 90 never appears."""
    if error is ErrorCode.KAFKA_STORAGE_ERROR and version <= 3:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


API = Api(0, "Produce", 0, 11, flexible_from=9, decode=decode, encode=encode)
