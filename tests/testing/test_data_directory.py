"""A restart on a data directory restores topics, records, configurations and ids."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from fakekafka import Cluster
from fakekafka.protocol.errors import KafkaError, UsageError
from fakekafka.testing.checks import fully_replicated, replicas_identical
from fakekafka.tests.support.present import present

CHILD = """
import sys
from confluent_kafka import Producer
from fakekafka import Cluster

path, zookeepers, start, runtime = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
cluster = Cluster(
    brokers=3, data_dir=path, zookeepers=zookeepers, runtime=runtime, topics={"orders": 2}
)
cluster.start()
cluster.create_topic(f"round-{start}", 1, 3, {"retention.ms": str(1_000_000 + start)})
producer = Producer(
    {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 1}
)

def delivered(error, message):
    assert error is None, error
    sys.stdout.write(message.value().decode() + "\\n")
    sys.stdout.flush()

number = start
while True:
    producer.produce("orders", b"%09d" % number, partition=0, callback=delivered)
    number += 1
    producer.poll(0)
    if number % 500 == 0:
        producer.flush()
"""


def consumed(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    """Return the first ``count`` records of partition 0 as a real consumer reads them."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(values) < count:
        assert time.monotonic() < deadline, f"{len(values)} of {count} records"
        for message in consumer.consume(count - len(values), 0.2):
            assert message.error() is None
            values.append(present(message.value()))
    consumer.close()
    return values


def topics(cluster: Cluster) -> list[str]:
    """Return all topics except the offsets topic, which consumers create."""
    return [topic for topic in cluster.topics() if topic != "__consumer_offsets"]


def produce(cluster: Cluster, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0


def run_and_kill(path: Path, zookeepers: int, start: int, runtime: str) -> int:
    """Kill a child's cluster under load; return the number of the last acknowledged record."""
    command = [sys.executable, "-c", CHILD, str(path), str(zookeepers), str(start), runtime]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    last = -1
    for _ in range(1200 + start // 7):
        line = child.stdout.readline()
        assert line, "the child ended by itself"
        last = int(line)
    os.kill(child.pid, signal.SIGKILL)
    for line in child.stdout.read().split("\n")[:-1]:  # acknowledged before the kill arrived
        last = int(line)
    child.stdout.close()
    child.wait()
    return last


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.parametrize(("zookeepers", "runtime"), [(1, "live"), (1, "threaded"), (3, "live")])
def test_a_killed_cluster_restarts_with_all_acknowledged_records(
    tmp_path: Path, zookeepers: int, runtime: str
) -> None:
    """A cluster killed with kill -9 under load, three times, keeps all that it acknowledged."""
    start = 0
    starts = []
    for _ in range(3):
        starts.append(start)
        last = run_and_kill(tmp_path, zookeepers, start, runtime)
        assert last >= start
        with Cluster(brokers=3, data_dir=tmp_path, zookeepers=zookeepers) as cluster:
            assert topics(cluster) == sorted(["orders", *(f"round-{s}" for s in starts)])
            partition = cluster.partition("orders", 0)
            assert partition.leader is not None
            cluster.wait_until(lambda: fully_replicated(cluster, ["orders"]), 30)
            assert replicas_identical(cluster, ["orders"])
            values = consumed(cluster, "orders", last + 1)
            assert values == [b"%09d" % number for number in range(last + 1)]
            start = cluster.partition("orders", 0).log_end_offset
            assert cluster.failures == []


@pytest.mark.clients
@pytest.mark.parametrize("runtime", ["live", "threaded"])
@pytest.mark.parametrize("zookeepers", [1, 3])
def test_a_stopped_cluster_restarts_with_its_whole_state(
    tmp_path: Path, runtime: str, zookeepers: int
) -> None:
    """A restart keeps topics, configurations, ids and records; the controller epoch continues."""

    # On a busy machine threads may stall for longer than the usual timeout of one second, after
    # which another controller is elected.
    config = {"zookeeper.session.timeout.ms": 18_000}

    def make(**arguments: Any) -> Cluster:
        return Cluster(
            brokers=3,
            data_dir=tmp_path,
            zookeepers=zookeepers,
            runtime=runtime,
            config=config,
            **arguments,
        )

    values = [b"%d" % number for number in range(200)]
    with make() as cluster:
        cluster.create_topic("orders", 2, 3, {"retention.ms": "1234567"})
        cluster.create_topic("gone", 1, 1)
        produce(cluster, "orders", values)
        cluster.delete_topic("gone")
        cluster.create_partitions("orders", 4)
        before = cluster.zookeeper.tree()
        epoch = cluster.controller.epoch
        assigned = [cluster.partition("orders", p).replicas for p in range(4)]
        broker_epochs = [cluster.zookeeper.stat(f"/brokers/ids/{i}").czxid for i in (1, 2, 3)]
    for restart in (1, 2):
        with make(topics={"orders": 9, "new": 1} if restart == 2 else None) as cluster:
            after = cluster.zookeeper.tree()
            for path in ("/cluster/id", "/config/topics/orders", "/brokers/topics/orders"):
                assert after[path] == before[path]
            assert cluster.controller.epoch == epoch + restart
            assert [cluster.partition("orders", p).replicas for p in range(4)] == assigned
            assert all(cluster.partition("orders", p).leader for p in range(4))
            registered = [cluster.zookeeper.stat(f"/brokers/ids/{i}").czxid for i in (1, 2, 3)]
            assert min(registered) > max(broker_epochs)
            assert topics(cluster) == (["orders"] if restart == 1 else ["new", "orders"])
            assert consumed(cluster, "orders", 200 * restart) == values * restart
            produce(cluster, "orders", values)
            cluster.wait_until(lambda: fully_replicated(cluster, cluster.topics()), 30)
            assert cluster.failures == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(f"broker-{i}" for i in (1, 2, 3)),
        *(f"zookeeper-{i}" for i in range(1, zookeepers + 1)),
    ]


@pytest.mark.clients
def test_producer_ids_are_not_given_out_twice(tmp_path: Path) -> None:
    """After a restart an idempotent producer gets a producer id that was never allocated before."""
    ids = []
    for _ in range(3):
        with Cluster(brokers=1, data_dir=tmp_path, topics={"orders": 1}) as cluster:
            producer = Producer(
                {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True}
            )
            producer.produce("orders", b"v")
            assert producer.flush(30) == 0
            broker = cluster.processes[1].broker
            assert broker is not None
            log = present(broker.replica_manager.hosted.partition(_key("orders"))).log
            assert log is not None
            ids.append(tuple(present(present(log).producers).entries))
    assert len(ids[-1]) == 3
    assert ids[1][:1] == ids[0]


def _key(topic: str) -> Any:
    from fakekafka.protocol.values import TopicPartition as Key

    return Key(topic, 0)


def test_a_start_does_not_wait_for_sessions_of_the_former_process(tmp_path: Path) -> None:
    """A start does not wait for old sessions to time out, as their clients are gone."""
    config = {"zookeeper.session.timeout.ms": 30_000}
    with Cluster(brokers=3, data_dir=tmp_path, topics={"t": 3}, config=config):
        pass
    started = time.monotonic()
    with Cluster(brokers=3, data_dir=tmp_path, config=config) as cluster:
        assert time.monotonic() - started < 25
        assert cluster.zookeeper.children("/brokers/ids") == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("kafka_version", "content"), [("3.6", b""), ("3.7", b'{"version":0,"brokerEpoch":-1}')]
)
def test_a_clean_shutdown_leaves_the_file_that_kafka_leaves(
    tmp_path: Path, kafka_version: str, content: bytes
) -> None:
    """The file ``.kafka_cleanshutdown`` has a broker epoch since 3.7; a killed broker has none."""
    marker = tmp_path / "broker-1" / ".kafka_cleanshutdown"
    with Cluster(brokers=1, data_dir=tmp_path, kafka_version=kafka_version) as cluster:
        cluster.broker(1).kill()
        assert not marker.exists()
        cluster.broker(1).start()
    assert marker.read_bytes() == content


