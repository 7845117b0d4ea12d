"""Records that were lost, as derived from the ends of logs."""

from __future__ import annotations

import pytest
from fakekafka.tracing.story.cuts import Cuts

P = "t-0"


@pytest.fixture
def cuts() -> Cuts:
    """Return an account of 12 batches acknowledged by broker 1 before broker 2 led epoch 1."""
    cuts = Cuts()
    cuts.take_part("broker-1", P, None, 0)
    cuts.take_part("broker-2", P, None, 0)
    for offset in range(12):
        cuts.acknowledge("broker-1", P, offset)
    cuts.take_part("broker-2", P, 0, 1)
    return cuts


def test_a_truncation_names_the_acknowledged_batches_that_it_removes(cuts: Cuts) -> None:
    cuts.take_part("broker-1", P, 0, 1)
    assert cuts.end_offset("broker-1", P, 12, 9) == (
        "broker-1 cuts its log of t-0 from 12 to 9; 3 acknowledged batches were in it, "
        "the first at offset 9"
    )


def test_a_follower_that_was_off_truncates_records_of_the_same_epoch(cuts: Cuts) -> None:
    """Before 0.11 a follower truncates its log to its high watermark when it starts."""
    cuts.end_offset("broker-3", P, None, 0)
    cuts.take_part("broker-3", P, None, 0)
    cuts.end_offset("broker-3", P, 12, None)
    cuts.take_part("broker-3", P, 0, None)
    cuts.end_offset("broker-3", P, None, 12)
    cuts.take_part("broker-3", P, None, 0)
    told = cuts.end_offset("broker-3", P, 12, 10)
    assert told is not None
    assert "2 acknowledged batches were in it" in told


def test_a_replica_that_was_deleted_and_recreated_has_lost_nothing(cuts: Cuts) -> None:
    cuts.delete("broker-2", P)
    cuts.take_part("broker-2", P, None, 3)
    assert cuts.end_offset("broker-2", P, None, 0) is None


def test_a_single_truncated_batch_is_reported_in_the_singular(cuts: Cuts) -> None:
    cuts.take_part("broker-1", P, 0, 1)
    told = cuts.end_offset("broker-1", P, 12, 11)
    assert told is not None
    assert "1 acknowledged batch was in it, the first at offset 11" in told


def test_batches_acknowledged_by_the_next_leader_do_not_count_as_truncated(cuts: Cuts) -> None:
    """A truncation does not count batches that the next leader acknowledged at the same offsets."""
    for offset in (12, 13, 14):
        cuts.acknowledge("broker-2", P, offset)
    cuts.take_part("broker-1", P, 0, 1)
    assert cuts.end_offset("broker-1", P, 15, 12) == (
        "broker-1 cuts its log of t-0 from 15 to 12; nothing of that was acknowledged"
    )


def test_a_growing_log_and_a_new_log_are_not_reported(cuts: Cuts) -> None:
    assert cuts.end_offset("broker-3", P, None, 5) is None
    assert cuts.end_offset("broker-3", P, 5, 6) is None
    assert cuts.end_offset("broker-3", P, 6, 6) is None


def test_a_log_that_is_shorter_after_a_restart_is_reported(cuts: Cuts) -> None:
    """A log that is shorter after a restart, as unflushed records were lost, is reported."""
    assert cuts.end_offset("broker-1", P, 12, None) is None
    assert cuts.end_offset("broker-1", P, None, 12) is None
    assert cuts.end_offset("broker-1", P, 12, None) is None
    told = cuts.end_offset("broker-1", P, None, 10)
    assert told == (
        "broker-1 comes back with t-0 up to 10, it was at 12; 2 acknowledged batches were in it, "
        "the first at offset 10"
    )


def test_a_recreated_topic_has_no_records_of_the_deleted_one(cuts: Cuts) -> None:
    cuts.end_offset("broker-1", P, 12, None)
    cuts.forget(P)
    assert cuts.end_offset("broker-1", P, None, 0) is None
