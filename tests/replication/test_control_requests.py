"""Control requests, checkpoints and failed disks at the replica manager
(docs/kafka/log.md#files, docs/kafka/control-requests.md)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.control import (
    LeaderAndIsrRequest,
    StopReplicaPartitionState,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, led

OTHER = TopicPartition("u", 0)


def error_of(response: Any) -> ErrorCode:
    return ErrorCode(response.partitions[0][1])


# -- epochs --------------------------------------------------------------------------------------


def requests(cluster: ReplicaCluster, controller_epoch: int, broker_epoch: int) -> Any:
    """Return the three control requests with the given epochs, as (send, answer error)."""
    manager = cluster[0].manager
    state = cluster.partition_state(leader_epoch=99)
    stop = StopReplicaPartitionState("nowhere", 0, -1, False)
    sender = 9, controller_epoch, broker_epoch
    lead, stopping = LeaderAndIsrRequest(*sender, (state,)), StopReplicaRequest(*sender, (stop,))
    yield lambda: manager.roles.become_leader_or_follower(lead).error
    yield lambda: manager.roles.stop_replicas(stopping).error
    update = UpdateMetadataRequest(*sender, (), ())
    yield lambda: manager.roles.update_metadata(update)[0].error


@pytest.mark.parametrize(
    ("broker_epoch", "error"),
    [
        (4, ErrorCode.STALE_BROKER_EPOCH),
        (5, ErrorCode.NONE),
        (6, ErrorCode.NONE),
        (-1, ErrorCode.NONE),
    ],
)
def test_broker_epochs(broker_epoch: int, error: ErrorCode) -> None:
    """DP-127: each of the three requests refuses an older broker epoch with 77 and accepts the same
    or a newer one."""
    for index in range(3):
        cluster = led()
        cluster[0].epoch = 5
        send = list(requests(cluster, 1, broker_epoch))[index]
        assert send() is error


def test_controller_epochs_are_shared() -> None:
    """DP-128, CP-177: all requests share the highest controller epoch seen; an older one is refused
    with 11."""
    for first in range(3):
        cluster = led()
        assert list(requests(cluster, 7, -1))[first]() is ErrorCode.NONE
        assert cluster[0].manager.roles.controller_epoch == 7
        for send in requests(cluster, 6, -1):
            assert send() is ErrorCode.STALE_CONTROLLER_EPOCH
        for send in requests(cluster, 7, -1):
            assert send() is ErrorCode.NONE


def test_stale_request_changes_nothing() -> None:
    """A refused LeaderAndIsr names every partition with 11 and changes none."""
    cluster = led()
    cluster.controller_epoch = 0
    response = cluster.leader_and_isr(0, leader_epoch=9)
    assert response.partitions == ((TP, ErrorCode.STALE_CONTROLLER_EPOCH),)
    assert cluster[0].partition().leader_epoch == 0


# -- LeaderAndIsr --------------------------------------------------------------------------------


@pytest.mark.parametrize(("epoch", "error"), [(2, 11), (3, 11), (4, 0)])
def test_leader_epoch_must_grow(epoch: int, error: int) -> None:
    """Older and equal leader epochs answer STALE_CONTROLLER_EPOCH for the partition."""
    cluster = led()
    cluster.leader_and_isr(0, leader_epoch=3)
    assert int(error_of(cluster.leader_and_isr(0, leader_epoch=epoch))) == error


def test_unassigned_broker_is_refused_and_goes_offline() -> None:
    """A broker outside the replicas answers 3; without a log its partition is offline from then
    on."""
    cluster = led(brokers=3)
    cluster.create((0, 1), OTHER)
    refused = cluster.leader_and_isr(2, OTHER)
    assert error_of(refused) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster[2].manager.hosted.is_offline(OTHER)
    assert error_of(cluster.leader_and_isr(2, OTHER)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.stop_replica(2, True, tp=OTHER) is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster[2].manager.offline_count == 1


def leader_and_isr_error(cluster: ReplicaCluster, epoch: int, topic_id: str) -> ErrorCode:
    """Return broker 0's answer to a LeaderAndIsr request with this topic id."""
    ids = (("t", topic_id),) if topic_id else ()
    state = cluster.partition_state(leader_epoch=epoch)
    request = LeaderAndIsrRequest(9, 1, -1, (state,), (), ids)
    return error_of(cluster[0].manager.roles.become_leader_or_follower(request))


