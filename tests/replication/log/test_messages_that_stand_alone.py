"""Logs of 0.10, whose messages are not in batches (before KIP-98)."""

from __future__ import annotations

import pytest
from fakekafka.replication.log.follower_append import append_as_follower
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.results import UnexpectedAppendOffset
from fakekafka.tests.support.logs import Tools


def test_a_0_10_follower_appends_from_the_middle_of_a_batch(tools: type[Tools]) -> None:
    """A 0.10 follower whose log ends between two messages, as after a truncation to the high
    watermark, appends the later one from a batch that begins earlier."""
    log = tools.log("0.10")
    leader = tools.log()
    append_as_leader(leader, tools.data(b"a", b"b", b"c"), 0, tools.now_ms)
    log.truncate_fully_and_start_at(1)
    (batch,) = leader.batches()
    info = append_as_follower(log, [batch], verify=True)
    assert (info.first_offset, info.last_offset) == (1, 2)
    assert [(r.offset, r.value) for r in log.records()] == [(1, b"b"), (2, b"c")]
    assert all(stored.is_intact() for stored in log.batches())
    with pytest.raises(UnexpectedAppendOffset):
        append_as_follower(log, [batch])
