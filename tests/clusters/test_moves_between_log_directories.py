"""Replicas move between the log directories of their broker (KIP-113; Kafka's
``ReplicaManager.alterReplicaLogDirs`` and ``ReplicaAlterLogDirsThread``)."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka import Cluster, KafkaError, Simulation, UsageError
from fakekafka.protocol import admin
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.testing.views import LogDirView
from fakekafka.tests.support.whole_clusters import in_sync, running

TWO = {"log.dirs": "first, second"}
LED_BY_2 = {"t": {"assignment": {0: [2, 1]}}}
SINCE_1_1 = [version for version in JUDGED_VERSIONS if version != "0.10"]
STATIC = 4
"""Kafka: ``ConfigSource.STATIC_BROKER_CONFIG``."""
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


def directories(cluster: Simulation | Cluster, broker: int = 2) -> dict[str, list[bool]]:
    """Return for each directory whether each of its logs is a future log."""
    return {
        directory.path: [replica.is_future for replica in directory.replicas]
        for directory in cluster.broker(broker).log_dirs
    }


def moved(cluster: Simulation, path: str = "second", broker: int = 2) -> bool:
    return cluster.partition("t", 0).replica(broker).log_dir == path


def fill(cluster: Simulation | Cluster, count: int = 20) -> list[bytes]:
    values = [b"%d" % number * 100 for number in range(count)]
    for value in values:
        cluster.produce("t", value, key=value)
    return values


def throttle(cluster: Simulation, broker: int, rate: str) -> None:
    resource = admin.ConfigResource(admin.BROKER_RESOURCE, str(broker))
    changes = ((RATE, admin.SET, rate),)
    cluster.ask(broker, admin.AlterConfigsRequest(((resource, changes),)))


def values_of(cluster: Simulation | Cluster, replica: int = 2) -> list[bytes | None]:
    return [record.value for record in cluster.records("t", 0, replica=replica)]


@pytest.mark.parametrize("version", SINCE_1_1)
@pytest.mark.parametrize("broker", [1, 2])
def test_a_replica_moves_with_its_records_offsets_and_epochs(version: str, broker: int) -> None:
    """A moved leader or follower keeps records, offsets and epochs, and the old log is deleted."""
    with running(2, version, topics=LED_BY_2, config=TWO) as cluster:
        values = fill(cluster)
        in_sync(cluster, 1, 2)
        before = cluster.partition("t", 0).replica(broker)
        assert before.log_dir == "first"
        cluster.broker(broker).move_replica("t", 0, "second")
        cluster.run_until(lambda: moved(cluster, broker=broker))
        after = cluster.partition("t", 0).replica(broker)
        assert directories(cluster, broker) == {"first": [], "second": [False]}
        assert values_of(cluster, broker) == values
        assert (after.log_start_offset, after.log_end_offset) == (0, 20)
        assert after.high_watermark == before.high_watermark
        assert after.epochs == before.epochs
        cluster.produce("t", "more")
        cluster.run_until(lambda: len(values_of(cluster, broker)) == 21)
        assert cluster.log_bytes("t", 0, 1) == cluster.log_bytes("t", 0, 2)


@pytest.mark.parametrize("version", SINCE_1_1)
def test_a_throttled_move_takes_its_time_and_is_seen_under_way(version: str) -> None:
    """The future log is listed with its lag; records written meanwhile are in the moved log."""
    config = {**TWO, RATE: 1000, "replica.fetch.max.bytes": 500}
    with running(2, version, topics=LED_BY_2, config=config) as cluster:
        values = fill(cluster, 60)
        began_ms = cluster.now_ms
        cluster.broker(2).move_replica("t", 0, "second")
        cluster.run_for(2000)
        assert directories(cluster) == {"first": [False], "second": [True]}
        (future,) = cluster.broker(2).log_dirs[1].replicas
        assert 0 < future.offset_lag < 60
        cluster.produce("t", "meanwhile")
        cluster.run_until(lambda: moved(cluster))
        assert values_of(cluster) == [*values, b"meanwhile"]
        assert cluster.now_ms - began_ms > 5000  # 10 kB and more at 1 kB a second


@pytest.mark.parametrize("version", SINCE_1_1)
def test_a_move_resumes_after_a_restart(version: str) -> None:
    """The copied records stay in their directory, and LeaderAndIsr resumes the copying
    (``maybeAddLogDirFetchers``).
    """
    config = {**TWO, RATE: 1000, "replica.fetch.max.bytes": 500}
    with running(2, version, topics=LED_BY_2, config=config) as cluster:
        values = fill(cluster, 60)
        cluster.broker(2).move_replica("t", 0, "second")
        cluster.run_for(2000)
        cluster.broker(2).kill()
        cluster.broker(2).start()
        cluster.run_until(lambda: moved(cluster))
        in_sync(cluster, 1, 2)
        assert values_of(cluster) == values


def test_records_that_are_replaced_under_a_move_are_replaced_in_the_copy() -> None:
    """The current log is truncated and refilled in another epoch, and so is the future log."""
    config = {**TWO, RATE: 1, "replica.fetch.max.bytes": 2000}
    topics = {"t": {"assignment": {0: [1, 2]}, "config": {"min.insync.replicas": "1"}}}
    with running(2, topics=topics, config=config) as cluster:
        fill(cluster, 5)
        in_sync(cluster, 1, 2)
        cluster.broker(2).kill()
        for number in range(5):
            cluster.produce("t", f"of 1 alone {number}", acks=1)
        cluster.broker(1).move_replica("t", 0, "second")
        cluster.run_for(100)
        assert cluster.broker(1).log_dirs[1].replicas[0].offset_lag < 5
        cluster.broker(1).kill()
        cluster.broker(2).start()
        cluster.elect_leaders("unclean", [("t", 0)])
        cluster.produce("t", "of 2", acks=1)
        cluster.broker(1).start()
        in_sync(cluster, 1, 2)
        throttle(cluster, 1, "1000000")
        cluster.run_until(lambda: moved(cluster, broker=1))
        assert values_of(cluster, 1) == values_of(cluster, 2)
        assert values_of(cluster, 1)[-1] == b"of 2"
        assert cluster.log_bytes("t", 0, 1) == cluster.log_bytes("t", 0, 2)


@pytest.mark.parametrize("version", SINCE_1_1)
def test_an_impossible_move_is_refused(version: str) -> None:
    """Every error of AlterReplicaLogDirs is tested."""
    with running(2, version, topics=LED_BY_2, config=TWO) as cluster:
        broker = cluster.broker(2)

        def error(topic: str, path: str) -> ErrorCode:
            with pytest.raises(KafkaError) as caught:
                broker.move_replica(topic, 0, path)
            return caught.value.code

        assert error("t", "third") == ErrorCode.LOG_DIR_NOT_FOUND
        assert error("unknown", "second") == ErrorCode.REPLICA_NOT_AVAILABLE
        assert error("x" * 249, "second") == ErrorCode.INVALID_TOPIC_EXCEPTION
        broker.fail_log_dir(1)
        assert error("t", "second") == ErrorCode.KAFKA_STORAGE_ERROR
        broker.move_replica("t", 0, "first")  # where it is already
        assert directories(cluster) == {"first": [False], "second": []}
        assert [directory.is_online for directory in broker.log_dirs] == [True, False]


@pytest.mark.parametrize("version", SINCE_1_1)
def test_a_replica_is_created_in_the_directory_that_was_requested_before(version: str) -> None:
    """The answer is REPLICA_NOT_AVAILABLE, but the directory is remembered
    (``maybeUpdatePreferredLogDir``).
    """
    with running(2, version, config=TWO) as cluster:
        for partition in range(3):
            with pytest.raises(KafkaError):
                cluster.broker(2).move_replica("t", partition, "second")
        cluster.create_topic("t", assignment={n: [2, 1] for n in range(3)})
        paths = [cluster.partition("t", n).replica(2).log_dir for n in range(3)]
        assert paths == ["second"] * 3


def test_another_destination_ends_a_move() -> None:
    """The copy in the first destination is deleted."""
    config = {"log.dirs": "first,second,third", RATE: 1, "replica.fetch.max.bytes": 500}
    with running(2, topics=LED_BY_2, config=config) as cluster:
        values = fill(cluster, 20)
        cluster.broker(2).move_replica("t", 0, "second")
        cluster.run_for(100)
        cluster.broker(2).move_replica("t", 0, "third")
        assert directories(cluster) == {"first": [False], "second": [], "third": [True]}
        throttle(cluster, 2, "1000000")
        cluster.run_until(lambda: moved(cluster, "third"))
        assert values_of(cluster) == values


@pytest.mark.parametrize("version", SINCE_1_1)
def test_a_failed_destination_ends_the_move_and_leaves_the_replica(version: str) -> None:
    """The partition keeps its leader."""
    config = {**TWO, RATE: 1, "replica.fetch.max.bytes": 500}
    with running(2, version, topics=LED_BY_2, config=config) as cluster:
        values = fill(cluster)
        cluster.broker(2).move_replica("t", 0, "second")
        cluster.run_for(100)
        cluster.broker(2).fail_log_dir(1)
        cluster.run_for(100)
        assert directories(cluster) == {"first": [False], "second": []}
        assert cluster.partition("t", 0).leader == 2
        assert values_of(cluster) == values


@pytest.mark.parametrize("version", SINCE_1_1)
def test_a_deleted_topic_loses_its_future_log_too(version: str) -> None:
    """StopReplica with deletion removes both (``LogManager.asyncDelete``)."""
    config = {**TWO, RATE: 1, "replica.fetch.max.bytes": 500}
    with running(2, version, topics=LED_BY_2, config=config) as cluster:
        fill(cluster)
        cluster.broker(2).move_replica("t", 0, "second")
        cluster.run_for(100)
        cluster.delete_topic("t")
        cluster.run_until(lambda: directories(cluster) == {"first": [], "second": []})
        cluster.run_for(5000)
        assert directories(cluster) == {"first": [], "second": []}


def test_compaction_waits_for_the_end_of_a_move() -> None:
    """As in ``LogManager.abortAndPauseCleaning``, the log does not change below the
    copied offset.
    """
    config = {**TWO, RATE: 1, "replica.fetch.max.bytes": 500, "log.cleaner.backoff.ms": 100}
    compacted = {
        "cleanup.policy": "compact",
        "segment.bytes": "300",
        "min.cleanable.dirty.ratio": "0",
    }
    topics = {"t": {"assignment": {0: [2, 1]}, "config": compacted}}
    with running(2, topics=topics, config=config) as cluster:
        fill(cluster, 5)
        cluster.broker(2).move_replica("t", 0, "second")
        cluster.run_for(50)
        for number in range(20):
            cluster.produce("t", b"%d" % number * 30, key="same")
        cluster.run_for(5000)
        assert directories(cluster) == {"first": [False], "second": [True]}
        assert len(values_of(cluster)) == 25
        throttle(cluster, 2, "1000000")
        cluster.run_until(lambda: moved(cluster))
        cluster.run_until(lambda: len(values_of(cluster)) < 20)


def test_a_move_on_real_files_leaves_one_directory(tmp_path: Path) -> None:
    """The copy is in ``TOPIC-PARTITION.HEX-future``, which gets the partition's name at the end."""
    config = {"log.dirs": "first,second"}
    topics = {"t": {"assignment": {0: [1]}}}
    with Cluster(1, config=config, topics=topics, data_dir=tmp_path) as cluster:
        values = fill(cluster)
        first, second = cluster.broker(1).log_dirs
        assert Path(first.path).is_absolute()
        assert first.total_bytes >= first.usable_bytes > 0
        where, other = (first, second) if first.replicas else (second, first)
        cluster.broker(1).move_replica("t", 0, other.path)
        cluster.wait_until(lambda: not _holds(cluster, where.path))
        assert sorted(p.name for p in Path(other.path).iterdir() if p.is_dir()) == ["t-0"]
        assert not [p.name for p in Path(where.path).iterdir() if p.is_dir()]
        assert values_of(cluster, 1) == values
    with Cluster(1, config=config, data_dir=tmp_path) as cluster:
        assert values_of(cluster, 1) == values
        assert cluster.partition("t", 0).replica(1).log_dir == other.path