@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_topic_ids(version: str) -> None:
    """DP-48: the first topic id is adopted and kept; another one is refused, none is always
    accepted."""
    cluster = led(version)
    assert cluster[0].log().topic_id == ""
    assert leader_and_isr_error(cluster, 1, "first") is ErrorCode.NONE
    assert cluster[0].log().topic_id == "first"
    assert leader_and_isr_error(cluster, 2, "second") is ErrorCode.INCONSISTENT_TOPIC_ID
    assert cluster[0].partition().leader_epoch == 1
    assert cluster[0].log().topic_id == "first"
    assert leader_and_isr_error(cluster, 2, "") is ErrorCode.NONE


@pytest.mark.parametrize(("version", "first"), [("2.8", ""), ("3.9", "id")])
def test_when_a_new_log_gets_its_topic_id(version: str, first: str) -> None:
    """A new log gets its topic id with its first request; in 2.8 with the second, which finds an
    open log."""
    cluster = led(version)
    cluster[0].manager.roles.stop_replicas(
        StopReplicaRequest(9, 1, -1, (StopReplicaPartitionState("t", 0, -1, True),))
    )
    assert leader_and_isr_error(cluster, 1, "id") is ErrorCode.NONE
    assert cluster[0].log().topic_id == first
    assert leader_and_isr_error(cluster, 2, "id") is ErrorCode.NONE
    assert cluster[0].log().topic_id == "id"


def test_a_request_without_news_may_bring_the_topic_id() -> None:
    """Since 3.0 a controller that has just learnt of topic ids may send them in the same epoch."""
    cluster = led("3.9")
    assert leader_and_isr_error(cluster, 0, "id") is ErrorCode.NONE
    assert cluster[0].log().topic_id == "id"
    assert leader_and_isr_error(cluster, 0, "id") is ErrorCode.STALE_CONTROLLER_EPOCH


@pytest.mark.parametrize(
    ("version", "answers"),
    [
        ("2.8", [ErrorCode.NONE, ErrorCode.INCONSISTENT_TOPIC_ID]),
        ("3.9", [ErrorCode.INCONSISTENT_TOPIC_ID] * 2),
    ],
)
def test_a_log_of_a_former_topic_is_not_taken_for_the_new_one(
    version: str, answers: list[ErrorCode]
) -> None:
    """The log of a broker that was down when the topic was deleted is not used for the new topic.

    2.8 checks the id once the log is open, 3.9 in the stored metadata (``Partition.topicId``), so
    that the replica is never served, and is not offline either.
    """
    cluster = led(version)
    assert leader_and_isr_error(cluster, 1, "former") is ErrorCode.NONE
    cluster[0].kill()
    cluster[0].start()
    assert [leader_and_isr_error(cluster, epoch, "new") for epoch in (0, 1)] == answers
    assert cluster[0].disk.stored_topic_id(TP) == "former"
    assert not cluster[0].manager.hosted.is_offline(TP)
    if version == "3.9":
        assert cluster[0].partition().log is None
        (answer,) = cluster.fetch(0, 0)
        assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_unknown_leader_only_creates_the_log() -> None:
    """A follower whose leader is not in the metadata cache keeps role and epoch; answer NONE."""
    cluster = ReplicaCluster("2.8", 2)
    from fakekafka.protocol.values import LeaderAndIsr

    cluster.replicas[TP] = (0, 1)
    cluster.state[TP] = LeaderAndIsr(1, 4, (1,), 0)
    assert error_of(cluster.leader_and_isr(0)) is ErrorCode.NONE
    partition = cluster[0].partition()
    assert (partition.leader_id, partition.leader_epoch) == (None, -1)
    assert partition.log is not None
    assert cluster[0].fetchers == []
    cluster.update_metadata()
    cluster.leader_and_isr(0)
    assert (partition.leader_id, partition.leader_epoch) == (1, 4)
    assert len(cluster[0].fetchers) == 1


def test_coordinators_hear_of_leadership() -> None:
    """The leadership callback gets the partitions newly led and followed; not those whose leader
    stays, as their coordinators continue with their state in memory."""
    cluster = led()
    heard = []
    cluster[0].manager.roles.on_leadership_change = lambda leaders, followers: heard.append(
        ([p.topic_partition for p in leaders], [p.topic_partition for p in followers])
    )
    cluster.elect(1)
    cluster.elect(0)
    cluster.elect(0)
    assert heard == [([], [TP]), ([TP], [])]
    assert cluster[0].partition().leader_epoch == 3


