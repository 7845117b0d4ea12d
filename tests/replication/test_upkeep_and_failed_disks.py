"""Checkpoints, failed disks and log cleaning at the replica manager (docs/kafka/log.md)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.data import INTERNAL_CONTEXT, FetchRequest, ProducePartition, ProduceRequest
from fakekafka.protocol.errors import ErrorCode, UsageError
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import MalformedRecords, Record
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, led

OTHER = TopicPartition("u", 0)


def error_of(response: Any) -> ErrorCode:
    return ErrorCode(response.partitions[0][1])


# -- checkpoints ---------------------------------------------------------------------------------


def test_high_watermarks_are_checkpointed_every_five_seconds() -> None:
    """DP-49: from the first LeaderAndIsr on each run writes the high watermarks of all online
    logs."""
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


def flushing(topic: dict[str, str], **broker: str) -> ReplicaCluster:
    """A broker that leads a partition, with these configurations of topic and broker."""
    config = {f"log.flush.{name}.interval.ms": value for name, value in broker.items()}
    cluster = ReplicaCluster("2.8", 1, config, topic)
    cluster.create((0,))
    return cluster


def test_the_flusher_flushes_logs_that_are_due() -> None:
    """30 s after the start, and at each interval, logs last flushed ``flush.ms`` ago are
    flushed."""
    cluster = flushing({"flush.ms": "4000"}, scheduler="3000")
    storage = cluster[0].log().storage
    cluster.produce(0, "a")
    cluster.clock.advance(29_999)
    assert storage.flushed_offset == 0
    cluster.clock.advance(1)
    assert storage.flushed_offset == 1
    cluster.produce(0, "b")
    cluster.clock.advance(3000)
    assert storage.flushed_offset == 1, "the last flush is 3 s ago, not 4 s"
    cluster.clock.advance(3000)
    assert storage.flushed_offset == 2
    cluster[0].power_off()
    assert storage.segments[-1].next_offset == 2


def test_a_flush_for_another_reason_puts_the_next_one_off() -> None:
    """A flush by number of records postpones the next one; a flush without new records does not."""
    cluster = flushing({"flush.ms": "5000", "flush.messages": "2"}, scheduler="1000")
    storage = cluster[0].log().storage
    cluster.clock.advance(40_000)
    cluster.produce(0, "a", "b")
    cluster.produce(0, "c")
    cluster.clock.advance(4000)
    assert storage.flushed_offset == 2
    cluster.clock.advance(1000)
    assert storage.flushed_offset == 3
    cluster.clock.advance(20_000)
    cluster.produce(0, "d")
    cluster.clock.advance(1000)
    assert storage.flushed_offset == 4


def test_flush_ms_counts_for_the_first_look_only_when_the_flusher_has_no_interval() -> None:
    """By default the flusher checks once, 30 s after the start, as Kafka's does."""
    cluster = flushing({"flush.ms": "1000"})
    storage = cluster[0].log().storage
    cluster.produce(0, "a")
    cluster.clock.advance(30_000)
    assert storage.flushed_offset == 1
    cluster.produce(0, "b")
    cluster.clock.advance(600_000)
    assert storage.flushed_offset == 1


@pytest.mark.parametrize(
    ("broker", "flushed"),
    [({"scheduler": "1000"}, 1), ({"interval": "1000"}, 0), ({}, 0)],
    ids=["scheduler", "interval without scheduler", "default"],
)
def test_the_interval_of_topics_is_that_of_the_scheduler(
    broker: dict[str, str], flushed: int
) -> None:
    """``log.flush.interval.ms`` falls back to ``log.flush.scheduler.interval.ms``."""
    names = {"scheduler": "log.flush.scheduler.interval.ms", "interval": "log.flush.interval.ms"}
    config = {names[name]: value for name, value in broker.items()}
    cluster = ReplicaCluster("2.8", 1, config)
    cluster.create((0,))
    cluster.clock.advance(31_000)
    cluster.produce(0, "a")
    cluster.clock.advance(60_000)
    assert cluster[0].log().storage.flushed_offset == flushed


def test_a_flush_error_takes_the_directory_offline() -> None:
    """A flush error takes the directory offline, as any other write error; logs in other
    directories are still flushed."""
    cluster = flushing({}, scheduler="1000")
    cluster.create((0,), OTHER)
    reported: list[Any] = []
    cluster[0].manager.failures.on_log_dir_failure = reported.append
    cluster.produce(0, "a")
    directory = cluster[0].log().directory
    cluster[0].disk.fail(directory)
    cluster.clock.advance(31_000)
    assert reported == [directory]


