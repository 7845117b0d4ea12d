"""Scanning of many records of the same shape at once, as most producers send most of the time.

Records of equal size are at equal distances, so the same byte of all of them is a slice with a
step. Taking and comparing slices costs a tenth of a loop in Python. ``record_walk`` scans the
remaining records one by one.
"""

from __future__ import annotations

from ...protocol.records.format import INT_SHIFT_MAX, MalformedRecords, read_varint

RUN_SCAN_MIN_RECORDS = 100
"""Number of records from which it pays to look for runs."""
NO_DELTAS = (-(1 << 80), 1 << 80)
"""Largest and least timestamp delta of no records: below and above all that ten bytes can hold."""
_RUN_MAX_RECORDS = 1024
_RUN_MIN_RECORDS = 16
_SHORT_RUNS_MAX = 1
"""Number of runs that may be too short before the search for runs ends."""
_TIME_BYTES_MAX = 9
_LAST = bytes(range(128))
"""Possible last bytes of a varint; all bytes before the last have the highest bit set."""
_EARLIER = bytes(range(128, 256))
_ONE_BYTE, _TWO_BYTES, _THREE_BYTES = 64, 8192, 1 << 20
"""Offset deltas below which a varint has at most one, two and three bytes."""
_ONLY = bytes(range(0, 128, 2))
_LOW = bytes(range(128, 256, 2)) * 128
_HIGH = b"".join(bytes((high,)) * 64 for high in range(128))
_MIDDLE = b"".join(bytes((middle,)) * 64 for middle in range(128, 256))
"""Bytes of offset deltas as varints, by the delta modulo 8192: the only byte, the first, the
second if it is the last, and the second before a third, which is the delta divided by 8192."""


def skip_runs(body: bytes, position: int, count: int) -> tuple[int, int, int, int]:
    """Scan records from the first on as long as they come in runs of the same shape.

    Return the number of records found valid and in order, the position after them, and their
    largest and least timestamp delta in ms. Malformed or rarely shaped records end the scan.
    """
    first = runs = 0
    largest, least = NO_DELTAS
    try:
        while first < count and first >= _RUN_MIN_RECORDS * (runs - _SHORT_RUNS_MAX):
            run = _find_run(body, position, first, min(count - first, _RUN_MAX_RECORDS))
            if run is None:
                break
            length, distance, deltas = run
            first += length
            position += length * distance
            largest = max(largest, *deltas)
            least = min(least, *deltas)
            runs += 1
    except (IndexError, MalformedRecords):
        pass  # reported by the scan of the remaining records
    return first, position, largest, least


def _find_run(
    body: bytes, begin: int, first: int, count: int
) -> tuple[int, int, tuple[int, ...]] | None:
    """Find the run of records shaped like the one at ``begin``.

    Return its number of records, their distance in bytes, and their timestamp deltas.
    """
    size, position = read_varint(body, begin, INT_SHIFT_MAX)
    end = position + size
    distance = end - begin
    fixed = list(range(begin, position))
    time_at = position + 1  # after the attributes, which are unused
    offset_at = time_at
    while body[offset_at] > 127:
        offset_at += 1
    offset_at += 1
    columns = _offset_delta_columns(first, count)
    key_at = offset_at + len(columns)
    key_size, position = read_varint(body, key_at, INT_SHIFT_MAX)
    fixed += range(key_at, position)
    value_at = position + max(key_size, 0)
    value_size, position = read_varint(body, value_at, INT_SHIFT_MAX)
    fixed += range(value_at, position)
    headers_at = position + max(value_size, 0)
    if headers_at + 1 != end or body[headers_at] or offset_at - time_at > _TIME_BYTES_MAX:
        return None
    fixed.append(headers_at)
    count = min(len(columns[0]), (len(body) - begin) // distance)
    for at in fixed:
        count = _matching_prefix_length(
            body[at : at + count * distance : distance], body[at : at + 1]
        )
    for at in range(time_at, offset_at - 1):
        count = _matching_prefix_length(body[at : at + count * distance : distance], _EARLIER)
    at = offset_at - 1
    count = _matching_prefix_length(body[at : at + count * distance : distance], _LAST)
    stop = count * distance
    for at, expected in enumerate(columns, offset_at):
        if body[at : at + stop : distance] != expected[:count]:
            return None
    times = [body[at : at + stop : distance] for at in range(time_at, offset_at)]
    return count, distance, _distinct_values(times)


def _offset_delta_columns(first: int, count: int) -> tuple[bytes, ...]:
    """Return the encoded offset deltas from ``first`` on, as one column for each byte.

    They end before the first delta with another number of bytes.
    """
    if first < _ONE_BYTE:
        return (_ONLY[first : first + count],)
    start = first % _TWO_BYTES
    low = _LOW[start : start + count]
    if first < _TWO_BYTES:
        return low, _HIGH[start : start + count]
    if first >= _THREE_BYTES:
        raise IndexError
    return low, _MIDDLE[start : start + count], bytes((first // _TWO_BYTES,)) * len(low)


def _matching_prefix_length(column: bytes, allowed: bytes) -> int:
    """Return the number of leading bytes that are among the allowed ones."""
    return len(column) - len(column.lstrip(allowed))


def _distinct_values(columns: list[bytes]) -> tuple[int, ...]:
    """Return the distinct numbers encoded in the columns."""
    values = []
    for digits in set(zip(*columns, strict=True)):
        value = shift = 0
        for byte in digits:
            value |= (byte & 127) << shift
            shift += 7
        values.append((value >> 1) ^ -(value & 1))
    return tuple(values)
