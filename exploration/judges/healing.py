"""Healing the cluster of a history, as an operator would, until it is whole."""

from __future__ import annotations

import json
from typing import Any

from ...protocol import znode_paths
from ...protocol.values import NO_LEADER, TopicPartition
from ...replication.partition.partition import Partition
from ...statemachines.machines.transitions import PartitionState
from ...testing.running import WaitTimeout
from ...testing.simulation import Simulation
from ...testing.views import PartitionView
from ..world import World
from .excuses import Excuses
from .load import Load

SETTLE_MS = 400_000
"""Virtual time a healed cluster has to be whole again: producers may retry for 120 s of it."""
_LOAD_AFTER_HEALING_MS = 3000


def topics(simulation: Simulation) -> list[str]:
    """The topics there are.

    A broker that was cut off while a topic was deleted may know it until it restarts: Kafka's
    brokers forget a topic by the request that tells of its end (``ZkMetadataCache``).
    """
    return simulation.zookeeper.children("/brokers/topics")


def _shown(view: PartitionView) -> str:
    replicas = {broker_id: view.replica(broker_id) for broker_id in view.replicas}
    ends = {b: (replica.log_end_offset, replica.high_watermark) for b, replica in replicas.items()}
    name = f"{view.topic}-{view.partition}"
    return f"{name} leader {view.leader} isr {view.isr} of {view.replicas}, (end, hw) {ends}"