def test_controlled_stop_keeps_the_high_watermark_and_a_crash_the_checkpoint() -> None:
    """DP-107: a clean stop keeps the last high watermark; after a crash it catches up from the
    checkpoint."""
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
    """After the shutdown no task is scheduled."""
    cluster = led(brokers=1)
    cluster.fetch(0, 0, max_wait_ms=500)
    cluster[0].shutdown()
    assert len(cluster.clock.timers) == 0


def test_one_host_timer_for_all_that_waits() -> None:
    """For any number of delayed operations the host holds one timer, and for none no timer."""
    cluster = led()
    idle = len(cluster.clock.timers)
    for _ in range(50):
        cluster.fetch(0, 0, max_wait_ms=500)
        cluster.produce_async(0, "a", timeout_ms=700)
        cluster.fetch(0, 99, max_wait_ms=500)
    assert len(cluster.clock.timers) == idle + 1
    cluster.clock.advance(1000)
    assert len(cluster.clock.timers) == idle


# -- failing disks -------------------------------------------------------------------------------


def test_failed_directory_takes_its_partitions_offline() -> None:
    """CP-191: an append on a failed disk answers 56, and the directory is reported once."""
    cluster = led()
    reported: list[Any] = []
    cluster[0].manager.failures.on_log_dir_failure = reported.append
    fetch = cluster.fetch(0, 0, max_wait_ms=500)
    directory = cluster[0].log().directory
    cluster[0].disk.fail(directory)
    assert cluster.produce(0, "a")[0].error is ErrorCode.KAFKA_STORAGE_ERROR
    assert reported == [directory]
    assert fetch[0].error is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.produce(0, "a")[0].error is ErrorCode.KAFKA_STORAGE_ERROR
    assert error_of(cluster.leader_and_isr(0, leader_epoch=5)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert reported == [directory]


def test_a_failed_partition_is_copied_no_more() -> None:
    """Partitions in a failed directory are no longer copied; partitions in other directories
    are."""
    cluster = led()
    cluster.create((0, 1), OTHER)
    manager: Any = cluster[1].manager
    directories = {name: manager.hosted.partition(name).log.directory for name in (TP, OTHER)}
    assert len(set(directories.values())) == 2

    def copied() -> list[TopicPartition]:
        fetchers = cluster[1].fetcher_manager.fetchers
        return sorted(name for fetcher in fetchers for name in fetcher.partitions)

    assert copied() == [TP, OTHER]
    manager.failures.handle_log_dir_failure(directories[TP])
    assert copied() == [OTHER]


def test_the_last_failed_directory_ends_the_process() -> None:
    """The failure of the last directory ends the process without a report to the controller
    (``LogManager.handleLogDirFailure``)."""
    cluster = led()
    reported: list[Any] = []
    manager = cluster[0].manager
    manager.failures.on_log_dir_failure = reported.append
    assert manager.failures.handle_log_dir_failure("one") is False
    assert cluster[0].halted is None
    assert manager.failures.handle_log_dir_failure("two") is True
    assert cluster[0].halted == "every log directory has failed"
    assert reported == ["one"]


def test_failed_disk_halted_old_brokers() -> None:
    """CP-192: before 1.0 a failed directory halts the process."""
    cluster = led("0.10")
    cluster[0].disk.fail()
    cluster.produce(0, "a")
    assert cluster[0].halted is not None


def test_new_replica_on_a_failed_disk() -> None:
    """A partition that cannot be created answers 56 and is offline."""
    cluster = ReplicaCluster("2.8", 1)
    for directory in cluster[0].disk.directories:
        cluster[0].disk.fail(directory)
    cluster.create((0,))
    assert cluster[0].manager.hosted.is_offline(TP)


def test_unknown_selector_class_fails_the_start() -> None:
    """DP-45: a broker configured with an unknown selector class does not start."""
    with pytest.raises(UsageError):
        ReplicaCluster("2.8", 1, config={"replica.selector.class": "no.such.Class"})


# -- retention and compaction --------------------------------------------------------------------


def test_retention_runs_by_the_clock() -> None:
    """DP-28: the periodic check deletes old segments below the high watermark, and no others."""
    cluster = led(topic={"segment.bytes": "100", "retention.ms": "1000"})
    cluster.replicate(1)
    cluster.produce(0, *"abcd")
    cluster.fetch(0, 2, replica_id=1, log_start_offset=0)
    cluster.clock.advance(30000)
    assert cluster[0].log().log_start_offset == 2
    assert cluster[0].log_end_offset() == 4


def test_a_log_start_raised_by_retention_of_the_follower_reaches_the_leader() -> None:
    """A log start raised by retention makes an idle fetch name the partition, as the leader waits
    for it (KIP-107)."""
    cluster = led(topic={"segment.bytes": "100", "retention.ms": "1000"})
    cluster.produce(0, *"abcd")
    cluster.replicate(1)
    [fetcher] = cluster[1].fetchers
    idle = fetcher.next_request()
    assert isinstance(idle, FetchRequest)
    assert idle.partitions == ()
    assert cluster[1].log().log_start_offset == 0
    cluster.clock.now_ms += 2000
    cluster[1].manager.upkeep.apply_retention()
    start = cluster[1].log().log_start_offset
    assert start > 0
    request = fetcher.next_request()
    assert isinstance(request, FetchRequest)
    [named] = request.partitions
    assert (named.topic_partition, named.log_start_offset) == (TP, start)


COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "100"}