def test_no_leftovers_after_a_reassignment() -> None:
    """DP-50: a broker that dropped its replica keeps no partition object of the topic."""
    cluster = led()
    assert cluster.stop_replica(0, delete=True, leader_epoch=1) is ErrorCode.NONE
    assert cluster[0].manager.hosted.partition(TP) is None
    assert cluster[0].manager.partition_count == 0
    assert list(cluster[0].manager.hosted) == []


def test_recreated_topic_reads_its_new_configuration() -> None:
    """The configuration of a topic is forgotten with its last partition."""
    cluster = led(topic={"min.insync.replicas": "2"})
    cluster.stop_replica(0, delete=True)
    cluster.topic_overrides["min.insync.replicas"] = "1"
    cluster.leader_and_isr(0, is_new=True)
    assert cluster[0].partition().settings.min_insync_replicas == 1


# -- StopReplica ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "leader_epoch", "error"),
    [
        ("2.8", 2, ErrorCode.NONE),
        ("2.8", 1, ErrorCode.FENCED_LEADER_EPOCH),
        ("2.8", 0, ErrorCode.FENCED_LEADER_EPOCH),
        ("2.8", -1, ErrorCode.NONE),
        ("2.8", -2, ErrorCode.NONE),
        ("3.9", 1, ErrorCode.NONE),
        ("3.9", 0, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_stop_replica_epochs(version: str, leader_epoch: int, error: ErrorCode) -> None:
    """DP-47, CP-180: newer epochs, -1 and -2 are executed, older are fenced; equal ones, too, until
    3.4.1."""
    for delete in (False, True):
        cluster = led(version)
        cluster.elect(0)
        assert cluster.stop_replica(0, delete, leader_epoch) is error
        gone = cluster[0].manager.hosted.partition(TP) is None
        assert gone is (delete and error is ErrorCode.NONE)


def test_stop_replica_of_a_partition_that_is_not_hosted_succeeds() -> None:
    """DP-47, CP-179: a partition not hosted is NONE; with delete its stray log is deleted, too."""
    cluster = led()
    cluster[0].kill()
    cluster[0].start()
    assert cluster[0].disk.existing_partitions() == [TP]
    assert cluster.stop_replica(0, delete=False) is ErrorCode.NONE
    assert cluster[0].disk.existing_partitions() == [TP]
    assert cluster.stop_replica(0, delete=True) is ErrorCode.NONE
    assert cluster[0].disk.existing_partitions() == []


def test_stop_replica_on_a_failed_disk() -> None:
    """DP-47, CP-178: an offline partition, and a delete that hits the disk error, answers 56."""
    cluster = led()
    cluster[0].disk.fail()
    assert cluster.stop_replica(0, delete=True) is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster[0].manager.hosted.is_offline(TP)
    assert cluster.stop_replica(0, delete=False) is ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8"])
@pytest.mark.parametrize("length", [213, 214])
def test_deletion_of_a_long_name_fails_the_directory_of_1_1(version: str, length: int) -> None:
    """KAFKA-4893: the deletion renames the log's directory to a name too long for the file
    system."""
    cluster = led(version)
    long = TopicPartition("x" * length, 0)
    cluster.create((0, 1), long)
    directory = cluster[0].log(long).directory
    stop = StopReplicaPartitionState(long.topic, 0, -1, True)
    response = cluster[0].manager.roles.stop_replicas(StopReplicaRequest(9, 1, -1, (stop,)))
    fails = version == "1.1" and length == 214
    assert error_of(response) is (ErrorCode.KAFKA_STORAGE_ERROR if fails else ErrorCode.NONE)
    assert (directory in cluster[0].disk.offline_dirs) is fails
    assert (long in cluster[0].disk.existing_partitions()) is False


def test_mixed_stop_replica_twice() -> None:
    """DP-126: a request with one partition to delete and one only to stop succeeds twice."""
    cluster = led()
    cluster.create((0, 1), OTHER)
    states = (
        StopReplicaPartitionState("t", 0, -1, True),
        StopReplicaPartitionState("u", 0, -1, False),
    )
    for _ in range(2):
        response = cluster[0].manager.roles.stop_replicas(StopReplicaRequest(9, 1, -1, states))
        assert response.partitions == ((TP, ErrorCode.NONE), (OTHER, ErrorCode.NONE))
    assert cluster[0].manager.hosted.partition(OTHER) is not None


def test_stop_without_delete_only_stops_fetching() -> None:
    """Without delete the partition keeps its role, and only its fetcher stops."""
    cluster = led(leader=1)
    assert len(cluster[0].fetchers) == 1
    cluster.stop_replica(0, delete=False)
    assert cluster[0].fetchers == []
    assert cluster[0].partition().leader_id == 1