def _holds(cluster: Cluster, path: str) -> tuple[LogDirView, ...]:
    return tuple(d for d in cluster.broker(1).log_dirs if d.path == path and d.replicas)


def test_a_dead_broker_cannot_be_asked_about_its_directories() -> None:
    """The error says that the broker is not running."""
    with running(2, topics=LED_BY_2, config=TWO) as cluster:
        cluster.broker(2).kill()
        with pytest.raises(UsageError, match="broker-2 is not running"):
            _ = cluster.broker(2).log_dirs
        with pytest.raises(UsageError, match="broker-2 is not running"):
            cluster.broker(2).move_replica("t", 0, "second")


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_the_described_configuration_names_the_directories(version: str) -> None:
    """They are a static value of the broker, as from a settings file; clients choose destinations
    from it.
    """
    with running(1, version, config=TWO) as cluster:
        resource = admin.ConfigResource(admin.BROKER_RESOURCE, "1")
        request = admin.DescribeConfigsRequest(((resource, ("log.dirs", "zookeeper.connect")),))
        (result,) = cluster.ask(1, request).results
        described = {entry.name: (entry.value, entry.source) for entry in result.entries}
        assert described == {
            "log.dirs": ("first,second", STATIC),
            "zookeeper.connect": ("zk-1", STATIC),
        }
