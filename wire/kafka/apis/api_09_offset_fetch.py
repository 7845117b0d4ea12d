"""OffsetFetch (key 9): the offsets a consumer group has committed.

Versions 0-9. 0: from ZooKeeper. 2: null asks for all partitions, error for the whole answer.
5: leader epoch. 6: flexible. 7: wait for pending transactions (KIP-447). 8: several groups at
once (KIP-709): each is a request of its own to the backend. 9: member id and epoch, which
groups of the consumer protocol check (KIP-848). An unknown group is no error: its offsets are -1.
"""

from __future__ import annotations

from typing import Any

from ....protocol.errors import ErrorCode
from ....protocol.groups import CommittedOffset, OffsetFetchRequest, OffsetFetchResponse
from ....protocol.values import TopicPartition
from ..api import Api, CodecAnswer, SplitRequest
from ..primitives import Reader, Writer, by_topic


def decode(reader: Reader, version: int) -> OffsetFetchRequest | SplitRequest | CodecAnswer:
    if version >= 8:
        return _decode_groups(reader, version)
    group_id = reader.string()
    if version < 2:
        partitions = _once(reader.topic_partitions())  # nobody could ask for all
    else:
        partitions = _once(reader.nullable_topic_partitions())
    require_stable = reader.boolean() if version >= 7 else False
    reader.tags()
    if version == 0 and not group_id:  # ZooKeeper's PathUtils throws for its path
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        found = tuple(CommittedOffset(name, error, metadata="") for name in partitions or ())
        return CodecAnswer(OffsetFetchResponse(ErrorCode.NONE, found))
    return OffsetFetchRequest(group_id, partitions, require_stable)


def _once(partitions: tuple[TopicPartition, ...] | None) -> tuple[TopicPartition, ...] | None:
    """Kafka collects them in a set."""
    return None if partitions is None else tuple(dict.fromkeys(partitions))


def _decode_groups(reader: Reader, version: int) -> SplitRequest:
    groups = []
    for _ in range(reader.array()):
        group_id = reader.string()
        member_id = reader.nullable_string() if version >= 9 else None
        member_epoch = reader.int32() if version >= 9 else -1
        partitions = _once(reader.nullable_topic_partitions())
        groups.append((group_id, partitions, member_id, member_epoch))
        reader.tags()
    require_stable = reader.boolean()
    reader.tags()
    return SplitRequest(
        tuple(
            OffsetFetchRequest(group_id, partitions, require_stable, member_id, member_epoch)
            for group_id, partitions, member_id, member_epoch in groups
        )
    )


def encode(
    writer: Writer,
    version: int,
    response: Any,
    request: OffsetFetchRequest | SplitRequest | None,
) -> None:
    if version >= 3:
        writer.int32(writer.throttle_ms)
    if isinstance(request, SplitRequest):
        writer.array(len(response))
        for asked, group in zip(request.requests, response, strict=True):
            writer.string(asked.group_id)
            _encode_offsets(writer, version, group.partitions)
            writer.int16(group.error)
            writer.tags()
    elif version >= 2:
        _encode_offsets(writer, version, response.partitions)
        writer.int16(response.error)
    else:
        _encode_offsets(writer, version, _with_group_error(response, request))
    writer.tags()


def _with_group_error(
    response: OffsetFetchResponse, request: OffsetFetchRequest | None
) -> tuple[CommittedOffset, ...]:
    """Versions 0 and 1 have no error of the group: every partition asked for carries it."""
    if response.error is ErrorCode.NONE or request is None:
        return response.partitions
    return tuple(
        CommittedOffset(partition, response.error) for partition in request.partitions or ()
    )


def _encode_offsets(writer: Writer, version: int, partitions: tuple[CommittedOffset, ...]) -> None:
    topics = by_topic(partitions)
    writer.array(len(topics))
    for topic, results in topics:
        writer.string(topic)
        writer.array(len(results))
        for result in results:
            writer.int32(result.topic_partition.partition)
            writer.int64(result.offset)
            if version >= 5:
                writer.int32(result.leader_epoch)
            writer.nullable_string(result.metadata)
            writer.int16(result.error)
            writer.tags()
        writer.tags()


API = Api(9, "OffsetFetch", 0, 9, flexible_from=6, decode=decode, encode=encode)
