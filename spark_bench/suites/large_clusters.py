"""Large clusters that exist from the start, and the time of operations of their control plane.

``populate`` writes topics into ZooKeeper's tree, as if they had been created in the past, and the
next controller finds them. All later operations take the time of their simulated messages.
"""

from __future__ import annotations

from typing import Any

from ...actors.network.costs import PUBLISHED_2018_LATENCY_MS, Costs
from ...protocol import znode_paths, znode_payloads
from ...protocol.values import LeaderAndIsr, ReplicaAssignment, TopicPartition
from ...testing.simulation import Simulation
from ...zkfake.messages import CreateRequest
from ..measuring.run import Run

_LONG_MS = 3_600_000
CONFIG: dict[str, Any] = {
    # No timeout should expire on operations that the model makes slow.
    "controller.socket.timeout.ms": _LONG_MS,
    "zookeeper.session.timeout.ms": _LONG_MS,
    # Keep followers of idle partitions waiting, as their fetches are not measured.
    "replica.fetch.wait.max.ms": _LONG_MS,
    "replica.lag.time.max.ms": 2 * _LONG_MS,
    "replica.socket.timeout.ms": 2 * _LONG_MS,
    "auto.leader.rebalance.enable": "false",
}


def populate(simulation: Simulation, topics: int, partitions: int, factor: int) -> None:
    """Write topics into ZooKeeper; leaders and replicas are spread evenly, all in sync."""
    tree = simulation.zookeepers[1].server.storage.tree
    session_id = next(iter(tree.sessions))
    behaviour = simulation.behaviour
    brokers = list(simulation.broker_ids)
    now_ms = simulation.runtime.now_ms()

    def create(path: str, data: bytes | None) -> None:
        tree.apply(tree.last_zxid + 1, now_ms, session_id, CreateRequest(path, data))

    for number in range(topics):
        topic = f"t{number}"
        assignment = {}
        for partition in range(partitions):
            first = number + partition
            shift = first // len(brokers) % (len(brokers) - 1)
            followers = [first + 1 + (shift + i) % (len(brokers) - 1) for i in range(factor - 1)]
            assignment[partition] = ReplicaAssignment(
                tuple(brokers[index % len(brokers)] for index in (first, *followers))
            )
        topic_id = f"{number:022d}" if behaviour.topic_ids else None
        payload = znode_payloads.encode_topic(assignment, behaviour.topic_znode_version, topic_id)
        create(
            znode_paths.config_entity_path(znode_paths.TOPICS, topic),
            znode_payloads.encode_config({}),
        )
        create(znode_paths.topic_path(topic), payload)
        create(znode_paths.topic_partitions_path(topic), None)
        for partition, replicas in assignment.items():
            name = TopicPartition(topic, partition)
            state = LeaderAndIsr(replicas.replicas[0], 0, replicas.replicas, 0)
            create(znode_paths.topic_partition_path(name), None)
            create(
                znode_paths.topic_partition_state_path(name),
                znode_payloads.encode_partition_state(state, 1),
            )
    tree.take_changes()  # discarded, as no client watches yet


def failover_ms(simulation: Simulation) -> float:
    """Let another broker become controller and take over all topics; return the virtual time."""
    started_ms = simulation.now_ms
    simulation.controller.resign()
    manager = simulation.running.require_controller().event_manager
    simulation.run_until(
        lambda: manager.current is None and not len(manager), timeout_ms=100 * _LONG_MS
    )
    return simulation.now_ms - started_ms


def shutdown_ms(simulation: Simulation) -> float:
    """Shut down a broker other than the controller in a controlled way; return the virtual time."""
    controller = simulation.controller.id
    leaving = next(broker for broker in simulation.broker_ids if broker != controller)
    started_ms = simulation.now_ms
    broker = simulation.broker(leaving)
    broker.begin_shutdown()
    simulation.run_until(lambda: not broker.is_alive, timeout_ms=100 * _LONG_MS)
    return simulation.now_ms - started_ms


def loaded_cluster(
    run: Run, costs: Costs, kafka_version: str, shape: tuple[int, int, int], max_in_flight: int
) -> Simulation:
    """Return a cluster of five brokers at rest.

    ``shape`` is the number of topics, of partitions per topic, and of replicas per partition.
    ``costs`` apply only after this function returns.
    """
    simulation = run.simulation(
        5,
        kafka_version=kafka_version,
        latency_ms=PUBLISHED_2018_LATENCY_MS,
        costs=Costs(),
        config={**CONFIG, "zookeeper.max.in.flight.requests": max_in_flight},
    )
    populate(simulation, *shape)
    failover_ms(simulation)
    simulation.run_for(60_000)
    simulation.costs = costs
    return simulation
