"""The reprs of clusters, handles and views, as in a failed assertion or a debugger."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from fakekafka import Cluster, Simulation
from fakekafka.testing.emulated_cluster import EmulatedCluster

REPRS: list[tuple[Callable[[EmulatedCluster], object], str]] = [
    (lambda c: c.broker(2), "<broker 2 running, paused, port 9092>"),
    (lambda c: c.broker(3), "<broker 3 not_running, port 9092>"),
    (lambda c: c.controller, "<controller 1, epoch 1>"),
    (lambda c: c.zookeeper, "<ZooKeeper servers 1: alive>"),
    (lambda c: c.zookeeper.server(1), "<zk-1 alive>"),
    (lambda c: c.network, "<network: broker-3 to zk-1 cut, loses 10% from broker-1 to broker-2>"),
    (
        lambda c: c.partition("orders", 0),
        "<orders-0 OnlinePartition: leader 1, epoch 0, ISR [1, 3] of [1, 3], high watermark 1; "
        "<broker 1: leader, epoch 0, 0 to 1, high watermark 1>, <broker 3: no log>>",
    ),
    (
        lambda c: c,
        "<Simulation 3.9, seed 1, t=1234 ms: controller 1, "
        "brokers 1: running, 2: running, 3: not_running>",
    ),
]


@pytest.fixture(scope="module")
def simulation() -> Iterator[Simulation]:
    with Simulation(3, seed=1, topics={"orders": {"assignment": {0: [1, 3]}}}) as made:
        made.produce("orders", "value")
        made.run_for(1000)
        made.broker(2).pause()
        made.broker(3).kill()
        made.network.partition([3], ["zk-1"], both_ways=False)
        made.network.drop(0.1, 1, 2)
        yield made


@pytest.mark.parametrize(("of", "shown"), REPRS, ids=[shown[:20] for _, shown in REPRS])
def test_a_repr_shows_the_current_state(
    simulation: Simulation, of: Callable[[EmulatedCluster], object], shown: str
) -> None:
    found = re.sub(r"t=[\d.]+ ms", "t=1234 ms", repr(of(simulation)))
    assert found == shown


def test_the_repr_of_a_cluster_has_its_addresses() -> None:
    cluster = Cluster(brokers=1)
    assert repr(cluster) == (
        "<Cluster 3.9: the cluster is not started; use `with Cluster() as cluster:`>"
    )
    with cluster:
        at = cluster.bootstrap_servers
        assert repr(cluster) == f"<Cluster 3.9 at {at}: controller 1, brokers 1: running>"
    assert repr(cluster) == "<Cluster 3.9: the cluster has been stopped>"
