"""Answers for consumers of Fetch v0 to v3: batches become message sets of format v0 or v1.

Kafka's ``KafkaApis.maybeConvertFetchedData`` and ``LazyDownConversionRecords`` (KIP-283,
docs/kafka/fetch.md): what was read is converted when it is answered, and the answer never grows
beyond what was read, or beyond its first converted batch where that is more.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ...protocol.data import FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse
from ...protocol.errors import ErrorCode
from ...protocol.records.batch import MalformedRecords, RecordBatch
from ...protocol.records.legacy import OldMessages, down_convert
from ...protocol.values import TopicPartition
from ..partition.partition import Partition

NEWEST_OLD_FETCH = 3
_NEWEST_FETCH_WITHOUT_TIMESTAMPS = 1
_NEWEST_FETCH_WITH_HARD_LIMITS = 2
_OVERFLOW = struct.pack(">qi", -1, 61)
"""The start of a message that is not there: tells an old consumer that it must read more."""

_NONE = ErrorCode.NONE


def down_converted(
    request: FetchRequest,
    response: FetchResponse,
    api_version: int,
    hosted: Callable[[TopicPartition], Partition | None],
) -> FetchResponse:
    """The response in the format that the version of the request can carry."""
    magic = 0 if api_version <= _NEWEST_FETCH_WITHOUT_TIMESTAMPS else 1
    has_hard_limits = api_version <= _NEWEST_FETCH_WITH_HARD_LIMITS
    wanted = {spec.topic_partition: spec for spec in request.partitions}
    partitions = []
    for answer in response.partitions:
        spec = wanted[answer.topic_partition]
        partition = hosted(answer.topic_partition)
        if answer.error is _NONE and partition is not None:
            answer = _converted(request, spec, answer, partition, magic, has_hard_limits)
        partitions.append(answer)
    return FetchResponse(response.error, response.session_id, tuple(partitions))


def _converted(
    request: FetchRequest,
    spec: FetchPartition,
    answer: FetchPartitionResponse,
    partition: Partition,
    magic: int,
    has_hard_limits: bool,
) -> FetchPartitionResponse:
    log = partition.log
    if log is None:
        return answer
    is_refused = request.replica_id < 0 and log.settings.record_version > magic
    if is_refused and not log.settings.config["message.downconversion.enable"]:
        return FetchPartitionResponse(answer.topic_partition, ErrorCode.UNSUPPORTED_VERSION)
    batches = answer.records
    bytes_max = sum(len(batch.data) for batch in batches)
    if not batches:
        is_follower = request.replica_id >= 0
        offset, end = (
            spec.fetch_offset,
            log.log_end_offset if is_follower else answer.high_watermark,
        )
        if not (has_hard_limits and log.log_start_offset <= offset < end):
            return answer
        # The first batch is larger than the limit: as much of it as the limit lets through.
        batches = log.read(offset, 0, end, True).batches[:1]
        bytes_max = spec.max_bytes
    try:
        data = _message_set(
            batches, magic, spec.fetch_offset, bytes_max, is_cut=batches is not answer.records
        )
    except MalformedRecords:
        return FetchPartitionResponse(answer.topic_partition, ErrorCode.CORRUPT_MESSAGE)
    except ValueError:
        return FetchPartitionResponse(
            answer.topic_partition, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        )
    old = OldMessages(data, batches[0].base_offset, batches[-1].last_offset)
    return FetchPartitionResponse(
        answer.topic_partition,
        _NONE,
        answer.high_watermark,
        answer.last_stable_offset,
        answer.log_start_offset,
        (old,),
    )


def _message_set(
    batches: tuple[RecordBatch, ...],
    magic: int,
    fetch_offset: int,
    bytes_max: int,
    *,
    is_cut: bool,
) -> bytes:
    """Batches converted one by one, up to the limit.

    Raises ``ValueError`` if the first is zstd, ``MalformedRecords`` if it cannot be read.
    """
    out = bytearray()
    for batch in batches:
        try:
            messages = down_convert((batch,), magic, fetch_offset)
        except ValueError:
            if not out:
                raise
            break  # the consumer comes back for it, and is told then
        if not out and not is_cut:
            bytes_max = max(bytes_max, len(messages))
        out += messages
        if len(out) >= bytes_max:
            break
    return bytes(out[:bytes_max]) or _OVERFLOW
