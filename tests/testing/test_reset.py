"""``reset`` prepares a test's cluster for the next test, whatever the first did to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fakekafka import Cluster, Simulation, UsageError
from fakekafka.actors.broker.broker import Broker
from fakekafka.protocol.admin import BROKER_RESOURCE, SET, AlterConfigsRequest, ConfigResource
from fakekafka.protocol.errors import ErrorCode
from fakekafka.testing.checks import fully_replicated
from fakekafka.testing.reset import reset
from fakekafka.tests.support.present import present


def test_reset_empties_a_cluster_and_revives_its_brokers() -> None:
    with Cluster(brokers=3) as cluster:
        cluster.create_topic("a", partitions=2, replication_factor=3)
        cluster.create_topic("b")
        cluster.broker(2).kill()
        cluster.inject("Metadata", error="LEADER_NOT_AVAILABLE", times=5)
        cluster.reset()
        assert cluster.topics() == []
        assert cluster.broker(2).is_alive
        assert not cluster.runtime.network.is_watched


@pytest.mark.parametrize("runtime", ["live", "threaded"])
@pytest.mark.parametrize(("log_dirs", "is_alive"), [("a,b", True), ("a", False)])
def test_reset_puts_failed_log_directories_in_order(
    log_dirs: str, is_alive: bool, runtime: str
) -> None:
    """After a reset a broker hosts replicas in its failed log directories again, stopped or not."""
    with Cluster(brokers=2, config={"log.dirs": log_dirs}, runtime=runtime) as cluster:
        cluster.create_topic("a", replication_factor=2)
        cluster.broker(2).fail_log_dir()
        assert cluster.broker(2).is_alive is is_alive
        cluster.reset()
        cluster.create_topic("a", replication_factor=2)
        cluster.wait_until(lambda: fully_replicated(cluster, ["a"]))
        assert cluster.topics() == ["a"]


@pytest.mark.parametrize("runtime", ["live", "threaded"])
def test_reset_restarts_a_broker_whose_log_directory_was_repaired(runtime: str) -> None:
    """``reset`` restarts a broker with a repaired log directory, so that its offline replicas
    return and their topic can be deleted.
    """
    with Cluster(brokers=2, config={"log.dirs": "a,b"}, runtime=runtime) as cluster:
        cluster.create_topic("a", partitions=4, replication_factor=2)
        cluster.broker(2).fail_log_dir()
        cluster.broker(2).repair_log_dir()
        cluster.reset()
        assert cluster.topics() == []
        cluster.create_topic("a", partitions=4, replication_factor=2)
        cluster.wait_until(lambda: fully_replicated(cluster, ["a"]))


def test_reset_waits_for_a_deletion_that_the_next_controller_only_finds_in_zookeeper() -> None:
    """``reset`` waits for a deletion that only ZooKeeper, and no broker, knows of so far."""
    with Simulation(brokers=3) as simulation:
        simulation.create_topic("orders", replication_factor=3)
        simulation.network.hold(lambda sent: type(sent.message).__name__ == "StopReplicaRequest")
        simulation.zookeeper.create("/admin/delete_topics/orders")
        simulation.run_until(lambda: not simulation.topics())
        simulation.controller.resign()
        reset(simulation.running, lambda: None)
        assert simulation.zookeeper.children("/brokers/topics") == []
        simulation.create_topic("orders", replication_factor=3)


@pytest.mark.parametrize("servers", [1, 3])
def test_reset_starts_zookeeper_servers_again(servers: int) -> None:
    with Cluster(brokers=2, zookeepers=servers, topics={"a": 1}) as cluster:
        cluster.zookeeper.server(1).kill()
        cluster.reset()
        assert cluster.zookeeper.server(1).is_alive
        assert cluster.topics() == []
        cluster.create_topic("b")
        assert cluster.produce("b", "value") == 0


def test_reset_ends_observers_injections_and_faults() -> None:
    seen: list[Any] = []
    with Cluster(brokers=3, topics={"a": 1}) as cluster:
        end = cluster.observe(seen.append)
        injection = cluster.inject("Produce", error="MESSAGE_TOO_LARGE", times=100)
        cluster.network.hold(lambda delivery: type(delivery.message).__name__ == "AlterIsrRequest")
        cluster.network.latency(20, source=1, target=2)
        cluster.network.drop(1, source=3, target="clients")
        cluster.reset()
        seen.clear()
        cluster.create_topic("a", replication_factor=3)
        assert cluster.produce("a", "value") == 0
        assert (seen, injection.applied) == ([], 0)
        assert cluster.runtime.network._is_plain
        end()


def test_reset_names_a_topic_that_cannot_be_deleted(tmp_path: Path) -> None:
    """``reset`` refuses a topic that it cannot delete, as a broker with a replica is missing."""
    with Cluster(brokers=2, data_dir=tmp_path) as former:
        former.create_topic("wide", partitions=1, replication_factor=2)
    with (
        Cluster(brokers=1, data_dir=tmp_path) as cluster,
        pytest.raises(UsageError, match=r"reset cannot delete 'wide': partition 0 .* \[2\], and"),
    ):
        cluster.reset()


@pytest.mark.parametrize("runtime", ["live", "threaded"])
def test_reset_takes_dynamic_configurations_of_brokers_back(runtime: str) -> None:
    """``reset`` removes dynamic configurations of single brokers and of all before it returns."""
    with Cluster(brokers=2, runtime=runtime) as cluster:
        request = AlterConfigsRequest(
            (
                (ConfigResource(BROKER_RESOURCE, "1"), (("min.insync.replicas", SET, "2"),)),
                (ConfigResource(BROKER_RESOURCE, ""), (("log.retention.ms", SET, "5000"),)),
            )
        )

        async def alter() -> Any:
            return await cluster.running.admin.ask("broker-1", request, 5000)

        results = cluster.call(alter, 10000).results
        assert [error for _, error, _ in results] == [ErrorCode.NONE] * 2
        brokers = [present(process.broker) for process in cluster.processes.values()]
        cluster.wait_until(lambda: [len(b.config.dynamic) for b in brokers] == [2, 1])
        cluster.reset()
        assert [dict(b.config.dynamic) for b in brokers] == [{}, {}]


@pytest.mark.parametrize("runtime", ["live", "threaded"])
def test_reset_removes_configurations_that_a_client_could_not_undo_in_one_step(
    runtime: str,
) -> None:
    """``reset`` removes configurations that cannot be undone in one step, or that have no effect: a
    thread pool can be halved at most, and an unknown name changes nothing.
    """
    with Cluster(brokers=2, runtime=runtime) as cluster:
        everyone = ConfigResource(BROKER_RESOURCE, "")
        brokers = [present(process.broker) for process in cluster.processes.values()]
        for threads in ("16", "32"):
            wanted = {"num.io.threads": threads, "my.custom": "1"}
            entries = tuple((name, SET, value) for name, value in wanted.items())
            request = AlterConfigsRequest(((everyone, entries),))
            asked = partial(cluster.running.admin.ask, "broker-1", request, 5000)
            assert cluster.call(partial(_awaited, asked), 10000).results[0][1] is ErrorCode.NONE
            cluster.wait_until(partial(_all_have, brokers, wanted))
        cluster.reset()
        assert [dict(b.config.dynamic_default) for b in brokers] == [{}, {}]


async def _awaited(ask: Callable[[], Awaitable[Any]]) -> Any:
    return await ask()


def _all_have(brokers: list[Broker], wanted: dict[str, str]) -> bool:
    return all(broker.config.dynamic_default == wanted for broker in brokers)
