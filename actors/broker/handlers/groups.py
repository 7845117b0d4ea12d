"""Handlers of what a consumer without group membership asks: coordinator and offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....coordinators.offsets.records import OFFSETS_TOPIC
from ....protocol.data import (
    INTERNAL_CONTEXT,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    RequestContext,
)
from ....protocol.errors import ErrorCode
from ....protocol.values import TopicPartition
from ....zkfake.messages import ZooKeeperError
from .broker_base import BrokerBase

if TYPE_CHECKING:
    from ...delivery import Delivery

GROUP = 0
TRANSACTION = 1


class GroupHandlers(BrokerBase):
    """FindCoordinator, OffsetCommit, OffsetFetch; JoinGroup is refused."""

    def on_find_coordinator_request(
        self, request: FindCoordinatorRequest, delivery: Delivery
    ) -> FindCoordinatorResponse:
        """A missing internal topic is created; meanwhile COORDINATOR_NOT_AVAILABLE."""
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        answers = []
        for key in request.keys:
            if request.key_type == GROUP:
                answers.append(self._group_coordinator(key, context.listener))
            elif request.key_type == TRANSACTION:
                answers.append(self._no_transactions(key))
            else:
                answers.append(
                    Coordinator(
                        key, ErrorCode.INVALID_REQUEST, error_message="only groups are coordinated"
                    )
                )
        return FindCoordinatorResponse(tuple(answers))

    def _no_transactions(self, transactional_id: str) -> Coordinator:
        """Refuse for good: of what Kafka answers here, every client takes only this as final."""
        self.runtime.log(
            self.name,
            "warn",
            f"producer {transactional_id!r} wants transactions, which fakekafka does not have; "
            "idempotent producers work, see docs/reference/limitations.md",
        )
        return Coordinator(
            transactional_id,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            error_message="transactions are not supported",
        )

    def _group_coordinator(self, group_id: str, listener: str) -> Coordinator:
        cache = self.metadata_cache
        if not cache.contains_topic(OFFSETS_TOPIC):
            self._create_offsets_topic()
            return Coordinator(group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        where = TopicPartition(OFFSETS_TOPIC, self.offsets.partition_for(group_id))
        state = cache.partition_state(where)
        leader = None if state is None else cache.broker(state.leader)
        endpoint = None if leader is None else leader.endpoint(listener)
        if leader is None or endpoint is None:
            return Coordinator(group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return Coordinator(group_id, ErrorCode.NONE, leader.id, endpoint.host, endpoint.port)

    def _create_offsets_topic(self) -> None:
        self.start_task(self._try_to_create(OFFSETS_TOPIC))

    async def _try_to_create(self, topic: str) -> None:
        """What fails now is tried again when a client asks again."""
        try:
            await self.admin.auto_creation.create((topic,))
        except ZooKeeperError as error:
            self.runtime.log(self.name, "warn", f"creating {topic}: {error}")

    def on_join_group_request(
        self, request: JoinGroupRequest, _delivery: Delivery
    ) -> JoinGroupResponse:
        """Refuse for good: clients ask again after every error but this one."""
        self.runtime.log(
            self.name,
            "warn",
            f"a consumer wants to join group {request.group_id!r}; fakekafka has no groups yet: "
            "assign partitions, see docs/reference/limitations.md",
        )
        return JoinGroupResponse(ErrorCode.GROUP_AUTHORIZATION_FAILED, request.member_id)

    def on_offset_commit_request(self, request: OffsetCommitRequest, delivery: Delivery) -> None:
        self.offsets.commit(request, lambda response: self.reply(delivery, response))

    def on_offset_fetch_request(
        self, request: OffsetFetchRequest, _delivery: Delivery
    ) -> OffsetFetchResponse:
        return self.offsets.fetch(request)
