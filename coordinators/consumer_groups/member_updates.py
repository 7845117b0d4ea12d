"""Effects of a member's request, departure or silence on its group: update the member, raise the
epoch, assign, reconcile (Kafka: steps 1 to 3 of ``GroupMetadataManager.consumerGroupHeartbeat``,
and ``consumerGroupFenceMember``)."""

from __future__ import annotations

from collections.abc import Collection

from ...protocol.config import INT_MAX, BrokerConfig
from ...protocol.groups import TopicIdPartitions
from . import records as group_records
from .assignors import ASSIGNORS, MemberSpec
from .group import ConsumerGroup
from .member import ConsumerMember, MemberState
from .migration import Migration
from .reconciliation import Owned, reconciled
from .records import GroupRecord, SubscribedTopic
from .store import ConsumerGroupStore, Done
from .subscribed_topics import SubscriptionMetadata

REFRESH_INTERVAL_MS = INT_MAX
"""Interval in milliseconds of refreshing the topics, as in Kafka, besides changes of topics."""
SESSION, REBALANCE, JOIN, SYNC = "session", "rebalance", "join", "sync"
"""Kinds of timeout whose expiry removes a member."""


class MemberUpdates:
    """Computes the records for requests of members, and fences members that time out."""

    def __init__(
        self, store: ConsumerGroupStore, topics: SubscriptionMetadata, migration: Migration
    ) -> None:
        self._store = store
        self._topics = topics
        self._migration = migration
        self._default_assignor = assignor_names(store.config)[0]

    def update(
        self,
        group: ConsumerGroup,
        known: ConsumerMember,
        updated: ConsumerMember,
        owned: Owned | None,
        records: list[GroupRecord],
    ) -> ConsumerMember:
        """Add the records of an update to ``records``, and return the resulting member."""
        group_id = group.group_id
        members = dict(group.members)
        replaced = group.static_member(updated.group_instance_id)
        if replaced is not None:
            members.pop(replaced.member_id, None)
        members[updated.member_id] = updated
        raises_epoch = (updated.topics, updated.topic_regex) != (known.topics, known.topic_regex)
        if updated != known:
            records.append(group_records.member_metadata(group_id, updated))
        epoch, topics = group.epoch, group.topics
        now_ms = self._store.host.now_ms()
        if raises_epoch or group.is_refresh_due(now_ms):
            topics = self._topics.subscribed_topics(members.values())
            if topics != group.topics:
                raises_epoch = True
                records.append(group_records.subscribed_topics(group_id, topics))
            if raises_epoch:
                epoch += 1
                records.append(group_records.group_epoch(group_id, epoch))
                self._store.write_line("info", f"group {group_id} has epoch {epoch}")
            group.refresh_ms, group.refresh_epoch = now_ms + REFRESH_INTERVAL_MS, epoch
        if epoch > group.target_epoch:
            target_epoch = epoch
            target = self._assign(group, epoch, members, updated, topics, records)
        else:
            target_epoch = group.target_epoch
            target = group.target_assignment(updated.member_id, updated.group_instance_id)
        return self._reconcile(group, updated, target_epoch, target, owned, records)

    def _assign(
        self,
        group: ConsumerGroup,
        epoch: int,
        members: dict[str, ConsumerMember],
        updated: ConsumerMember,
        topics: tuple[SubscribedTopic, ...],
        records: list[GroupRecord],
    ) -> TopicIdPartitions:
        """Compute a new target assignment, and return the updated member's part of it."""
        ids = {topic.topic: topic.topic_id for topic in topics}
        specs = {}
        for member_id, member in members.items():
            names = self._topics.names(member)
            known = tuple([ids[topic] for topic in names if topic in ids])
            target = group.target_assignment(member_id, member.group_instance_id)
            specs[member_id] = MemberSpec(names, known, target, member.group_instance_id)
        name = group.server_assignor({updated.member_id: updated}) or self._default_assignor
        counts = {topic.topic_id: topic.partition_count for topic in topics}
        found = ASSIGNORS[name](specs, counts)
        for member_id in members:
            target = found.get(member_id, {})
            if target != group.target.get(member_id):
                records.append(group_records.target(group.group_id, member_id, target))
        records.append(group_records.target_epoch(group.group_id, epoch))
        return found.get(updated.member_id, {})

    def _reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        target_epoch: int,
        target: TopicIdPartitions,
        owned: Owned | None,
        records: list[GroupRecord],
    ) -> ConsumerMember:
        """Return the member after its next step towards its target."""
        if member.is_reconciled_to(target_epoch):
            return member
        stepped = reconciled(member, target_epoch, target, group.is_free, owned)
        if stepped == member:
            return member
        records.append(group_records.current(group.group_id, stepped))
        self._store.write_line(
            "info",
            f"member {stepped.member_id} of group {group.group_id} has epoch "
            f"{stepped.member_epoch} and is {stepped.state.name}",
        )
        if stepped.classic is None:
            if stepped.state is MemberState.UNREVOKED_PARTITIONS:
                self.start_revocation_timeout(group, stepped)
            else:
                self._store.cancel_timer(group, REBALANCE, stepped.member_id)
        return stepped

    # -- departures ----------------------------------------------------------------------------

    def fence(self, group: ConsumerGroup, member: ConsumerMember, done: Done) -> None:
        """Remove a member from the group.

        If only members of the classic protocol are left, the group may become a classic one.
        """
        if self._migration.may_downgrade(group, member):
            self._migration.downgrade(group, member, done)
        else:
            self._store.write(group, self.removal_records(group, (member,)), done)

    def removal_records(
        self, group: ConsumerGroup, leaving: Collection[ConsumerMember]
    ) -> list[GroupRecord]:
        """Return the records that remove members and raise the epoch."""
        group_id = group.group_id
        leaving_ids = {member.member_id for member in leaving}
        records: list[GroupRecord] = []
        for member in leaving:
            records += group_records.member_tombstones(group_id, member.member_id)
        topics = self._topics.subscribed_topics(
            m for m in group.members.values() if m.member_id not in leaving_ids
        )
        if topics != group.topics:
            records.append(group_records.subscribed_topics(group_id, topics))
        records.append(group_records.group_epoch(group_id, group.epoch + 1))
        return records

    # -- timeouts ------------------------------------------------------------------------------

    def start_revocation_timeout(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Fence the member if it does not revoke partitions within its rebalance timeout."""
        epoch = member.member_epoch

        def expired(done: Done) -> None:
            late = group.members[member.member_id]
            if late.member_epoch == epoch:
                self.fence(group, late, done)

        timeout_ms = member.rebalance_timeout_ms
        self._store.start_timer(group, REBALANCE, member.member_id, timeout_ms, expired)

    def start_timeout(
        self, group: ConsumerGroup, name: str, member_id: str, timeout_ms: int | None = None
    ) -> None:
        """Start a timeout that fences the member; the default is the broker's session timeout."""
        if timeout_ms is None:
            timeout_ms = self._store.config["group.consumer.session.timeout.ms"]

        def expired(done: Done) -> None:
            self._store.write_line(
                "info", f"member {member_id} of group {group.group_id}: {name} ended"
            )
            self.fence(group, group.members[member_id], done)

        self._store.start_timer(group, name, member_id, timeout_ms, expired)

    def start_timeout_if_absent(
        self, group: ConsumerGroup, name: str, member_id: str, timeout_ms: int
    ) -> None:
        """Start a timeout like ``start_timeout``, unless it is running already."""
        if (name, member_id) not in group.timers:
            self.start_timeout(group, name, member_id, timeout_ms)


def assignor_names(config: BrokerConfig) -> tuple[str, ...]:
    """Return the names of the configured assignors, the default first."""
    found = []
    for entry in config["group.consumer.assignors"]:
        name = entry.rpartition(".")[2].removesuffix("Assignor").lower()
        if name in ASSIGNORS:
            found.append(name)
    return tuple(found) or tuple(ASSIGNORS)
