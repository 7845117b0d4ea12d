"""Claims of articles on partitions: roles, high watermark, and the ISR that grows and shrinks.

Each docstring is the claim; the values are what each release does (docs/kafka/articles.md#claims).
"""

from __future__ import annotations

import pytest
from fakekafka.protocol.control import AlterIsrRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import LeaderAndIsr
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.replication.partition.partition import Partition
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, led

ALL = JUDGED_VERSIONS
IN_ZOOKEEPER = ("0.10", "1.1")
BY_THE_CONTROLLER = ("2.8", "3.9")


def leader_of(cluster: ReplicaCluster, broker_id: int = 0) -> Partition:
    return cluster[broker_id].partition()


def lag_ms(cluster: ReplicaCluster) -> int:
    return int(cluster.config["replica.lag.time.max.ms"])


# -- the high watermark ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "waits"), [("0.10", False), ("1.1", True), ("2.8", True), ("3.9", True)]
)
def test_the_high_watermark_is_the_least_end_in_the_isr(version: str, waits: bool) -> None:
    """The high watermark is the smallest log end offset of the ISR."""
    cluster = led(version, brokers=3)
    cluster.produce(0, "a")
    cluster.fetch(0, 1, replica_id=1)
    assert cluster[0].high_watermark() == 0
    cluster.fetch(0, 1, replica_id=2)
    assert cluster[0].high_watermark() == 1
    partition = leader_of(cluster)
    partition.isr = partition.maximal_isr = (0, 1)  # 2 left, but was caught up just now
    cluster.produce(0, "b")
    cluster.fetch(0, 2, replica_id=1)
    assert cluster[0].high_watermark() == (1 if waits else 2)


@pytest.mark.parametrize("version", ALL)
def test_an_append_moves_the_high_watermark_when_the_leader_is_alone_in_the_isr(
    version: str,
) -> None:
    """After an append the high watermark may rise at once, as the ISR may be the leader alone."""
    cluster = led(version, isr=(0,))
    cluster.produce(0, *"ab")
    assert cluster[0].high_watermark() == 2


@pytest.mark.parametrize("version", ALL)
def test_becoming_leader_may_move_the_high_watermark(version: str) -> None:
    """makeLeader looks at the high watermark, too: it moves if the ISR is the leader alone."""
    cluster = led(version)
    cluster.produce(0, *"ab")
    cluster.elect(0)
    assert cluster[0].high_watermark() == 0, "1 is in the ISR and has not fetched"
    cluster.elect(0, isr=(0,))
    assert cluster[0].high_watermark() == 2


@pytest.mark.parametrize(("version", "expected"), [("0.10", 1), ("1.1", 1), ("2.8", 0), ("3.9", 1)])
def test_a_change_of_the_isr_may_move_the_high_watermark(version: str, expected: int) -> None:
    """The high watermark may move when the ISR has changed."""
    cluster = led(version)
    cluster.produce(0, "a")
    cluster.hold_isr_changes()
    cluster.clock.now_ms += lag_ms(cluster) + 1
    leader_of(cluster).maybe_shrink_isr(cluster.clock.now_ms)
    cluster.release_isr_changes()
    assert leader_of(cluster).isr == (0,)
    assert cluster[0].high_watermark() == expected
    cluster.produce(0, "b")
    assert cluster[0].high_watermark() == 2


@pytest.mark.parametrize("version", ALL)
def test_a_leaders_high_watermark_never_falls(version: str) -> None:
    """The high watermark of a leader never falls."""
    cluster = led(version)
    cluster.produce(0, *"abc")
    cluster.fetch(0, 3, replica_id=1)
    cluster.fetch(0, 1, replica_id=1)
    cluster.elect(0)
    assert cluster[0].high_watermark() == 3


@pytest.mark.parametrize("version", ALL)
def test_a_followers_high_watermark_is_the_leaders_within_its_log(version: str) -> None:
    """A follower's high watermark is the smaller of its own log end and the leader's high
    watermark."""
    cluster = led(version)
    cluster.produce(0, *"ab")
    log = cluster[1].log()
    cluster.round(1)
    assert (log.log_end_offset, log.high_watermark) == (2, 0), "the leader's of before the fetch"
    cluster.round(1)
    cluster.produce(0, "c")
    cluster.round(1)
    assert (log.log_end_offset, log.high_watermark) == (3, 2)
    leader_of(cluster, 1).append_as_follower((), 9, 0)
    assert log.high_watermark == 3, "not above its end"
    leader_of(cluster, 1).append_as_follower((), 1, 0)
    assert log.high_watermark == 1, "down, if the leader says so"


@pytest.mark.parametrize(("version", "expected"), [("0.10", 1), ("1.1", 1), ("2.8", 1), ("3.9", 0)])
def test_too_small_an_isr_stops_producers_only(version: str, expected: int) -> None:
    """With an ISR below min.insync.replicas acks=all is refused; acks=1 is accepted and becomes
    visible."""
    cluster = led(version, isr=(0,), topic={"min.insync.replicas": "2"})
    (refused,) = cluster.produce(0, "a", acks=-1)
    assert refused.error is ErrorCode.NOT_ENOUGH_REPLICAS
    (taken,) = cluster.produce(0, "b")
    assert (taken.error, cluster[0].log_end_offset()) == (ErrorCode.NONE, 1)
    assert cluster[0].high_watermark() == expected


