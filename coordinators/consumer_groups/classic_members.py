"""Members of the classic protocol in a group of the consumer protocol, during a rolling upgrade
(KIP-848; Kafka: ``GroupMetadataManager.classicGroupJoinToConsumerGroup`` and related methods).

They send JoinGroup, SyncGroup and Heartbeat as before. Their assignment is derived from the group's
target assignment.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import ClientError, ErrorCode, KafkaError
from ...protocol.groups import (
    CONSUMER_PROTOCOL_TYPE,
    NO_MEMBER,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from ...protocol.values import assembled, uuid_text
from ..groups.effects import JoinReply, SyncReply
from ..groups.group import JoiningClient
from .embedded_protocol import (
    EmbeddedSubscription,
    decode_subscription,
    encode_assignment,
    protocol_version,
)
from .group import ConsumerGroup
from .heartbeats import check_instance, replace_static
from .member import ClassicMembership, ConsumerMember, MemberState
from .member_updates import JOIN, SESSION, SYNC, MemberUpdates
from .reconciliation import Owned
from .records import GroupRecord
from .store import ConsumerGroupStore
from .subscribed_topics import SubscriptionMetadata

_NONE = ErrorCode.NONE


@assembled
class ClassicMembers:
    """Handles JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members."""

    store: ConsumerGroupStore
    updates: MemberUpdates
    topics: SubscriptionMetadata

    # -- JoinGroup -----------------------------------------------------------------------------

    def join(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        client: JoiningClient,
        respond: JoinReply,
    ) -> None:
        """Join the group; respond once the member's assignment is computed and replicated."""
        try:
            self._join(group, request, client, respond)
        except KafkaError as refusal:
            respond(JoinGroupResponse(refusal.code, request.member_id))

    def _join(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        client: JoiningClient,
        respond: JoinReply,
    ) -> None:
        is_new = request.member_id == NO_MEMBER
        member_id = uuid_text(self.store.host.rng.randbytes(16)) if is_new else request.member_id
        largest = self.store.config["group.consumer.max.size"]
        if len(group.members) >= largest and member_id not in group.members:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.supports(request.protocol_type, [name for name, _ in request.protocols]):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if is_new and request.group_instance_id is None and client.may_need_member_id:
            respond(JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return
        records: list[GroupRecord] = []
        known = _find_member(group, request, member_id, records)
        try:
            subscription = decode_subscription(request.protocols[0][1])
        except ClientError:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
        rebalance_timeout_ms = request.rebalance_timeout_ms
        updated = known._replace(
            group_instance_id=request.group_instance_id or known.group_instance_id,
            rack=subscription.rack or known.rack,
            rebalance_timeout_ms=(
                known.rebalance_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms
            ),
            topics=tuple(sorted(set(subscription.topics))),
            client_id=client.client_id,
            client_host=client.host,
            classic=ClassicMembership(request.session_timeout_ms, request.protocols),
        )
        owned = self._owned(subscription)
        stepped = self.updates.update(group, known, updated, owned, records)
        response = JoinGroupResponse(
            _NONE,
            stepped.member_id,
            stepped.member_epoch,
            CONSUMER_PROTOCOL_TYPE,
            request.protocols[0][0],
        )

        def written(error: ErrorCode) -> None:
            if error is not _NONE:
                respond(JoinGroupResponse(error))
                return
            self.store.cancel_timer(group, JOIN, member_id)
            self.updates.start_timeout(group, SESSION, member_id, request.session_timeout_ms)
            self.updates.start_timeout(group, SYNC, member_id, request.rebalance_timeout_ms)
            respond(response)

        self.store.write(group, records, written)

    def _owned(self, subscription: EmbeddedSubscription) -> Owned:
        pairs = [(self.topics.id(topic), numbers) for topic, numbers in subscription.owned]
        return [(topic_id, numbers) for topic_id, numbers in pairs if topic_id]

    # -- SyncGroup -----------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, respond: SyncReply) -> None:
        """Respond with the partitions that are assigned to the member now."""
        try:
            member, classic = _classic_member(group, request.member_id, request.group_instance_id)
            _check_generation(member, request.generation)
            if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
                request.protocol not in (None, classic.protocols[0][0])
            ):
                raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            if (
                group.epoch > member.member_epoch
                and member.state is not MemberState.UNREVOKED_PARTITIONS
            ):
                self._start_join_timeout(group, member)
                raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        except KafkaError as refusal:
            respond(SyncGroupResponse(refusal.code))
            return
        version = protocol_version(classic.protocols[0][1])
        assignment = encode_assignment(self.topics.with_names(member.assigned), version)

        def read(error: ErrorCode) -> None:
            if error is not _NONE:
                respond(SyncGroupResponse(error))
                return
            self.store.cancel_timer(group, SYNC, member.member_id)
            self.updates.start_timeout(group, SESSION, member.member_id, classic.session_timeout_ms)
            respond(SyncGroupResponse(_NONE, request.protocol_type, request.protocol, assignment))

        self.store.write(group, (), read)

    def _start_join_timeout(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        timeout_ms = member.rebalance_timeout_ms
        self.updates.start_timeout_if_absent(group, JOIN, member.member_id, timeout_ms)

    # -- Heartbeat -----------------------------------------------------------------------------

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
        """Extend the member's session; return REBALANCE_IN_PROGRESS if it must rejoin."""
        try:
            member, classic = _classic_member(group, request.member_id, request.group_instance_id)
            _check_generation(member, request.generation)
        except KafkaError as refusal:
            return refusal.code
        self.updates.start_timeout(group, SESSION, member.member_id, classic.session_timeout_ms)
        has_free_partitions = (
            member.state is MemberState.UNRELEASED_PARTITIONS
            and not group.is_waiting_for_partitions(member)
        )
        if (
            member.member_epoch < group.epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or has_free_partitions
        ):
            self._start_join_timeout(group, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return _NONE

    # -- LeaveGroup ----------------------------------------------------------------------------

    def leave(
        self,
        group: ConsumerGroup,
        request: LeaveGroupRequest,
        respond: Callable[[LeaveGroupResponse], object],
    ) -> None:
        """Remove members that leave, or static members that an administrator removes."""
        left: list[ConsumerMember] = []
        answers: list[LeftMember] = []
        for leaving in request.members:
            try:
                member = _leaving_member(group, leaving)
            except KafkaError as refusal:
                answers.append(
                    LeftMember(leaving.member_id, leaving.group_instance_id, refusal.code)
                )
                continue
            if member not in left:
                left.append(member)
            answers.append(LeftMember(member.member_id, leaving.group_instance_id, _NONE))

        def written(error: ErrorCode) -> None:
            if error is not _NONE:
                respond(LeaveGroupResponse(error))
            else:
                respond(LeaveGroupResponse(_NONE, tuple(answers)))

        records = self.updates.removal_records(group, left) if left else []
        self.store.write(group, records, written)


def _find_member(
    group: ConsumerGroup, request: JoinGroupRequest, member_id: str, records: list[GroupRecord]
) -> ConsumerMember:
    instance_id = request.group_instance_id
    if instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    known = group.static_member(instance_id)
    if request.member_id != NO_MEMBER:
        return check_instance(known, member_id, instance_id)
    if known is None:
        return ConsumerMember(member_id)
    return replace_static(group, known, member_id, records)


def _leaving_member(group: ConsumerGroup, leaving: LeavingMember) -> ConsumerMember:
    if leaving.group_instance_id is None:
        return _classic_member(group, leaving.member_id, None)[0]
    known = group.static_member(leaving.group_instance_id)
    if leaving.member_id != NO_MEMBER or known is None:
        known = check_instance(known, leaving.member_id, leaving.group_instance_id)
    return _classic_member(group, known.member_id, None)[0]


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicMembership]:
    """Return a member with its classic data; raise ``KafkaError`` if it is no classic member."""
    if instance_id is not None:
        check_instance(group.static_member(instance_id), member_id, instance_id)
    member = group.members.get(member_id)
    if member is None or member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member, member.classic


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.member_epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
