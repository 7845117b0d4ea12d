"""A segment that is split into several can be read, searched and truncated as before."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import KafkaError
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.log import Log
from fakekafka.replication.log.lookups import offset_for_timestamp
from fakekafka.replication.log.segments import split_segments
from fakekafka.tests.support.logs import NOW_MS, Tools
from hypothesis import given
from hypothesis import strategies as st

SIZES = st.lists(st.tuples(st.integers(1, 300), st.integers(0, 50)), min_size=1, max_size=30)


def filled_log(version: str, batches: list[tuple[int, int]]) -> Log:
    log = Tools.log(version)
    for size, time in batches:
        append_as_leader(log, Tools.data(b"x" * size, b"y", times=[NOW_MS + time] * 2), 0, NOW_MS)
    log.roll(NOW_MS)
    append_as_leader(log, Tools.data(b"last"), 0, NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    return log


def found(log: Log, time: int) -> tuple[int, int] | None:
    record = offset_for_timestamp(log, time)
    return None if record is None else (record.timestamp, record.offset)


@pytest.mark.parametrize("version", ["3.9", "0.11"])
@given(SIZES, st.integers(1, 2000), st.data())
def test_a_log_with_split_segments_is_the_same_log(
    version: str, batches: list[tuple[int, int]], bytes_max: int, data: st.DataObject
) -> None:
    """Every offset and time finds the same batches in a log with split segments, also after a
    truncation."""
    whole, split = filled_log(version, batches), filled_log(version, batches)
    split_segments(split.storage, bytes_max, split.settings.index_interval_bytes)
    assert [s.base_offset for s in split.segments] == sorted(
        {s.base_offset for s in split.segments}
    )
    assert all(s.size <= bytes_max or len(s.stored) == 1 for s in split.segments[:-1])
    cut = 2 * data.draw(st.integers(0, len(batches)))
    for _ in range(2):
        assert split.size_in_bytes == whole.size_in_bytes
        for offset in range(whole.log_start_offset, whole.log_end_offset + 1):
            one, other = (log.read(offset, 1, offset + 2) for log in (whole, split))
            assert [b.data for b in one.batches] == [b.data for b in other.batches]
        for time in range(NOW_MS - 1, NOW_MS + 52, 7):
            assert found(whole, time) == found(split, time)
        assert whole.truncate_to(cut) == split.truncate_to(cut)
        assert whole.log_end_offset == split.log_end_offset


def test_an_abort_stays_with_its_marker() -> None:
    """A reader below an aborted transaction's marker finds the abort in whichever part has it."""
    from fakekafka.replication.log.segment import AbortedEntry

    log = filled_log("3.9", [(200, 0)] * 10)
    entries = [AbortedEntry(7, 0, 3, 4), AbortedEntry(8, 4, 15, 16)]
    log.segments[0].aborted = entries
    split_segments(log.storage, 300, log.settings.index_interval_bytes)
    found = [(s.base_offset, e) for s in log.segments for e in s.aborted or ()]
    assert [entry for _, entry in found] == entries
    for base, entry in found:
        following = min(s.base_offset for s in log.segments if s.base_offset > base)
        assert base <= entry.last_offset < following


def test_records_below_the_log_start_cannot_be_read() -> None:
    log = filled_log("3.9", [(200, 0)] * 10)
    split_segments(log.storage, 300, log.settings.index_interval_bytes)
    from fakekafka.replication.log.retention import delete_below

    delete_below(log, 7, NOW_MS)
    assert log.log_start_offset == 7
    assert log.segments[0].base_offset <= 7 < log.segments[1].base_offset
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        log.read(6, 1, 9)
    delete_below(log, 10_000, NOW_MS)
    assert log.log_start_offset == log.high_watermark == 21
