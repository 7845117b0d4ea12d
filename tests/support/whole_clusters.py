"""Whole clusters in virtual time, for short stories about the control plane.

As in Kafka's own tests of the controller, brokers stop without a controlled shutdown and nothing
rebalances by itself unless a test says so. Broker 1 is the first controller.
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
"""The versions the reference describes."""


@contextmanager
def running(brokers: int = 3, version: str = "3.9", **options: Any) -> Iterator[Simulation]:
    """A cluster that serves; afterwards no handler may have failed."""
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
    """A broker's answer to a request."""

    async def send() -> Any:
        return await simulation.running.admin.ask(f"broker-{broker_id}", request)

    return simulation.call(send, 60_000)


def in_zookeeper(
    simulation: Simulation, what: Callable[[KafkaZkClient], Awaitable[Any]], by: int | None = None
) -> Any:
    """Do something with the ZooKeeper client of a broker, of any that lives by default."""
    ids = simulation.broker_ids if by is None else (by,)
    client = next(b.zk for i in ids if (b := simulation.processes[i].broker) is not None)

    async def run() -> Any:
        return await what(client)

    return simulation.call(run, 60_000)


def stored(simulation: Simulation, topic: str = "t", partition: int = 0) -> Any:
    """(leader, leader epoch, ISR) as ZooKeeper has it."""
    data = simulation.zookeeper.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
    state = json.loads(data or b"null")
    return state["leader"], state["leader_epoch"], state["isr"]


def topic_znode(simulation: Simulation, topic: str = "t") -> Any:
    """The content of the topic's znode."""
    return json.loads(simulation.zookeeper.get(f"/brokers/topics/{topic}") or b"null")


def has_znode(simulation: Simulation, path: str) -> bool:
    return path in simulation.zookeeper.tree()


def in_sync(simulation: Simulation, *broker_ids: int, topic: str = "t", partition: int = 0) -> None:
    """Wait until exactly these replicas are in sync, and every broker has heard of it."""
    wanted = set(broker_ids)
    simulation.run_until(lambda: set(stored(simulation, topic, partition)[2]) == wanted)
    simulation.run_for(100)


def heard(simulation: Simulation, at: int, topic: str = "t", partition: int = 0) -> Any:
    """The state of a partition in a broker's metadata; None when it does not know it."""
    broker = simulation.processes[at].broker
    assert broker is not None
    return broker.metadata_cache.partition_state(TopicPartition(topic, partition))
