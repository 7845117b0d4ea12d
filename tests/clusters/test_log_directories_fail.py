"""Log directories fail under running brokers: one of several, then the last
(docs/kafka/brokers.md#failed-disks).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka import Cluster, KafkaError, Simulation, UsageError
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.whole_clusters import has_znode, in_sync, in_zookeeper, running, stored

TWO = {"log.dirs": "first, second"}
LED_BY_2 = {"t": {"assignment": {0: [2, 1], 1: [2, 1]}}}
SINCE_1_0 = [version for version in JUDGED_VERSIONS if version != "0.10"]


def values(cluster: Simulation, partition: int, replica: int) -> list[bytes | None]:
    return [r.value for r in cluster.records("t", partition, replica=replica)]


@pytest.mark.parametrize("version", SINCE_1_0)
def test_a_failed_directory_of_two_takes_only_its_replicas_offline(version: str) -> None:
    """CP-191: its partitions get another leader, others stay; the notification is consumed."""
    with running(2, version, topics=LED_BY_2, config=TWO) as cluster:
        for partition in (0, 1):
            cluster.produce("t", "a", partition=partition)
        disk = cluster.processes[2].spec.disk
        assert [disk.directory_of(tp) for tp in sorted(disk.logs)] == ["first", "second"]
        cluster.broker(2).fail_log_dir()
        cluster.run_until(lambda: stored(cluster, "t", 0)[0] == 1)
        assert cluster.broker(2).is_alive
        assert stored(cluster, "t", 1)[0] == 2
        in_sync(cluster, 1, 2, partition=1)
        notified = in_zookeeper(cluster, lambda zk: zk.admin.get_all_log_dir_event_notifications())
        assert not notified
        for partition in (0, 1):
            cluster.produce("t", "b", partition=partition)
        assert cluster.broker(2).metrics["OfflineReplicaCount"] == 1
        assert values(cluster, 0, 1) == values(cluster, 1, 2) == [b"a", b"b"]


@pytest.mark.parametrize("version", SINCE_1_0)
def test_a_failed_directory_stays_offline_until_it_is_repaired(version: str) -> None:
    """A restart alone neither restores its replicas nor creates them in another directory
    (docs/kafka/brokers.md#failed-disks).
    """
    with running(2, version, topics=LED_BY_2, config=TWO) as cluster:
        cluster.produce("t", "a")
        broker = cluster.broker(2)
        broker.fail_log_dir()
        broker.kill()
        broker.start()
        in_sync(cluster, 1, 2, partition=1)
        assert stored(cluster, "t", 0)[2] == [1]
        assert broker.metrics["OfflineReplicaCount"] == 1
        broker.kill()
        broker.repair_log_dir()
        broker.start()
        in_sync(cluster, 1, 2, partition=0)
        assert values(cluster, 0, 2) == [b"a"]


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
@pytest.mark.parametrize("config", [{}, TWO])
def test_the_last_directory_ends_the_process(version: str, config: dict[str, str]) -> None:
    """The broker dies as if killed, restarts only after a repair, and then has all its records."""
    with running(2, version, topics=LED_BY_2, config=config) as cluster:
        cluster.produce("t", "a")
        broker = cluster.broker(2)
        for index in range(len(cluster.processes[2].spec.disk.directories)):
            assert broker.is_alive
            broker.fail_log_dir(index)
            if version == "0.10":  # CP-192: any directory does
                break
        assert (broker.is_alive, broker.state) == (False, "not_running")
        cluster.run_until(lambda: stored(cluster, "t", 0)[0] == 1)
        assert not has_znode(cluster, "/brokers/ids/2")
        if version != "0.10":
            with pytest.raises(KafkaError, match="every log directory") as refused:
                broker.start()
            assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        for index in range(len(cluster.processes[2].spec.disk.directories)):
            broker.repair_log_dir(index)
        broker.start()
        in_sync(cluster, 1, 2)
        assert values(cluster, 0, 2) == [b"a"]


def test_the_trace_names_the_process_that_ended_and_the_reason() -> None:
    """The trace has a crash with the process and the reason."""
    with Simulation(1) as simulation:
        simulation.broker(1).fail_log_dir()
        told = [event.why for event in simulation.events if event.kind == "crash"]
        assert told == ["broker-1 halts: every log directory has failed"]


@pytest.mark.parametrize("names", ["", "a,", "a,a", "a, a", "/var/kafka", "a\\b", "..", "a,."])
def test_log_dirs_are_names(names: str) -> None:
    """Paths are refused, as all brokers would share them; the error says what to write."""
    with pytest.raises(UsageError, match=r"log\.dirs .*: write names, .* such as 'a,b'"):
        Simulation(1, config={"log.dirs": names})


def test_each_broker_has_its_directories_on_disk(tmp_path: Path) -> None:
    """Partitions are spread over the directories, and another cluster on them finds the records of
    both.
    """
    with Cluster(2, data_dir=tmp_path, config=TWO, topics=LED_BY_2) as cluster:
        for partition in (0, 1):
            cluster.produce("t", "a", partition=partition)
        cluster.wait_until(lambda: len(cluster.records("t", 1, replica=1)) == 1)
    for broker in ("broker-1", "broker-2"):
        assert (tmp_path / broker / "first" / "t-0").is_dir()
        assert (tmp_path / broker / "second" / "t-1").is_dir()
    with Cluster(2, data_dir=tmp_path, config=TWO) as cluster:
        assert [[r.value for r in cluster.consume("t", p)] for p in (0, 1)] == [[b"a"], [b"a"]]
        cluster.broker(2).fail_log_dir(1)
        assert cluster.broker(2).is_alive
        cluster.wait_until(lambda: cluster.partition("t", 1).leader == 1)
        cluster.broker(2).fail_log_dir(0)
        assert not cluster.broker(2).is_alive
        cluster.produce("t", "b", partition=0)


@pytest.mark.parametrize("version", SINCE_1_0)
def test_a_directory_that_fails_without_a_session_is_reported_after_registration(
    version: str,
) -> None:
    """The notification fails with the session. After the broker has registered again, its answer
    to LeaderAndIsr tells the controller (``LogDirFailureHandler``)."""
    config = {**TWO, "zookeeper.session.timeout.ms": 6000}
    with running(2, version, topics=LED_BY_2, config=config) as cluster:
        cluster.network.partition([2], ["zk-1"])
        cluster.run_for(1000)
        cluster.broker(2).fail_log_dir()
        cluster.run_for(20_000)
        assert stored(cluster, "t", 0)[0] == 1
        cluster.network.heal()
        in_sync(cluster, 1, 2, partition=1)
        cluster.run_for(10_000)
        assert cluster.broker(2).is_alive
        assert stored(cluster, "t", 0)[2] == [1]
        assert cluster.broker(2).metrics["OfflineReplicaCount"] == 1