def test_a_cluster_may_restart_with_fewer_brokers(tmp_path: Path) -> None:
    """Partitions without a remaining replica are offline; the start does not wait for them."""
    with Cluster(brokers=3, data_dir=tmp_path) as cluster:
        cluster.create_topic("t", assignment={0: [3], 1: [1]})
        cluster.create_topic("u", assignment={0: [3, 1]})
        cluster.produce("t", "value", partition=1)
    with Cluster(brokers=2, data_dir=tmp_path) as cluster:
        assert [cluster.partition("t", p).leader for p in range(2)] == [None, 1]
        assert cluster.partition("u", 0).leader == 1
        assert [record.value for record in cluster.records("t", 1)] == [b"value"]
    with Cluster(brokers=3, data_dir=tmp_path) as cluster:
        assert cluster.partition("t", 0).leader == 3


def test_a_deletion_that_waits_for_a_broker_ends_after_the_restart(tmp_path: Path) -> None:
    with Cluster(brokers=2, data_dir=tmp_path, topics={"t": 1, "u": 1}) as cluster:
        cluster.broker(2).kill()
        cluster.delete_topic("t")
        assert cluster.zookeeper.children("/admin/delete_topics") == ["t"]
    with Cluster(brokers=2, data_dir=tmp_path) as cluster:
        cluster.wait_until(lambda: cluster.zookeeper.children("/brokers/topics") == ["u"], 20)
        assert cluster.topics() == ["u"]
        cluster.wait_until(lambda: not list(tmp_path.glob("broker-*/t-0")), 20)
        cluster.create_topic("t", 1, 2)
        assert cluster.records("t", 0) == []


def test_brokers_and_servers_restart_within_a_process_without_losing_sessions(
    tmp_path: Path,
) -> None:
    """Within a process, a restarted ZooKeeper server reuses its journal and sessions stay alive."""
    with Cluster(brokers=2, data_dir=tmp_path, topics={"t": 1}) as cluster:
        server = cluster.zookeeper.server(1)
        server.kill()
        server.start()
        cluster.create_topic("u", 1, 2)
        cluster.broker(1).kill()
        cluster.broker(1).start()
        cluster.create_topic("v", 1, 1)
        assert cluster.failures == []
    with Cluster(brokers=2, data_dir=tmp_path) as cluster:
        assert cluster.topics() == ["t", "u", "v"]


