"""The cluster of a history, with the faults and requests that it has been subject to so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..protocol.awaiting import Task
from ..protocol.errors import FakeKafkaError
from ..protocol.values import TopicPartition
from ..replication.partition.partition import Partition
from ..testing.handles.admin import AdminClient
from ..testing.simulation import Simulation
from ..testing.views import PartitionView


class World:
    """A running cluster, with the state that steps and choices need."""

    has_consumer_protocol = False
    """True if its groups use the consumer protocol (KIP-848)."""

    def __init__(self, simulation: Simulation, alive_min: int = 0) -> None:
        self.simulation = simulation
        self._alive_min = alive_min
        self.main: list[TopicPartition] = []
        """Partitions of the topics that are never deleted."""
        self.created: list[str] = []
        """Topics created by steps."""
        self.deleted: set[str] = set()
        self.requests: list[tuple[str, Task[Any]]] = []
        self.paused: set[int] = set()
        self.has_network_faults: bool = False
        self.brokers: frozenset[int] = frozenset(simulation.broker_ids)

    def alive(self) -> list[int]:
        simulation = self.simulation
        return [b for b in simulation.broker_ids if simulation.broker(b).is_alive]

    def stoppable_brokers(self) -> list[int]:
        """Return the brokers that may be taken down; some worlds keep a minimum for the ISRs."""
        alive = self.alive()
        return alive if len(alive) > self._alive_min else []

    def down(self) -> list[int]:
        alive = self.alive()
        return [b for b in self.simulation.broker_ids if b not in alive]

    def running(self) -> list[int]:
        simulation = self.simulation
        return [b for b in self.alive() if simulation.broker(b).state == "running"]

    def partitions(self) -> Iterator[PartitionView]:
        """Yield a view of every partition that the brokers know."""
        simulation = self.simulation
        for topic in simulation.topics():
            for number in range(self.count(topic)):
                try:
                    yield simulation.partition(topic, number)
                except FakeKafkaError:
                    continue

    def topics(self) -> list[str]:
        """Return the topics that exist in ZooKeeper.

        A broker that was cut off while a topic was deleted may know the topic until it restarts,
        because only the request that announces the deletion removes it (``ZkMetadataCache``).
        """
        return self.simulation.zookeeper.children("/brokers/topics")

    def views(self, topic: str) -> list[PartitionView]:
        return [self.simulation.partition(topic, number) for number in range(self.count(topic))]

    def hosted(self, broker_id: int, where: TopicPartition) -> Partition | None:
        """Return a broker's replica of a partition; None if it has none or is down."""
        broker = self.simulation.processes[broker_id].broker
        return None if broker is None else broker.replica_manager.hosted.partition(where)

    def controller_of(self, broker_id: int) -> Any:
        """Return the controller of a broker, active or not; None while the broker is down."""
        broker = self.simulation.processes[broker_id].broker
        return None if broker is None or broker.controller_node.stopped else broker.controller

    def leader(self, topic: str, partition: int) -> int | None:
        """Return the leader of a partition; None without a leader, or if the topic is unknown."""
        if topic not in self.simulation.topics():
            return None
        return self.simulation.partition(topic, partition).leader

    def count(self, topic: str) -> int:
        brokers = [p.broker for p in self.simulation.processes.values() if p.broker is not None]
        return max((b.metadata_cache.partition_count(topic) for b in brokers), default=0)

    def is_calm(self) -> bool:
        """Return True if nothing is broken at this moment."""
        simulation = self.simulation
        return (
            not self.paused
            and not self.has_network_faults
            and simulation.controller.id is not None
            and all(p.is_alive and p.server.is_serving for p in simulation.zookeepers.values())
            and all(simulation.broker(b).state == "running" for b in simulation.broker_ids)
            and len(simulation.zookeeper.children("/brokers/ids")) == len(simulation.broker_ids)
            and not any(p.spec.disk.offline_dirs for p in simulation.processes.values())
            and all(simulation.broker(b).clock_rate == 1 for b in simulation.broker_ids)
            and all(simulation.zookeeper.server(s).clock_rate == 1 for s in simulation.zookeepers)
        )

    def all_know_controller(self) -> bool:
        """Return True if every broker knows the active controller.

        If the controller is deposed before that, no broker may notice, and no election follows
        (docs/kafka/controller-failover.md#election).
        """
        known = [self.controller_of(broker_id) for broker_id in self.simulation.broker_ids]
        active = self.simulation.controller.id
        return all(one is not None and one.active_controller.id == active for one in known)

    def request(self, text: str, message: Any) -> None:
        """Send an admin request to the controller, without waiting for the outcome."""
        admin = AdminClient(self.simulation.running)
        self.requests.append((text, Task(admin.ask_controller(message))))

    def repair(self, broker_id: int) -> None:
        """Repair all log directories of a broker that is down; they keep their content."""
        for index in range(len(self.simulation.processes[broker_id].spec.disk.directories)):
            self.simulation.broker(broker_id).repair_log_dir(index)

    def end_faults(self) -> None:
        """End all faults of the network, of running brokers and of ZooKeeper servers."""
        simulation = self.simulation
        if self.has_network_faults:
            simulation.network.heal()
            self.has_network_faults = False
        for broker_id in sorted(self.paused):
            if simulation.broker(broker_id).is_alive:
                simulation.broker(broker_id).resume()
        self.paused.clear()
        for server_id in simulation.zookeepers:
            server = simulation.zookeeper.server(server_id)
            if server.clock_rate != 1:
                server.set_clock_rate(1)
        for broker_id in simulation.broker_ids:
            broker = simulation.broker(broker_id)
            if broker.clock_rate != 1:
                broker.set_clock_rate(1)
            if broker.clock_shift_ms:
                broker.shift_clock(-broker.clock_shift_ms)
        for server_id, process in simulation.zookeepers.items():
            if not process.is_alive:
                simulation.zookeeper.server(server_id).start()

    def recover_brokers(self) -> None:
        """Start brokers that are down, and shut down those that have failed log directories.

        The latter are repaired and started by a later call.
        """
        for broker_id in self.running():
            if self.simulation.processes[broker_id].spec.disk.offline_dirs:
                self.simulation.broker(broker_id).begin_shutdown()
        for broker_id in self.down():
            self.repair(broker_id)
            self.simulation.broker(broker_id).start(wait=False)
