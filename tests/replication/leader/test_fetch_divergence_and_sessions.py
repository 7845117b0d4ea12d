"""Fetch at the replica manager: divergence, transactions, racks, sessions (docs/kafka/fetch.md)."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.data import READ_COMMITTED, FetchPartition
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.filled_partitions import filled, multi, offsets
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, led

OTHER = TopicPartition("u", 0)
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


# -- divergence ----------------------------------------------------------------------------------


def test_fetch_inside_a_newer_epoch_naming_the_older_one() -> None:
    """DP-78: a fetch in the second epoch that names the first is answered empty, diverging at (0,
    end)."""
    cluster = filled(committed=6)
    cluster.elect(0)
    cluster.produce(0, *"gh")
    (answer,) = cluster.fetch(0, 7, replica_id=1, last_fetched_epoch=0)
    assert (answer.error, answer.records) == (ErrorCode.NONE, ())
    end = answer.diverging_epoch
    assert (end.leader_epoch, end.end_offset) == (0, 6)
    unknown = cluster.fetch(0, 7, replica_id=1, last_fetched_epoch=5)[0]
    assert unknown.error is ErrorCode.OFFSET_OUT_OF_RANGE


# -- transactions --------------------------------------------------------------------------------


def transactional(cluster: ReplicaCluster, *values: Any, sequence: int = 0) -> Any:
    from fakekafka.tests.support.produce import send
    from fakekafka.tests.support.replica_cluster import encode

    records = encode(
        *values, producer_id=9, producer_epoch=0, base_sequence=sequence, is_transactional=True
    )
    return send(cluster, records)


def marker(cluster: ReplicaCluster, commit: bool) -> Any:
    from fakekafka.protocol.records.batch import build_control_marker
    from fakekafka.tests.support.produce import send

    records = build_control_marker(
        producer_id=9,
        producer_epoch=0,
        is_commit=commit,
        coordinator_epoch=0,
        timestamp=cluster.clock.now_ms,
    )
    return send(cluster, records, origin="coordinator")


def committed_read(cluster: ReplicaCluster, offset: int = 0, **more: Any) -> Any:
    return cluster.fetch(0, offset, isolation_level=READ_COMMITTED, **more)


def test_open_transaction_is_hidden_until_its_marker_is_replicated() -> None:
    """DP-37: an open transaction is hidden until the high watermark passes its marker."""
    cluster = led()
    transactional(cluster, "a")
    cluster.fetch(0, 1, replica_id=1)
    assert offsets(committed_read(cluster)[0]) == []
    assert offsets(cluster.fetch(0, 0)[0]) == [0]
    marker(cluster, commit=True)
    assert offsets(committed_read(cluster)[0]) == []
    cluster.fetch(0, 2, replica_id=1)
    assert offsets(committed_read(cluster)[0]) == [0, 1]


def test_committed_readers_get_the_aborted_list() -> None:
    """DP-38, DP-74: READ_COMMITTED gets the aborted list, also at a timeout; READ_UNCOMMITTED gets
    none."""
    cluster = led(brokers=1)
    transactional(cluster, "a")
    marker(cluster, commit=False)
    (answer,) = committed_read(cluster)
    assert [(t.producer_id, t.first_offset) for t in answer.aborted_transactions] == [(9, 0)]
    assert answer.last_stable_offset == 2
    assert cluster.fetch(0, 0)[0].aborted_transactions is None
    assert committed_read(cluster, 2)[0].aborted_transactions == ()
    waiting = committed_read(cluster, 0, max_wait_ms=100, min_bytes=10000)
    assert waiting == []
    cluster.clock.advance(100)
    assert len(waiting[0].aborted_transactions) == 1


# -- preferred replicas --------------------------------------------------------------------------


def racked(version: str = "2.8") -> ReplicaCluster:
    cluster = filled(version=version, committed=6, config={"replica.selector.class": RACK_AWARE})
    cluster.produce(0, "g")
    return cluster


def test_preferred_replica() -> None:
    """DP-43: the leader names the follower in the client's rack, and sends no data."""
    cluster = racked("3.9")
    (answer,) = cluster.fetch(0, 2, rack_id="r1", max_wait_ms=500)
    assert (answer.preferred_read_replica, answer.records) == (1, ())
    assert answer.high_watermark == 6
    assert cluster.fetch(0, 2, rack_id="r0")[0].preferred_read_replica == -1
    assert cluster.fetch(1, 2, rack_id="r0")[0].preferred_read_replica == -1, "asked a follower"


