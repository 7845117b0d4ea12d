"""Looking through the records of a batch without decoding them.

What Kafka's ``LogValidator`` iterates over every produced batch for: the records are really there
and well framed, their offsets are in order, and the largest timestamp is what they say
(docs/kafka/log.md).

Every record of every producer comes by here. Numbers stay in zigzag, that is doubled, as long as
nobody needs them; each byte behind the first adds (byte - 1) << 7, 14, ..., for the bit that
announced it was counted with its predecessor.
"""

from __future__ import annotations

from ...protocol.config import LONG_MAX
from ...protocol.records import compression as codecs
from ...protocol.records.format import (
    HEADER_SIZE,
    INT_SHIFT_MAX,
    LONG_SHIFT_MAX,
    NO_TIMESTAMP,
    MalformedRecords,
    read_varint,
)
from .record_runs import MANY, NO_DELTAS, skip_runs

_LONG_MIN = -(1 << 63)


def look_through(
    data: bytes,
    count: int,
    codec: int,
    base_timestamp: int,
    decompressed_bytes_max: int = codecs.DECOMPRESSED_BYTES_MAX,
) -> tuple[int, bool]:
    """Look through the records of a whole batch: their largest timestamp, and whether their
    offsets can stay.

    Kafka looks at the offsets of compressed batches only: clients of old are known to get them
    wrong there. Raises ``CorruptPayload`` for what cannot be decompressed, ``MalformedRecords``
    for what are no ``count`` records.
    """
    if codec:
        body = codecs.decompress(
            codec, memoryview(data)[HEADER_SIZE:], limit=decompressed_bytes_max
        )
        largest, least, in_order = walk(body, 0, count)
    else:
        largest, least, _ = walk(data, HEADER_SIZE, count)
        in_order = True
    if base_timestamp + largest > LONG_MAX or base_timestamp + least < _LONG_MIN:
        raise MalformedRecords("a timestamp does not fit into 64 bits")
    return max(base_timestamp + largest, NO_TIMESTAMP), in_order


def walk(body: bytes, position: int, count: int) -> tuple[int, int, bool]:
    """Go over ``count`` records (at least one) in ``body``, decompressed, from ``position`` on.

    Gives the largest and the least timestamp delta in ms, and whether the offset deltas are 0, 1,
    2 and so on. Raises ``MalformedRecords`` unless well framed records fill the body exactly.
    """
    first, last_time, in_order, (largest, least) = 0, -1, True, NO_DELTAS
    if count >= MANY:
        first, position, largest, least = skip_runs(body, position, count)
    try:
        for expected in range(2 * first, 2 * count, 2):
            size = body[position]
            position += 1
            if size > 127:
                byte = body[position]
                position += 1
                size += byte - 1 << 7
                if byte > 127:
                    size, position = _rest(body, position, size)
            start = position
            time = body[position + 1]  # behind the attributes, unused
            position += 2
            if time > 127:
                byte = body[position]
                position += 1
                time += byte - 1 << 7
                if byte > 127:
                    time, position = _rest(body, position, time, LONG_SHIFT_MAX)
            if time != last_time:
                last_time = time
                delta = (time >> 1) ^ -(time & 1)
                if delta > largest:
                    largest = delta
                if delta < least:
                    least = delta
            offset = body[position]
            position += 1
            if offset > 127:
                byte = body[position]
                position += 1
                offset += byte - 1 << 7
                if byte > 127:
                    offset, position = _rest(body, position, offset)
            if offset != expected:
                in_order = False
            size_of_key = body[position]
            position += 1
            if size_of_key != 1:  # not null
                if size_of_key > 127:
                    size_of_key, position = _long(body, position, size_of_key)
                if not size_of_key & 1:
                    position += size_of_key >> 1
            size_of_value = body[position]
            position += 1
            if size_of_value > 127:
                byte = body[position]
                position += 1
                size_of_value += byte - 1 << 7
                if byte > 127:
                    size_of_value, position = _rest(body, position, size_of_value)
            if not size_of_value & 1:
                position += size_of_value >> 1
            position = _skip_headers(body, position) if body[position] else position + 1
            if position - start << 1 != size:
                raise MalformedRecords(f"record {expected >> 1} is not as long as it says")
    except IndexError:
        raise MalformedRecords(f"record {expected >> 1} exceeds the batch") from None
    if position != len(body):
        raise MalformedRecords(f"{len(body) - position} bytes follow the last of {count} records")
    return largest, least, in_order


def _rest(
    body: bytes, position: int, value: int, shift_max: int = INT_SHIFT_MAX
) -> tuple[int, int]:
    """A number from its third byte on, still in zigzag, and the position behind it."""
    shift = 14
    while True:
        if shift > shift_max:
            raise MalformedRecords("a number has too many bytes")
        byte = body[position]
        position += 1
        value += byte - 1 << shift
        if byte < 128:
            return value, position
        shift += 7


def _long(body: bytes, position: int, value: int) -> tuple[int, int]:
    """A number of 32 bits from its second byte on."""
    byte = body[position]
    value += byte - 1 << 7
    if byte < 128:
        return value, position + 1
    return _rest(body, position + 1, value)


def _skip_headers(body: bytes, position: int) -> int:
    """The position behind the headers; they have names and may have no value."""
    count, position = read_varint(body, position, INT_SHIFT_MAX)
    if not 0 <= count <= len(body):
        raise MalformedRecords(f"a record claims {count} headers")
    for _ in range(count):
        size, position = read_varint(body, position, INT_SHIFT_MAX)
        if size < 0:
            raise MalformedRecords("a header without a key")
        size_of_value, position = read_varint(body, position + size, INT_SHIFT_MAX)
        if size_of_value > 0:
            position += size_of_value
    return position