def put(cluster: ReplicaCluster, tp: TopicPartition, values: list[bytes]) -> None:
    """Append one batch per value, each of one record with the same key."""
    for value in values:
        records = build_batch([Record(0, cluster.clock.now_ms, b"k", value)])
        cluster[0].manager.produce.append_records(
            ProduceRequest(1, 1000, (ProducePartition(tp, records),)),
            INTERNAL_CONTEXT,
            lambda response: None,
        )


def values_of(cluster: ReplicaCluster, tp: TopicPartition) -> list[bytes | None]:
    return [record.value for record in cluster[0].log(tp).records()]


def test_compaction_runs_by_the_clock() -> None:
    """A compacted topic is cleaned in the background, and the last value of each key stays."""
    cluster = led(brokers=1, topic=COMPACTED)
    put(cluster, TP, [b"v%d" % value for value in range(6)])
    cluster.clock.advance(15000)
    assert values_of(cluster, TP) == [b"v4", b"v5"]
    assert cluster[0].log_end_offset() == 6


def spoil(cluster: ReplicaCluster, tp: TopicPartition) -> None:
    """Put a batch whose header counts more records than it holds at the front of a log."""
    stored = cluster[0].log(tp).segments[0].stored
    assert isinstance(stored, list)
    data = bytearray(stored[0])
    data[57:61] = (9).to_bytes(4, "big")
    stored[0] = bytes(data)


def test_an_unreadable_log_does_not_keep_others_from_being_compacted() -> None:
    """An unreadable log is left alone from then on, with one report (KIP-346), and stays online."""
    cluster = led(brokers=1, topic=COMPACTED)
    cluster.create((0,), OTHER)
    told = []
    cluster[0].manager.upkeep.on_uncleanable = lambda name, error: told.append((name, type(error)))
    put(cluster, TP, [b"v1", b"v2"])
    spoil(cluster, TP)
    for round_ in range(2):
        put(cluster, OTHER, [b"w%d%d" % (round_, number) for number in range(4)])
        cluster.clock.advance(15000)
        assert values_of(cluster, OTHER) == [b"w%d2" % round_, b"w%d3" % round_]
    assert told == [(TP, MalformedRecords)]
    assert not cluster[0].manager.hosted.is_offline(TP)


def test_a_new_log_of_the_same_name_is_compacted() -> None:
    """The broker remembers the log that could not be compacted, not the partition."""
    cluster = led(brokers=1, topic=COMPACTED)
    told = []
    manager = cluster[0].manager
    manager.upkeep.on_uncleanable = lambda name, error: told.append(name)
    put(cluster, TP, [b"v1", b"v2"])
    spoil(cluster, TP)
    cluster.clock.advance(15000)
    assert told == [TP]
    cluster.stop_replica(0, delete=True)
    cluster.create((0,))
    put(cluster, TP, [b"v1", b"v2", b"v3"])
    cluster.clock.advance(15000)
    assert values_of(cluster, TP) == [b"v2", b"v3"]
    assert told == [TP]
