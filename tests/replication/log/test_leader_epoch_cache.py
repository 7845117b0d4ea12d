"""The leader-epoch history of a log."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.data import EpochEndOffset
from fakekafka.replication.disk.memory_disk import MemoryDisk
from fakekafka.replication.log.epoch_history import LeaderEpochCache
from fakekafka.tests.support.logs import Tools

UNDEFINED = EpochEndOffset(-1, -1)


def cache_of(*entries: tuple[int, int], kip_279: bool = True) -> LeaderEpochCache:
    return LeaderEpochCache([e for e, _ in entries], [o for _, o in entries], kip_279)


def test_existing_epoch_keeps_its_start() -> None:
    """DP-91: assigning a known epoch at a later offset changes nothing; a smaller offset replaces
    the entry."""
    cache = cache_of((2, 6))
    assert not cache.assign(2, 7)
    assert cache.entries == [(2, 6)]
    assert cache.assign(2, 5)
    assert cache.entries == [(2, 5)]


def test_empty_cache_knows_nothing() -> None:
    """DP-92: without entries there is no latest epoch and every end offset is undefined."""
    cache = cache_of()
    assert (cache.latest_epoch, cache.earliest_epoch) == (-1, -1)
    assert [cache.end_offset_for(epoch, 100) for epoch in (-1, 0, 5)] == [UNDEFINED] * 3


@pytest.mark.parametrize(
    ("operation", "offset", "expected"),
    [
        ("end", 8, [(2, 6)]),
        ("end", 9, [(2, 6), (3, 8)]),
        ("end", 11, [(2, 6), (3, 8)]),
        ("end", 12, [(2, 6), (3, 8), (4, 11)]),
        ("end", -1, [(2, 6), (3, 8), (4, 11)]),
        ("end", 0, []),
        ("start", 8, [(3, 8), (4, 11)]),
        ("start", 9, [(3, 9), (4, 11)]),
        ("start", 11, [(4, 11)]),
        ("start", 15, [(4, 15)]),
        ("start", 1, [(2, 6), (3, 8), (4, 11)]),
        ("start", 6, [(2, 6), (3, 8), (4, 11)]),
        ("start", -1, [(2, 6), (3, 8), (4, 11)]),
    ],
)
def test_truncation(operation: str, offset: int, expected: list[tuple[int, int]]) -> None:
    """DP-93: truncations of {2@6, 3@8, 4@11} leave the entries of the table."""
    cache = cache_of((2, 6), (3, 8), (4, 11))
    if operation == "end":
        cache.truncate_from_end(offset)
    else:
        cache.truncate_from_start(offset)
    assert cache.entries == expected


def test_truncating_the_start_within_the_first_epoch_moves_its_start_offset() -> None:
    """DP-94: truncating the start of {0@0, 1@7, 2@10} at 5 leaves 0@5 as the first entry."""
    cache = cache_of((0, 0), (1, 7), (2, 10))
    cache.truncate_from_start(5)
    assert cache.entries == [(0, 5), (1, 7), (2, 10)]


def test_history_is_kept_by_the_disk(tools: type[Tools]) -> None:
    """DP-95: a reopened log has the epochs of the log before."""
    disk = MemoryDisk()
    log = disk.open_log(tools.name, tools.config())
    tools.fill(log, 2, epoch=0)
    tools.fill(log, 2, epoch=3)
    disk.kill()
    assert disk.open_log(tools.name, tools.config()).epochs == ((0, 0), (3, 2))


def test_records_carry_the_epoch_of_their_leader(tools: type[Tools], log: Any) -> None:
    """DP-96: batches have their leader's epoch, and a past epoch ends where the next began."""
    for epoch in (0, 2, 4):
        log.assign_epoch_start_offset(epoch, log.log_end_offset)
        tools.fill(log, 1, epoch)
    assert [b.partition_leader_epoch for b in log.batches()] == [0, 2, 4]
    assert [log.end_offset_for_epoch(epoch) for epoch in range(6)] == [
        EpochEndOffset(0, 1),
        EpochEndOffset(0, 1),
        EpochEndOffset(2, 2),
        EpochEndOffset(2, 2),
        EpochEndOffset(4, 3),
        UNDEFINED,
    ]


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (-1, UNDEFINED),
        (0, EpochEndOffset(0, 3)),
        (1, EpochEndOffset(1, 5)),
        (2, EpochEndOffset(1, 5)),
        (3, EpochEndOffset(3, 9)),
        (4, EpochEndOffset(4, 20)),
        (5, UNDEFINED),
    ],
)
def test_end_offsets_since_kip_279(epoch: int, expected: EpochEndOffset) -> None:
    """An epoch between two entries has the end of the lower entry; an epoch before all has the
    first start."""
    assert cache_of((1, 3), (3, 5), (4, 9)).end_offset_for(epoch, 20) == expected