def test_preferred_replica_waited_in_old_releases() -> None:
    """KAFKA-13767: before 3.3 an answer that only names a replica waits for max wait."""
    cluster = racked("2.8")
    answers = cluster.fetch(0, 2, rack_id="r1", max_wait_ms=500)
    assert answers == []
    cluster.clock.advance(500)
    assert answers[0].preferred_read_replica == 1


# -- sessions ------------------------------------------------------------------------------------


def incremental(
    cluster: ReplicaCluster,
    session_id: int,
    epoch: int,
    *specs: Any,
    forgotten: Any = (),
    **more: Any,
) -> Any:
    return multi(
        cluster, specs, session_id=session_id, session_epoch=epoch, forgotten=forgotten, **more
    )


def test_session_life() -> None:
    """DP-77, DP-80: each answer of a session: full, without changes, with changes, with a new
    epoch, closed."""
    cluster = filled(brokers=1)
    (full,) = incremental(cluster, 0, 0, FetchPartition(TP, 6))
    assert full.session_id > 0
    assert len(full.partitions) == 1
    (quiet,) = incremental(cluster, full.session_id, 1)
    assert (quiet.session_id, quiet.partitions) == (full.session_id, ())
    cluster.produce(0, "g")
    (news,) = incremental(cluster, full.session_id, 2)
    assert offsets(news.partitions[0]) == [6]
    spec = FetchPartition(TP, 7, current_leader_epoch=5)
    (wrong,) = incremental(cluster, full.session_id, 3, spec)
    assert wrong.partitions[0].error is ErrorCode.UNKNOWN_LEADER_EPOCH
    (again,) = incremental(cluster, full.session_id, 4)
    assert again.partitions[0].error is ErrorCode.UNKNOWN_LEADER_EPOCH
    (healed,) = incremental(
        cluster, full.session_id, 5, FetchPartition(TP, 7, current_leader_epoch=0)
    )
    assert healed.partitions[0].error is ErrorCode.NONE
    (silent,) = incremental(cluster, full.session_id, 6)
    assert silent.partitions == ()
    (closed,) = incremental(cluster, full.session_id, 7, forgotten=(TP,))
    assert closed.session_id == 0


def test_session_errors() -> None:
    """DP-82: a wrong epoch is 71, an unknown id 70; both answers have no partitions and id 0."""
    cluster = filled(brokers=1)
    (full,) = incremental(cluster, 0, 0, FetchPartition(TP, 0))
    (wrong,) = incremental(cluster, full.session_id, 9)
    assert wrong.error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert (wrong.session_id, wrong.partitions) == (0, ())
    (unknown,) = incremental(cluster, full.session_id + 1, 1)
    assert unknown.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_may_begin_with_nothing() -> None:
    """A session may begin without partitions and get them later
    (``FullFetchContext.updateAndGenerateResponseData``)."""
    cluster = filled(brokers=1)
    (empty,) = incremental(cluster, 0, 0)
    assert (empty.session_id > 0, empty.partitions) == (True, ())
    (added,) = incremental(cluster, empty.session_id, 1, FetchPartition(TP, 0))
    assert [p.topic_partition for p in added.partitions] == [TP]


def test_sessions_off_in_old_releases() -> None:
    """0.10 knows no sessions: every answer has id 0."""
    (full,) = incremental(filled(version="0.10", brokers=1), 0, 0, FetchPartition(TP, 0))
    assert full.session_id == 0


def test_a_parked_incremental_fetch_reports_a_moved_high_watermark() -> None:
    """A parked incremental fetch that times out reports the changes meanwhile."""
    cluster = led(brokers=2)
    (full,) = incremental(cluster, 0, 0, FetchPartition(TP, 0), replica_id=1)
    cluster.produce(0, "a")
    (data,) = incremental(cluster, full.session_id, 1, replica_id=1)
    assert data.partitions[0].high_watermark == 0
    waiting = incremental(
        cluster, full.session_id, 2, FetchPartition(TP, 1), replica_id=1, max_wait_ms=500
    )
    assert waiting == []
    cluster.clock.advance(500)
    assert [p.high_watermark for p in waiting[0].partitions] == [1]
    idle = incremental(cluster, full.session_id, 3, replica_id=1, max_wait_ms=500)
    cluster.clock.advance(500)
    assert idle[0].partitions == ()