class Healing:
    """Undoes every fault and waits; helps where Kafka needs an operator."""

    def __init__(self, world: World, load: Load, excuses: Excuses) -> None:
        self._world = world
        self._simulation = world.simulation
        self._load = load
        self._excuses = excuses
        self._mended: set[int] = set()
        """Brokers that were started at the end."""
        self._controller_moves = 0
        """How often the controller was moved for the sake of brokers that it had missed."""
        self.restarted: set[TopicPartition] = set()
        """Partitions for whose sake their leader was restarted."""
        self.relieved: set[TopicPartition] = set()
        """Partitions for whose sake the controller was moved."""

    def run(self) -> None:
        """Undo every fault, as an operator would, and wait until the cluster is whole."""
        simulation = self._simulation
        simulation.network.heal()
        self._world.troubled_network = False
        for broker_id in sorted(self._world.paused):
            if simulation.broker(broker_id).is_alive:
                simulation.broker(broker_id).resume()
        self._world.paused.clear()
        for server_id, process in simulation.zookeepers.items():
            if not process.is_alive:
                simulation.zookeeper.server(server_id).start()
        simulation.run_for(_LOAD_AFTER_HEALING_MS)
        self._load.sends = False
        limit_ms = simulation.now_ms + SETTLE_MS
        while True:
            self._mend_brokers()
            lacking = self.what_is_lacking()
            if lacking is None:
                return
            if simulation.now_ms >= limit_ms - SETTLE_MS / 2:
                self._relieve_controller()
            if simulation.now_ms >= limit_ms - SETTLE_MS * 0.9 and self._brokers_run() is None:
                self._relieve_partitions()
            if simulation.now_ms >= limit_ms - SETTLE_MS / 4 and self._metadata_agrees() is None:
                self._relieve_high_watermarks()
                self._relieve_leaders()
            if simulation.now_ms >= limit_ms:
                raise WaitTimeout(f"not whole {SETTLE_MS / 1000:g} s after healing: {lacking}")
            simulation.run_for(500)

    def _mend_brokers(self) -> None:
        simulation = self._simulation
        for broker_id, process in simulation.processes.items():
            handle = simulation.broker(broker_id)
            disk = process.spec.disk
            if disk.offline_dirs and handle.is_alive:  # what was in them is found at the next start
                if handle.state == "running":
                    handle.begin_shutdown()
                continue
            if not handle.is_alive:
                for index in range(len(disk.directories)):
                    handle.repair_log_dir(index)
                if broker_id in self._mended:  # it ended by itself
                    self._discard_cut_partitions(broker_id, disk)
                self._mended.add(broker_id)
                handle.start(wait=False)

    def _discard_cut_partitions(self, broker_id: int, disk: Any) -> None:
        """Help a broker of 0.10 that holds more than a leader that has cut its log (KIP-101).

        It ends itself at each start, because it may not cut what it has
        (``ReplicaFetcherThread.handleOffsetOutOfRange``)."""
        for where in self._excuses.cut_from:
            if broker_id not in self._stored_isr(where) and disk.stored(where) is not None:
                disk.delete_log(where)

    def _stored_isr(self, where: TopicPartition) -> list[int]:
        """The ISR that ZooKeeper has."""
        path = znode_paths.topic_partition_state_path(where)
        isr: list[int] = json.loads(self._simulation.zookeeper.get(path) or b"{}").get("isr", [])
        return isr

    def _relieve_controller(self) -> None:
        """Let the controller move where Kafka needs that, as operators did.

        It cannot create what is there: it lost the answer to its write, and takes the partition
        for a new one (``PartitionStateMachine.initializeLeaderAndIsrForPartition``). And before
        brokers had epochs it missed that a broker had gone and come, and told it nothing
        (KAFKA-1120).
        """
        simulation = self._simulation
        if simulation.controller.id is None:
            return
        # 0.10.1 tells brokers who lives after it has told them whom to follow (KAFKA-4443).
        needed = 1 if simulation.behaviour.failover_announces_brokers_first else 2
        if not simulation.behaviour.broker_epochs and self._controller_moves < needed:
            self._controller_moves += 1
            self.relieved.update(self._world.main)
            simulation.controller.resign()
            return
        context = simulation.running.require_controller().context
        for where, state in context.states.partition_states.items():
            if state is PartitionState.NEW and where not in self.relieved:
                self.relieved.add(where)
                if znode_paths.topic_partition_state_path(where) in simulation.zookeeper.tree():
                    simulation.controller.resign()
                    return

    def _relieve_partitions(self) -> None:
        """Give partitions a leader that lost theirs because a reassignment dropped it.

        ``KafkaController.updateCurrentReassignment`` stops replicas that an earlier request was
        adding and a later one does not want, even when one of them leads, or when nobody else is
        in sync. The partition then has no leader, but counts as online: no election comes, until
        the controller moves. Where the ISR names dropped replicas only, no election helps as long
        as these live, not even an unclean one
        (``PartitionStateMachine.collectUncleanLeaderElectionState``).
        """
        simulation = self._simulation
        for where in sorted(self._excuses.dropped):
            if simulation.controller.id is None:
                return
            context = simulation.running.require_controller().context
            leadership = context.topics.partition_leadership_info(where)
            if leadership is None or leadership.leader_and_isr.leader != NO_LEADER:
                continue
            isr = leadership.leader_and_isr.isr
            if self._excuses.dropped[where].issuperset(isr):
                self._elect_without(where, isr)
            elif where not in self.relieved:
                self.relieved.add(where)
                simulation.controller.resign()
                return

    def _elect_without(self, where: TopicPartition, brokers: tuple[int, ...]) -> None:
        """Elect from outside the ISR while its brokers are down; what the leader lacks is lost."""
        simulation = self._simulation
        for broker_id in brokers:
            if simulation.broker(broker_id).state == "running":
                simulation.broker(broker_id).begin_shutdown()

        def they_are_gone() -> bool:
            if simulation.controller.id is None:
                return False
            known = simulation.running.require_controller().context
            return not any(b in known.brokers.live_or_shutting_down_broker_ids for b in brokers)

        simulation.run_until(they_are_gone)
        simulation.elect_leaders("unclean", [where])
        view = simulation.partition(*where)
        if view.leader is not None:
            replica = view.replica(view.leader)
            since = [start for epoch, start in replica.epochs if epoch >= view.leader_epoch]
            end = min(since, default=replica.log_end_offset)
            self._excuses.lost_from[where] = min(end, self._excuses.lost_from.get(where, end))

    def _relieve_high_watermarks(self) -> None:
        """Write to partitions whose high watermark a follower was told while it did not listen.

        A follower that is about to truncate ignores what the answer to an earlier fetch says of
        the partition, and the leader takes it for told (docs/kafka/fetch-sessions.md#answers).
        The next record brings the high watermark along.
        """
        flags = self._simulation.behaviour
        if not flags.fetch_sessions or flags.truncation != "leader_epoch":
            return
        for topic in topics(self._simulation):
            for view in self._views(topic):
                replicas = [view.replica(broker_id) for broker_id in view.replicas]
                ends = {replica.log_end_offset for replica in replicas}
                if len(ends) == 1 and any(r.high_watermark not in ends for r in replicas):
                    self._simulation.produce(topic, b"relief", partition=view.partition)

    def _relieve_leaders(self) -> None:
        """Restart a leader that knows an older version of its partition than ZooKeeper has.

        The ISR was written, and the answer to that was lost. The leader changes its ISR no more
        until it hears of another leader epoch, and a later controller tells it the same one: before
        2.7 each of its writes fails (KAFKA-2729), since then its change counts as under way
        (docs/kafka/isr.md#changes-through-the-controller).
        """
        for topic in topics(self._simulation):
            for view in self._views(topic):
                where = TopicPartition(topic, view.partition)
                path = znode_paths.topic_partition_state_path(where)
                if view.leader is None or where in self.restarted:
                    continue
                partition = self._hosted(view.leader, where)
                known = None if partition is None else partition.partition_epoch
                if known is not None and known < self._simulation.zookeeper.stat(path).version:
                    self.restarted.add(where)
                    self._simulation.broker(view.leader).begin_shutdown()
                    return

    def _views(self, topic: str) -> list[PartitionView]:
        count = self._world.count(topic)
        return [self._simulation.partition(topic, number) for number in range(count)]

    def what_is_lacking(self) -> str | None:
        """What keeps the cluster from being whole, in words; None when nothing does."""
        for check in (
            self._brokers_run,
            self._control_is_idle,
            self._clients_are_done,
            self._metadata_agrees,
            self._isr_full,
        ):
            lacking = check()
            if lacking is not None:
                return lacking
        return None

    def _brokers_run(self) -> str | None:
        simulation = self._simulation
        for broker_id in simulation.broker_ids:
            state = simulation.broker(broker_id).state
            if state != "running":
                return f"broker {broker_id} is {state}"
        return None if simulation.controller.id is not None else "no controller is active"

    def _control_is_idle(self) -> str | None:
        simulation = self._simulation
        tree = simulation.zookeeper.tree()
        pending = ["/admin/delete_topics/"]
        if simulation.behaviour.failover_drops_notifications:  # else what a dead controller left
            pending.append("/isr_change_notification/")  # waits for the next one to be written
        for path in tree:
            if path.startswith(tuple(pending)) or (
                path in ("/admin/reassign_partitions", "/admin/preferred_replica_election")
            ):
                return f"{path} is still there"
        unfinished = [text for text, task in self._world.requests if not task.done]
        if unfinished:
            return f"no answer yet to {unfinished[0]}"
        for topic in topics(self._simulation):
            if topic not in simulation.topics():
                return f"no broker knows topic {topic}"
        return None

    def _clients_are_done(self) -> str | None:
        unfinished = sum(producer.unfinished for producer in self._load.producers)
        return f"{unfinished} batches are not finished" if unfinished else None

    def _metadata_agrees(self) -> str | None:
        simulation = self._simulation
        controller = simulation.running.require_controller().context
        for key in controller.topics.all_partitions():
            if controller.topics.partition_leadership_info(key) is None:
                return f"{key} has no leader at the controller"
            wanted = controller.topics.partition_leadership_info(key).leader_and_isr
            adding = controller.topics.partition_full_replica_assignment(key)
            if adding.adding or adding.removing:
                return f"{key} is still being reassigned: {adding}"
            for process in simulation.processes.values():
                broker = process.broker
                assert broker is not None
                known = broker.metadata_cache.partition_state(key)
                if known is None or (known.leader, known.leader_epoch) != (
                    wanted.leader,
                    wanted.leader_epoch,
                ):
                    return f"{process.name} takes {known} for the state of {key}, not {wanted}"
                if len(broker.metadata_cache.alive_brokers()) != len(simulation.broker_ids):
                    return f"{process.name} knows {broker.metadata_cache.alive_brokers()}"
        return None

    def _is_replicated(self, view: PartitionView) -> bool:
        """Tell whether all replicas are in the ISR and at the leader's end.

        Leaders that write the ISR to ZooKeeper (2.4 to 2.6) may add a replica while the controller
        drops it, which then stays there (docs/kafka/reassignment.md#dropped-in-sync).
        """
        isr = set(view.isr)
        if not self._simulation.behaviour.alter_isr:
            isr -= self._excuses.dropped.get(TopicPartition(view.topic, view.partition), set())
        replicas = [view.replica(broker_id) for broker_id in view.replicas]
        ends = {replica.log_end_offset for replica in replicas}
        marks = {replica.high_watermark for replica in replicas}
        return (
            view.leader is not None and isr == set(view.replicas) and marks == ends == {max(ends)}
        )

    def _has_log(self, broker_id: int, where: TopicPartition) -> bool:
        """Whether the broker was told of a replica; a bounce may be missed (KAFKA-1120)."""
        partition = self._hosted(broker_id, where)
        return partition is not None and partition.log is not None

    def _hosted(self, broker_id: int, where: TopicPartition) -> Partition | None:
        """What a broker has of a partition."""
        broker = self._simulation.processes[broker_id].broker
        return None if broker is None else broker.replica_manager.hosted.partition(where)

    def _isr_full(self) -> str | None:
        for topic in topics(self._simulation):
            views = self._views(topic)
            for view in views:
                for broker_id in view.replicas:
                    if not self._has_log(broker_id, TopicPartition(topic, view.partition)):
                        return f"broker {broker_id} has no log of {topic}-{view.partition}"
            if not all(self._is_replicated(view) for view in views):
                return f"{topic} is not fully replicated: {'; '.join(map(_shown, views))}"
        return None
