"""Down-conversion for consumers of Fetch v0 to v3: batches to message sets of format v0 or v1.

Kafka's ``KafkaApis.maybeConvertFetchedData`` (docs/kafka/fetch.md#limits): records are converted
when the fetch is answered. Since 2.0 (KIP-283, ``LazyDownConversionRecords``) the result has as
many bytes as were read, or as the first converted batch if that is larger; before, it has all
messages of the whole batches.

Megabytes of small records take seconds to convert, so the conversion is a generator, whose caller
can do other work in between.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator

from ...protocol.data import FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse
from ...protocol.errors import ErrorCode
from ...protocol.records.batch import PartialBatch, RecordBatch, whole_batches
from ...protocol.records.format import HEADER_SIZE, MalformedRecords
from ...protocol.records.legacy import LegacyMessageSet, down_converted_batch
from ...protocol.values import TopicPartition
from ..partition.partition import Partition

NEWEST_OLD_FETCH = 3
_NEWEST_FETCH_WITHOUT_TIMESTAMPS = 1
_STEP_BYTES = 1 << 20
_OVERFLOW = struct.Struct(">qi")
_OVERFLOW_SIZE_MIN = 12
_OVERFLOW_SIZE_MAX = 128 * 1024

_NONE = ErrorCode.NONE


def conversion(
    request: FetchRequest,
    response: FetchResponse,
    api_version: int,
    hosted: Callable[[TopicPartition], Partition | None],
) -> Generator[None, None, FetchResponse]:
    """Convert a response; the generator pauses after each megabyte and returns the new response."""
    magic = 0 if api_version <= _NEWEST_FETCH_WITHOUT_TIMESTAMPS else 1
    wanted = {spec.topic_partition: spec for spec in request.partitions}
    pace = _Pace()
    partitions = []
    for answer in response.partitions:
        spec = wanted[answer.topic_partition]
        partition = hosted(answer.topic_partition)
        if answer.error is _NONE and partition is not None:
            answer = yield from _converted(request, spec, answer, partition, magic, pace)
        partitions.append(answer)
    return FetchResponse(response.error, response.session_id, tuple(partitions))


class _Pace:
    """Counts the bytes converted since the last pause."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = 0

    def add(self, converted_bytes: int) -> bool:
        """Count converted bytes; return whether it is time for a pause."""
        self._bytes += converted_bytes
        if self._bytes < _STEP_BYTES:
            return False
        self._bytes = 0
        return True


def _converted(
    request: FetchRequest,
    spec: FetchPartition,
    answer: FetchPartitionResponse,
    partition: Partition,
    magic: int,
    pace: _Pace,
) -> Generator[None, None, FetchPartitionResponse]:
    log = partition.log
    if log is None or not answer.records:
        return answer
    settings = log.settings
    is_stored_so = settings.record_version <= magic
    batches = whole_batches(answer.records)
    bytes_max = sum(len(batch.data) for batch in answer.records)
    if not batches:
        if not is_stored_so:
            return answer  # unchanged: the batch's size makes the reader request more bytes
        # Kafka stores old messages here and cuts them: read a whole batch to convert and cut.
        batches = log.read(spec.fetch_offset, 0, log.log_end_offset).batches
    elif not (
        is_stored_so or request.replica_id >= 0 or settings.config["message.downconversion.enable"]
    ):
        return FetchPartitionResponse(answer.topic_partition, ErrorCode.UNSUPPORTED_VERSION)
    is_cut = isinstance(answer.records[0], PartialBatch)
    fetch_offset = spec.fetch_offset
    try:
        if is_stored_so or settings.behaviour.down_conversion_is_lazy:
            data, size = yield from _message_set(
                batches, magic, fetch_offset, bytes_max, is_cut, pace
            )
            if not is_stored_so:
                data += _overflow(size - len(data))
        else:
            data = yield from _whole_message_set(batches, magic, fetch_offset, pace)
            if not data:
                return answer
    except MalformedRecords:
        return FetchPartitionResponse(answer.topic_partition, ErrorCode.CORRUPT_MESSAGE)
    except ValueError:
        return FetchPartitionResponse(
            answer.topic_partition, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        )
    old = LegacyMessageSet(data, batches[0].base_offset, batches[-1].last_offset)
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
    is_cut: bool,
    pace: _Pace,
) -> Generator[None, None, tuple[bytes, int]]:
    """Convert batches one by one up to the limit; return the bytes and the size to fill up to.

    Raises ``ValueError`` if the first is zstd, ``MalformedRecords`` if one cannot be read.
    """
    out = bytearray()
    for batch in batches:
        try:
            messages, converted_bytes = down_converted_batch(batch, magic, fetch_offset)
        except ValueError:
            if not out:
                raise
            break  # the consumer's next fetch begins with this batch and gets the error
        if not out and not is_cut:
            bytes_max = max(bytes_max, len(messages))
        out += messages
        if len(out) >= bytes_max:
            break
        if pace.add(converted_bytes):
            yield
    return bytes(out[:bytes_max]), bytes_max if out else _OVERFLOW_SIZE_MIN


def _whole_message_set(
    batches: tuple[RecordBatch, ...], magic: int, fetch_offset: int, pace: _Pace
) -> Generator[None, None, bytes]:
    out = bytearray()
    for batch in batches:
        messages, converted_bytes = down_converted_batch(batch, magic, fetch_offset)
        out += messages
        if pace.add(converted_bytes):
            yield
    return bytes(out)


def _overflow(size: int) -> bytes:
    """Return filler bytes: the start of a message for which the response is too short."""
    out = bytearray()
    while (left := size - len(out)) > 0:
        room = max(_OVERFLOW_SIZE_MIN, min(left + 1, _OVERFLOW_SIZE_MAX))
        piece = _OVERFLOW.pack(-1, max(left + 1, HEADER_SIZE)) + bytes(room - _OVERFLOW_SIZE_MIN)
        out += piece[:left]
    return bytes(out)
