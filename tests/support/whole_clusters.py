"""Whole clusters in virtual time, for short tests of the control plane.

As in Kafka's own tests of the controller, brokers stop without a controlled shutdown and nothing
rebalances by itself unless a test configures it. Broker 1 is the first controller.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fakekafka import Simulation
from fakekafka.protocol.values import TopicPartition
from fakekafka.statemachines.zookeeper.client import KafkaZkClient

CURRENT = ("2.8", "3.9")
"""Versions that the reference describes."""


@contextmanager
def running(brokers: int = 3, version: str = "3.9", **options: Any) -> Iterator[Simulation]:
    """Run a cluster; afterwards no handler may have failed."""
    config = {
        "controlled.shutdown.enable": False,
        "auto.leader.rebalance.enable": False,
        **options.pop("config", {}),
    }
    simulation = Simulation(brokers, kafka_version=version, config=config, trace=False, **options)
    with simulation:
        assert simulation.controller.id == 1
        yield simulation
        assert simulation.failures == []


def ask(simulation: Simulation, broker_id: int, request: Any) -> Any:
    """Return a broker's response to a request."""

    async def send() -> Any:
        return await simulation.running.admin.ask(f"broker-{broker_id}", request)

    return simulation.call(send, 60_000)


def in_zookeeper(
    simulation: Simulation, what: Callable[[KafkaZkClient], Awaitable[Any]], by: int | None = None
) -> Any:
    """Use the ZooKeeper client of a broker, by default of any live one."""
    ids = simulation.broker_ids if by is None else (by,)
    client = next(b.zk for i in ids if (b := simulation.processes[i].broker) is not None)

    async def run() -> Any:
        return await what(client)

    return simulation.call(run, 60_000)


def stored(simulation: Simulation, topic: str = "t", partition: int = 0) -> Any:
    """Return (leader, leader epoch, ISR) stored in ZooKeeper."""
    data = simulation.zookeeper.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
    state = json.loads(data or b"null")
    return state["leader"], state["leader_epoch"], state["isr"]


def topic_znode(simulation: Simulation, topic: str = "t") -> Any:
    """Return the content of the topic's znode."""
    return json.loads(simulation.zookeeper.get(f"/brokers/topics/{topic}") or b"null")


def has_znode(simulation: Simulation, path: str) -> bool:
    return path in simulation.zookeeper.tree()


def in_sync(simulation: Simulation, *broker_ids: int, topic: str = "t", partition: int = 0) -> None:
    """Wait until exactly these replicas are in sync and every broker's metadata says so."""
    wanted = set(broker_ids)
    simulation.run_until(lambda: set(stored(simulation, topic, partition)[2]) == wanted)
    simulation.run_for(100)


def cached_partition_state(
    simulation: Simulation, at: int, topic: str = "t", partition: int = 0
) -> Any:
    """Return a partition's state in a broker's metadata, or None if it is unknown there."""
    broker = simulation.processes[at].broker
    assert broker is not None
    return broker.metadata_cache.partition_state(TopicPartition(topic, partition))
