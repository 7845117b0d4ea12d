"""Snapshots of consumer groups: members, their assignments, committed offsets and lag."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ...actors.clients.assignors import decode_assignment
from ...coordinators.consumer_groups.coordinator import ConsumerGroupCoordinator
from ...protocol.errors import ClientError
from ...protocol.groups import CONSUMER_PROTOCOL_TYPE
from ...protocol.internal_topics import OFFSETS_TOPIC
from ...protocol.values import TopicPartition
from .. import arguments
from ..views import GroupMemberView, GroupView

if TYPE_CHECKING:
    from ...actors.broker.broker import Broker
    from ...coordinators.groups.group import Group
    from ..running import RunningCluster

DEAD = "Dead"
"""Kafka's word for the state of a group that does not exist."""


class Groups:
    """Consumer groups as their coordinators have them now."""

    def __init__(self, running: RunningCluster) -> None:
        self._running = running

    def group(self, group_id: str) -> GroupView:
        """Return a snapshot of a group; an unknown group is ``Dead`` and empty."""
        arguments.text("group_id", group_id)
        self._running.require_own_process()
        for broker in self._running.living_brokers():
            read_view = functools.partial(_classic_group_view, broker, group_id)
            view = self._running.in_process(broker.process, read_view)
            if view is not None:
                return self._with_lag(view)
        return GroupView(group_id, DEAD, self._coordinator(group_id))

    def _coordinator(self, group_id: str) -> int | None:
        """Return the leader of the group's partition of the offsets topic, as brokers know it."""
        for broker in self._running.living_brokers():
            where = TopicPartition(OFFSETS_TOPIC, broker.groups.partition_for(group_id))
            state = broker.metadata_cache.partition_state(where)
            if state is not None and state.leader >= 0:
                return state.leader
        return None

    def _with_lag(self, view: GroupView) -> GroupView:
        for partition, offset in view.offsets.items():
            end = self._high_watermark(partition)
            if end is not None:
                view.lag[partition] = max(end - offset, 0)
        return view

    def _high_watermark(self, partition: TopicPartition) -> int | None:
        for broker in self._running.living_brokers():
            hosted = broker.replica_manager.hosted.partition(partition)
            if hosted is not None and hosted.is_leader and hosted.log is not None:
                return hosted.log.high_watermark
        return None


def _classic_group_view(broker: Broker, group_id: str) -> GroupView | None:
    """Return the group if this broker is its coordinator, else None."""
    coordinator = broker.groups
    group = coordinator.groups.get(group_id)
    if group is None:
        return _consumer_group_view(broker, group_id)
    offsets = group.offsets.committed
    return GroupView(
        group_id,
        coordinator.state_name(group.state),
        broker.broker_id,
        group.generation,
        group.protocol_type or "",
        group.protocol or "",
        group.leader,
        tuple(
            GroupMemberView(
                member.member_id,
                member.client_id,
                member.group_instance_id,
                _assigned(group, member.assignment),
            )
            for member in group.members.values()
        ),
        {partition: offsets[partition].value.offset for partition in sorted(offsets)},
    )


def _consumer_group_view(broker: Broker, group_id: str) -> GroupView | None:
    """Return a group of the consumer protocol (KIP-848), or None."""
    coordinator = broker.groups
    if not isinstance(coordinator, ConsumerGroupCoordinator):
        return None
    group = coordinator.consumer_groups.get(group_id)
    if group is None:
        return None
    offsets = group.offsets.committed
    return GroupView(
        group_id,
        group.state_name,
        broker.broker_id,
        group.epoch,
        group.protocol_type,
        coordinator.assignor(group),
        None,
        tuple(
            GroupMemberView(
                member.member_id,
                member.client_id,
                member.group_instance_id,
                tuple(
                    sorted(
                        TopicPartition(topic.topic, number)
                        for topic in coordinator.assigned_topics(member.assigned)
                        for number in topic.partitions
                    )
                ),
            )
            for member in group.members.values()
        ),
        {partition: offsets[partition].value.offset for partition in sorted(offsets)},
    )


def _assigned(group: Group, assignment: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions that the leader assigned; empty if the members are not consumers."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return ()
    try:
        return decode_assignment(assignment)
    except ClientError:
        return ()
