"""Kafka's metrics of the controller and of replicas can be read and are correct."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from fakekafka import Simulation, UsageError
from fakekafka.actors.delivery import Delivery
from fakekafka.protocol.admin import PREFERRED, ElectLeadersRequest
from fakekafka.protocol.values import ReplicaAssignment, TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.statemachines.zookeeper.client import KafkaZkClient
from fakekafka.tests.support.paths import ROOT
from fakekafka.tests.support.whole_clusters import CURRENT, in_sync, in_zookeeper, running, stored

API_PAGE = ROOT / "docs" / "reference" / "api.md"


async def create_topic(name: str, zk: KafkaZkClient) -> None:
    """Write the znode of a topic with one replica on broker 1."""
    await zk.topics.create_topic_assignment(name, {0: ReplicaAssignment((1,))})


def read(cluster: Simulation, *names: str) -> list[Any]:
    metrics = cluster.controller.metrics
    return [metrics[name] for name in names]


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_exactly_one_broker_is_the_active_controller(version: str) -> None:
    """ActiveControllerCount is 1 on the controller and 0 elsewhere, also after a failover
    (docs/kafka/controller-state.md).
    """
    with running(3, version) as cluster:
        counts = [cluster.broker(b).metrics["ActiveControllerCount"] for b in (1, 2, 3)]
        assert counts == [1, 0, 0]
        cluster.broker(1).shutdown()
        cluster.run_until(lambda: cluster.controller.id is not None)
        assert cluster.controller.metrics["ActiveControllerCount"] == 1
        assert sum(cluster.broker(b).metrics["ActiveControllerCount"] for b in (2, 3)) == 1
        with pytest.raises(UsageError, match="not running"):
            cluster.broker(1).metrics  # noqa: B018


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_registered_brokers_are_counted_since_3_1(version: str) -> None:
    """KIP-748: brokers that are shutting down count, and a ZooKeeper controller fences none."""
    with running(3, version) as cluster:
        if version != "3.9":
            assert "ActiveBrokerCount" not in cluster.controller.metrics
            assert "FencedBrokerCount" not in cluster.controller.metrics
            return
        assert read(cluster, "ActiveBrokerCount", "FencedBrokerCount") == [3, 0]
        assert cluster.broker(3).metrics["ActiveBrokerCount"] == 0
        cluster.broker(3).shutdown()
        cluster.run_for(100)
        assert read(cluster, "ActiveBrokerCount", "FencedBrokerCount") == [2, 0]


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_offline_and_imbalanced_partitions_are_counted(version: str) -> None:
    """OfflinePartitionsCount and PreferredReplicaImbalanceCount are 0 on inactive controllers
    (docs/kafka/controller-state.md).
    """
    topics = {"t": {"assignment": {0: [2, 1]}}, "alone": {"assignment": {0: [2], 1: [2]}}}
    names = ("OfflinePartitionsCount", "PreferredReplicaImbalanceCount")
    with running(2, version, topics=topics) as cluster:
        assert read(cluster, *names) == [0, 0]
        assert read(cluster, "GlobalTopicCount", "GlobalPartitionCount") == [2, 3]
        cluster.broker(2).shutdown()
        cluster.run_until(lambda: stored(cluster, "alone", 1)[0] == -1)
        cluster.run_for(100)
        assert read(cluster, *names) == [2, 3], "a partition without leader is imbalanced, too"
        cluster.broker(2).start()
        in_sync(cluster, 1, 2)
        assert read(cluster, *names) == [0, 1]
        assert [cluster.broker(2).metrics[name] for name in names] == [0, 0]


@pytest.mark.parametrize("version", CURRENT)
def test_queued_events_and_the_time_to_process_them_are_measured(version: str) -> None:
    """EventQueueSize, EventQueueTimeMs, ControllerState and the timer of each state are correct
    (docs/kafka/controller-state.md).
    """
    timer = "ManualLeaderBalanceRateAndTimeMs"
    with running(2, version, topics={"t": {"assignment": {0: [2, 1]}}}) as cluster:
        cluster.broker(2).shutdown()
        cluster.run_until(lambda: stored(cluster)[0] == 1)
        cluster.broker(2).start()
        in_sync(cluster, 1, 2)
        assert read(cluster, "EventQueueSize", "ControllerState") == [0, 0]
        before = read(cluster, timer)[0]["count"]

        def is_answer(delivery: Delivery) -> bool:
            return (delivery.sender.machine, delivery.target.name) == ("zk-1", "controller-1")

        cluster.network.hold(is_answer)  # the first election waits for ZooKeeper
        request = ElectLeadersRequest(PREFERRED, (TopicPartition("t", 0),))
        for _ in range(3):
            cluster.running.admin.ask("broker-1", request)
        cluster.run_for(2000)
        assert read(cluster, "EventQueueSize", "ControllerState") == [2, 7]
        cluster.network.release()
        cluster.run_for(1000)
        assert read(cluster, "EventQueueSize", "ControllerState") == [0, 0]
        waited, took = read(cluster, "EventQueueTimeMs", timer)
        assert waited["max"] >= 1999
        assert (took["count"], took["min"]) == (before + 3, 0)
        assert took["max"] >= 1999
        assert stored(cluster)[0] == 2


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_requests_that_wait_for_a_broker_are_counted(version: str) -> None:
    """TotalQueueSize and QueueSize exclude the request in flight; queue times are measured
    (docs/kafka/controller-state.md).
    """
    names = ("TotalQueueSize", "QueueSize,broker-id=2", "QueueSize,broker-id=3")
    with running(3, version) as cluster:
        before = read(cluster, "RequestRateAndQueueTimeMs,broker-id=3")[0]["count"]
        cluster.broker(3).pause()
        for number in range(4):
            in_zookeeper(cluster, partial(create_topic, f"t{number}"))
            cluster.run_for(500)
        assert read(cluster, *names) == [3, 0, 3]
        assert cluster.broker(2).metrics["TotalQueueSize"] == 0
        cluster.broker(3).resume()
        cluster.run_for(1000)
        assert read(cluster, *names) == [0, 0, 0]
        times = read(cluster, "RequestRateAndQueueTimeMs,broker-id=3")[0]
        assert times["count"] == before + 4
        assert times["max"] >= 1000


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_unclean_elections_are_counted(version: str) -> None:
    """UncleanLeaderElectionsPerSec does not count clean elections (CP-115)
    (docs/kafka/controller-state.md).
    """
    config = {"unclean.leader.election.enable": True}
    topics = {"t": {"assignment": {0: [2, 3]}}, "clean": {"assignment": {0: [2, 1]}}}
    with running(3, version, config=config, topics=topics) as cluster:
        cluster.broker(3).shutdown()
        in_sync(cluster, 2)
        cluster.broker(2).shutdown()
        # 0.10 and 1.0 let the last replica out of the ISR; the others keep it there.
        cluster.run_until(lambda: stored(cluster)[0] == -1 and stored(cluster, "clean")[0] == 1)
        assert read(cluster, "UncleanLeaderElectionsPerSec") == [0]
        cluster.broker(3).start()
        cluster.run_until(lambda: stored(cluster)[0] == 3)
        assert read(cluster, "UncleanLeaderElectionsPerSec") == [1]


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_isr_changes_are_counted_where_the_leader_is(version: str) -> None:
    """IsrShrinksPerSec and IsrExpandsPerSec count only on the leader that decided the change."""
    config = {"replica.lag.time.max.ms": 2000, "zookeeper.session.timeout.ms": 60_000}
    names = ("IsrShrinksPerSec", "IsrExpandsPerSec", "UnderReplicatedPartitions")
    topics = {"t": {"assignment": {0: [2, 3]}}}

    def counts(cluster: Simulation, broker_id: int) -> list[int]:
        metrics = cluster.broker(broker_id).metrics
        return [metrics[name] for name in names]

    with running(3, version, config=config, topics=topics) as cluster:
        assert counts(cluster, 2) == [0, 0, 0]
        cluster.broker(3).pause()
        cluster.produce("t", "missed", acks=1)
        in_sync(cluster, 2)
        assert counts(cluster, 2) == [1, 0, 1]
        cluster.broker(3).resume()
        in_sync(cluster, 2, 3)
        assert counts(cluster, 2) == [1, 1, 0]
        assert counts(cluster, 1) == counts(cluster, 3) == [0, 0, 0]
        assert cluster.broker(2).metrics["LeaderCount"] == 1
        assert cluster.broker(3).metrics["PartitionCount"] == 1


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_the_lag_shrinks_while_a_follower_catches_up(version: str) -> None:
    """MaxLag is the follower's distance to the leader's high watermark, or 0 if nothing
    is copied.
    """
    config = {"replica.fetch.max.bytes": 1, "replica.fetch.response.max.bytes": 1}
    topics = {"t": {"assignment": {0: [2, 3]}}}
    with running(3, version, config=config, topics=topics) as cluster:
        cluster.broker(3).kill()
        in_sync(cluster, 2)
        for value in "abc":
            cluster.produce("t", value)
        cluster.network.latency(10)
        cluster.broker(3).start()
        seen: list[int] = []
        while 3 not in stored(cluster)[2]:
            lag = cluster.broker(3).metrics["MaxLag"]
            if not seen or seen[-1] != lag:
                seen.append(lag)
            cluster.run_for(5)
        assert seen == [0, 2, 1, 0]
        assert [cluster.broker(n).metrics["MaxLag"] for n in (1, 2, 3)] == [0, 0, 0]


def test_the_reference_lists_every_metric() -> None:
    """The table of metrics in docs/reference/api.md has all metrics and no others."""
    section = API_PAGE.read_text().split("## Metrics\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    documented = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    with running(2) as cluster:
        found = {re.sub(r"broker-id=\d", "broker-id=N", n) for n in cluster.broker(1).metrics}
    timers = {name for name in found if name.endswith("RateAndTimeMs")}
    assert "LeaderElectionRateAndTimeMs" in timers
    assert documented == (found - timers) | {"...RateAndTimeMs"}
