"""Claims of articles on replicas: their offsets, when they are caught up, how they are created.

Each docstring is the claim; the values are what each release does (docs/kafka/articles.md#claims).
"""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, led

ALL = JUDGED_VERSIONS


def leader_of(cluster: ReplicaCluster, broker_id: int = 0) -> Any:
    return cluster[broker_id].partition()


@pytest.mark.parametrize("version", ALL)
def test_a_remote_replicas_log_end_offset_is_its_fetch_offset(version: str) -> None:
    """The end of the local replica is its log's; that of a remote replica is set only by its
    fetch."""
    cluster = led(version)
    cluster.produce(0, *"abc")
    assert cluster[0].log_end_offset() == 3
    assert leader_of(cluster).replica(1).log_end_offset == -1
    cluster.fetch(0, 2, replica_id=1)
    assert leader_of(cluster).replica(1).log_end_offset == 2
    cluster.produce(0, "d")
    assert leader_of(cluster).replica(1).log_end_offset == 2
    cluster.fetch(0, 1, replica_id=1)
    assert leader_of(cluster).replica(1).log_end_offset == 1, "the leader believes a lower one"


@pytest.mark.parametrize("version", ALL)
def test_a_remote_replica_has_no_high_watermark(version: str) -> None:
    """Only the local replica has a high watermark and a log."""
    cluster = led(version)
    partition = leader_of(cluster)
    assert partition.log.high_watermark == 0
    assert partition.replica(0) is None, "the local replica is the log"
    remote = partition.replica(1)
    assert not hasattr(remote, "log")
    with pytest.raises(AttributeError):
        remote.high_watermark = 1


@pytest.mark.parametrize(
    ("version", "is_caught_up"), [("0.10", False), ("1.1", True), ("2.8", True), ("3.9", True)]
)
def test_a_replica_is_caught_up_when_it_reaches_the_log_end(
    version: str, is_caught_up: bool
) -> None:
    """A follower is caught up exactly when its fetch reaches the leader's log end."""
    cluster = led(version)
    cluster.produce(0, *"ab")
    cluster.clock.advance(10)
    cluster.fetch(0, 0, replica_id=1)
    before_ms = cluster.clock.now_ms
    cluster.clock.advance(10)
    cluster.produce(0, *"cd")
    cluster.fetch(0, 2, replica_id=1)
    replica = leader_of(cluster).replica(1)
    assert (replica.last_caught_up_time_ms == before_ms) is is_caught_up
    cluster.fetch(0, 4, replica_id=1)
    assert replica.last_caught_up_time_ms == cluster.clock.now_ms


@pytest.mark.parametrize(
    ("version", "is_known"), [("0.10", True), ("1.1", False), ("2.8", False), ("3.9", False)]
)
def test_a_replica_counts_as_caught_up_from_its_creation(version: str, is_known: bool) -> None:
    """The caught-up time starts with the replica object, even for one outside the ISR."""
    cluster = led(version, brokers=3, isr=(0, 1))
    created_ms = cluster.clock.now_ms
    outsider = leader_of(cluster).replica(2)
    assert outsider.last_caught_up_time_ms == (created_ms if is_known else 0)
    cluster.clock.now_ms += 5000
    cluster.elect(0)
    member = leader_of(cluster).replica(1)
    assert member.last_caught_up_time_ms == created_ms + (0 if is_known else 5000)


@pytest.mark.parametrize("version", ALL)
def test_a_new_leader_forgets_the_log_ends_of_its_followers(version: str) -> None:
    """A new leader sets the ends of remote replicas to unknown; one that stays keeps them."""
    cluster = led(version)
    cluster.produce(0, "a")
    cluster.fetch(0, 1, replica_id=1)
    cluster.elect(0)
    assert leader_of(cluster).replica(1).log_end_offset == 1
    cluster.elect(1)
    cluster.elect(0)
    assert leader_of(cluster).replica(1).log_end_offset == -1


@pytest.mark.parametrize("version", ALL)
def test_a_replica_that_is_not_assigned_has_no_object(version: str) -> None:
    """Objects exist for assigned replicas: new ones are added, removed ones go."""
    cluster = led(version, brokers=3, replicas=(0, 1))
    partition = leader_of(cluster)
    kept = partition.replica(1)
    assert partition.replica(2) is None
    cluster.replicas[TP] = (0, 1, 2)
    cluster.elect(0)
    assert partition.replica(2) is not None
    assert partition.replica(1) is kept
    cluster.replicas[TP] = (0, 2)
    cluster.elect(0, isr=(0,))
    assert partition.replica(1) is None


@pytest.mark.parametrize(
    ("version", "error"),
    [
        ("0.10", ErrorCode.UNKNOWN_SERVER_ERROR),
        ("1.1", ErrorCode.NONE),
        ("2.8", ErrorCode.NONE),
        ("3.9", ErrorCode.NOT_LEADER_OR_FOLLOWER),  # KAFKA-13837
    ],
)
def test_a_follower_that_is_not_assigned_is_an_error(version: str, error: ErrorCode) -> None:
    """The fetch of a replica that is not assigned raises NotAssignedReplicaException."""
    cluster = led(version, brokers=3, replicas=(0, 1))
    cluster.produce(0, "a")
    answers = cluster.fetch(0, 0, replica_id=2)
    assert [answer.error for answer in answers] == [error]
    assert leader_of(cluster).replica(2) is None
    assert 2 not in leader_of(cluster).maximal_isr


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(("checkpointed", "expected"), [(2, 2), (9, 3), (None, 0)])
def test_the_first_high_watermark_is_the_checkpointed_one(
    version: str, checkpointed: int | None, expected: int
) -> None:
    """The first high watermark is the checkpointed one or 0, and never above the log end."""
    cluster = led(version, leader=1)
    cluster[1].kill()
    cluster.elect(0, isr=(0,))
    cluster.produce(0, *"abc")
    assert cluster[0].high_watermark() == 3
    log = cluster[0].log()
    if checkpointed is not None:
        log.high_watermark = checkpointed
        cluster[0].manager.upkeep.checkpoint_high_watermarks()
    cluster[0].kill()
    cluster[0].start()
    cluster.update_metadata()
    cluster.leader_and_isr(0, leader=1)
    opened = cluster[0].log()
    assert (opened.high_watermark, opened.log_end_offset) == (expected, 3)
