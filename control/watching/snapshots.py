"""Changes of a cluster, found by comparing snapshots of its state (count)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...protocol.values import TopicPartition

if TYPE_CHECKING:
    from ...actors.broker.broker import Broker
    from ...protocol.values import LeaderAndIsr
    from ...testing.cluster import Cluster

INTERVAL_S = 0.05
"""Time in seconds between two snapshots."""
GROUPS_EVERY = 4
"""Number of snapshots of which one includes the groups."""
_TOPIC_DELETED_S = 0.5
"""Time in seconds after which missing topics count as deleted if the controller knows no topic at
all: a new controller starts without topics before it loads them."""
_GROUP_DELETED_S = 2.0
"""Time in seconds after which a missing group counts as deleted: another coordinator may be loading
the group."""
_SHUTTING_DOWN = ("pending_controlled_shutdown", "shutting_down")

Event = dict[str, Any]


class GroupSnapshot(NamedTuple):
    """The state of a group in its coordinator."""

    state: str
    generation: int
    members: int
    coordinator: int


def _groups_of(broker: Broker) -> list[tuple[str, GroupSnapshot]]:
    if not broker.coordinators.has_groups:
        return []
    from ...coordinators.consumer_groups.coordinator import ConsumerGroupCoordinator

    coordinator, broker_id = broker.groups, broker.broker_id
    found = [
        (group_id, GroupSnapshot(group.state_name, group.generation, len(group.members), broker_id))
        for group_id, group in coordinator.groups.items()
    ]
    if isinstance(coordinator, ConsumerGroupCoordinator):
        found += [
            (group_id, GroupSnapshot(group.state_name, group.epoch, len(group.members), broker_id))
            for group_id, group in coordinator.consumer_groups.items()
        ]
    return found


class ClusterSnapshot:
    """A snapshot of the cluster's state, to be compared with the next one."""

    def __init__(self, cluster: Cluster, *, with_groups: bool = False) -> None:
        running = cluster.running
        controller = running.active_controller()
        self.controller: int | None = None if controller is None else controller.broker_id
        self.epoch = -1 if controller is None else controller.epoch
        self.partitions: Mapping[TopicPartition, Any] | None = None
        self.topics: frozenset[str] = frozenset()
        if controller is not None:
            topics = controller.context.topics
            process = running.processes[controller.broker_id].process
            self.partitions, self.topics = running.in_process(
                process,
                lambda: (dict(topics.partitions_leadership_info), frozenset(topics.all_topics)),
            )
        self._cluster = cluster
        self.brokers: dict[int, str] = {
            broker_id: "paused" if process.process.paused else process.state
            for broker_id, process in running.processes.items()
        }
        self.zookeepers: dict[int, str] = {
            server_id: "running" if process.is_alive else "not_running"
            for server_id, process in running.zookeepers.items()
        }
        self.groups: dict[str, GroupSnapshot] | None = None
        """Groups by id; None if this snapshot does not include them."""
        if with_groups:
            self.groups = {}
            for broker in running.living_brokers():
                read = functools.partial(_groups_of, broker)
                self.groups.update(running.in_process(broker.process, read))

    def replicas(self, key: TopicPartition) -> tuple[int, ...]:
        """Return the replicas of a partition from the active controller; empty if there is none."""
        running = self._cluster.running
        controller = running.active_controller()
        if controller is None:
            return ()
        topics = controller.context.topics
        process = running.processes[controller.broker_id].process
        return running.in_process(
            process, lambda: topics.partition_full_replica_assignment(key).replicas
        )


