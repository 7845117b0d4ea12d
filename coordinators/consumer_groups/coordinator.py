"""The group coordinator of a broker that also supports the consumer protocol (KIP-848).

In Kafka only KRaft brokers have it; here ``group.coordinator.rebalance.protocols`` enables it.
Groups of the classic protocol are left to the base class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    CONSUMER_PROTOCOL,
    NO_MEMBER,
    AssignedTopic,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescription,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupMemberDescription,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListedGroup,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TopicIdPartitions,
)
from ...protocol.versions import Behaviour
from ..groups.coordinator import GroupCoordinator
from ..groups.effects import JoinReply, SyncReply
from ..groups.group import JoiningClient
from ..groups.loading import AnyGroup
from ..groups.offsets import TransactionalCommit
from ..groups.store import GroupStore
from .classic_members import ClassicMembers
from .group import FIRST_COMMIT_VERSION, ConsumerGroup
from .heartbeats import ConsumerGroupHeartbeats, HeartbeatClient
from .member import ConsumerMember, MemberState
from .member_updates import SESSION, MemberUpdates, assignor_names
from .migration import Migration
from .store import ConsumerGroupStore
from .subscribed_topics import SubscriptionMetadata

if TYPE_CHECKING:
    from ...protocol.host import Host
    from ...replication.partition.metadata_cache import MetadataCache
    from ...replication.replica_manager import ReplicaManager

_NONE = ErrorCode.NONE


def group_coordinator(
    host: Host,
    config: BrokerConfig,
    behaviour: Behaviour,
    replica_manager: ReplicaManager,
    write_line: Callable[[str, str], object],
    started_ms: int,
) -> GroupCoordinator:
    """Return the coordinator of a broker, for the protocols that its configuration enables.

    ``write_line`` logs a line with a level (``info``, ``warn``, ``error``); ``started_ms`` is when
    the broker started.
    """
    given = host, config, behaviour, replica_manager, write_line, started_ms
    cache = replica_manager.metadata_cache
    protocols = config["group.coordinator.rebalance.protocols"]
    if behaviour.consumer_groups and CONSUMER_PROTOCOL in protocols:
        return ConsumerGroupCoordinator(ConsumerGroupStore(*given), cache)
    return GroupCoordinator(GroupStore(*given), cache)


class ConsumerGroupCoordinator(GroupCoordinator):
    """Serves the requests of members and administrators for groups of both protocols."""

    def __init__(self, store: ConsumerGroupStore, metadata_cache: MetadataCache) -> None:
        super().__init__(store, metadata_cache)
        self.consumer_groups: dict[str, ConsumerGroup] = store.consumer_groups
        """Groups of the consumer protocol coordinated here, by id; read-only for other classes."""
        self._topics = topics = SubscriptionMetadata(metadata_cache)
        self._migration = migration = Migration(store, topics)
        self._updates = updates = MemberUpdates(store, topics, migration)
        self._heartbeats = ConsumerGroupHeartbeats(store, updates, migration)
        self._classic_members = ClassicMembers(store, updates, topics)
        self._default_assignor = assignor_names(store.config)[0]
        store.on_group_loaded = self._loaded

    def _loaded(self, group: ConsumerGroup) -> None:
        """Start the session and revocation timeouts of the members of a loaded group."""
        for member in group.members.values():
            self._updates.start_timeout(group, SESSION, member.member_id)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._updates.start_revocation_timeout(group, member)

    def topics_changed(self, topics: Iterable[str]) -> None:
        """Let groups that subscribe to these topics refresh them at the next request of a
        member."""
        groups = self.consumer_groups
        if groups:
            changed = list(topics)
            for group in groups.values():
                if any(group.is_subscribed_to(topic) for topic in changed):
                    group.request_refresh()

    # -- members -------------------------------------------------------------------------------

    def consumer_group_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client: HeartbeatClient,
        respond: Callable[[ConsumerGroupHeartbeatResponse], object],
    ) -> None:
        """Handle a heartbeat; respond once the changes that it causes are replicated."""
        error = self.group_status_error(request.group_id, allows_empty_group_id=True)
        if error is _NONE:
            self._heartbeats.heartbeat(request, client, respond)
        else:
            respond(ConsumerGroupHeartbeatResponse(error))

    def _find(self, group_id: str) -> ConsumerGroup | None:
        """Return the group if it is of the consumer protocol and coordinated here."""
        group = self.consumer_groups.get(group_id)
        if group is None or self.group_status_error(group_id) is not _NONE:
            return None
        return group

    def join(self, request: JoinGroupRequest, client: JoiningClient, reply: JoinReply) -> None:
        """Join a group; an empty group becomes a classic one when a new member joins."""
        group = self._find(request.group_id)
        if group is not None and not group.is_empty and self.accepts_session_timeout(request):
            self._classic_members.join(group, request, client, reply)
            return
        if group is not None and group.is_empty and request.member_id == NO_MEMBER:
            self._migration.replace_empty(group)
        super().join(request, client, reply)

    def sync(self, request: SyncGroupRequest, reply: SyncReply) -> None:
        """Reply with the member's assignment, which the coordinator computes in consumer groups."""
        group = self._find(request.group_id)
        if group is None or group.is_empty:
            super().sync(request, reply)
        else:
            self._classic_members.sync(group, request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Record a heartbeat; return REBALANCE_IN_PROGRESS if the member must rejoin."""
        group = self._find(request.group_id)
        if group is None:
            return super().heartbeat(request)
        return self._classic_members.heartbeat(group, request)

    def leave(
        self, request: LeaveGroupRequest, respond: Callable[[LeaveGroupResponse], object]
    ) -> None:
        """Remove members that leave, or static members that an administrator removes."""
        group = self._find(request.group_id)
        if group is None:
            super().leave(request, respond)
        else:
            self._classic_members.leave(group, request, respond)

    # -- offsets -------------------------------------------------------------------------------

    def _group_to_commit(
        self, request: OffsetCommitRequest, api_version: int
    ) -> tuple[AnyGroup | None, ErrorCode]:
        group = self.consumer_groups.get(request.group_id)
        if group is None:
            return super()._group_to_commit(request, api_version)
        member_id, epoch = request.member_id, request.generation
        return group, group.offset_commit_error(member_id, epoch, api_version)

    def _unknown_group_error(self, api_version: int) -> ErrorCode:
        if api_version >= FIRST_COMMIT_VERSION:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return super()._unknown_group_error(api_version)

    def validate_commit_in_transaction(self, group_id: str) -> ErrorCode:
        """Return why a transactional commit is refused, or NONE.

        Unlike the classic coordinator, this one creates the group only when it accepts an offset.
        """
        return self.group_status_error(group_id)

    def _group_to_commit_in_transaction(
        self, commit: TransactionalCommit
    ) -> tuple[AnyGroup, ErrorCode]:
        group = self.consumer_groups.get(commit.group_id)
        if group is None:
            return super()._group_to_commit_in_transaction(commit)
        return group, group.offset_commit_error(commit.member_id, commit.generation, None)

    def _offset_fetch_error(self, request: OffsetFetchRequest) -> ErrorCode:
        error = super()._offset_fetch_error(request)
        group = self.consumer_groups.get(request.group_id)
        if error is not _NONE or group is None:
            return error
        return group.offset_fetch_error(request.member_id, request.member_epoch)

    # -- administrators ------------------------------------------------------------------------

    def _listed(self, request: ListGroupsRequest) -> list[ListedGroup]:
        found = super()._listed(request)
        wanted = frozenset(state.lower() for state in request.states)
        types = [name.lower() for name in request.types]
        if not types or CONSUMER_PROTOCOL in types:
            for group in self.consumer_groups.values():
                state = group.state_name
                if not wanted or state.lower() in wanted:
                    listed = group.group_id, group.protocol_type, state, CONSUMER_PROTOCOL
                    found.append(ListedGroup(*listed))
        return found

    def describe_consumer_groups(
        self, request: ConsumerGroupDescribeRequest
    ) -> ConsumerGroupDescribeResponse:
        """Describe states, epochs and members (``ConsumerGroup.asDescribedGroup``).

        The error for a classic group is GROUP_ID_NOT_FOUND.
        """
        return ConsumerGroupDescribeResponse(
            tuple([self._describe_consumer_group(group_id) for group_id in request.group_ids])
        )

    def _describe_consumer_group(self, group_id: str) -> ConsumerGroupDescription:
        error = self.group_status_error(group_id)
        if error is not _NONE:
            return ConsumerGroupDescription(error, group_id)
        group = self.consumer_groups.get(group_id)
        if group is None:
            return ConsumerGroupDescription(ErrorCode.GROUP_ID_NOT_FOUND, group_id)
        return ConsumerGroupDescription(
            _NONE,
            group_id,
            group.state_name,
            group.epoch,
            group.target_epoch,
            self.assignor(group),
            tuple([self._described(group, member) for member in group.members.values()]),
        )

    def assignor(self, group: ConsumerGroup) -> str:
        """Return the assignor that the members of a group have chosen, or the default."""
        return group.server_assignor() or self._default_assignor

    def _described(
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
            self.assigned_topics(member.assigned),
            self.assigned_topics(group.target.get(member.member_id, {})),
        )

    def assigned_topics(self, partitions: TopicIdPartitions) -> tuple[AssignedTopic, ...]:
        """Return the partitions with topic names, leaving out topics that no longer exist."""
        named = [(topic_id, self._topics.name(topic_id), n) for topic_id, n in partitions.items()]
        return tuple([AssignedTopic(i, name, n) for i, name, n in named if name is not None])