def test_the_same_cluster_may_be_started_again(tmp_path: Path) -> None:
    cluster = Cluster(brokers=1, data_dir=tmp_path, topics={"t": 1})
    for number in range(3):
        with cluster:
            assert [r.value for r in cluster.records("t", 0)] == [b"v"] * number
            cluster.produce("t", "v", partition=0)


def test_a_cluster_whose_brokers_were_shut_down_can_restart(tmp_path: Path) -> None:
    """A start waits for its topics even if a clean shutdown left no sessions."""
    with Cluster(brokers=2, data_dir=tmp_path, topics={"t": 20}) as cluster:
        for broker_id in (1, 2):
            cluster.broker(broker_id).shutdown()
        assert cluster.zookeepers[1].storage.tree.sessions == {}
    with Cluster(brokers=2, data_dir=tmp_path, topics={"t": 20}) as cluster:
        assert all(cluster.partition("t", p).leader for p in range(20))


def test_an_unreadable_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    """An unreadable data directory is refused with the file's name and left unchanged."""
    path = tmp_path / "zookeeper-1" / "snapshot"
    path.parent.mkdir()
    path.write_bytes(b"something else")
    cluster = Cluster(brokers=1, data_dir=tmp_path)
    with pytest.raises(UsageError, match="snapshot is not a file of fakekafka's ZooKeeper"):
        cluster.start()
    assert path.read_bytes() == b"something else"


def test_a_log_directory_names_its_broker_and_cluster(tmp_path: Path) -> None:
    """``meta.properties`` is written only at the first start (docs/kafka/log.md#files)."""
    path = tmp_path / "broker-1" / "meta.properties"
    with Cluster(brokers=1, data_dir=tmp_path) as cluster:
        client = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        cluster_id = client.list_topics(timeout=10).cluster_id
    text = f"#\nversion=0\nbroker.id=1\ncluster.id={cluster_id}\n"
    assert path.read_text() == text
    written_ns = path.stat().st_mtime_ns
    with Cluster(brokers=1, data_dir=tmp_path):
        assert (path.read_text(), path.stat().st_mtime_ns) == (text, written_ns)


def test_the_log_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    """CP-194: a broker refuses the log directory of another broker or cluster, unchanged."""
    with Cluster(brokers=2, data_dir=tmp_path):
        pass
    (tmp_path / "broker-1").rename(tmp_path / "mine")
    (tmp_path / "broker-2").rename(tmp_path / "broker-1")
    path = tmp_path / "broker-1" / "meta.properties"
    before = path.read_text()
    with pytest.raises(KafkaError, match=r"Stored node id 2 doesn't match previous node id 1"):
        Cluster(brokers=1, data_dir=tmp_path).start()
    assert path.read_text() == before
    path.write_text(
        before.replace("broker.id=2", "broker.id=1").replace("cluster.id=", "cluster.id=x")
    )
    with pytest.raises(KafkaError, match=r"Invalid cluster.id in"):
        Cluster(brokers=1, data_dir=tmp_path).start()


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    """A data directory in use is refused, and the cluster that uses it is not disturbed."""
    with Cluster(brokers=1, data_dir=tmp_path, topics={"t": 1}) as cluster:
        with pytest.raises(UsageError, match="zookeeper-1 is in use by another cluster"):
            Cluster(brokers=1, data_dir=tmp_path).start()
        cluster.produce("t", "v", partition=0)
    with Cluster(brokers=1, data_dir=tmp_path) as cluster:
        assert [record.value for record in cluster.records("t", 0)] == [b"v"]


def test_a_cluster_in_memory_has_no_journal() -> None:
    with Cluster(brokers=1) as cluster:
        assert [z.storage.journal for z in cluster.zookeepers.values()] == [None]


def test_a_stop_writes_the_high_watermarks_of_all_replicas(tmp_path: Path) -> None:
    """A stop writes the high watermarks of live brokers, as a clean shutdown does. A follower of
    0.10 truncates to its checkpoint at its start, so it would lose everything without one.
    """
    with Cluster(3, data_dir=tmp_path, kafka_version="0.10", topics={"orders": 1}) as cluster:
        cluster.broker(3).kill()
        cluster.wait_until(lambda: len(cluster.partition("orders", 0).isr) == 2)
        cluster.produce("orders", [b"%d" % number for number in range(5)])

        def has_all(broker_id: int) -> bool:
            return cluster.partition("orders", 0).replica(broker_id).high_watermark == 5

        cluster.wait_until(lambda: has_all(1) and has_all(2))
    files = {path: path.read_text() for path in tmp_path.rglob("replication-offset-checkpoint")}
    told = {path.relative_to(tmp_path).parts[0]: text for path, text in files.items()}
    assert {name for name, text in told.items() if "orders 0 5" in text} == {"broker-1", "broker-2"}
