"""Fetch answers that arrive when the partition's fetch position has changed."""

from __future__ import annotations

from fakekafka.tests.support.follower import Follower, batch_at, fetched


def test_an_answer_is_ignored_if_the_log_was_truncated_meanwhile() -> None:
    """DP-62: an answer is ignored if the log was truncated meanwhile, whatever the epoch."""
    follower = Follower(history=((5, 0),), end=2)
    request = follower.next()
    follower.log().truncate_to(1)
    follower.cluster.leader_and_isr(0, leader_epoch=6)
    follower.answer_fetch(fetched(batch_at(2, epoch=5)), request=request)
    assert follower.log().log_end_offset == 1
    assert follower.node.fetcher_manager.failed_partitions == {}
    entry = follower.next_fetch().partitions[0]
    assert (entry.current_leader_epoch, entry.fetch_offset) == (6, 1)
