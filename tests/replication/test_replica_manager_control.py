"""Control requests, checkpoints and failed disks at the replica manager (data_plane 10, 11)."""

from __future__ import annotations

import pytest
from fakekafka.protocol.control import (
    LeaderAndIsrRequest,
    StopReplicaPartitionState,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from fakekafka.protocol.errors import ErrorCode, UsageError
from fakekafka.protocol.values import TopicPartition
from replica_cluster import TP, ReplicaCluster

OTHER = TopicPartition("u", 0)


def led(version: str = "2.8", brokers: int = 2, **more) -> ReplicaCluster:
    create = {k: more.pop(k) for k in ("isr", "leader") if k in more}
    cluster = ReplicaCluster(version, brokers, **more)
    cluster.create(tuple(range(brokers)), **create)
    return cluster


def error_of(response) -> ErrorCode:
    return response.partitions[0][1]


# -- epochs -------------------------------------------------------------------------------------


def requests(cluster, controller_epoch: int, broker_epoch: int):
    """The three control requests with given epochs, as (send, answer error)."""
    manager = cluster[0].manager
    state = cluster.partition_state(leader_epoch=99)
    stop = StopReplicaPartitionState("nowhere", 0, -1, False)
    yield lambda: manager.become_leader_or_follower(
        LeaderAndIsrRequest(9, controller_epoch, broker_epoch, (state,))
    ).error
    yield lambda: manager.stop_replicas(
        StopReplicaRequest(9, controller_epoch, broker_epoch, (stop,))
    ).error
    yield lambda: manager.update_metadata(
        UpdateMetadataRequest(9, controller_epoch, broker_epoch, (), ())
    )[0].error


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
    """DP-127: an older broker epoch is 77 for all three requests, the same or newer is taken."""
    for index in range(3):
        cluster = led()
        cluster[0].epoch = 5
        send = list(requests(cluster, 1, broker_epoch))[index]
        assert send() is error


def test_controller_epochs_are_shared() -> None:
    """DP-128, CP-177: each request remembers the highest epoch; older ones are refused with 11."""
    for first in range(3):
        cluster = led()
        assert list(requests(cluster, 7, -1))[first]() is ErrorCode.NONE
        assert cluster[0].manager.controller_epoch == 7
        for send in requests(cluster, 6, -1):
            assert send() is ErrorCode.STALE_CONTROLLER_EPOCH
        for send in requests(cluster, 7, -1):
            assert send() is ErrorCode.NONE


def test_stale_request_changes_nothing() -> None:
    """A refused LeaderAndIsr names every partition with 11 and leaves them alone."""
    cluster = led()
    cluster.controller_epoch = 0
    response = cluster.leader_and_isr(0, leader_epoch=9)
    assert response.partitions == ((TP, ErrorCode.STALE_CONTROLLER_EPOCH),)
    assert cluster[0].manager.partition(TP).leader_epoch == 0


# -- LeaderAndIsr -------------------------------------------------------------------------------


@pytest.mark.parametrize(("epoch", "error"), [(2, 11), (3, 11), (4, 0)])
def test_leader_epoch_must_grow(epoch: int, error: int) -> None:
    """Older and equal leader epochs answer STALE_CONTROLLER_EPOCH for the partition."""
    cluster = led()
    cluster.leader_and_isr(0, leader_epoch=3)
    assert int(error_of(cluster.leader_and_isr(0, leader_epoch=epoch))) == error


def test_unassigned_broker_is_refused_and_goes_offline() -> None:
    """A broker outside the replicas answers 3; without a log the partition is offline from then."""
    cluster = led(brokers=3)
    cluster.create((0, 1), OTHER)
    refused = cluster.leader_and_isr(2, OTHER)
    assert error_of(refused) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster[2].manager.is_offline(OTHER)
    assert error_of(cluster.leader_and_isr(2, OTHER)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.stop_replica(2, True, tp=OTHER) is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster[2].manager.offline_count == 1


def test_topic_ids() -> None:
    """DP-48: the first id is adopted and kept; another one is refused; none is always taken."""
    cluster = led()
    manager = cluster[0].manager

    def send(epoch: int, topic_id: str) -> ErrorCode:
        ids = (("t", topic_id),) if topic_id else ()
        state = cluster.partition_state(leader_epoch=epoch)
        return error_of(
            manager.become_leader_or_follower(LeaderAndIsrRequest(9, 1, -1, (state,), (), ids))
        )

    assert cluster[0].log().topic_id == ""
    assert send(1, "first") is ErrorCode.NONE
    assert cluster[0].log().topic_id == "first"
    assert send(2, "second") is ErrorCode.INCONSISTENT_TOPIC_ID
    assert manager.partition(TP).leader_epoch == 1
    assert cluster[0].log().topic_id == "first"
    assert send(2, "") is ErrorCode.NONE


def test_unknown_leader_only_creates_the_log() -> None:
    """A follower whose leader is not in the metadata cache keeps role and epoch; answer NONE."""
    cluster = ReplicaCluster("2.8", 2)
    from fakekafka.protocol.values import LeaderAndIsr

    cluster.replicas[TP] = (0, 1)
    cluster.state[TP] = LeaderAndIsr(1, 4, (1,), 0)
    assert error_of(cluster.leader_and_isr(0)) is ErrorCode.NONE
    partition = cluster[0].manager.partition(TP)
    assert (partition.leader_id, partition.leader_epoch) == (None, -1)
    assert partition.log is not None
    assert cluster[0].fetchers == []
    cluster.update_metadata()
    cluster.leader_and_isr(0)
    assert (partition.leader_id, partition.leader_epoch) == (1, 4)
    assert len(cluster[0].fetchers) == 1


def test_coordinators_hear_of_leadership() -> None:
    """The leadership callback gets the partitions led and followed from now on."""
    cluster = led()
    heard = []
    cluster[0].manager.on_leadership_change = lambda leaders, followers: heard.append(
        ([p.topic_partition for p in leaders], [p.topic_partition for p in followers])
    )
    cluster.elect(1)
    cluster.elect(0)
    assert heard == [([], [TP]), ([TP], [])]


def test_no_leftovers_after_a_reassignment() -> None:
    """DP-50: a broker that dropped its replica keeps no partition object of the topic."""
    cluster = led()
    assert cluster.stop_replica(0, delete=True, leader_epoch=1) is ErrorCode.NONE
    assert cluster[0].manager.partition(TP) is None
    assert cluster[0].manager.partition_count == 0
    assert list(cluster[0].manager.partitions) == []


def test_recreated_topic_reads_its_new_configuration() -> None:
    """After the last partition of a topic is gone, nothing of its configuration is remembered."""
    cluster = led(topic={"min.insync.replicas": "2"})
    cluster.stop_replica(0, delete=True)
    cluster.topic_overrides["min.insync.replicas"] = "1"
    cluster.leader_and_isr(0, is_new=True)
    assert cluster[0].manager.partition(TP).settings.min_insync_replicas == 1


# -- StopReplica --------------------------------------------------------------------------------


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
def test_stop_replica_epochs(version, leader_epoch, error) -> None:
    """DP-47, CP-180: newer, -1 and -2 are executed, older is fenced; equal too until 3.4.1."""
    for delete in (False, True):
        cluster = led(version)
        cluster.elect(0)
        assert cluster.stop_replica(0, delete, leader_epoch) is error
        gone = cluster[0].manager.partition(TP) is None
        assert gone is (delete and error is ErrorCode.NONE)


def test_stop_replica_of_what_is_not_there() -> None:
    """DP-47, CP-179: a partition not hosted is NONE; with delete its stray log goes as well."""
    cluster = led()
    cluster[0].kill()
    cluster[0].start()
    assert cluster[0].disk.existing_partitions() == [TP]
    assert cluster.stop_replica(0, delete=False) is ErrorCode.NONE
    assert cluster[0].disk.existing_partitions() == [TP]
    assert cluster.stop_replica(0, delete=True) is ErrorCode.NONE
    assert cluster[0].disk.existing_partitions() == []


def test_stop_replica_on_a_failed_disk() -> None:
    """DP-47, CP-178: offline partitions and a delete that hits the disk error answer 56."""
    cluster = led()
    cluster[0].disk.fail()
    assert cluster.stop_replica(0, delete=True) is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster[0].manager.is_offline(TP)
    assert cluster.stop_replica(0, delete=False) is ErrorCode.KAFKA_STORAGE_ERROR


def test_mixed_stop_replica_twice() -> None:
    """DP-126: one partition with and one without delete in one request, twice without error."""
    cluster = led()
    cluster.create((0, 1), OTHER)
    states = (
        StopReplicaPartitionState("t", 0, -1, True),
        StopReplicaPartitionState("u", 0, -1, False),
    )
    for _ in range(2):
        response = cluster[0].manager.stop_replicas(StopReplicaRequest(9, 1, -1, states))
        assert response.partitions == ((TP, ErrorCode.NONE), (OTHER, ErrorCode.NONE))
    assert cluster[0].manager.partition(OTHER) is not None


def test_stop_without_delete_only_stops_fetching() -> None:
    """Without delete the partition and its role stay, only the fetcher lets go."""
    cluster = led(leader=1)
    assert len(cluster[0].fetchers) == 1
    cluster.stop_replica(0, delete=False)
    assert cluster[0].fetchers == []
    assert cluster[0].manager.partition(TP).leader_id == 1


# -- checkpoints --------------------------------------------------------------------------------


def test_high_watermarks_are_checkpointed_every_five_seconds() -> None:
    """DP-49: from the first LeaderAndIsr on each run writes every online log's high watermark."""
    cluster = ReplicaCluster("2.8", 1)
    cluster.clock.advance(20000)
    assert cluster[0].disk.read_high_watermarks() == {}
    cluster.create((0,))
    cluster.create((0,), OTHER)
    cluster.produce(0, *"abc")
    cluster.clock.advance(4999)
    assert cluster[0].disk.read_high_watermarks() == {}
    cluster.clock.advance(1)
    assert cluster[0].disk.read_high_watermarks() == {TP: 3, OTHER: 0}
    cluster.produce(0, "d")
    cluster.clock.advance(5000)
    assert cluster[0].disk.read_high_watermarks() == {TP: 4, OTHER: 0}


def test_checkpoint_is_bounded_by_the_log() -> None:
    """DP-49: a checkpoint beyond the log is clamped when the log is opened."""
    cluster = led(brokers=1)
    cluster.produce(0, *"ab")
    cluster[0].kill()
    cluster[0].disk.checkpoint_high_watermarks({TP: 9})
    cluster[0].start()
    cluster.elect(0)
    assert cluster[0].high_watermark() == 2


def test_controlled_stop_keeps_the_high_watermark_and_a_crash_the_checkpoint() -> None:
    """DP-107: after a clean stop the high watermark is the last one; after a crash it catches up."""
    cluster = led()
    cluster.replicate(1)
    answers = cluster.produce_async(0, *"abc")
    cluster.replicate(1)
    assert answers[0].error is ErrorCode.NONE
    for node in (cluster[0], cluster[1]):
        node.shutdown()
        assert node.disk.read_high_watermarks() == {TP: 3}
    for node in (cluster[0], cluster[1]):
        node.start()
    cluster.elect(0)
    assert cluster[1].high_watermark() == 3
    cluster.produce(0, "d")
    cluster.replicate(1)
    cluster[1].kill()
    cluster[1].start()
    cluster.elect(0)
    assert cluster[1].high_watermark() == 3
    cluster.replicate(1)
    assert cluster[1].high_watermark() == 4


def test_shutdown_stops_the_clockwork() -> None:
    """After shutdown nothing is scheduled any more."""
    cluster = led(brokers=1)
    cluster.fetch(0, 0, max_wait_ms=500)
    cluster[0].shutdown()
    assert cluster.clock.pending == 0


def test_one_host_timer_for_all_that_waits() -> None:
    """However many operations wait, the host holds one timer for them, none when nothing waits."""
    cluster = led()
    idle = cluster.clock.pending
    for _ in range(50):
        cluster.fetch(0, 0, max_wait_ms=500)
        cluster.produce_async(0, "a", timeout_ms=700)
        cluster.fetch(0, 99, max_wait_ms=500)
    assert cluster.clock.pending == idle + 1
    cluster.clock.advance(1000)
    assert cluster.clock.pending == idle


# -- failing disks ------------------------------------------------------------------------------


def test_failed_directory_takes_its_partitions_offline() -> None:
    """CP-191: an append on a failed disk answers 56; the directory is reported once."""
    cluster = led()
    reported = []
    cluster[0].manager.on_log_dir_failure = reported.append
    fetch = cluster.fetch(0, 0, max_wait_ms=500)
    directory = cluster[0].log().directory
    cluster[0].disk.fail(directory)
    assert cluster.produce(0, "a")[0].error is ErrorCode.KAFKA_STORAGE_ERROR
    assert reported == [directory]
    assert fetch[0].error is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.produce(0, "a")[0].error is ErrorCode.KAFKA_STORAGE_ERROR
    assert error_of(cluster.leader_and_isr(0, leader_epoch=5)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert reported == [directory]


def test_old_clients_hear_of_a_failed_disk_in_their_words() -> None:
    """Produce up to v3 and Fetch up to v5 say NOT_LEADER instead of KAFKA_STORAGE_ERROR."""
    from fakekafka.protocol.data import RequestContext

    cluster = led()
    cluster[0].manager.handle_log_dir_failure(cluster[0].log().directory)
    for version, error in ((3, 6), (4, 56)):
        context = RequestContext("c", version)
        assert int(cluster.produce(0, "a", context=context)[0].error) == error
    for version, error in ((5, 6), (6, 56)):
        context = RequestContext("c", version)
        assert int(cluster.fetch(0, 0, context=context)[0].error) == error


def test_failed_disk_halted_old_brokers() -> None:
    """CP-192: before 1.0 a failed directory halts the process."""
    cluster = led("0.10")
    cluster[0].disk.fail()
    cluster.produce(0, "a")
    assert cluster[0].halted is not None


def test_new_replica_on_a_failed_disk() -> None:
    """A partition that cannot be created answers 56 and is offline."""
    cluster = ReplicaCluster("2.8", 1)
    cluster[0].disk.fail()
    cluster.create((0,))
    assert cluster[0].manager.is_offline(TP)


def test_unknown_selector_class_fails_the_start() -> None:
    """DP-45: a broker configured with an unknown selector class does not start."""
    with pytest.raises(UsageError):
        ReplicaCluster("2.8", 1, config={"replica.selector.class": "no.such.Class"})


# -- retention and compaction -------------------------------------------------------------------


def test_retention_runs_by_the_clock() -> None:
    """DP-28: old segments below the high watermark go when the check comes round, no others."""
    cluster = led(topic={"segment.bytes": "100", "retention.ms": "1000"})
    cluster.replicate(1)
    cluster.produce(0, *"abcd")
    cluster.fetch(0, 2, replica_id=1, log_start_offset=0)
    cluster.clock.advance(30000)
    assert cluster[0].log().log_start_offset == 2
    assert cluster[0].log_end_offset() == 4


def test_compaction_runs_by_the_clock() -> None:
    """A compacted topic is cleaned in the background; the last value of a key stays."""
    from fakekafka.protocol.data import INTERNAL_CONTEXT, ProducePartition, ProduceRequest
    from fakekafka.protocol.record_batch import Record, build_batch

    cluster = led(brokers=1, topic={"cleanup.policy": "compact", "segment.bytes": "100"})
    for value in range(6):
        records = build_batch([Record(0, cluster.clock.now_ms, b"k", b"v%d" % value)])
        cluster[0].manager.append_records(
            ProduceRequest(1, 1000, (ProducePartition(TP, records),)),
            INTERNAL_CONTEXT,
            lambda response: None,
        )
    cluster.clock.advance(15000)
    values = [record.value for record in cluster[0].log().records()]
    assert values == [b"v4", b"v5"]
    assert cluster[0].log_end_offset() == 6
