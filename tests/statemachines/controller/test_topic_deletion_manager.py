"""Topic deletion in isolation: a real context, and state machines that only record states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from fakekafka.protocol.values import (
    BrokerInfo,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
)
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.controller.topic_deletion_manager import TopicDeletionManager
from fakekafka.statemachines.machines.context import ControllerContext
from fakekafka.statemachines.machines.transitions import PartitionState, ReplicaState
from fakekafka.tests.support.run_now import run_now

BROKERS = (1, 2, 3)


class Machines:
    """Mocks of both state machines and of the deletion client that record calls."""

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self.replica_calls: list[tuple[ReplicaState, int]] = []
        self.partition_calls: list[PartitionState] = []
        self.deleted: list[str] = []
        self.muted: list[str] = []
        self.dropped: list[str] = []
        self.announced: list[TopicPartition] = []

    async def delete_topic(self, topic: str, epoch_zk_version: int) -> None:
        self.deleted.append(topic)

    async def delete_topic_deletions(self, topics: list[str], epoch_zk_version: int) -> None:
        self.dropped += topics

    def mute_partition_modifications(self, topic: str) -> None:
        self.muted.append(topic)

    async def send_metadata_update(self, partitions: list[TopicPartition]) -> None:
        self.announced += partitions


class Replicas:
    def __init__(self, machines: Machines) -> None:
        self.machines = machines

    async def handle_state_changes(
        self, replicas: Iterable[PartitionReplica], target: ReplicaState
    ) -> None:
        context = self.machines.context
        moved = list(replicas)
        legal = context.states.replica_predecessors[target]
        assert all(context.states.replica_state(replica) in legal for replica in moved)
        if moved:
            self.machines.replica_calls.append((target, len(moved)))
        for replica in moved:
            context.states.put_replica_state(replica, target)
            if target is ReplicaState.NON_EXISTENT:
                tp = replica.topic_partition
                known = context.topics.partition_full_replica_assignment(tp)
                context.topics.update_partition_full_replica_assignment(
                    tp, known.remove_replica(replica.broker_id)
                )


class Partitions:
    def __init__(self, machines: Machines) -> None:
        self.machines = machines

    async def handle_state_changes(
        self, partitions: Iterable[TopicPartition], target: PartitionState
    ) -> None:
        self.machines.partition_calls.append(target)
        for partition in partitions:
            self.machines.context.states.put_partition_state(partition, target)


class World:
    """Topics foo and bar, two partitions with three replicas each, all Online."""

    def __init__(self, enabled: bool = True, kafka_version: str = "2.8") -> None:
        flags = behaviour(kafka_version)
        self.context = ControllerContext(flags)
        self.context.brokers.set_live_brokers([(BrokerInfo(b, ()), 1) for b in BROKERS])
        for topic in ("foo", "bar"):
            self.context.topics.all_topics.add(topic)
            for number in (0, 1):
                tp = TopicPartition(topic, number)
                self.context.topics.update_partition_full_replica_assignment(
                    tp, ReplicaAssignment(BROKERS)
                )
                self.context.states.put_partition_state(tp, PartitionState.ONLINE)
                for broker_id in BROKERS:
                    self.context.states.put_replica_state(
                        PartitionReplica(topic, number, broker_id), ReplicaState.ONLINE
                    )
        self.machines = Machines(self.context)
        self.manager = TopicDeletionManager(
            enabled=enabled,
            context=self.context,
            replicas=cast(Any, Replicas(self.machines)),
            partitions=cast(Any, Partitions(self.machines)),
            client=cast(Any, self.machines),
            behaviour=flags,
        )

    def replicas(self, topic: str, *brokers: int) -> list[PartitionReplica]:
        chosen = brokers or BROKERS
        return [PartitionReplica(topic, number, b) for number in (0, 1) for b in chosen]

    def states(self, topic: str, *brokers: int) -> set[ReplicaState]:
        return {self.context.states.replica_state(r) for r in self.replicas(topic, *brokers)}

    def fail_broker(self, broker_id: int) -> None:
        self.context.brokers.remove_live_brokers([broker_id])

    def start_broker(self, broker_id: int) -> None:
        self.context.brokers.add_live_brokers([(BrokerInfo(broker_id, ()), 2)])


def test_only_queued_topics_start_out_ineligible() -> None:
    """CP-151."""
    world = World()
    run_now(world.manager.init(["foo", "bar"], ["bar", "baz"]))
    assert list(world.context.topics.topics_to_be_deleted) == ["foo", "bar"]
    assert list(world.context.topics.topics_ineligible_for_deletion) == ["bar"]


def test_two_topics_are_deleted_with_one_call_per_state() -> None:
    """CP-152."""
    world = World()
    run_now(world.manager.enqueue_topics_for_deletion(["foo", "bar"]))
    assert world.machines.partition_calls == [PartitionState.OFFLINE, PartitionState.NON_EXISTENT]
    assert world.machines.replica_calls == [
        (ReplicaState.OFFLINE, 12),
        (ReplicaState.DELETION_STARTED, 12),
    ]
    assert len(world.machines.announced) == 4
    assert not world.context.topics.topics_ineligible_for_deletion
    assert world.manager.is_topic_deletion_in_progress("foo")
    run_now(world.manager.complete_replica_deletion(world.replicas("foo") + world.replicas("bar")))
    assert world.machines.deleted == ["foo", "bar"]
    assert world.machines.muted == ["foo", "bar"]
    assert list(world.context.topics.all_topics) == []
    assert list(world.context.topics.all_partitions()) == []
    assert not any(map(world.context.states.replica_states_on_broker, BROKERS))
    assert not world.context.topics.topics_to_be_deleted
    assert not world.context.topics.topics_with_deletion_started


def test_a_topic_with_an_offline_broker_waits_for_it() -> None:
    """CP-153."""
    world = World()
    world.fail_broker(2)
    for replica in world.replicas("foo", 2):
        world.context.states.put_replica_state(replica, ReplicaState.OFFLINE)
    run_now(world.manager.enqueue_topics_for_deletion(["foo"]))
    assert world.states("foo", 2) == {ReplicaState.DELETION_INELIGIBLE}
    assert world.states("foo", 1, 3) == {ReplicaState.DELETION_STARTED}
    assert "foo" in world.context.topics.topics_ineligible_for_deletion
    run_now(world.manager.complete_replica_deletion(world.replicas("foo", 1, 3)))
    assert "foo" in world.context.topics.topics_to_be_deleted
    assert "foo" in world.context.topics.topics_ineligible_for_deletion
    assert world.states("foo", 1, 3) == {ReplicaState.DELETION_SUCCESSFUL}
    assert world.states("foo", 2) == {ReplicaState.OFFLINE}
    world.start_broker(2)
    for replica in world.replicas("foo", 2):
        world.context.states.put_replica_state(replica, ReplicaState.ONLINE)
    run_now(world.manager.resume_deletion_for_topics(["foo"]))
    assert world.states("foo", 2) == {ReplicaState.DELETION_STARTED}
    assert world.states("foo", 1, 3) == {ReplicaState.DELETION_SUCCESSFUL}
    run_now(world.manager.complete_replica_deletion(world.replicas("foo", 2)))
    assert world.machines.deleted == ["foo"]


def test_a_broker_that_fails_after_the_start_is_retried_last() -> None:
    """CP-154."""
    world = World()
    run_now(world.manager.enqueue_topics_for_deletion(["foo"]))
    world.fail_broker(2)
    run_now(world.manager.fail_replica_deletion(world.replicas("foo", 2)))
    assert "foo" in world.context.topics.topics_ineligible_for_deletion
    assert world.states("foo", 2) == {ReplicaState.DELETION_INELIGIBLE}
    assert world.states("foo", 1, 3) == {ReplicaState.DELETION_STARTED}
    world.start_broker(2)
    run_now(world.manager.resume_deletion_for_topics(["foo"]))
    assert "foo" not in world.context.topics.topics_ineligible_for_deletion
    assert world.states("foo", 2) == {ReplicaState.DELETION_INELIGIBLE}
    run_now(world.manager.complete_replica_deletion(world.replicas("foo", 1, 3)))
    assert world.states("foo", 2) == {ReplicaState.DELETION_STARTED}


def test_disabled_deletion_does_nothing_but_drop_requests() -> None:
    """CP-164: no method has an effect; requests found at failover are removed."""
    world = World(enabled=False)
    manager = world.manager
    run_now(manager.init(["foo"], []))
    run_now(manager.try_topic_deletion())
    run_now(manager.enqueue_topics_for_deletion(["foo"]))
    run_now(manager.resume_deletion_for_topics(["foo"]))
    run_now(manager.fail_replica_deletion(world.replicas("foo")))
    manager.mark_topic_ineligible_for_deletion(["foo"], "no reason")
    assert world.machines.dropped == ["foo"]
    assert world.machines.replica_calls == []
    assert not manager.is_topic_queued_up_for_deletion("foo")
    assert world.states("foo") == {ReplicaState.ONLINE}


def test_resuming_one_topics_deletion_resumes_no_other() -> None:
    """Each topic waits independently (``TopicDeletionManager.resumeDeletionForTopics``)."""
    world = World()
    run_now(world.manager.init(["foo", "bar"], ["foo", "bar"]))
    run_now(world.manager.resume_deletion_for_topics(["foo"]))
    assert list(world.context.topics.topics_ineligible_for_deletion) == ["bar"]
    assert world.states("foo") == {ReplicaState.DELETION_STARTED}
    assert world.states("bar") == {ReplicaState.ONLINE}


def test_marking_a_topic_before_it_is_queued_has_no_effect() -> None:
    """A topic that is deleted during its reassignment is deleted at once
    (docs/kafka/topics.md#deletion)."""
    world = World()
    world.manager.mark_topic_ineligible_for_deletion(["foo"], "topic reassignment in progress")
    assert not world.context.topics.topics_ineligible_for_deletion


def test_partitions_disappear_at_the_end_before_2_1() -> None:
    """In 0.10 and 1.1 partitions become NonExistent at completion only
    (docs/kafka/topics.md#deletion)."""
    world = World(kafka_version="1.1")
    run_now(world.manager.enqueue_topics_for_deletion(["foo"]))
    assert world.machines.partition_calls == []
    run_now(world.manager.complete_replica_deletion(world.replicas("foo")))
    assert world.machines.partition_calls == [PartitionState.OFFLINE, PartitionState.NON_EXISTENT]
    assert world.machines.deleted == ["foo"]
