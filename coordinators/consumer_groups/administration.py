"""Describing groups of the consumer protocol (Kafka: ``ConsumerGroup.asDescribedGroup``)."""

from __future__ import annotations

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    AssignedTopic,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescription,
    ConsumerGroupMemberDescription,
    TopicIdPartitions,
)
from ..groups.gate import GroupGate
from ..groups.store import GroupStore
from .group import ConsumerGroup
from .member import ConsumerMember
from .member_updates import assignor_names
from .subscribed_topics import TopicCatalogue


class ConsumerGroupAdministration:
    """Answers administrators."""

    __slots__ = ("_default_assignor", "_gate", "_store", "_topics")

    def __init__(
        self, config: BrokerConfig, store: GroupStore, gate: GroupGate, topics: TopicCatalogue
    ) -> None:
        self._store = store
        self._gate = gate
        self._topics = topics
        self._default_assignor = assignor_names(config)[0]

    def describe(self, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
        """States, epochs and members; a classic group is not found here."""
        return ConsumerGroupDescribeResponse(tuple(map(self._describe, request.group_ids)))

    def _describe(self, group_id: str) -> ConsumerGroupDescription:
        error = self._gate.refusal(group_id)
        if error is not ErrorCode.NONE:
            return ConsumerGroupDescription(error, group_id)
        group = self._store.consumer_groups.get(group_id)
        if group is None:
            return ConsumerGroupDescription(ErrorCode.GROUP_ID_NOT_FOUND, group_id)
        return ConsumerGroupDescription(
            ErrorCode.NONE,
            group_id,
            group.state_name,
            group.epoch,
            group.target_epoch,
            self.assignor(group),
            tuple([self._member(group, member) for member in group.members.values()]),
        )

    def assignor(self, group: ConsumerGroup) -> str:
        """The assignor that the members of a group have chosen."""
        return group.server_assignor() or self._default_assignor

    def _member(
        self, group: ConsumerGroup, member: ConsumerMember
    ) -> ConsumerGroupMemberDescription:
        return ConsumerGroupMemberDescription(
            member.member_id,
            member.group_instance_id,
            member.rack,
            member.member_epoch,
            member.client_id,
            member.client_host,
            member.topics,
            member.topic_regex,
            self.named(member.assigned),
            self.named(group.target.get(member.member_id, {})),
        )

    def named(self, partitions: TopicIdPartitions) -> tuple[AssignedTopic, ...]:
        """Partitions of the topics that there are, by their names."""
        named = [(topic_id, self._topics.name(topic_id), n) for topic_id, n in partitions.items()]
        return tuple([AssignedTopic(i, name, n) for i, name, n in named if name is not None])
