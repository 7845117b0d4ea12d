"""One consumer group as its coordinator holds it (Kafka: ``GroupMetadata``).

Members, the protocol they agree on, the state, the generation. What leads from one state to the
next is in ``rebalances.py`` and ``membership.py``; nothing here answers a request or sets a timer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...protocol.errors import ClientError, invariant
from ...protocol.groups import (
    CONSUMER_PROTOCOL_TYPE,
    DescribedMember,
    JoinGroupMember,
    JoinGroupResponse,
)
from ...protocol.host import StateListener, Timer
from ...protocol.values import TopicPartition
from .member import JoinAnswer, Member, Protocols
from .offsets import GroupOffsets
from .records import (
    GroupKey,
    GroupValue,
    MemberValue,
    OffsetValue,
    encode_group_key,
    subscribed_topics,
)
from .state import PREVIOUS_STATES, GroupState


class WaitingJoin:
    """The end of a rebalance that is awaited: for all members, or for a time."""

    __slots__ = ("begun_by", "delay_ms", "is_initial", "remaining_ms", "timer")

    def __init__(self, is_initial: bool, delay_ms: int, remaining_ms: int) -> None:
        self.is_initial = is_initial
        """The first members of a group: others may come, so only time ends it (KIP-134)."""
        self.delay_ms = delay_ms
        self.remaining_ms = remaining_ms
        """How much longer an initial one may be put off."""
        self.timer: Timer | None = None
        self.begun_by: int | None = None
        """While a run is recorded: seq of the event at which it began."""

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class Group:
    """Members and state of one group."""

    __slots__ = (
        "_listener",
        "_supported",
        "awaiting_join_count",
        "generation",
        "group_id",
        "leader",
        "members",
        "new_member_added",
        "offsets",
        "pending_members",
        "pending_sync",
        "protocol",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
        "sync_timer",
        "waiting_join",
    )

    def __init__(
        self,
        group_id: str,
        wall_ms: int,
        state: GroupState = GroupState.EMPTY,
        listener: StateListener | None = None,
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.state_timestamp_ms = wall_ms
        """When the state was entered; -1 if an old record did not say."""
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        """By member id, in the order they came."""
        self.static_members: dict[str, str] = {}
        """Instance id -> member id."""
        self.pending_members: dict[str, Timer] = {}
        """Ids given out that have not joined yet (KIP-394), with what ends their time."""
        self.pending_sync: dict[str, None] = {}
        """Members that have not asked for the assignment of this generation yet."""
        self.awaiting_join_count = 0
        self.new_member_added = False
        """A member came during the delay of the first rebalance."""
        self.subscribed_topics: frozenset[str] | None = None
        """What members of a consumer group read; None where that is not known."""
        self.waiting_join: WaitingJoin | None = None
        self.sync_timer: Timer | None = None
        self.offsets = GroupOffsets()
        self._supported: dict[str, int] = {}
        """Protocol -> how many members support it."""
        self._listener = listener

    # -- who listens ---------------------------------------------------------------------------

    def appear(self, listener: StateListener | None) -> None:
        """Tell what the group is, which comes from elsewhere, and each change from now on."""
        self._listener = listener
        self._tell_all(self.state.value, self.generation, tuple(self.members))

    def vanish(self) -> None:
        """Take back what was told: the group goes on elsewhere, or as one of another protocol."""
        self._tell_all(None, None, None)
        self._listener = None

    def _tell_all(self, state: str | None, generation: int | None, members: object) -> None:
        if self._listener is not None:
            for name, value in (("members", members), ("generation", generation), ("state", state)):
                self._listener(f"groups/{self.group_id}/{name}", None, value)

    # -- state ---------------------------------------------------------------------------------

    def transition_to(self, state: GroupState, wall_ms: int) -> None:
        """Enter a state; there must be a way to it from the present one."""
        old = self.state
        invariant(
            old in PREVIOUS_STATES[state],
            f"group {self.group_id} must not go from {old.value} to {state.value}",
        )
        self.state = state
        self.state_timestamp_ms = wall_ms
        if self._listener is not None:
            self._listener(f"groups/{self.group_id}/state", old.value, state.value)

    @property
    def is_dead(self) -> bool:
        return self.state is GroupState.DEAD

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, and may be deleted."""
        return self.state is GroupState.EMPTY

    @property
    def state_name(self) -> str:
        return self.state.value

    def end(self, wall_ms: int) -> None:
        """It is removed."""
        self.transition_to(GroupState.DEAD, wall_ms)

    def tombstones(self) -> list[bytes]:
        """Keys of the records of the group itself, if there are any."""
        return [encode_group_key(GroupKey(self.group_id))] if self.generation > 0 else []

    @property
    def can_rebalance(self) -> bool:
        return self.state in PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def start_next_generation(self, wall_ms: int) -> bool:
        """All have joined: agree on a protocol, or be empty.

        False where members support none in common: the generation has gone up all the same.
        """
        old = self.generation
        self.generation += 1
        if self.members and not self.has_common_protocol:
            return False
        self.protocol = self.select_protocol() if self.members else None
        self.subscribed_topics = self._find_subscribed_topics()
        self.pending_sync.clear()
        if self._listener is not None:
            self._listener(f"groups/{self.group_id}/generation", old, self.generation)
        members = GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY
        self.transition_to(members, wall_ms)
        return True

    # -- members -------------------------------------------------------------------------------

    def add(self, member: Member, respond: JoinAnswer | None = None) -> None:
        """Take a member in; the first one leads and says what kind of group it is."""
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self._tell_members(lambda: self.members.__setitem__(member.member_id, member))
        self._count(member.protocols, 1)
        member.awaiting_join = respond
        if respond is not None:
            self.awaiting_join_count += 1
        timer = self.pending_members.pop(member.member_id, None)
        if timer is not None:
            timer.cancel()

    def remove(self, member_id: str) -> None:
        """Forget a member, or an id given out; the next member leads if it was the leader."""
        member = self.members.get(member_id)
        if member is not None:
            self._tell_members(lambda: self.members.pop(member_id))
            member.stop_session()
            self._count(member.protocols, -1)
            if member.awaiting_join is not None:
                self.awaiting_join_count -= 1
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.remove_pending(member_id)
        self.pending_sync.pop(member_id, None)

    def remove_pending(self, member_id: str) -> None:
        """Expect nobody with this id any more."""
        timer = self.pending_members.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    def update(self, member: Member, protocols: Protocols, respond: JoinAnswer | None) -> None:
        """A member joins again."""
        self._count(member.protocols, -1)
        self._count(protocols, 1)
        member.protocols = protocols
        self.awaiting_join_count += (respond is not None) - (member.awaiting_join is not None)
        member.awaiting_join = respond

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> Member:
        """Give a static member its new id; it keeps its place among the members.

        Who waits for an answer under the old id is to be fenced first.
        """
        member = self.members[old_id]
        member.member_id = new_id
        self.members = {
            new_id if member_id == old_id else member_id: known
            for member_id, known in self.members.items()
        }
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[instance_id] = new_id
        return member

    def answer_join(self, member: Member, response: JoinGroupResponse) -> None:
        """Answer a member's open JoinGroup, if there is one."""
        respond = member.awaiting_join
        if respond is not None:
            member.awaiting_join = None
            self.awaiting_join_count -= 1
            respond(response)

    def static_member_id(self, instance_id: str | None) -> str | None:
        """The present id of a static member; None for a dynamic or unknown one."""
        return None if instance_id is None else self.static_members.get(instance_id)

    @property
    def have_all_joined(self) -> bool:
        return len(self.members) == self.awaiting_join_count and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Make a member that has joined the leader; False if there is none, or no member at all."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is not None:
            return True
        for member_id, member in self.members.items():
            if member.awaiting_join is not None:
                self.leader = member_id
                return True
        return False

    def _tell_members(self, change: Callable[[], object]) -> None:
        """Change the members, and tell who listens."""
        listener = self._listener
        if listener is None:
            change()
            return
        old = tuple(self.members)
        change()
        listener(f"groups/{self.group_id}/members", old, tuple(self.members))

    # -- protocols -----------------------------------------------------------------------------

    def _count(self, protocols: Protocols, by: int) -> None:
        supported = self._supported
        for name, _ in protocols:
            supported[name] = supported.get(name, 0) + by

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether who names these protocols may be a member beside others."""
        count = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._supported.get(name, 0) == count for name, _ in protocols
        )

    @property
    def has_common_protocol(self) -> bool:
        """Whether all members support one; a name that a member gives twice counts twice."""
        return bool(self._common_protocols())

    def _common_protocols(self) -> set[str]:
        count = len(self.members)
        return {name for name, members in self._supported.items() if members == count}

    def select_protocol(self) -> str:
        """The protocol with most votes among those that all support; the first of equals."""
        candidates = self._common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads a topic; True where that is not known."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    def _find_subscribed_topics(self) -> frozenset[str] | None:
        if not self.is_consumer_group:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        try:
            return frozenset(
                topic
                for member in self.members.values()
                for topic in subscribed_topics(member.metadata(self.protocol))
            )
        except ClientError:
            return None

    # -- what others are told ------------------------------------------------------------------

    def joined_members(self) -> tuple[JoinGroupMember, ...]:
        """Return the members and their metadata, from which the leader assigns."""
        protocol = self.protocol or ""
        return tuple(
            JoinGroupMember(m.member_id, m.group_instance_id, m.metadata(protocol))
            for m in self.members.values()
        )

    def described_members(self) -> tuple[DescribedMember, ...]:
        """Members for DescribeGroups; what they said and got only while the group is stable."""
        protocol = self.protocol if self.state is GroupState.STABLE else None
        return tuple(member.describe(protocol) for member in self.members.values())

    # -- records -------------------------------------------------------------------------------

    def to_value(self, assignments: dict[str, bytes]) -> GroupValue:
        """The record of this generation."""
        protocol = self.protocol
        return GroupValue(
            self.protocol_type or "",
            self.generation,
            protocol,
            self.leader,
            self.state_timestamp_ms,
            tuple(
                MemberValue(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                    member.metadata(protocol or ""),
                    assignments[member.member_id],
                )
                for member in self.members.values()
            ),
        )

    @classmethod
    def of_value(cls, group_id: str, value: GroupValue) -> Group:
        """The group that a record tells of: stable, or empty without members."""
        state = GroupState.STABLE if value.members else GroupState.EMPTY
        group = cls(group_id, value.state_timestamp_ms, state)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        group.leader = value.leader
        for stored in value.members:
            member = Member(
                stored.member_id,
                stored.group_instance_id,
                stored.client_id,
                stored.client_host,
                stored.rebalance_timeout_ms,
                stored.session_timeout_ms,
                value.protocol_type,
                ((value.protocol or "", stored.subscription),),
                stored.assignment,
            )
            group.add(member)
        group.subscribed_topics = group._find_subscribed_topics()
        return group

    def settle(self) -> None:
        """All members have been added to a group that was of the other protocol."""
        self.protocol = self.select_protocol()
        self.subscribed_topics = self._find_subscribed_topics()

    # -- expiry --------------------------------------------------------------------------------

    def remove_expired_offsets(self, wall_ms: int, retention_ms: int) -> list[TopicPartition]:
        """Forget offsets as the state of the group allows (KIP-211); gives their partitions."""
        since_state = self.state_timestamp_ms
        kept: Iterable[str] = ()
        if self.protocol_type is not None:
            if self.state is GroupState.STABLE and self.is_consumer_group:
                if self.subscribed_topics is None:
                    return []
                kept, since_state = self.subscribed_topics, -1
            elif self.state is not GroupState.EMPTY:
                return []
        else:
            since_state = -1

        def is_expired(partition: TopicPartition, value: OffsetValue) -> bool:
            if partition.topic in kept:
                return False
            if value.expire_timestamp_ms >= 0:
                return wall_ms >= value.expire_timestamp_ms
            since_ms = value.commit_timestamp_ms if since_state < 0 else since_state
            return wall_ms - since_ms >= retention_ms

        return self.offsets.remove_expired(is_expired)

    def remove_offsets_past_their_time(self, wall_ms: int) -> list[TopicPartition]:
        """Forget offsets by the time each was given, whoever reads on (before KIP-211)."""
        return self.offsets.remove_expired(
            lambda _, value: 0 <= value.expire_timestamp_ms < wall_ms
        )
