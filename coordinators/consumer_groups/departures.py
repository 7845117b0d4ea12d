"""Departures of members of the consumer protocol, of their own will or because a time is up
(Kafka: ``GroupMetadataManager.consumerGroupFenceMember``)."""

from __future__ import annotations

from collections.abc import Collection

from . import records as group_records
from .group import ConsumerGroup
from .log import ConsumerGroupLog, Done
from .member import ConsumerMember
from .migration import Migration
from .records import GroupRecord
from .subscribed_topics import TopicCatalogue


class Departures:
    """Takes members out; the others are assigned anew when the next of them is heard of."""

    __slots__ = ("_log", "_migration", "_topics")

    def __init__(self, topics: TopicCatalogue, log: ConsumerGroupLog, migration: Migration) -> None:
        self._topics = topics
        self._log = log
        self._migration = migration

    def fence(self, group: ConsumerGroup, member: ConsumerMember, done: Done) -> None:
        """A member is none any more.

        If only members of the classic protocol are left, the group may become a classic one.
        """
        if self._migration.may_downgrade(group, member):
            self._migration.downgrade(group, member, done)
        else:
            self._log.write(group, self.records(group, (member,)), done)

    def records(
        self, group: ConsumerGroup, leaving: Collection[ConsumerMember]
    ) -> list[GroupRecord]:
        """Records that take members out and raise the epoch."""
        group_id = group.group_id
        gone = {member.member_id for member in leaving}
        records: list[GroupRecord] = []
        for member in leaving:
            records += group_records.member_tombstones(group_id, member.member_id)
        topics = self._topics.of(m for m in group.members.values() if m.member_id not in gone)
        if topics != group.topics:
            records.append(group_records.subscribed_topics(group_id, topics))
        records.append(group_records.group_epoch(group_id, group.epoch + 1))
        return records
