"""Encodes records as a producer does, and decodes them as a consumer does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.records.legacy import build_message, parse_message, unwrap
from fakekafka.tests.support.batches import parse_batches

_FIRST_OF_BATCHES = 3
_FIRST_WITH_TIMES = 2
_MAGIC_AT = 16
_BATCHES = 2

Producer = tuple[int, int, int]
"""Producer id, epoch and first sequence number."""
NO_PRODUCER: Producer = (-1, -1, -1)


def record_set(
    values: Sequence[str],
    produce_version: int,
    now_ms: int,
    *,
    producer: Producer = NO_PRODUCER,
    is_transactional: bool = False,
    key: str | None = None,
) -> bytes:
    """Return records in the newest format that a version of Produce accepts."""
    raw_key = None if key is None else key.encode()
    if produce_version < _FIRST_OF_BATCHES:
        magic = int(produce_version >= _FIRST_WITH_TIMES)
        time_ms = now_ms if magic else -1
        return b"".join(
            build_message(0, magic, raw_key, value.encode(), time_ms) for value in values
        )
    records = [
        Record(offset, now_ms, raw_key, value.encode()) for offset, value in enumerate(values)
    ]
    producer_id, epoch, sequence = producer
    return build_batch(
        records,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def read(data: bytes | None) -> list[list[object]]:
    """Return the offset and value of each record; a transaction marker by its type."""
    if not data or len(data) <= _MAGIC_AT:
        return []
    if data[_MAGIC_AT] < _BATCHES:
        return list(_messages(data))
    found: list[list[object]] = []
    for batch in parse_batches(data):
        marker = batch.control_marker() if batch.is_control else None
        if marker is not None:
            found.append([batch.base_offset, "commit" if marker.is_commit else "abort"])
        else:
            found += [[record.offset, _text(record.value)] for record in batch.records()]
    return found


def _messages(data: bytes) -> Iterator[list[object]]:
    position = 0
    while (message := parse_message(data, position)) is not None:
        for inner in unwrap(message):
            yield [inner.offset, _text(inner.value)]
        position += message.size


def _text(value: bytes | None) -> str | None:
    return None if value is None else bytes(value).decode("utf-8", "replace")
