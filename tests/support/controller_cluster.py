"""A cluster of real controllers with a local ZooKeeper and fake brokers.

Every broker process is a ``KafkaController`` with its own ZooKeeper session; the one that wins the
election is active. Control requests reach a ``FakeBroker``, which stores and acknowledges them.
Nothing runs by itself: ``settle`` runs what is due now, ``host.advance`` lets time pass.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fakekafka.protocol.awaiting import Pending, Task
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.control import AlterIsrPartition, AlterIsrRequest, AlterIsrResponse
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import (
    BrokerInfo,
    EndPoint,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.admin.manager import AdminManager
from fakekafka.statemachines.admin.parts import AdminParts
from fakekafka.statemachines.broker.dynamic_config import DynamicConfigManager
from fakekafka.statemachines.controller.controller import KafkaController
from fakekafka.statemachines.controller.events import (
    AlterIsrReceived,
    ApiPartitionReassignment,
    ControlledShutdown,
    ElectionTrigger,
    ListPartitionReassignments,
    ReplicaLeaderElection,
)
from fakekafka.statemachines.zookeeper.client import KafkaZkClient
from fakekafka.tests.support.fake_brokers import FakeBroker, OwnMailbox, RecordingChannels
from fakekafka.tests.support.hosts import FakeClock, FakeHost
from fakekafka.tests.support.local_zookeeper import LocalZooKeeper, LocalZooKeeperClient
from fakekafka.tests.support.run_now import run_now


class Process:
    """A broker process: its ZooKeeper session and its controller."""

    def __init__(self, cluster: ControllerCluster, broker_id: int, rack: str | None) -> None:
        self.client = cluster.client_class(cluster.zookeeper)
        self.zk = KafkaZkClient(self.client, cluster.behaviour)
        self.channels = RecordingChannels(cluster)
        self.config = BrokerConfig(
            {**cluster.config, "broker.id": broker_id}, cluster.kafka_version
        )
        self.info = BrokerInfo(broker_id, (EndPoint(f"broker-{broker_id}", 9092),), rack)
        self.controller = KafkaController(
            broker_id=broker_id,
            host=cluster.host,
            config=self.config,
            behaviour=cluster.behaviour,
            zk=self.zk,
            channels=self.channels,
            mailbox=OwnMailbox(),
            broker_info=lambda: self.info,
            log=lambda level, text: cluster.log.append((broker_id, level, text)),
        )


class ControllerCluster:
    """Controllers to ``start``, the ``active`` one of them and the requests ``sent``."""

    client_class: type[LocalZooKeeperClient] = LocalZooKeeperClient

    def __init__(
        self, broker_ids: Iterable[int] = (), kafka_version: str = "2.8", **config: Any
    ) -> None:
        self.kafka_version = kafka_version
        self.behaviour = behaviour(kafka_version)
        self.config = {name.replace("_", "."): value for name, value in config.items()}
        self.host = FakeHost(clock=FakeClock(0), rng=random.Random(0))
        self.zookeeper = LocalZooKeeper(self.host.now_ms)
        self.processes: dict[int, Process] = {}
        self.brokers: dict[int, FakeBroker] = {}
        self.held: set[int] = set()
        self.sent: list[tuple[int, Any]] = []
        self.log: list[tuple[int, str, str]] = []
        for broker_id in broker_ids:
            self.start(broker_id)

    # --- brokers

    def start(self, broker_id: int, rack: str | None = None) -> Process:
        process = Process(self, broker_id, rack)
        self.processes[broker_id] = process
        self.brokers[broker_id] = FakeBroker(broker_id)
        run_now(process.zk.brokers.create_top_level_paths())
        run_now(process.controller.registration.register())
        run_now(process.controller.startup())
        self.settle()
        return process

    def kill(self, broker_id: int) -> None:
        """Kill a process and expire its session."""
        self.freeze(broker_id)
        process = self.processes.pop(broker_id)
        self.zookeeper.close_session(process.client.session_id)
        self.settle()

    def freeze(self, broker_id: int) -> None:
        """Kill a process without expiring its session."""
        process = self.processes[broker_id]
        process.controller.crash()
        process.client.abandon()
        del self.brokers[broker_id]

    def bounce(self, broker_id: int) -> None:
        """Kill and restart a process before the controller handles its death."""
        self.freeze(broker_id)
        self.zookeeper.close_session(self.processes[broker_id].client.session_id)
        self.start(broker_id)

    def shut_down(self, broker_id: int) -> None:
        """End a process in order, without the controlled shutdown that precedes."""
        process = self.processes.pop(broker_id)
        closing = Task(process.controller.shutdown())
        self.settle()
        assert closing.done
        process.client.close()
        del self.brokers[broker_id]
        self.settle()

    def expire(self, broker_id: int) -> Task[None]:
        task = self.processes[broker_id].client.expire()
        self.settle()
        return task

    def settle(self) -> None:
        self.host.advance(0)

    # --- the controller

    @property
    def active(self) -> KafkaController:
        found = [p.controller for p in self.processes.values() if p.controller.is_active]
        assert len(found) == 1, f"active controllers: {[c.broker_id for c in found]}"
        return found[0]

    @property
    def zk(self) -> KafkaZkClient:
        """ZooKeeper client of a live process."""
        return next(iter(self.processes.values())).zk

    def controlled_shutdown(self, broker_id: int, epoch: int | None = None) -> Any:
        outcomes: list[Any] = []
        if epoch is None:
            epoch = self.processes[broker_id].controller.broker_epoch
        self.active.put(ControlledShutdown(broker_id, epoch, outcomes.append))
        self.settle()
        assert len(outcomes) == 1
        return outcomes[0]

    def elect(self, election_type: int, *partitions: TopicPartition) -> Any:
        outcomes: list[Any] = []
        from_api = ElectionTrigger.ADMIN_CLIENT_TRIGGERED
        self.active.put(ReplicaLeaderElection(partitions, election_type, from_api, outcomes.append))
        self.settle()
        assert len(outcomes) == 1
        return outcomes[0]

    def reassign(self, reassignments: dict[TopicPartition, tuple[int, ...] | None]) -> Any:
        outcomes: list[Any] = []
        self.active.put(ApiPartitionReassignment(tuple(reassignments.items()), outcomes.append))
        self.settle()
        assert len(outcomes) == 1
        return outcomes[0]

    def reassigning(self, *partitions: TopicPartition) -> Any:
        outcomes: list[Any] = []
        self.active.put(ListPartitionReassignments(partitions or None, outcomes.append))
        self.settle()
        return outcomes[0]

    def admin(self, broker_id: int | None = None) -> AdminManager:
        """Return the admin manager of a broker, by default the active controller's."""
        if broker_id is None:
            broker_id = self.active.broker_id
        process, broker = self.processes[broker_id], self.brokers[broker_id]

        async def wait(
            predicate: Callable[[], object],
            timeout_ms: float,
            peers: Callable[[], Sequence[str]] = list,
        ) -> bool:
            if predicate():
                return True
            pending: Pending[bool] = Pending()
            broker.waiting.append((pending, predicate))
            self.host.call_later_ms(timeout_ms, lambda: pending.set_result(False))
            return await pending

        return AdminManager(
            AdminParts(
                host=self.host,
                config=process.config,
                behaviour=self.behaviour,
                zk=process.zk,
                controller=process.controller,
                metadata=broker.cache,
                wait=wait,
            )
        )

    def ask(self, coroutine: Any, advance_ms: int = 0) -> Any:
        """Return the response to an admin request after advancing the clock."""
        task = Task(coroutine)
        self.host.advance(advance_ms)
        assert task.done, "no answer yet"
        return task.result()

    def dynamic_config(self, broker_id: int, changed: list[str]) -> DynamicConfigManager:
        """Return a broker's started config manager, which appends changed topics to ``changed``."""
        process = self.processes[broker_id]
        manager = DynamicConfigManager(
            broker_id=broker_id,
            host=self.host,
            config=process.config,
            behaviour=self.behaviour,
            zk=process.zk,
            controller=process.controller,
            on_topic_config=changed.append,
            log=lambda level, text: self.log.append((broker_id, level, text)),
        )
        run_now(manager.load())
        run_now(manager.startup())
        self.settle()
        return manager

    # --- topics

    def create_topic(
        self, topic: str, *replicas: tuple[int, ...], config: dict[str, str] | None = None
    ) -> None:
        """Write the znodes of a topic with partitions 0, 1, ... on the given brokers."""
        run_now(self.zk.admin.set_or_create_entity_configs("topics", topic, config or {}))
        assignment = {p: ReplicaAssignment(r) for p, r in enumerate(replicas)}
        run_now(self.zk.topics.create_topic_assignment(topic, assignment))
        self.settle()

    def add_partitions(self, topic: str, *replicas: tuple[int, ...]) -> None:
        """Rewrite a topic's znode with more partitions."""
        stored = run_now(self.zk.topics.get_replica_assignment_and_topic_ids_for_topics([topic]))[0]
        assignment = dict(stored.assignment)
        for new in replicas:
            assignment[TopicPartition(topic, len(assignment))] = ReplicaAssignment(new)
        run_now(self.zk.topics.set_topic_assignment(topic, stored.topic_id, assignment))
        self.settle()

    def delete_topic(self, topic: str) -> None:
        run_now(self.zk.admin.create_delete_topic_path(topic))
        self.settle()

    def topics(self) -> list[str]:
        return run_now(self.zk.topics.get_all_topics_in_cluster())

    def state(self, topic: str, partition: int = 0) -> LeaderAndIsr:
        """Return a partition's leadership stored in ZooKeeper."""
        stored = run_now(self.zk.topics.get_topic_partition_state(TopicPartition(topic, partition)))
        assert stored is not None
        return stored.leader_and_isr

    def assignment(self, topic: str, partition: int = 0) -> ReplicaAssignment:
        """Return a partition's assignment stored in ZooKeeper."""
        found = run_now(self.zk.topics.get_full_replica_assignment_for_topics([topic]))
        return found[TopicPartition(topic, partition)]

    def alter_isr(
        self, leader: int, *partitions: AlterIsrPartition, epoch: int | None = None
    ) -> list[AlterIsrResponse]:
        """Send AlterIsr as a leader; return its responses, an empty list if there are none."""
        answers: list[AlterIsrResponse] = []
        if epoch is None:
            epoch = self.processes[leader].controller.broker_epoch
        request = AlterIsrRequest(leader, epoch, partitions)
        self.active.put(AlterIsrReceived(request, answers.append))
        self.settle()
        return answers

    def set_isr(self, topic: str, partition: int, isr: tuple[int, ...]) -> None:
        """Change the ISR as the leader does, by AlterIsr or through ZooKeeper."""
        tp = TopicPartition(topic, partition)
        state = self.state(topic, partition)
        if self.behaviour.alter_isr:
            change = AlterIsrPartition(tp, state.leader_epoch, isr, state.zk_version)
            answers = self.alter_isr(state.leader, change)
            assert [a.partitions[0].error for a in answers] == [ErrorCode.NONE]
            return
        stored = run_now(self.zk.topics.get_topic_partition_state(tp))
        assert stored is not None
        new = LeaderAndIsr(state.leader, state.leader_epoch, isr, state.zk_version)
        assert (
            run_now(self.zk.topics.update_partition_isr(tp, new, stored.controller_epoch))
            is not None
        )
        self.settle()

    def catch_up(self, topic: str, partition: int = 0) -> None:
        """Add every live replica to the ISR."""
        state = self.state(topic, partition)
        replicas = self.assignment(topic, partition).replicas
        joined = tuple(r for r in replicas if r in self.processes and r not in state.isr)
        if joined:
            self.set_isr(topic, partition, state.isr + joined)
