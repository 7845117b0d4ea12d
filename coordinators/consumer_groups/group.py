"""The state of a consumer-protocol group in its coordinator (Kafka: ``ConsumerGroup``).

The state results from applying the group's records in order. This module answers no requests and
sets no timers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...protocol.errors import ErrorCode
from ...protocol.groups import CONSUMER_PROTOCOL_TYPE, TopicIdPartitions
from ...protocol.host import StateListener, Timer
from ...protocol.values import TopicPartition
from ..groups.offsets import GroupOffsets
from ..groups.records import OffsetValue
from .member import ConsumerMember, MemberState
from .records import GroupRecord, RecordKind, SubscribedTopic, encode, group_tombstones

FIRST_COMMIT_VERSION = 9
"""First version of OffsetCommit whose clients know STALE_MEMBER_EPOCH."""
_LEFT_EPOCH = -1
_NOT_ASSIGNED = -1


class ConsumerGroup:
    """Members, their target and current assignments, and the epochs of both."""

    __slots__ = (
        "_listener",
        "_partition_epochs",
        "epoch",
        "group_id",
        "is_dead",
        "members",
        "offsets",
        "pending_writes",
        "refresh_epoch",
        "refresh_ms",
        "static_members",
        "target",
        "target_epoch",
        "timers",
        "topics",
    )

    protocol_type = CONSUMER_PROTOCOL_TYPE
    is_consumer_group = True
    """True, as the members are consumers, whose subscriptions are known."""

    def __init__(
        self,
        group_id: str,
        listener: StateListener | None = None,
        offsets: GroupOffsets | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.is_dead: bool = False
        self.epoch: int = 0
        """Epoch of the group, raised by every change of members, subscriptions or topics."""
        self.target_epoch: int = 0
        """Group epoch for which the target assignment was computed."""
        self.members: dict[str, ConsumerMember] = {}
        """Members by member id, in the order in which they joined."""
        self.static_members: dict[str, str] = {}
        """Member ids of static members, by instance id."""
        self.target: dict[str, TopicIdPartitions] = {}
        """Target assignments by member id."""
        self.topics: tuple[SubscribedTopic, ...] = ()
        """Subscribed topics as of the target assignment, sorted by name."""
        self.offsets: GroupOffsets = GroupOffsets() if offsets is None else offsets
        self.timers: dict[tuple[str, str], Timer] = {}
        """Running timers by (kind of timeout, member id)."""
        self.refresh_ms: int = 0
        """Time of the next refresh of the topics."""
        self.refresh_epoch: int = 0
        """Group epoch after the last refresh; if it was never stored, the refresh is repeated."""
        self.pending_writes: list[object] = []
        """Writes that are not replicated yet."""
        self._partition_epochs: dict[tuple[str, int], int] = {}
        """Epoch of the member that owns or must still revoke each (topic id, partition)."""
        self._listener = listener

    # -- properties ----------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""
        if self.is_dead:
            return "Dead"
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(m.is_reconciled_to(self.target_epoch) for m in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def is_free(self, topic_id: str, partition: int) -> bool:
        """Return whether no member owns the partition or must still revoke it."""
        return (topic_id, partition) not in self._partition_epochs

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the member with an instance id, if any."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_assignment(self, member_id: str, instance_id: str | None) -> TopicIdPartitions:
        """Return the target assignment of a member; a static member inherits its instance's."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, "")
        return self.target.get(member_id, {})

    def is_waiting_for_partitions(self, member: ConsumerMember) -> bool:
        """Return whether other members still hold partitions of a member's target assignment."""
        return member.state is MemberState.UNRELEASED_PARTITIONS and any(
            number not in member.assigned.get(topic_id, ()) and not self.is_free(topic_id, number)
            for topic_id, numbers in self.target.get(member.member_id, {}).items()
            for number in numbers
        )

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic."""
        return any(member.is_subscribed_to(topic) for member in self.members.values())

    def server_assignor(self, instead: Mapping[str, ConsumerMember] | None = None) -> str | None:
        """Return the assignor that most members ask for, ``uniform`` in a tie, or None.

        ``instead`` replaces members by member id.
        """
        votes: dict[str, int] = {"uniform": 0, "range": 0}
        for member in {**self.members, **(instead or {})}.values():
            if member.server_assignor is not None:
                votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
        name = max(votes, key=votes.__getitem__)
        return name if votes[name] else None

    # -- members of the classic protocol -------------------------------------------------------

    @property
    def classic_member_count(self) -> int:
        """Number of members that speak the classic protocol."""
        return sum(member.classic is not None for member in self.members.values())

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether all classic members support one of these protocols."""
        if protocol_type != CONSUMER_PROTOCOL_TYPE:
            return False
        classics = [m.classic for m in self.members.values() if m.classic is not None]
        return any(
            all(any(name == known for known, _ in classic.protocols) for classic in classics)
            for name in names
        )

    # -- records -------------------------------------------------------------------------------

    def start_reporting(self, listener: StateListener | None) -> None:
        """Report the state of a group that was loaded or migrated, and its changes from now on."""
        self._listener = listener
        self._report_changes((None, None, None), self._reported_state())

    def stop_reporting(self) -> None:
        """Report that the group is gone, as it moves to another coordinator or protocol."""
        self._report_changes(self._reported_state(), (None, None, None))
        self._listener = None

    def _report_changes(self, before: tuple[object, ...], after: tuple[object, ...]) -> None:
        """Report which of members, epoch and state differ."""
        if self._listener is not None:
            for name, old, new in zip(("members", "epoch", "state"), before, after, strict=True):
                if old != new:
                    self._listener(f"groups/{self.group_id}/{name}", old, new)

    def apply(self, records: Iterable[GroupRecord]) -> None:
        """Apply records that were written to the log or loaded from it."""
        before = None if self._listener is None else self._reported_state()
        for record in records:
            self._apply(record)
        if before is not None:
            self._report_changes(before, self._reported_state())

    def _reported_state(self) -> tuple[object, ...]:
        return tuple(self.members), self.epoch, self.state_name

    def end(self) -> None:
        """Mark the group as dead and cancel its timers."""
        old = self.state_name
        self.is_dead = True
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()
        if self._listener is not None:
            self._listener(f"groups/{self.group_id}/state", old, self.state_name)

    def _apply(self, record: GroupRecord) -> None:
        kind, member_id, value = record.kind, record.member_id, record.value
        if kind is RecordKind.GROUP_EPOCH:
            self.epoch = 0 if value is None else value
        elif kind is RecordKind.TOPICS:
            self.topics = () if value is None else value
        elif kind is RecordKind.TARGET_EPOCH:
            self.target_epoch = _NOT_ASSIGNED if value is None else value
        elif kind is RecordKind.TARGET:
            if value is None:
                self.target.pop(member_id, None)
            else:
                self.target[member_id] = value
        elif kind is RecordKind.MEMBER:
            self._apply_metadata(member_id, value)
        elif value is None:
            left = self.members.get(member_id)
            if left is not None:
                former = left._replace(member_epoch=_LEFT_EPOCH, previous_epoch=_LEFT_EPOCH)
                self._put(former._replace(assigned={}, pending_revocation={}))
        else:
            known = self.members.get(member_id) or ConsumerMember(member_id)
            self._put(known._replace(**value._asdict()))

    def _apply_metadata(self, member_id: str, value: ConsumerMember | None) -> None:
        if value is None:
            member = self.members.pop(member_id, None)
            if member is not None:
                self._release(member)
                if self.static_members.get(member.group_instance_id or "") == member_id:
                    del self.static_members[member.group_instance_id or ""]
            return
        known = self.members.get(member_id) or ConsumerMember(member_id)
        self._put(
            value._replace(
                member_epoch=known.member_epoch,
                previous_epoch=known.previous_epoch,
                state=known.state,
                assigned=known.assigned,
                pending_revocation=known.pending_revocation,
            )
        )

    def _put(self, member: ConsumerMember) -> None:
        known = self.members.get(member.member_id)
        if known is not None:
            self._release(known)
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, numbers in partitions.items():
                for number in numbers:
                    self._partition_epochs[topic_id, number] = member.member_epoch

    def _release(self, member: ConsumerMember) -> None:
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, numbers in partitions.items():
                for number in numbers:
                    self._partition_epochs.pop((topic_id, number), None)

    def tombstones(self) -> list[bytes]:
        """Return the keys of all records of the group, for which to write tombstones."""
        return [encode(r)[0] for r in group_tombstones(self.group_id, tuple(self.members))]

    # -- offsets -------------------------------------------------------------------------------

    def offset_commit_error(self, member_id: str, epoch: int, api_version: int | None) -> ErrorCode:
        """Return why a commit is refused, or NONE (``ConsumerGroup.validateOffsetCommit``).

        ``api_version`` is None for a transactional commit.
        """
        if epoch < 0 and not self.members:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        knows_epochs = api_version is None or api_version >= FIRST_COMMIT_VERSION
        if member.classic is None and not knows_epochs:
            return ErrorCode.UNSUPPORTED_VERSION
        error = member.epoch_error(epoch)
        if api_version is None and error is ErrorCode.STALE_MEMBER_EPOCH:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def offset_fetch_error(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Return why an offset fetch is refused, or NONE (``ConsumerGroup.validateOffsetFetch``).

        A request without member id and epoch is not refused.
        """
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        return ErrorCode.UNKNOWN_MEMBER_ID if member is None else member.epoch_error(epoch)

    # -- the topics ----------------------------------------------------------------------------

    def is_refresh_due(self, now_ms: int) -> bool:
        """Return whether the topics must be refreshed."""
        return now_ms >= self.refresh_ms or self.epoch < self.refresh_epoch

    def request_refresh(self) -> None:
        """Make a refresh due, as a subscribed topic has changed."""
        self.refresh_ms = self.refresh_epoch = 0

    # -- expiry --------------------------------------------------------------------------------

    def remove_expired_offsets(self, wall_ms: int, retention_ms: int) -> list[TopicPartition]:
        """Remove expired offsets of topics without subscribers; return their partitions.

        The retention time counts from the commit of an offset.
        """

        def is_expired(partition: TopicPartition, value: OffsetValue) -> bool:
            if self.is_subscribed_to(partition.topic):
                return False
            if value.expire_timestamp_ms >= 0:
                return wall_ms >= value.expire_timestamp_ms
            return wall_ms - value.commit_timestamp_ms >= retention_ms

        return self.offsets.remove_expired(is_expired)
