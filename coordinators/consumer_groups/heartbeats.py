"""ConsumerGroupHeartbeat, with which members join, stay, receive assignments and leave (KIP-848;
Kafka: ``GroupMetadataManager.consumerGroupHeartbeat``, ``consumerGroupLeave``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.groups import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ...protocol.values import uuid_text
from . import records as group_records
from .group import ConsumerGroup
from .member import ConsumerMember
from .member_updates import SESSION, MemberUpdates, assignor_names
from .migration import Migration
from .reconciliation import Owned, is_subset
from .records import GroupRecord
from .store import ConsumerGroupStore, Pairs

NEWEST_HEARTBEAT_VERSION = 1
_NONE = ErrorCode.NONE
Answer = Callable[[ConsumerGroupHeartbeatResponse], object]


class HeartbeatClient(NamedTuple):
    """The client that sends a heartbeat."""

    client_id: str
    host: str
    api_version: int = NEWEST_HEARTBEAT_VERSION


class ConsumerGroupHeartbeats:
    """Handles the heartbeats of members of the consumer protocol."""

    def __init__(
        self, store: ConsumerGroupStore, updates: MemberUpdates, migration: Migration
    ) -> None:
        self._store = store
        self._updates = updates
        self._migration = migration
        self._assignors = assignor_names(store.config)

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: HeartbeatClient, respond: Answer
    ) -> None:
        """Handle a heartbeat; respond once the changes that it causes are replicated."""
        try:
            self._check(request, client.api_version)
            if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
                self._leave(request, respond)
            else:
                self._join_or_heartbeat(request, client, respond)
        except KafkaError as refusal:
            respond(ConsumerGroupHeartbeatResponse(refusal.code, refusal.message or None))

    def _check(self, request: ConsumerGroupHeartbeatRequest, api_version: int) -> None:
        """Validate the fields of a request; raise ``KafkaError`` for invalid ones."""
        epoch = request.member_epoch
        problem = ""
        if not request.group_id.strip():
            problem = "GroupId can't be empty."
        elif request.group_instance_id is not None and not request.group_instance_id.strip():
            problem = "InstanceId can't be empty."
        elif request.rack is not None and not request.rack.strip():
            problem = "RackId can't be empty."
        elif not request.member_id.strip() and (api_version >= 1 or epoch != JOIN_EPOCH):
            problem = "MemberId can't be empty."
        elif epoch == JOIN_EPOCH:
            if request.rebalance_timeout_ms == -1:
                problem = "RebalanceTimeoutMs must be provided in first request."
            elif request.owned is None or request.owned:
                problem = "TopicPartitions must be empty when (re-)joining."
            elif api_version < 1 and not request.topics:
                problem = "SubscribedTopicNames must be set in first request."
            elif request.topics is None and request.topic_regex is None:
                problem = (
                    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                    "(re-)joining."
                )
        elif epoch < STATIC_LEAVE_EPOCH:
            problem = "MemberEpoch is invalid."
        elif epoch == STATIC_LEAVE_EPOCH and request.group_instance_id is None:
            problem = "InstanceId can't be null."
        if problem:
            raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
        if request.topic_regex:
            _check_regex(request.topic_regex)
        wanted = request.server_assignor
        if wanted is not None and wanted not in self._assignors:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                f"ServerAssignor {wanted} is not supported. Supported assignors: "
                f"{', '.join(self._assignors)}.",
            )

    # -- joining and heartbeats ----------------------------------------------------------------

    def _join_or_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: HeartbeatClient, respond: Answer
    ) -> None:
        is_joining = request.member_epoch == JOIN_EPOCH
        records: list[GroupRecord] = []
        group, replaced = self._find_group(request.group_id, is_joining)
        self._check_capacity(group, request.member_id)
        member_id = request.member_id or uuid_text(self._store.host.rng.randbytes(16))
        known = self._find_member(group, request, member_id, is_joining, records)
        updated = known._replace(
            group_instance_id=_value_or(request.group_instance_id, known.group_instance_id),
            rack=_value_or(request.rack, known.rack),
            rebalance_timeout_ms=(
                known.rebalance_timeout_ms
                if request.rebalance_timeout_ms == -1
                else request.rebalance_timeout_ms
            ),
            server_assignor=_value_or(request.server_assignor, known.server_assignor),
            topic_regex=_value_or(request.topic_regex, known.topic_regex) or "",
            topics=(known.topics if request.topics is None else tuple(sorted(set(request.topics)))),
            client_id=client.client_id,
            client_host=client.host,
            classic=None,
        )
        stepped = self._updates.update(group, known, updated, request.owned, records)
        is_full_request = is_joining or (
            request.rebalance_timeout_ms != -1
            and request.topics is not None
            and request.owned is not None
        )
        assignment = None
        if is_full_request or stepped.assigned != known.assigned:
            assignment = tuple(stepped.assigned.items())
        response = ConsumerGroupHeartbeatResponse(
            _NONE,
            None,
            stepped.member_id,
            stepped.member_epoch,
            self._store.config["group.consumer.heartbeat.interval.ms"],
            assignment,
        )

        def written(error: ErrorCode) -> None:
            respond(response if error is _NONE else ConsumerGroupHeartbeatResponse(error))

        self._updates.start_timeout(group, SESSION, stepped.member_id)
        self._store.write(group, records, written, replaced)

    def _find_group(self, group_id: str, is_joining: bool) -> tuple[ConsumerGroup, Pairs]:
        """Return the group, and the records that delete the classic group it replaces, if any."""
        group = self._store.consumer_groups.get(group_id)
        if group is not None:
            return group, ()
        classic = self._store.groups.get(group_id)
        if classic is None:
            if not is_joining:
                raise KafkaError(
                    ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found."
                )
            return ConsumerGroup(group_id, self._store.host.state_listener), ()
        converted = self._migration.upgrade(classic) if is_joining else None
        if converted is None:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group."
            )
        for member in converted[0].members.values():
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
                self._updates.start_timeout(converted[0], SESSION, member.member_id, timeout_ms)
        return converted

    def _check_capacity(self, group: ConsumerGroup, member_id: str) -> None:
        largest = self._store.config["group.consumer.max.size"]
        if len(group.members) >= largest and member_id not in group.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {largest} members.",
            )

    def _find_member(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        member_id: str,
        is_joining: bool,
        records: list[GroupRecord],
    ) -> ConsumerMember:
        instance_id = request.group_instance_id
        if instance_id is None:
            known = group.members.get(member_id)
            if known is None:
                if not is_joining:
                    raise _unknown_member(member_id, group.group_id)
                known = ConsumerMember(member_id)
            _check_epoch(known, request.member_epoch, request.owned)
            return known
        known = group.static_member(instance_id)
        if not is_joining:
            known = check_instance(known, member_id, instance_id)
            _check_epoch(known, request.member_epoch, request.owned)
            return known
        if known is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if known.member_epoch != STATIC_LEAVE_EPOCH:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group "
                f"because the instance id is owned by {known.member_id} member.",
            )
        return replace_static(group, known, member_id, records)

    # -- leaving -------------------------------------------------------------------------------

    def _leave(self, request: ConsumerGroupHeartbeatRequest, respond: Answer) -> None:
        group_id, member_id = request.group_id, request.member_id
        group = self._store.consumer_groups.get(group_id)
        if group is None:
            text = f"Group {group_id} not found."
            if group_id in self._store.groups:
                text = f"Group {group_id} is not a consumer group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        instance_id = request.group_instance_id
        if instance_id is None:
            known = group.members.get(member_id)
            if known is None:
                raise _unknown_member(member_id, group_id)
        else:
            known = group.static_member(instance_id)
            known = check_instance(known, member_id, instance_id)

        def written(error: ErrorCode) -> None:
            if error is not _NONE:
                respond(ConsumerGroupHeartbeatResponse(error))
            else:
                epoch = request.member_epoch
                respond(ConsumerGroupHeartbeatResponse(_NONE, None, member_id, epoch))

        if instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
            away = known._replace(member_epoch=STATIC_LEAVE_EPOCH, pending_revocation={})
            self._store.write(group, [group_records.current(group_id, away)], written)
        else:
            self._updates.fence(group, known, written)


def _check_regex(regex: str) -> None:
    """Raise INVALID_REGULAR_EXPRESSION if the expression does not compile."""
    try:
        re.compile(regex)
    except re.error as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from None


def _check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the epoch is the member's current one.

    The previous epoch is accepted if the response with the current epoch may have been lost.
    """
    if epoch > member.member_epoch:
        size = "greater"
    elif epoch < member.member_epoch and not (
        epoch == member.previous_epoch and is_subset(owned, member.assigned)
    ):
        size = "smaller"
    else:
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {size} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({member.member_epoch}). The member must abandon all its "
        "partitions and rejoin.",
    )


def check_instance(
    known: ConsumerMember | None, member_id: str, instance_id: str
) -> ConsumerMember:
    """Return the member with an instance id; raise ``KafkaError`` if it is not the sender."""
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{known.member_id}.",
        )
    return known


def replace_static(
    group: ConsumerGroup, known: ConsumerMember, member_id: str, records: list[GroupRecord]
) -> ConsumerMember:
    """Return a static member under its new id, with the instance's partitions; add the records."""
    group_id = group.group_id
    new = known._replace(member_id=member_id, member_epoch=0, previous_epoch=0)
    records += group_records.member_tombstones(group_id, known.member_id)
    records.append(group_records.member_metadata(group_id, new))
    kept = group.target.get(known.member_id, {})
    records.append(group_records.target(group_id, member_id, kept))
    records.append(group_records.current(group_id, new))
    return new


def _unknown_member(member_id: str, group_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}."
    )


def _value_or(value: str | None, default: str | None) -> str | None:
    return default if value is None else value