# -- roles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ALL)
def test_make_leader_returns_whether_the_leader_is_new(version: str) -> None:
    """makeLeader returns false if this broker led before, and takes over ISR and epoch."""
    cluster = led(version)
    partition = leader_of(cluster)
    state = cluster.partition_state(leader_epoch=3, isr=(0,), zk_version=4)
    assert partition.make_leader(state) is False
    assert (partition.isr, partition.leader_epoch, partition.partition_epoch) == ((0,), 3, 4)
    other = cluster.partition_state(leader=1, leader_epoch=3, isr=(0, 1), zk_version=4)
    assert leader_of(cluster, 1).make_leader(other) is True


@pytest.mark.parametrize(
    ("version", "restarts"), [("0.10", False), ("1.1", False), ("2.8", True), ("3.9", True)]
)
def test_make_follower_does_nothing_if_the_leader_is_the_same(version: str, restarts: bool) -> None:
    """makeFollower returns false, and the fetcher goes on, if the leader has not changed."""
    cluster = led(version)
    state = cluster.partition_state(leader_epoch=1, zk_version=1)
    assert leader_of(cluster, 1).make_follower(state) is restarts
    assert leader_of(cluster, 1).leader_epoch == 1


@pytest.mark.parametrize("version", ALL)
def test_a_follower_has_no_isr(version: str) -> None:
    """makeFollower empties the ISR; log end and high watermark stay."""
    cluster = led(version, isr=(0,))
    cluster.produce(0, *"ab")
    partition = leader_of(cluster)
    partition.make_follower(cluster.partition_state(leader=1, leader_epoch=1, zk_version=1))
    assert (partition.isr, partition.maximal_isr, partition.is_leader) == ((), (), False)
    assert partition.log is not None
    assert (partition.log.log_end_offset, partition.log.high_watermark) == (2, 2)


@pytest.mark.parametrize("version", ALL)
def test_a_broker_does_not_follow_an_unknown_leader(version: str) -> None:
    """A broker follows only a leader that it knows to be live; otherwise it only creates the
    log."""
    cluster = ReplicaCluster(version, 2)
    cluster.replicas[TP] = (0, 1)
    cluster.state[TP] = LeaderAndIsr(0, 0, (0, 1), 0)
    cluster.leader_and_isr(1, is_new=True)
    partition = leader_of(cluster, 1)
    assert (partition.leader_id, partition.leader_epoch) == (None, -1)
    assert partition.log is not None
    cluster.update_metadata()
    cluster.leader_and_isr(1)
    assert (partition.leader_id, partition.leader_epoch) == (0, 0), "the same epoch, once known"


@pytest.mark.parametrize("version", ALL)
def test_under_replicated_is_an_isr_smaller_than_the_assignment(version: str) -> None:
    """Only a leader can say that its partition is under-replicated."""
    cluster = led(version, isr=(0,))
    assert leader_of(cluster).is_under_replicated
    assert not leader_of(cluster, 1).is_under_replicated
    cluster.elect(0, isr=(0, 1))
    assert not leader_of(cluster).is_under_replicated


# -- joining and leaving the ISR -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "joins"), [("0.10", True), ("1.1", True), ("2.8", False), ("3.9", False)]
)
def test_a_replica_that_reaches_the_high_watermark_joins_the_isr(version: str, joins: bool) -> None:
    """An assigned replica outside the ISR joins when its end reaches the high watermark."""
    cluster = led(version, brokers=3, isr=(0, 1))
    cluster.produce(0, *"abcd")
    cluster.elect(0)  # the epoch begins at 4, the high watermark is still 0
    cluster.fetch(0, 3, replica_id=2)
    assert (2 in leader_of(cluster).isr) is joins
    cluster.fetch(0, 4, replica_id=2)
    assert leader_of(cluster).isr == (0, 1, 2)


@pytest.mark.parametrize("version", ALL)
def test_a_replica_below_the_high_watermark_does_not_join_the_isr(version: str) -> None:
    """A replica that lacks committed records stays outside."""
    cluster = led(version, isr=(0,))
    cluster.produce(0, *"ab")
    cluster.fetch(0, 1, replica_id=1)
    assert leader_of(cluster).isr == (0,)
    cluster.fetch(0, 2, replica_id=1)
    assert leader_of(cluster).isr == (0, 1)


