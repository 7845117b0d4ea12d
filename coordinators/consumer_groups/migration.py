"""Migration of groups between the protocols (``group.consumer.migration.policy``; Kafka:
``GroupMetadataManager.convertToConsumerGroup``, ``convertToClassicGroup``).

A group without members always changes to the protocol of the first member that joins.
"""

from __future__ import annotations

from ...protocol.errors import ClientError, ErrorCode, KafkaError
from ...protocol.groups import CONSUMER_PROTOCOL_TYPE, TopicIdPartitions
from ..groups.group import Group, GroupState
from ..groups.member import Member
from ..groups.records import GroupKey, encode_group_key, encode_group_value
from . import records as group_records
from .embedded_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    protocol_version,
)
from .group import ConsumerGroup
from .member import ClassicMembership, ConsumerMember
from .records import GroupRecord
from .store import ConsumerGroupStore, Done, Pairs
from .subscribed_topics import SubscriptionMetadata

_NONE = ErrorCode.NONE
_GROUP_VALUE_VERSION = 3


class Migration:
    """Migrates groups from one protocol to the other."""

    def __init__(self, store: ConsumerGroupStore, topics: SubscriptionMetadata) -> None:
        self._store = store
        self._config = store.config
        self._topics = topics
        self._policy: str = store.config["group.consumer.migration.policy"].lower()

    # -- upgrade -------------------------------------------------------------------------------

    def upgrade(self, classic: Group) -> tuple[ConsumerGroup, Pairs] | None:
        """Convert a classic group; return the new group and the records of the conversion.

        Return None if the policy does not allow it. Raises ``KafkaError`` if the metadata of a
        member is malformed.
        """
        end = [(encode_group_key(GroupKey(classic.group_id)), None)]
        group = ConsumerGroup(classic.group_id, offsets=classic.offsets)
        if classic.state in (GroupState.EMPTY, GroupState.DEAD):
            return group, end
        if not self._may_upgrade(classic):
            return None
        try:
            records = self._conversion_records(classic)
        except ClientError:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot upgrade the classic group {classic.group_id} to consumer group because "
                "the embedded consumer protocol is malformed.",
            ) from None
        group.apply(records)
        classic.request_rejoin()
        self._store.carry_out(classic)
        return group, [*end, *map(group_records.encode, records)]

    def _may_upgrade(self, classic: Group) -> bool:
        return (
            self._policy in ("upgrade", "bidirectional")
            and classic.is_consumer_group
            and len(classic.members) <= self._config["group.consumer.max.size"]
        )

    def _conversion_records(self, classic: Group) -> list[GroupRecord]:
        group_id, epoch = classic.group_id, classic.generation
        members = [self._to_consumer_member(member, classic) for member in classic.members.values()]
        records = [group_records.member_metadata(group_id, member) for member in members]
        records.append(group_records.group_epoch(group_id, epoch))
        records += [group_records.target(group_id, m.member_id, m.assigned) for m in members]
        records.append(group_records.target_epoch(group_id, epoch))
        records += [group_records.current(group_id, member) for member in members]
        return records

    def _to_consumer_member(self, member: Member, classic: Group) -> ConsumerMember:
        protocol = classic.protocol or member.protocols[0][0]
        subscription = decode_subscription(member.metadata(protocol))
        assigned: TopicIdPartitions = {}
        for topic, numbers in decode_assignment(member.assignment):
            topic_id = self._topics.id(topic)
            if topic_id and numbers:
                assigned[topic_id] = tuple(sorted(numbers))
        return ConsumerMember(
            member.member_id,
            classic.generation,
            classic.generation,
            group_instance_id=member.group_instance_id,
            rack=subscription.rack,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            topics=tuple(sorted(set(subscription.topics))),
            assigned=assigned,
            classic=ClassicMembership(member.session_timeout_ms, member.protocols),
        )

    # -- downgrade -----------------------------------------------------------------------------

    def may_downgrade(self, group: ConsumerGroup, leaving: ConsumerMember) -> bool:
        """Return whether the last member of the consumer protocol leaves and the policy allows the
        others to become a classic group."""
        left = len(group.members) - 1
        return (
            leaving.classic is None
            and group.classic_member_count == left
            and 0 < left <= self._config["group.max.size"]
            and self._policy in ("downgrade", "bidirectional")
        )

    def downgrade(self, group: ConsumerGroup, leaving: ConsumerMember, done: Done) -> None:
        """Convert the group to a classic one, which rebalances at once."""
        try:
            classic = self._to_classic_group(group, leaving)
        except ClientError as error:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot downgrade the classic group {group.group_id}: {error}.",
            ) from None
        assignments = {m.member_id: m.assignment for m in classic.members.values()}
        value = encode_group_value(classic.to_value(assignments), _GROUP_VALUE_VERSION)
        tombstones = group_records.group_tombstones(group.group_id, tuple(group.members))
        pairs = [*map(group_records.encode, tombstones)]
        pairs.append((encode_group_key(GroupKey(group.group_id)), value))

        def appended() -> None:
            self._store.put_classic_group(classic)
            classic.downgraded()
            self._store.carry_out(classic)

        self._store.append(group, pairs, appended, done)

    def _to_classic_group(self, group: ConsumerGroup, leaving: ConsumerMember) -> Group:
        classic = Group(group.group_id, self._store.environment, GroupState.STABLE)
        classic.generation = group.epoch
        classic.offsets = group.offsets
        for member in group.members.values():
            if member.member_id != leaving.member_id and member.classic is not None:
                classic.add_member(_classic_member(member, member.classic), CONSUMER_PROTOCOL_TYPE)
        classic.complete_migration()
        for remaining in classic.members.values():
            version = protocol_version(remaining.metadata(classic.protocol or ""))
            target = group.target.get(remaining.member_id, {})
            remaining.assignment = encode_assignment(self._topics.with_names(target), version)
        return classic

    # -- without members -----------------------------------------------------------------------

    def replace_empty(self, group: ConsumerGroup) -> None:
        """Replace an empty group by a classic one, because a classic member joins.

        The records are not awaited: if they are lost, the group will be found empty and replaced
        again.
        """
        tombstones = group_records.group_tombstones(group.group_id, ())
        classic = Group(group.group_id, self._store.environment)
        classic.offsets = group.offsets
        pairs = [*map(group_records.encode, tombstones)]
        self._store.append(
            group, pairs, lambda: self._store.put_classic_group(classic), lambda _error: None
        )


def _classic_member(member: ConsumerMember, classic: ClassicMembership) -> Member:
    return Member(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        classic.session_timeout_ms,
        classic.protocols,
    )
