"""Looking through records of the same shape together: what most producers send, most of the time.

Records whose sizes are alike lie at equal distances, so that the same byte of all of them is a
slice with a step. Slices are taken and compared by the interpreter, not by a loop of ours: that
costs a tenth. ``record_walk`` looks at what is left one by one.
"""

from __future__ import annotations

from ...protocol.records.format import INT_SHIFT_MAX, MalformedRecords, read_varint

MANY = 100
"""Records from which on it pays to look for runs."""
NO_DELTAS = (-(1 << 80), 1 << 80)
"""Largest and least of no timestamp deltas: below and above all that ten bytes can say."""
_RUN_MAX = 1024
_RUN_WORTHWHILE = 16
_SHORT_RUNS = 1
"""Runs that may be too short before nobody looks for more."""
_TIME_BYTES_MAX = 9
_LAST = bytes(range(128))
"""The last bytes of numbers; all before them have the highest bit set."""
_EARLIER = bytes(range(128, 256))
_ONE_BYTE, _TWO_BYTES, _THREE_BYTES = 64, 8192, 1 << 20
"""Offset deltas below which a number has at most so many bytes."""
_ONLY = bytes(range(0, 128, 2))
_LOW = bytes(range(128, 256, 2)) * 128
_HIGH = b"".join(bytes((high,)) * 64 for high in range(128))
_MIDDLE = b"".join(bytes((middle,)) * 64 for middle in range(128, 256))
"""Bytes of offset deltas, by the rest of the delta by 8192; what is above is a byte of its own."""


def skip_runs(body: bytes, position: int, count: int) -> tuple[int, int, int, int]:
    """Go over records from the first on as long as they come in runs of the same shape.

    Gives how many are known to be good and in order, the position behind them, and their largest
    and least timestamp delta in ms. What cannot be read, or is of a rare shape, is left.
    """
    first = runs = 0
    largest, least = NO_DELTAS
    try:
        while first < count and first >= _RUN_WORTHWHILE * (runs - _SHORT_RUNS):
            found = _run(body, position, first, min(count - first, _RUN_MAX))
            if found is None:
                break
            length, distance, deltas = found
            first += length
            position += length * distance
            largest = max(largest, *deltas)
            least = min(least, *deltas)
            runs += 1
    except (IndexError, MalformedRecords):
        pass  # told by who looks at the rest
    return first, position, largest, least


def _run(
    body: bytes, begin: int, first: int, count: int
) -> tuple[int, int, tuple[int, ...]] | None:
    """Length of the run of records like the one at ``begin``, their distance, their time deltas."""
    size, position = read_varint(body, begin, INT_SHIFT_MAX)
    end = position + size
    distance = end - begin
    fixed = list(range(begin, position))
    time_at = position + 1  # behind the attributes, unused
    offset_at = time_at
    while body[offset_at] > 127:
        offset_at += 1
    offset_at += 1
    columns = _offsets(first, count)
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
        count = _alike(body[at : at + count * distance : distance], body[at : at + 1])
    for at in range(time_at, offset_at - 1):
        count = _alike(body[at : at + count * distance : distance], _EARLIER)
    at = offset_at - 1
    count = _alike(body[at : at + count * distance : distance], _LAST)
    stop = count * distance
    for at, expected in enumerate(columns, offset_at):
        if body[at : at + stop : distance] != expected[:count]:
            return None
    times = [body[at : at + stop : distance] for at in range(time_at, offset_at)]
    return count, distance, _deltas(times)


def _offsets(first: int, count: int) -> tuple[bytes, ...]:
    """The bytes of offset deltas from ``first`` on, of as many as have the same number of bytes."""
    if first < _ONE_BYTE:
        return (_ONLY[first : first + count],)
    start = first % _TWO_BYTES
    low = _LOW[start : start + count]
    if first < _TWO_BYTES:
        return low, _HIGH[start : start + count]
    if first >= _THREE_BYTES:
        raise IndexError
    return low, _MIDDLE[start : start + count], bytes((first // _TWO_BYTES,)) * len(low)


def _alike(column: bytes, allowed: bytes) -> int:
    """Return how many bytes from the first on are among those allowed."""
    return len(column) - len(column.lstrip(allowed))


def _deltas(columns: list[bytes]) -> tuple[int, ...]:
    """The different numbers whose bytes the columns hold."""
    found = []
    for digits in set(zip(*columns, strict=True)):
        value = shift = 0
        for byte in digits:
            value |= (byte & 127) << shift
            shift += 7
        found.append((value >> 1) ^ -(value & 1))
    return tuple(found)