@pytest.mark.parametrize(
    ("version", "isr"), [("0.10", (0,)), ("1.1", (0,)), ("2.8", (0, 1)), ("3.9", (0, 1))]
)
def test_a_replica_not_caught_up_for_the_lag_time_leaves_the_isr(
    version: str, isr: tuple[int, ...]
) -> None:
    """A replica that was last caught up longer than replica.lag.time.max.ms ago leaves, whatever it
    has."""
    cluster = led(version)
    cluster.produce(0, "a")
    cluster.fetch(0, 1, replica_id=1)
    partition = leader_of(cluster)
    partition.maybe_shrink_isr(cluster.clock.now_ms + lag_ms(cluster))
    assert partition.isr == (0, 1), "longer than"
    partition.maybe_shrink_isr(cluster.clock.now_ms + lag_ms(cluster) + 1)
    assert partition.isr == isr


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("fetches", [True, False], ids=["slow", "stuck"])
def test_stuck_and_slow_followers_leave_the_isr_by_the_same_time_limit(
    version: str, fetches: bool
) -> None:
    """A follower that stops fetching and one that never reaches the end leave by the same time
    limit."""
    cluster = led(version)
    cluster.produce(0, *"abc")
    cluster.clock.now_ms += lag_ms(cluster) + 1
    if fetches:
        cluster.fetch(0, 1, replica_id=1)
    partition = leader_of(cluster)
    partition.maybe_shrink_isr(cluster.clock.now_ms)
    assert partition.isr == (0,)
    partition.maybe_shrink_isr(cluster.clock.now_ms + 10 * lag_ms(cluster))
    assert partition.isr == (0,), "the leader never leaves"


@pytest.mark.parametrize("version", ALL)
def test_missing_records_do_not_matter(version: str) -> None:
    """The number of records that a follower lacks is no reason to leave."""
    cluster = led(version)
    cluster.produce(0, *("a" * 200))
    leader_of(cluster).maybe_shrink_isr(cluster.clock.now_ms)
    assert leader_of(cluster).isr == (0, 1)


# -- writing the ISR -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ALL)
def test_the_leader_writes_the_isr_into_zookeeper(version: str) -> None:
    """The leader writes the ISR itself and announces the change; it sends no request for it."""
    cluster = led(version, isr=(0,))
    cluster.fetch(0, 0, replica_id=1)
    assert cluster.state[TP].isr == (0, 1)
    is_asked = version in BY_THE_CONTROLLER
    assert [type(request) for request in cluster.alter_isr_requests] == [AlterIsrRequest] * is_asked
    cluster.clock.advance(10_000)
    assert bool(cluster.published) is not is_asked


@pytest.mark.parametrize("version", ALL)
def test_a_refused_write_leaves_the_isr_unchanged(version: str) -> None:
    """If ZooKeeper has another version, the old ISR stays, and a later attempt may succeed."""
    cluster = led(version, isr=(0,))
    cluster.state[TP] = LeaderAndIsr(0, 0, (0,), 9)
    cluster.fetch(0, 0, replica_id=1)
    partition = leader_of(cluster)
    assert (partition.isr, cluster.state[TP].isr) == ((0,), (0,))
    cluster.state[TP] = LeaderAndIsr(0, 0, (0,), 0)
    cluster.fetch(0, 0, replica_id=1)
    assert partition.isr == ((0, 1) if version in IN_ZOOKEEPER else (0,))
    assert (partition.pending_isr is None) is (version in IN_ZOOKEEPER)


@pytest.mark.parametrize("version", ALL)
def test_a_joining_replica_counts_once_its_isr_is_written(version: str) -> None:
    """A replica holds back the high watermark from when the ISR with it is written."""
    cluster = led(version, isr=(0,))
    cluster.hold_isr_changes()
    cluster.fetch(0, 0, replica_id=1)
    partition = leader_of(cluster)
    assert (partition.isr, partition.maximal_isr) == ((0,), (0, 1))
    cluster.produce(0, "a")
    assert cluster[0].high_watermark() == 0, "from the proposal on; the write was at once in Kafka"
    cluster.release_isr_changes()
    assert partition.isr == (0, 1)
    cluster.fetch(0, 1, replica_id=1)
    assert cluster[0].high_watermark() == 1


# -- acks=all --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ALL)
def test_acks_all_waits_for_the_high_watermark(version: str) -> None:
    """A write with acks=all is answered when the high watermark has passed it."""
    cluster = led(version, brokers=3)
    answers = cluster.produce_async(0, "a")
    cluster.fetch(0, 1, replica_id=1)
    assert answers == []
    cluster.fetch(0, 1, replica_id=2)
    assert [answer.error for answer in answers] == [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("version", "error"),
    [
        ("0.10", ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        ("1.1", ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        ("2.8", ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        ("3.9", ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_an_isr_that_shrank_below_the_minimum_fails_the_produce_after_append(
    version: str, error: ErrorCode
) -> None:
    """If the ISR shrank too far meanwhile, the answer is NOT_ENOUGH_REPLICAS_AFTER_APPEND."""
    cluster = led(version, topic={"min.insync.replicas": "2"})
    answers = cluster.produce_async(0, "a", timeout_ms=200_000)
    cluster.clock.advance(lag_ms(cluster) * 2 + 1)
    assert leader_of(cluster).isr == (0,)
    cluster.produce(0, "b")  # 2.8 looks at the high watermark again now
    cluster.clock.advance(200_000)
    assert [answer.error for answer in answers] == [error]
