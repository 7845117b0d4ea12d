"""Fetch (key 1): record batches from partitions, waiting until enough are there.

Versions 0-17. Below 2 records are converted to format v0, below 4 to v1, before they come here.
1: throttle time. 3: bytes of the whole response. 4: isolation level, LSO, format v2.
5: log start offsets. 7: sessions (KIP-227). 9: leader epoch fencing. 10: zstd. 11: rack and
preferred replica (KIP-392). 12: flexible, last fetched epoch, diverging epoch. 13: topic ids.
15: replica id and epoch as a tagged field (KIP-903). 16: the current leader (KIP-951).
The hot path: stored batches go out as the very bytes objects of the log.
"""

from __future__ import annotations

from struct import Struct

from ....protocol.data import (
    CONSUMER_REPLICA_ID,
    ISOLATION_LEVELS,
    READ_UNCOMMITTED,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
)
from ....protocol.errors import ErrorCode
from ....protocol.fetch_session_epochs import EPOCH_MAX, FINAL_EPOCH
from ....protocol.values import TopicPartition
from ..api import Api, CodecAnswer
from ..endpoints import current_leader, node_endpoints
from ..primitives import NO_TAGS, Reader, Writer, by_topic, unsigned_varint
from ..repetitions import last_of_each
from ..topic_names import NULL_NAME, error_to_answer, id_to_answer, is_stand_in, resolved_name

_LIMITS = Struct(">iiib")
_LIMITS_3 = Struct(">iii")
_LIMITS_0 = Struct(">ii")
_BYTES_MAX = 0x7FFFFFFF
_SESSION = Struct(">ii")
_REQUEST_PARTITION_4 = Struct(">iqi")
_REQUEST_PARTITION_5 = Struct(">iqqi")
_REQUEST_PARTITION_9 = Struct(">iiqqi")
_REQUEST_PARTITION_12 = Struct(">iiqiqi")
_REPLICA_STATE = Struct(">iq")
_REPLICA_STATE_TAG = 1

_HEAD_7 = Struct(">ihi")
_PLAIN_0 = Struct(">ihqi")
_PLAIN_4 = Struct(">ihqqii")
_PLAIN_5 = Struct(">ihqqqii")
_PLAIN_11 = Struct(">ihqqqiii")
_PLAIN_12 = Struct(">ihqqqBi")
"""Number, error, offsets, null aborted transactions, [preferred replica,] [size of records]."""
_NONE = ErrorCode.NONE
_ABORTED = Struct(">qq")
_DIVERGING_EPOCH = Struct(">iq")
_DIVERGING_EPOCH_TAG = 0
_CURRENT_LEADER_TAG = 1


def decode(reader: Reader, version: int) -> FetchRequest | CodecAnswer:
    replica_id, replica_epoch = CONSUMER_REPLICA_ID, -1
    if version < 15:
        replica_id = reader.int32()
    max_wait_ms, min_bytes, max_bytes, isolation_level = _decode_limits(reader, version)
    session_id, session_epoch = reader.unpack(_SESSION) if version >= 7 else (0, -1)
    partitions: list[FetchPartition] = []
    unresolved = False
    for _ in range(reader.array()):
        if version >= 13:
            topic = resolved_name(reader.names, reader.uuid())
            unresolved = unresolved or is_stand_in(topic)
        else:
            topic = reader.string()
        for _ in range(reader.array()):
            partitions.append(_decode_partition(reader, version, topic))
        reader.tags()
    forgotten = _decode_forgotten(reader, version) if version >= 7 else ()
    rack_id = reader.string() if version >= 11 else ""
    if version >= 15:
        state = reader.tagged().get(_REPLICA_STATE_TAG)
        if state is not None:
            replica_id, replica_epoch = _REPLICA_STATE.unpack_from(state)
    else:
        reader.tags()
    if isolation_level not in ISOLATION_LEVELS:
        return CodecAnswer(_unknown_isolation_level(version, partitions))
    if session_epoch < FINAL_EPOCH:
        session_epoch = EPOCH_MAX  # FetchMetadata.isFull knows 0 and -1: it is one of a session
    if unresolved:
        session_id, session_epoch = _outside_session(session_id, session_epoch)
    return FetchRequest(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        tuple(partitions),
        isolation_level,
        session_id,
        session_epoch,
        forgotten,
        rack_id,
        replica_epoch,
    )


