"""What a new coordinator loads from the offsets topic: transactions, expiry, broken records."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.groups.records import OffsetKey, OffsetValue, encode_key, encode_value
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import build_batch, build_control_marker
from fakekafka.protocol.records.format import Record
from fakekafka.tests.support.group_rig import NONE, ORDERS, START_MS, GroupRig, StubLog

KEY = encode_key(OffsetKey("group", *ORDERS))
PRODUCER_ID = 9


def value(offset: int, expire_timestamp_ms: int = -1) -> bytes:
    return encode_value(OffsetValue(offset, -1, "", START_MS, expire_timestamp_ms))


def commit(log: StubLog, offset: int, is_transactional: bool = False) -> None:
    """Return the record of an offset, in a transaction or outside."""
    records = [Record(0, 0, KEY, value(offset), ())]
    if is_transactional:
        log.append(build_batch(records, 0, -1, PRODUCER_ID, 0, 0, is_transactional=True))
    else:
        log.append(build_batch(records))


def end(log: StubLog, is_commit: bool) -> None:
    """Return the marker that ends the transaction."""
    log.append(build_control_marker(PRODUCER_ID, 0, is_commit, 0, START_MS))


@pytest.mark.parametrize(("is_commit", "offset"), [(True, 7), (False, 4)])
def test_offsets_of_committed_transactions_are_loaded(is_commit: bool, offset: int) -> None:
    """Offsets of a committed transaction are loaded; those of an aborted one are skipped
    (``doLoadGroupsAndOffsets``)."""
    log = StubLog()
    commit(log, 4)
    commit(log, 7, is_transactional=True)
    end(log, is_commit)
    rig = GroupRig(log=log)
    assert rig.offset() == offset
    assert rig.fetch(ORDERS, stable=True)[0].error is NONE


def test_a_commit_after_that_of_a_transaction_outlives_its_end() -> None:
    """Of two commits the one later in the log counts, whenever the transaction ended
    (``CommitRecordMetadataAndOffset.olderThan``)."""
    log = StubLog()
    commit(log, 7, is_transactional=True)
    commit(log, 4)
    end(log, is_commit=True)
    assert GroupRig(log=log).offset() == 4


def test_offsets_of_an_open_transaction_are_unstable_for_a_new_coordinator() -> None:
    """A new coordinator finds offsets of an open transaction in the log and reports them as
    unstable (KIP-447)."""
    log = StubLog()
    commit(log, 4)
    commit(log, 7, is_transactional=True)
    rig = GroupRig(log=log)
    assert rig.offset() == 4
    assert rig.fetch(ORDERS, stable=True)[0].error is ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_a_broken_record_spoils_no_other_of_its_batch() -> None:
    """A broken record alone is skipped; the other records of its batch are loaded."""
    log = StubLog()
    records = [Record(0, 0, KEY, b"\x00\x09", ()), Record(1, 0, KEY, value(4), ())]
    log.append(build_batch(records))
    assert GroupRig(log=log).offset() == 4


def test_an_offset_keeps_the_expiry_that_its_commit_named() -> None:
    """Until 2.0 an offset keeps the expiry in its record; the broker's retention applies to others
    (``GroupMetadataManager.loadGroup``)."""
    log = StubLog()
    expire_ms = START_MS + 30 * 60_000
    log.append(build_batch([Record(0, 0, KEY, value(4, expire_ms), ())]))
    rig = GroupRig("1.1", log=log, offsets_retention_minutes=10_000)
    rig.host.advance(20 * 60_000)
    assert rig.offset() == 4
    rig.host.advance(20 * 60_000)
    assert rig.offset() == -1
