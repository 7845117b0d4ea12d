"""Promises that hold at the end, after the faults and once the cluster has had time to recover."""

from __future__ import annotations

from ...protocol.errors import FakeKafkaError, KafkaError
from ...protocol.values import TopicPartition
from ...testing.checks import replicas_identical
from ...testing.views import PartitionView
from ..worlds.group_world import GroupWorld
from .invariant import Validation


class BrokersRun(Validation):
    """Every broker runs, and one of them is the controller."""

    def unmet_reason(self) -> str | None:
        simulation = self.scene.world.simulation
        for broker_id in simulation.broker_ids:
            state = simulation.broker(broker_id).state
            if state != "running":
                return f"broker {broker_id} is {state}"
        return None if simulation.controller.id is not None else "no controller is active"


class RequestsEnd(Validation):
    """Every request to the controller is answered, and no request is left in ZooKeeper."""

    def unmet_reason(self) -> str | None:
        world, simulation = self.scene.world, self.scene.world.simulation
        pending = ["/admin/delete_topics/"]
        if simulation.behaviour.failover_drops_notifications:
            # In earlier releases, notifications may remain until the next one is written.
            pending.append("/isr_change_notification/")
        for path in simulation.zookeeper.tree():
            if path.startswith(tuple(pending)) or (
                path in ("/admin/reassign_partitions", "/admin/preferred_replica_election")
            ):
                return f"{path} is still there"
        unfinished = [text for text, task in world.requests if not task.done]
        if unfinished:
            return f"no answer yet to {unfinished[0]}"
        for topic in world.topics():
            if topic not in simulation.topics():
                return f"no broker knows topic {topic}"
        return None

    def end(self) -> None:
        for text, task in self.scene.world.requests:
            error = task.exception
            if error is not None and not isinstance(error, KafkaError):
                self.report(f"{text} raised {error!r}")


class RecordsAreAnswered(Validation):
    """Every record that was sent is acknowledged or refused, and each partition takes new ones."""

    def unmet_reason(self) -> str | None:
        load = self.scene.load
        unfinished = 0 if load is None else sum(one.unfinished for one in load.producers)
        return f"{unfinished} batches are neither acknowledged nor refused" if unfinished else None

    def end(self) -> None:
        for topic, number in self.scene.world.main:
            try:
                self.scene.world.simulation.produce(topic, b"probe", partition=number)
            except FakeKafkaError as error:
                self.report(f"{topic}-{number} accepts no records: {error}")


class MetadataAgrees(Validation):
    """Every broker knows all brokers, and the same leader and leader epoch of each partition as the
    controller; no reassignment is left."""

    def unmet_reason(self) -> str | None:
        simulation = self.scene.world.simulation
        controller = simulation.running.require_controller().context
        for key in controller.topics.all_partitions():
            if controller.topics.partition_leadership_info(key) is None:
                return f"{key} has no leader at the controller"
            expected = controller.topics.partition_leadership_info(key).leader_and_isr
            adding = controller.topics.partition_full_replica_assignment(key)
            if adding.adding or adding.removing:
                return f"{key} is still being reassigned: {adding}"
            for process in simulation.processes.values():
                broker = process.broker
                assert broker is not None
                known = broker.metadata_cache.partition_state(key)
                if known is None or (known.leader, known.leader_epoch) != (
                    expected.leader,
                    expected.leader_epoch,
                ):
                    return f"{process.name} has {known} for {key}, but the controller {expected}"
                if len(broker.metadata_cache.alive_brokers()) != len(simulation.broker_ids):
                    return f"{process.name} knows {broker.metadata_cache.alive_brokers()}"
        return None


class PartitionsOnline(Validation):
    """Every partition has a leader."""

    def unmet_reason(self) -> str | None:
        for view in self.scene.world.partitions():
            if view.leader is None:
                return f"{view.topic}-{view.partition} has no leader"
        return None


class IsrWhole(Validation):
    """Every replica is in the ISR, with all records and the same high watermark.

    From 2.4 to 2.8, a replica dropped by a reassignment may stay in the ISR
    (docs/kafka/reassignment.md#dropped-in-sync).
    """

    def unmet_reason(self) -> str | None:
        world = self.scene.world
        for topic in world.topics():
            views = world.views(topic)
            for view in views:
                where = TopicPartition(topic, view.partition)
                for broker_id in view.replicas:
                    partition = world.hosted(broker_id, where)
                    if partition is None or partition.log is None:  # see KAFKA-1120
                        return f"broker {broker_id} has no log of {where}"
            if not all(map(self._is_replicated, views)):
                return f"{topic} is not fully replicated: {'; '.join(map(_shown, views))}"
        return None

    def _is_replicated(self, view: PartitionView) -> bool:
        isr = set(view.isr)
        if self.scene.world.simulation.behaviour.isr_check_fails_at_no_replica:
            where = TopicPartition(view.topic, view.partition)
            isr -= self.scene.defects.dropped.get(where, set())
        replicas = [view.replica(broker_id) for broker_id in view.replicas]
        ends = {replica.log_end_offset for replica in replicas}
        marks = {replica.high_watermark for replica in replicas}
        return isr == set(view.replicas) and marks == ends == {max(ends)}


def _shown(view: PartitionView) -> str:
    replicas = {broker_id: view.replica(broker_id) for broker_id in view.replicas}
    ends = {b: (replica.log_end_offset, replica.high_watermark) for b, replica in replicas.items()}
    name = f"{view.topic}-{view.partition}"
    return f"{name} leader {view.leader} isr {view.isr} of {view.replicas}, (end, hw) {ends}"


class ReplicasIdentical(Validation):
    """All replicas of a partition hold the same bytes."""

    def end(self) -> None:
        simulation = self.scene.world.simulation
        for topic in self.scene.world.topics():
            for problem in replicas_identical(simulation, [topic]).problems:
                name, _, number = problem.partition(": ")[0].rpartition("-")
                self.report(problem, TopicPartition(name, int(number)))


class GroupsStable(Validation):
    """The live members of a group own every partition exactly once, and have read all records."""

    def unmet_reason(self) -> str | None:
        world = self.scene.world
        if not isinstance(world, GroupWorld):
            return None
        if not world.owns_all():
            owned = {member.name: [str(p) for p in member.owned] for member in world.members}
            return f"the members own {owned}"
        return None if world.has_read_all() else "the members have not read all records"


class HandlersSucceed(Validation):
    """No handler of the emulation fails with an unexpected exception."""

    def end(self) -> None:
        for name, error in self.scene.world.simulation.failures:
            self.report(f"{name}: {error!r}")
