"""A broker's process ends cleanly if it served, failed to start, or waits for an answer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fakekafka import KafkaError, Simulation
from fakekafka.protocol.awaiting import RequestTimeout
from fakekafka.protocol.control import ControlledShutdownRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import ReplicaAssignment, TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.replication.disk.file_disk import FileDisk
from fakekafka.replication.log.checkpoint_formats import RECOVERY_POINT_CHECKPOINT
from fakekafka.statemachines.zookeeper.client import KafkaZkClient
from fakekafka.testing import simulation
from fakekafka.testing.assembly import ClusterPlan, Equipment
from fakekafka.testing.security import ClusterSecurity
from fakekafka.tests.support.whole_clusters import (
    CURRENT,
    has_znode,
    in_sync,
    in_zookeeper,
    running,
    stored,
)
from fakekafka.zkfake.messages import ClientPacket, CreateRequest, GetDataRequest, MultiRequest

TP = TopicPartition("t", 0)


async def create_topic(name: str, zk: KafkaZkClient) -> None:
    """Write the znode of a topic with one replica on broker 1."""
    await zk.topics.create_topic_assignment(name, {0: ReplicaAssignment((1,))})


def assert_nothing_is_left(cluster: Simulation, broker_id: int) -> None:
    """Check that a broker has neither active nodes nor listeners, which correspond to a JVM's
    threads.
    """
    assert cluster.broker(broker_id).state == "not_running"
    assert not cluster.broker(broker_id).is_alive
    assert cluster.runtime.processes[f"broker-{broker_id}"].nodes == {}


def with_real_disks(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Make later simulations keep their brokers' logs in this directory."""

    original = simulation.simulated_equipment

    def equipment(plan: ClusterPlan, security: ClusterSecurity | None = None) -> Equipment:
        return replace(
            original(plan, security),
            disk=lambda broker_id: FileDisk(str(directory / str(broker_id))),
        )

    monkeypatch.setattr(simulation, "simulated_equipment", equipment)


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
@pytest.mark.parametrize("is_on_disk", [False, True])
def test_a_clean_stop_leaves_a_checkpoint_and_everything_readable(
    version: str, is_on_disk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP-134: the recovery point is the log end, and records from before can be consumed after a
    restart.
    """
    if is_on_disk:
        with_real_disks(monkeypatch, tmp_path)
    with running(2, version, topics={"t": {"assignment": {0: [2]}}}) as cluster:
        cluster.produce("t", ["a", "b", "c"])
        disk = cluster.processes[2].spec.disk
        assert disk.read_checkpoint(RECOVERY_POINT_CHECKPOINT) == {}
        cluster.broker(2).shutdown()
        assert disk.read_checkpoint(RECOVERY_POINT_CHECKPOINT) == {TP: 3}
        if is_on_disk:
            written = (tmp_path / "2" / RECOVERY_POINT_CHECKPOINT).read_text()
            assert written == "0\n1\nt 0 3\n"
        assert_nothing_is_left(cluster, 2)
        cluster.broker(2).start()
        assert cluster.produce("t", "d") == 3
        assert [r.value for r in cluster.consume("t")] == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_broker_that_finds_no_zookeeper_gives_up(version: str) -> None:
    """CP-135: the broker ends after the connection timeout, by default the session timeout."""
    for config, patience_ms in (
        ({}, 6000 if version in ("0.10", "1.1") else 18000),
        ({"zookeeper.connection.timeout.ms": 700}, 700),
    ):
        with running(2, version, config=config) as cluster:
            cluster.broker(2).shutdown()
            cluster.zookeeper.server(1).kill()
            began_ms = cluster.now_ms
            with pytest.raises(RequestTimeout, match="no ZooKeeper server answered"):
                cluster.broker(2).start()
            assert cluster.now_ms - began_ms == pytest.approx(patience_ms, abs=2)
            assert_nothing_is_left(cluster, 2)
            cluster.zookeeper.server(1).start()
            cluster.broker(2).start()
            assert cluster.broker(2).state == "running"


def test_a_cluster_that_cannot_start_says_why() -> None:
    """CP-135: the error of the first broker ends the start of the whole cluster."""
    config = {"zookeeper.connection.timeout.ms": 10}
    with pytest.raises(RequestTimeout, match="no ZooKeeper server answered within 10 ms"):
        Simulation(2, config=config, latency_ms=50)


@pytest.mark.parametrize("version", CURRENT)
def test_a_broker_without_a_usable_log_directory_gives_up(version: str) -> None:
    """CP-135: a storage error ends the start and the session, so that the next start works."""
    with running(2, version, topics={"t": {"assignment": {0: [2, 1]}}}) as cluster:
        cluster.produce("t", "kept")
        cluster.broker(2).shutdown()
        disk = cluster.processes[2].spec.disk
        disk.fail()
        sessions = cluster.zookeepers[1].storage.tree.sessions
        others = set(sessions)
        for _ in range(2):
            with pytest.raises(KafkaError, match="every log directory") as refused:
                cluster.broker(2).start()
            assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert_nothing_is_left(cluster, 2)
            assert set(sessions) == others
            assert not has_znode(cluster, "/brokers/ids/2")
        cluster.broker(2).repair_log_dir()
        cluster.broker(2).start()
        in_sync(cluster, 1, 2)
        assert [r.value for r in cluster.records("t", 0, replica=2)] == [b"kept"]


def test_a_corrupt_high_watermark_checkpoint_makes_the_directory_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP-135: a broker with malformed lines in its checkpoint does not start."""
    with_real_disks(monkeypatch, tmp_path)
    with running(2, topics={"t": {"assignment": {0: [2, 1]}}}) as cluster:
        cluster.broker(2).shutdown()
        with (tmp_path / "2" / "replication-offset-checkpoint").open("a") as file:
            file.write("nonsense\n")
        with pytest.raises(KafkaError, match="every log directory"):
            cluster.broker(2).start()
        assert_nothing_is_left(cluster, 2)
        cluster.run_until(lambda: stored(cluster) == (1, 1, [1]))


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_second_shutdown_does_nothing(version: str) -> None:
    """CP-136: a shutdown during or after another one has no effect."""
    with running(2, version, topics={"t": {"assignment": {0: [2, 1]}}}) as cluster:
        broker = cluster.processes[2].broker
        assert broker is not None
        states: list[str] = []
        cluster.processes[2].spec.on_state.append(lambda _, state: states.append(state))
        first = broker.begin_shutdown()
        assert broker.begin_shutdown() is first
        cluster.run_for(5000)
        assert first.result() is True
        assert broker.begin_shutdown() is first
        cluster.run_for(5000)
        assert states == ["shutting_down", "not_running"]
        assert_nothing_is_left(cluster, 2)


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_controller_that_waits_for_a_brokers_answer_shuts_down_at_once(version: str) -> None:
    """CP-137: a paused broker leaves a request unanswered, with others queued behind it."""
    with running(3, version, topics={"t": {"assignment": {0: [2, 3]}}}) as cluster:
        cluster.broker(3).pause()
        for name in ("u", "v"):
            in_zookeeper(cluster, partial(create_topic, name))
            cluster.run_for(100)
        assert cluster.controller.metrics["QueueSize,broker-id=3"] > 0
        node = cluster.processes[1].controller_node
        assert node is not None
        began_ms = cluster.now_ms
        cluster.broker(1).shutdown()
        assert cluster.now_ms - began_ms < 100
        assert_nothing_is_left(cluster, 1)
        assert node.channels.total_queue_size == 0
        cluster.run_until(lambda: cluster.controller.id == 2)


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_broker_that_leaves_does_not_rejoin_the_isr(version: str) -> None:
    """A broker starts no fetcher after it has requested its controlled shutdown
    (``ReplicaManager.makeFollowers``).

    Brokers that stop one after another thus leave the last one alone in the ISR, with one write for
    each.
    """
    config = {"controlled.shutdown.enable": True}
    topics = {"t": {"assignment": {0: [1, 2, 3]}}}
    with running(3, version, config=config, topics=topics) as cluster:
        written = [stored(cluster)]
        for broker_id in (1, 2):
            cluster.broker(broker_id).shutdown()
            written.append(stored(cluster))
        assert written == [(1, 0, [1, 2, 3]), (2, 1, [2, 3]), (3, 2, [3])]
        assert cluster.zookeeper.stat("/brokers/topics/t/partitions/0/state").version == 2


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_no_fetcher_starts_during_a_controlled_shutdown(version: str) -> None:
    """A leaving broker copies no further partitions, however late the controller answers."""
    config = {"controlled.shutdown.enable": True, "replica.lag.time.max.ms": 1000}
    topics = {"t": {"assignment": {0: [2, 3]}}}
    with running(3, version, config=config, topics=topics) as cluster:
        cluster.network.hold(lambda d: isinstance(d.message, ControlledShutdownRequest))
        leaving = cluster.processes[2].broker
        assert leaving is not None
        leaving.begin_shutdown()
        cluster.run_for(100)
        cluster.reassign_partitions({("t", 0): [3, 2]})
        cluster.run_for(100)
        cluster.elect_leaders(partitions=[("t", 0)])
        cluster.run_for(3000)
        assert leaving.state == "pending_controlled_shutdown"
        assert stored(cluster)[2] == [3]


@pytest.mark.parametrize(("version", "leader"), [("0.10", 2), ("1.1", 2), ("2.8", 2), ("3.9", 3)])
def test_a_broker_without_zookeeper_shuts_down_in_control_since_3_0(
    version: str, leader: int
) -> None:
    """KAFKA-9189: since 3.0 the broker finds the controller in its metadata cache, before in
    ZooKeeper.
    """
    config = {"controlled.shutdown.enable": True}
    topics = {"t": {"assignment": {0: [2, 3]}}}
    with running(3, version, config=config, topics=topics) as cluster:
        cluster.network.partition([2], ["zk-1"])
        leaving = cluster.processes[2].broker
        assert leaving is not None
        leaving.begin_shutdown()
        cluster.run_for(1000)
        assert stored(cluster)[0] == leader


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
@pytest.mark.parametrize("delay_ms", [500, 4000])
def test_a_broker_that_is_registered_still_starts_again_after_a_while(
    version: str, delay_ms: int
) -> None:
    """NodeExists ends the process as in Kafka, and its supervisor restarts it after a delay."""
    config = {"zookeeper.session.timeout.ms": 6000}
    with running(2, version, config=config, restart_delay_ms=delay_ms) as cluster:
        tried: list[float] = []
        attempt = looks_first if version == "0.10" else registers

        def note(delivery: Any) -> None:
            if delivery.sender.name == "controller-2" and attempt(delivery.message, 2):
                tried.append(cluster.now_ms)

        cluster.observe(note)
        cluster.broker(2).power_off()
        cluster.broker(2).start()
        assert cluster.broker(2).state == "running"
        gaps = [later - earlier for earlier, later in pairwise(tried)]
        assert gaps == pytest.approx([delay_ms] * len(gaps), abs=5)
        assert len(gaps) >= 2


def looks_first(packet: object, broker_id: int) -> bool:
    """Return whether a packet is a 0.10 broker's check of its registration, which precedes its
    election.
    """
    request = packet.request if isinstance(packet, ClientPacket) else None
    return request == GetDataRequest(f"/brokers/ids/{broker_id}")


def registers(packet: object, broker_id: int) -> bool:
    """Return whether a packet creates the broker's znode, alone or in a transaction."""
    request = packet.request if isinstance(packet, ClientPacket) else None
    operations = request.operations if isinstance(request, MultiRequest) else (request,)
    path = f"/brokers/ids/{broker_id}"
    return any(isinstance(create, CreateRequest) and create.path == path for create in operations)