class Comparison:
    """Finds changes between snapshots; partitions are remembered while no controller knows them."""

    def __init__(self, first: ClusterSnapshot) -> None:
        self._last = first
        self._partitions = dict(first.partitions or {})
        self._missing_polls: dict[str, int] = {}
        self._groups = dict(first.groups or {})
        self._groups_missing_polls: dict[str, int] = {}

    def changes(self, snapshot: ClusterSnapshot) -> Iterator[Event]:
        """Yield an event for each difference from the previous snapshot."""
        last, self._last = self._last, snapshot
        for kind, name, before, now in (
            ("broker", "broker", last.brokers, snapshot.brokers),
            ("zookeeper", "server", last.zookeepers, snapshot.zookeepers),
        ):
            for number, state in now.items():
                if before.get(number) != state:
                    yield {"type": kind, name: number, "state": state, "was": before.get(number)}
        if (snapshot.controller, snapshot.epoch) != (last.controller, last.epoch):
            yield {
                "type": "controller",
                "broker": snapshot.controller,
                "epoch": snapshot.epoch,
                "was": last.controller,
            }
        if snapshot.partitions is not None:
            yield from self._partition_changes(snapshot.partitions)
            yield from self._deletions(snapshot)
        if snapshot.groups is not None:
            yield from self._group_changes(snapshot, snapshot.groups)

    def _partition_changes(self, now: Mapping[TopicPartition, Any]) -> Iterator[Event]:
        created: dict[str, int] = {}
        for key, decided in now.items():
            known = self._partitions.get(key)
            if known is decided:
                continue
            self._partitions[key] = decided
            if known is None:
                created[key.topic] = created.get(key.topic, 0) + 1
            else:
                before, after = known.leader_and_isr, decided.leader_and_isr
                yield from _leadership_changes(key, before, after, self._last)
        for topic, count in created.items():
            yield {"type": "topic", "topic": topic, "change": "created", "partitions": count}

    def _deletions(self, snapshot: ClusterSnapshot) -> Iterator[Event]:
        """Yield an event for each deleted topic; see ``_TOPIC_DELETED_S`` for new controllers."""
        if len(self._partitions) == len(snapshot.partitions or ()) and not self._missing_polls:
            return
        gone = {key.topic for key in self._partitions} - snapshot.topics
        self._missing_polls = {
            topic: self._missing_polls.get(topic, 0) + 1 for topic in sorted(gone)
        }
        for topic, count in list(self._missing_polls.items()):
            if count * INTERVAL_S >= _TOPIC_DELETED_S or snapshot.topics:
                for key in [key for key in self._partitions if key.topic == topic]:
                    del self._partitions[key]
                yield {"type": "topic", "topic": topic, "change": "deleted"}

    def _group_changes(
        self, snapshot: ClusterSnapshot, now: Mapping[str, GroupSnapshot]
    ) -> Iterator[Event]:
        for group_id, group in now.items():
            known = self._groups.get(group_id)
            self._groups[group_id] = group
            if known is not None and known[:3] == group[:3]:
                continue
            was = None if known is None else known.state
            yield {"type": "group", "group": group_id, **group._asdict(), "was": was}
        gone = self._groups.keys() - now.keys() if len(self._groups) > len(now) else ()
        missing = self._groups_missing_polls
        are_all_there = all(state == "running" for state in snapshot.brokers.values())
        self._groups_missing_polls = {
            group_id: missing.get(group_id, 0) + are_all_there for group_id in sorted(gone)
        }
        for group_id, count in list(self._groups_missing_polls.items()):
            if count * GROUPS_EVERY * INTERVAL_S >= _GROUP_DELETED_S:
                del self._groups_missing_polls[group_id]
                last = self._groups.pop(group_id)
                dead = last._replace(state="Dead", members=0)._asdict()
                yield {"type": "group", "group": group_id, **dead, "was": last.state}


def _leadership_changes(
    key: TopicPartition, before: LeaderAndIsr, now: LeaderAndIsr, snapshot: ClusterSnapshot
) -> Iterator[Event]:
    event = {
        "topic": key.topic,
        "partition": key.partition,
        "leader": now.leader if now.leader >= 0 else None,
        "leader_epoch": now.leader_epoch,
        "partition_epoch": now.zk_version,
        "isr": list(now.isr),
    }
    has_new_isr = sorted(before.isr) != sorted(now.isr)
    # When the controller changes the ISR, it raises the epoch even if the leader stays.
    is_elected_again = before.leader_epoch != now.leader_epoch and not has_new_isr
    if before.leader != now.leader or is_elected_again:
        was = before.leader if before.leader >= 0 else None
        reason = _reason(key, before, now, snapshot)
        yield {
            "type": "election",
            **event,
            "was": was,
            "was_epoch": before.leader_epoch,
            "reason": reason,
        }
    if has_new_isr:
        yield {"type": "isr", **event, "was": list(before.isr)}


def _reason(
    key: TopicPartition, before: LeaderAndIsr, now: LeaderAndIsr, snapshot: ClusterSnapshot
) -> str | None:
    """Return the reason for an election, as far as it can be inferred from outside."""
    if now.leader < 0:
        return "no in-sync replica is alive"
    if now.leader != before.leader and now.leader not in before.isr:
        return "unclean: no in-sync replica was alive"
    if before.leader < 0:
        return "an in-sync replica is alive again"
    if now.leader == before.leader:
        return None
    state = snapshot.brokers.get(before.leader, "not_running")
    if state == "not_running":
        return f"broker {before.leader} is down"
    if state in _SHUTTING_DOWN:
        return f"broker {before.leader} shuts down"
    if state == "paused":
        return f"broker {before.leader} is paused"
    replicas = snapshot.replicas(key)
    if replicas and before.leader not in replicas:
        return f"broker {before.leader} is no longer a replica"
    if before.leader not in now.isr:
        return f"broker {before.leader} was not heard"
    return "preferred leader" if replicas[:1] == (now.leader,) else None
