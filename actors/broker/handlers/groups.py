"""Handlers of what a consumer without group membership asks: coordinator and offsets."""

from __future__ import annotations

from ....protocol.data import (
    INTERNAL_CONTEXT,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    RequestContext,
)
from ....protocol.errors import ErrorCode
from ....protocol.groups import (
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from ....protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ....protocol.values import TopicPartition
from ....zkfake.messages import ZooKeeperError
from ...delivery import Delivery
from ...port import Handler
from ..parts import BrokerParts

GROUP = 0
TRANSACTION = 1


WARNINGS_MAX = 100
"""How many refused groups and producers one broker writes into its log."""


class GroupHandlers:
    """FindCoordinator, OffsetCommit, OffsetFetch; JoinGroup is refused."""

    __slots__ = (
        "_admin",
        "_behaviour",
        "_metadata_cache",
        "_node",
        "_offsets",
        "_transactions",
        "_warned_of",
    )

    def __init__(self, parts: BrokerParts) -> None:
        self._node = parts.node
        self._metadata_cache = parts.metadata_cache
        self._offsets = parts.offsets
        self._admin = parts.admin
        self._behaviour = parts.behaviour
        self._transactions = parts.transactions
        self._warned_of: set[str] = set()
        """Whose refusal is in the log; bounded, since clients choose the names."""

    def by_type(self) -> dict[type, Handler]:
        """The handlers by the requests they take."""
        return {
            FindCoordinatorRequest: self.find_coordinator,
            JoinGroupRequest: self.join_group,
            OffsetCommitRequest: self.offset_commit,
            OffsetFetchRequest: self.offset_fetch,
        }

    def find_coordinator(
        self, request: FindCoordinatorRequest, delivery: Delivery
    ) -> FindCoordinatorResponse:
        """A missing internal topic is created; meanwhile COORDINATOR_NOT_AVAILABLE."""
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        answers = []
        for key in request.keys:
            if request.key_type == GROUP:
                number = self._offsets.partition_for(key)
                answers.append(self._coordinator(key, OFFSETS_TOPIC, number, context.listener))
            elif request.key_type == TRANSACTION:
                answers.append(self._transaction_coordinator(key, context.listener))
            else:
                answers.append(
                    Coordinator(
                        key, ErrorCode.INVALID_REQUEST, error_message="only groups are coordinated"
                    )
                )
        return FindCoordinatorResponse(tuple(answers))

    def _transaction_coordinator(self, transactional_id: str, listener: str) -> Coordinator:
        if self._behaviour.transactions:
            number = self._transactions.states.partition_for(transactional_id)
            return self._coordinator(transactional_id, TRANSACTIONS_TOPIC, number, listener)
        # Of what Kafka answers here, every client takes only this as final.
        self._warn_once(
            f"producer {transactional_id!r} wants transactions, which Kafka has since 0.11; "
            "idempotent producers work, see docs/reference/limitations.md",
        )
        return Coordinator(
            transactional_id,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            error_message="transactions are not supported",
        )

    def _warn_once(self, text: str) -> None:
        """Clients ask again and again; the reason stands in the log once for each of them."""
        if text not in self._warned_of and len(self._warned_of) < WARNINGS_MAX:
            self._warned_of.add(text)
            self._node.log("warn", text)

    def _coordinator(self, key: str, topic: str, number: int, listener: str) -> Coordinator:
        """The leader of a partition of an internal topic, which is created if it is missing."""
        cache = self._metadata_cache
        if not cache.contains_topic(topic):
            self._node.start_task(self._try_to_create(topic))
            return Coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        state = cache.partition_state(TopicPartition(topic, number))
        leader = None if state is None else cache.broker(state.leader)
        endpoint = None if leader is None else leader.endpoint(listener)
        if leader is None or endpoint is None:
            return Coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return Coordinator(key, ErrorCode.NONE, leader.id, endpoint.host, endpoint.port)

    async def _try_to_create(self, topic: str) -> None:
        """What fails now is tried again when a client asks again."""
        try:
            await self._admin.auto_creation.create((topic,))
        except ZooKeeperError as error:
            self._node.log("warn", f"creating {topic}: {error}")

    def join_group(self, request: JoinGroupRequest, _delivery: Delivery) -> JoinGroupResponse:
        """Refuse for good: clients ask again after every error but this one."""
        self._warn_once(
            f"a consumer wants to join group {request.group_id!r}; fakekafka has no groups yet: "
            "assign partitions, see docs/reference/limitations.md",
        )
        return JoinGroupResponse(ErrorCode.GROUP_AUTHORIZATION_FAILED, request.member_id)

    def offset_commit(self, request: OffsetCommitRequest, delivery: Delivery) -> None:
        self._offsets.commit(request, lambda response: self._node.reply(delivery, response))

    def offset_fetch(self, request: OffsetFetchRequest, _delivery: Delivery) -> OffsetFetchResponse:
        return self._offsets.fetch(request)
