"""Handlers of groups: their coordinators, members, offsets and administration."""

from __future__ import annotations

from functools import partial

from ....coordinators.consumer_groups.coordinator import ConsumerGroupCoordinator
from ....coordinators.consumer_groups.heartbeats import HeartbeatClient
from ....coordinators.coordinator_errors import with_error_texts
from ....coordinators.groups.coordinator import NEWEST_COMMIT_VERSION
from ....coordinators.groups.group import JoiningClient
from ....protocol.data import (
    INTERNAL_CONTEXT,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    RequestContext,
)
from ....protocol.errors import INVALID_REQUEST_TEXT, ErrorCode
from ....protocol.groups import (
    CommittedOffset,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescription,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from ....protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ....protocol.values import TopicPartition
from ....zkfake.messages import ZooKeeperError
from ...delivery import Delivery
from ...port import Handler
from ..broker import Broker
from .broker_handlers import BrokerHandlers

GROUP = 0
TRANSACTION = 1

_IN_ZOOKEEPER = 0
"""Version of OffsetCommit and OffsetFetch whose offsets are stored in ZooKeeper."""
_FIRST_WITH_MEMBER_ID_REQUIRED = 4
_HEARTBEAT_OF_3_9 = 0
_FIRST_WITH_SKIPPED_ASSIGNMENT = 9
_FIRST_WITH_PROTOCOL_IN_SYNC = 5

WARNINGS_MAX = 100
"""Maximum number of warnings about refused producers in one broker's log."""


class GroupHandlers(BrokerHandlers):
    """FindCoordinator, and the requests to the coordinator of a group."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._groups = broker.coordinators.groups
        self._logged_warnings: set[str] = set()
        """Warnings that have been logged; bounded, as clients choose the names in them."""

    def by_type(self) -> dict[type, Handler]:
        groups = self._groups
        return {
            FindCoordinatorRequest: self.find_coordinator,
            JoinGroupRequest: self.join_group,
            SyncGroupRequest: self.sync_group,
            HeartbeatRequest: self.heartbeat,
            LeaveGroupRequest: self.leave_group,
            ConsumerGroupHeartbeatRequest: self.consumer_group_heartbeat,
            ConsumerGroupDescribeRequest: self.consumer_group_describe,
            OffsetCommitRequest: self.offset_commit,
            OffsetFetchRequest: self.offset_fetch,
            OffsetDeleteRequest: lambda request, _: groups.delete_offsets(request),
            DescribeGroupsRequest: lambda request, _: groups.describe_groups(request),
            ListGroupsRequest: lambda request, _: groups.list_groups(request),
            DeleteGroupsRequest: lambda request, _: groups.delete_groups(request),
        }

    def find_coordinator(
        self, request: FindCoordinatorRequest, delivery: Delivery
    ) -> FindCoordinatorResponse:
        """Find coordinators; COORDINATOR_NOT_AVAILABLE while a missing internal topic is
        created."""
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        answers = []
        for key in request.keys:
            if request.key_type == GROUP:
                number = self._groups.partition_for(key)
                found = self._coordinator(key, OFFSETS_TOPIC, number, context.listener)
            elif request.key_type == TRANSACTION:
                found = self._transaction_coordinator(key, context.listener)
            else:
                found = Coordinator(
                    key, ErrorCode.INVALID_REQUEST, error_message=INVALID_REQUEST_TEXT
                )
            answers.append(found)
        response = FindCoordinatorResponse(tuple(answers))
        return with_error_texts(response, context.api_version, self._broker.behaviour)

    def _transaction_coordinator(self, transactional_id: str, listener: str) -> Coordinator:
        if self._broker.behaviour.transactions:
            number = self._broker.coordinators.transactions.states.partition_for(transactional_id)
            return self._coordinator(transactional_id, TRANSACTIONS_TOPIC, number, listener)
        # Of the errors that Kafka may answer here, only this one is fatal to every client.
        self._warn_once(
            f"producer {transactional_id!r} requests transactions, which Kafka has since 0.11; "
            "idempotent producers work, see docs/reference/limitations.md",
        )
        return Coordinator(
            transactional_id,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            error_message="transactions are not supported",
        )

    def _warn_once(self, text: str) -> None:
        """Log a warning, but only once, as clients retry again and again."""
        if text not in self._logged_warnings and len(self._logged_warnings) < WARNINGS_MAX:
            self._logged_warnings.add(text)
            self._broker.log("warn", text)

    def _coordinator(self, key: str, topic: str, number: int, listener: str) -> Coordinator:
        """Return the leader of an internal topic's partition; creates the topic if it is
        missing."""
        cache = self._broker.metadata_cache
        if not cache.contains_topic(topic):
            self._broker.start_task(self._try_to_create(topic))
            return Coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        state = cache.partition_state(TopicPartition(topic, number))
        leader = None if state is None else cache.broker(state.leader)
        endpoint = None if leader is None else leader.endpoint(listener)
        if leader is None or endpoint is None:
            return Coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return Coordinator(key, ErrorCode.NONE, leader.id, endpoint.host, endpoint.port)

    async def _try_to_create(self, topic: str) -> None:
        """Try to create the topic; after a failure the next request tries again."""
        try:
            await self._broker.admin.auto_creation.create((topic,))
        except ZooKeeperError as error:
            self._broker.log("warn", f"creating {topic}: {error}")

    # -- members -------------------------------------------------------------------------------

    def join_group(self, request: JoinGroupRequest, delivery: Delivery) -> None:
        self._groups.join(
            request,
            self._joining_client(delivery),
            partial(self._broker.answer, delivery),
        )

    def _joining_client(self, delivery: Delivery) -> JoiningClient:
        """Return the joining client; one without a socket has its node's name and all features."""
        context: RequestContext | None = delivery.context
        behaviour = self._broker.behaviour
        if context is None:
            name = delivery.sender.name
            return JoiningClient(
                name,
                "/127.0.0.1",
                behaviour.member_id_required,
                behaviour.assignment_may_be_skipped,
            )
        version = context.api_version
        return JoiningClient(
            context.client_id,
            f"/{context.client_host}",
            version >= _FIRST_WITH_MEMBER_ID_REQUIRED,
            version >= _FIRST_WITH_SKIPPED_ASSIGNMENT,
        )

    def sync_group(self, request: SyncGroupRequest, delivery: Delivery) -> SyncGroupResponse | None:
        """Sync a member; newer clients have to name the protocol of the assignment."""
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        if context.api_version >= _FIRST_WITH_PROTOCOL_IN_SYNC and (
            request.protocol_type is None or request.protocol is None
        ):
            return SyncGroupResponse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        self._groups.sync(request, partial(self._broker.answer, delivery))
        return None

    def heartbeat(self, request: HeartbeatRequest, _delivery: Delivery) -> HeartbeatResponse:
        return HeartbeatResponse(self._groups.heartbeat(request))

    def leave_group(self, request: LeaveGroupRequest, delivery: Delivery) -> None:
        self._groups.leave(request, partial(self._broker.answer, delivery))

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, delivery: Delivery
    ) -> ConsumerGroupHeartbeatResponse | None:
        """Handle a heartbeat; UNSUPPORTED_VERSION unless the protocol is enabled."""
        groups = self._groups
        if not isinstance(groups, ConsumerGroupCoordinator):
            return ConsumerGroupHeartbeatResponse(ErrorCode.UNSUPPORTED_VERSION)
        context: RequestContext | None = delivery.context
        if context is None:
            client = HeartbeatClient(delivery.sender.name, "/127.0.0.1", _HEARTBEAT_OF_3_9)
        else:
            host = f"/{context.client_host}"
            client = HeartbeatClient(context.client_id, host, context.api_version)
        groups.consumer_group_heartbeat(
            request,
            client,
            partial(self._broker.answer, delivery),
        )
        return None

    def consumer_group_describe(
        self, request: ConsumerGroupDescribeRequest, _delivery: Delivery
    ) -> ConsumerGroupDescribeResponse:
        groups = self._groups
        if not isinstance(groups, ConsumerGroupCoordinator):
            error = ErrorCode.UNSUPPORTED_VERSION
            return ConsumerGroupDescribeResponse(
                tuple(ConsumerGroupDescription(error, group_id) for group_id in request.group_ids)
            )
        return groups.describe_consumer_groups(request)

    # -- offsets -------------------------------------------------------------------------------

    def offset_commit(self, request: OffsetCommitRequest, delivery: Delivery) -> None:
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        if context.api_version == _IN_ZOOKEEPER:
            self._broker.reply_with(self._commit_to_zookeeper(request), delivery)
            return
        version = NEWEST_COMMIT_VERSION if delivery.context is None else context.api_version
        self._groups.commit(request, partial(self._broker.answer, delivery), version)

    def offset_fetch(
        self, request: OffsetFetchRequest, delivery: Delivery
    ) -> OffsetFetchResponse | None:
        api_version = (delivery.context or INTERNAL_CONTEXT).api_version
        if api_version == _IN_ZOOKEEPER:
            self._broker.reply_with(self._fetch_from_zookeeper(request), delivery)
            return None
        response = self._groups.fetch_offsets(request)
        return response.for_version(api_version, self._broker.behaviour.offset_fetch_1_tells_errors)

    async def _commit_to_zookeeper(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        """Commit offsets by version 0, which has no generation, member or coordinator."""
        longest = self._broker.config["offset.metadata.max.bytes"]
        answers = []
        for wanted in request.partitions:
            partition = wanted.topic_partition
            error = ErrorCode.NONE
            if not self._broker.metadata_cache.takes_offsets(partition):
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif len(wanted.metadata) > longest:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                await self._broker.zk.consumers.set_or_create_consumer_offset(
                    request.group_id, partition, wanted.offset
                )
            answers.append((partition, error))
        return OffsetCommitResponse(tuple(answers))

    async def _fetch_from_zookeeper(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        """Fetch offsets by version 0, to which a missing offset is an unknown partition, too."""
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answers = []
        for partition in request.partitions or ():
            offset = None
            if self._broker.metadata_cache.takes_offsets(partition):
                offset = await self._broker.zk.consumers.get_consumer_offset(
                    request.group_id, partition
                )
            if offset is None:
                answers.append(CommittedOffset(partition, unknown))
            else:
                answers.append(CommittedOffset(partition, ErrorCode.NONE, offset))
        return OffsetFetchResponse(ErrorCode.NONE, tuple(answers))