def _unknown_isolation_level(version: int, partitions: list[FetchPartition]) -> FetchResponse:
    """What ``IsolationLevel.forId`` throws ends in the same error everywhere; responses that name
    topics by their ids hold only the error of the whole (``FetchRequest.getErrorResponse``)."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    named = partitions if version < 13 else ()
    results = (FetchPartitionResponse(p.topic_partition, error) for p in last_of_each(named))
    return FetchResponse(error, 0, tuple(results))


def _decode_limits(reader: Reader, version: int) -> tuple[int, int, int, int]:
    """Longest wait, fewest and most bytes, isolation level."""
    if version >= 4:
        return reader.unpack(_LIMITS)  # type: ignore[return-value]
    if version == 3:
        return (*reader.unpack(_LIMITS_3), READ_UNCOMMITTED)  # type: ignore[return-value]
    return (*reader.unpack(_LIMITS_0), _BYTES_MAX, READ_UNCOMMITTED)  # type: ignore[return-value]


def _decode_partition(reader: Reader, version: int, topic: str) -> FetchPartition:
    leader_epoch = last_epoch = log_start = -1
    if version >= 12:
        number, leader_epoch, offset, last_epoch, log_start, max_bytes = reader.unpack(
            _REQUEST_PARTITION_12
        )
        reader.tags()
    elif version >= 9:
        number, leader_epoch, offset, log_start, max_bytes = reader.unpack(_REQUEST_PARTITION_9)
    elif version >= 5:
        number, offset, log_start, max_bytes = reader.unpack(_REQUEST_PARTITION_5)
    else:
        number, offset, max_bytes = reader.unpack(_REQUEST_PARTITION_4)
    if leader_epoch < 0:
        leader_epoch = -1  # RequestUtils.getLeaderEpoch takes every negative epoch for none
    return FetchPartition(
        TopicPartition(topic, number), offset, log_start, max_bytes, leader_epoch, last_epoch
    )


def _decode_forgotten(reader: Reader, version: int) -> tuple[TopicPartition, ...]:
    forgotten: list[TopicPartition] = []
    for _ in range(reader.array()):
        topic = resolved_name(reader.names, reader.uuid()) if version >= 13 else reader.string()
        forgotten += [TopicPartition(topic, number) for number in reader.int32s()]
        reader.tags()
    return tuple(forgotten)


def _outside_session(session_id: int, session_epoch: int) -> tuple[int, int]:
    """Keep unresolved ids out of sessions, which would hold their stand-in names for ever.

    A full fetch becomes one without a session; an incremental one is answered
    FETCH_SESSION_ID_NOT_FOUND (session 0 never exists), after which the client fetches in full.
    """
    if session_epoch == 0:
        return session_id, -1
    return (session_id, -1) if session_epoch < 0 else (0, session_epoch)


def encode(
    writer: Writer, version: int, response: FetchResponse, request: FetchRequest | None
) -> None:
    if version >= 7:
        writer.pack(_HEAD_7, response.throttle_time_ms, response.error, response.session_id)
    elif version >= 1:
        writer.int32(response.throttle_time_ms)
    topics = by_topic(response.partitions)
    writer.array(len(topics))
    layout = _plain_layout(version)
    for topic, results in topics:
        if version >= 13:
            writer.uuid(id_to_answer(writer.names, topic))
        elif topic == NULL_NAME:
            writer.nullable_string(None)
        else:
            writer.string(topic)
        writer.array(len(results))
        for result in results:
            if result.error is _NONE and result.aborted_transactions is None:
                _encode_plain_partition(writer, version, layout, result)
            else:
                _encode_partition(writer, version, result)
        writer.tags()
    if version >= 16 and response.node_endpoints:
        writer.tags(node_endpoints(response.node_endpoints, writer.listener))
    else:
        writer.tags()


def _plain_layout(version: int) -> Struct:
    """What comes before the records of a partition without an error or aborted transactions."""
    if version >= 12:
        return _PLAIN_12
    if version >= 11:
        return _PLAIN_11
    if version >= 5:
        return _PLAIN_5
    return _PLAIN_4 if version >= 4 else _PLAIN_0


def _encode_plain_partition(
    writer: Writer, version: int, layout: Struct, result: FetchPartitionResponse
) -> None:
    parts = writer.parts
    number = result.topic_partition[1]
    high_watermark, stable_offset = result.high_watermark, result.last_stable_offset
    log_start, preferred = result.log_start_offset, result.preferred_read_replica
    batches = [batch.data for batch in result.records]
    size = len(batches[0]) if len(batches) == 1 else sum(map(len, batches))
    if version >= 12:
        parts.append(layout.pack(number, 0, high_watermark, stable_offset, log_start, 0, preferred))
        parts.append(unsigned_varint(size + 1))
        parts += batches
        if result.diverging_epoch is None and result.current_leader is None:
            parts.append(NO_TAGS)
        else:
            writer.tags(*_tagged_fields(result))
        return
    if version >= 11:
        header = layout.pack(
            number, 0, high_watermark, stable_offset, log_start, -1, preferred, size
        )
    elif version >= 5:
        header = layout.pack(number, 0, high_watermark, stable_offset, log_start, -1, size)
    elif version >= 4:
        header = layout.pack(number, 0, high_watermark, stable_offset, -1, size)
    else:
        header = layout.pack(number, 0, high_watermark, size)
    parts.append(header)
    parts += batches


def _encode_partition(writer: Writer, version: int, result: FetchPartitionResponse) -> None:
    """A partition field by field, with its error and aborted transactions."""
    topic, number = result.topic_partition
    writer.int32(number)
    writer.int16(known_error(topic, result.error, version))
    writer.int64(result.high_watermark)
    if version >= 4:
        writer.int64(result.last_stable_offset)
        if version >= 5:
            writer.int64(result.log_start_offset)
        aborted = result.aborted_transactions
        writer.array(-1 if aborted is None else len(aborted))
        for transaction in aborted or ():
            writer.pack(_ABORTED, transaction.producer_id, transaction.first_offset)
            writer.tags()
    if version >= 11:
        writer.int32(result.preferred_read_replica)
    batches = [batch.data for batch in result.records]
    writer.bytes_size(sum(map(len, batches)))
    writer.parts += batches
    if version >= 12:
        writer.tags(*_tagged_fields(result))


def _tagged_fields(result: FetchPartitionResponse) -> list[tuple[int, bytes]]:
    fields: list[tuple[int, bytes]] = []
    diverging = result.diverging_epoch
    if diverging is not None:
        encoded = _DIVERGING_EPOCH.pack(diverging.leader_epoch, diverging.end_offset) + NO_TAGS
        fields.append((_DIVERGING_EPOCH_TAG, encoded))
    if result.current_leader is not None:
        fields.append(current_leader(_CURRENT_LEADER_TAG, result.current_leader))
    return fields


def known_error(topic: str, error: ErrorCode, version: int) -> ErrorCode:
    """The code for a client of this version: 56 came with version 6
    (docs/kafka/fetch.md#errors)."""
    if error is ErrorCode.KAFKA_STORAGE_ERROR and version <= 5:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return error_to_answer(topic, error)


API = Api(1, "Fetch", 0, 17, flexible_from=12, decode=decode, encode=encode)