@pytest.mark.parametrize(("epoch", "end"), [(0, -1), (1, 5), (2, 5), (3, 9), (4, 20), (5, -1)])
def test_end_offsets_before_kip_279(epoch: int, end: int) -> None:
    """0.11 to 1.1 answer offsets only, and none for an epoch before the first or after the last."""
    cache = cache_of((1, 3), (3, 5), (4, 9), kip_279=False)
    assert cache.end_offset_for(epoch, 20).end_offset == end


@pytest.mark.parametrize(
    ("epoch", "offset", "expected"),
    [
        (5, 20, [(1, 3), (3, 5), (4, 9), (5, 20)]),
        (5, 7, [(1, 3), (3, 5), (5, 7)]),
        (5, 9, [(1, 3), (3, 5), (5, 9)]),
        (3, 12, [(1, 3), (3, 12)]),
        (0, 2, [(0, 2)]),
        (4, 9, [(1, 3), (3, 5), (4, 9)]),
    ],
)
def test_contradicted_entries_are_replaced(
    epoch: int, offset: int, expected: list[tuple[int, int]]
) -> None:
    """A smaller epoch or offset means that the log was rewritten: later entries are removed, and an
    epoch that begins where the last one did replaces it."""
    cache = cache_of((1, 3), (3, 5), (4, 9))
    cache.assign(epoch, offset)
    assert cache.entries == expected


@pytest.mark.parametrize(("epoch", "offset"), [(3, 12), (5, 7), (4, 5)])
def test_contradicting_entries_are_refused_before_kip_279(epoch: int, offset: int) -> None:
    """0.11 to 1.1 warned about such an entry and changed nothing."""
    cache = cache_of((1, 3), (4, 9), kip_279=False)
    assert not cache.assign(epoch, offset)
    assert cache.entries == [(1, 3), (4, 9)]


@pytest.mark.parametrize(("epoch", "offset"), [(-1, 0), (0, -1)])
def test_negative_entries_are_errors(epoch: int, offset: int) -> None:
    """A negative epoch or offset is an error."""
    with pytest.raises(ValueError, match="may not be negative"):
        cache_of().assign(epoch, offset)


def test_old_message_formats_have_no_history(tools: type[Tools]) -> None:
    """DP-2: with message format 0.10.2 the cache stays empty and look-ups are undefined."""
    log = tools.log("2.8", **{"message.format.version": "0.10.2"})
    log.assign_epoch_start_offset(5, 0)
    tools.fill(log, 1, 5)
    assert (log.epochs, log.end_offset_for_epoch(5)) == ((), UNDEFINED)


def test_the_oldest_protocol_keeps_no_history(tools: type[Tools]) -> None:
    """0.10 has no leader-epoch cache at all."""
    log = tools.log("0.10")
    tools.fill(log, 1, 5)
    assert (log.epochs, log.latest_epoch) == ((), -1)


def test_asking_the_new_epoch_before_its_first_write(tools: type[Tools], log: Any) -> None:
    """DP-1: an epoch registered at its election ends at the log end before any append."""
    tools.fill(log, 2, 0)
    tools.fill(log, 2, 5)
    log.assign_epoch_start_offset(8, log.log_end_offset)
    assert log.end_offset_for_epoch(8) == EpochEndOffset(8, 4)
