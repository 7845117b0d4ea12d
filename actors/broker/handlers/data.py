"""Handlers of the data APIs: produce, fetch, offsets, metadata, producer ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ....protocol.data import (
    INTERNAL_CONTEXT,
    DeleteRecordsRequest,
    FetchRequest,
    FetchResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProduceRequest,
    RequestContext,
)
from ....protocol.errors import ErrorCode, KafkaError
from ....replication.leader.down_conversion import NEWEST_OLD_FETCH, down_converted
from ...delivery import Delivery
from ...port import Handler
from ..parts import BrokerParts


class DataHandlers:
    """What producers, consumers and followers ask."""

    __slots__ = (
        "_admin",
        "_config",
        "_metadata_cache",
        "_node",
        "_producer_ids",
        "_replica_manager",
    )

    def __init__(self, parts: BrokerParts) -> None:
        self._node = parts.node
        self._replica_manager = parts.replica_manager
        self._metadata_cache = parts.metadata_cache
        self._producer_ids = parts.producer_ids
        self._admin = parts.admin
        self._config = parts.config

    def by_type(self) -> dict[type, Handler]:
        """The handlers by the requests they take."""
        return {
            ProduceRequest: self.produce,
            FetchRequest: self.fetch,
            ListOffsetsRequest: self.list_offsets,
            OffsetForLeaderEpochRequest: self.offset_for_leader_epoch,
            DeleteRecordsRequest: self.delete_records,
            InitProducerIdRequest: self.init_producer_id,
            MetadataRequest: self.metadata,
        }

    def produce(self, request: ProduceRequest, delivery: Delivery) -> None:
        self._replica_manager.append_records(
            request,
            delivery.context or INTERNAL_CONTEXT,
            partial(self._node.answer, delivery),
        )

    def fetch(self, request: FetchRequest, delivery: Delivery) -> None:
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        reply: Callable[[FetchResponse], object] = partial(self._node.answer, delivery)
        if context is not INTERNAL_CONTEXT and 0 <= context.api_version <= NEWEST_OLD_FETCH:
            reply = partial(self._answer_old_fetch, request, delivery)
        self._replica_manager.fetch_messages(request, context, reply)

    def _answer_old_fetch(
        self, request: FetchRequest, delivery: Delivery, response: FetchResponse
    ) -> None:
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        hosted = self._replica_manager.partition
        self._node.reply(delivery, down_converted(request, response, context.api_version, hosted))

    def list_offsets(self, request: ListOffsetsRequest, delivery: Delivery) -> ListOffsetsResponse:
        return self._replica_manager.list_offsets(request, delivery.context or INTERNAL_CONTEXT)

    def offset_for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest, delivery: Delivery
    ) -> OffsetForLeaderEpochResponse:
        return self._replica_manager.offsets_for_leader_epoch(
            request, delivery.context or INTERNAL_CONTEXT
        )

    def delete_records(self, request: DeleteRecordsRequest, delivery: Delivery) -> None:
        self._replica_manager.delete_records(
            request,
            delivery.context or INTERNAL_CONTEXT,
            partial(self._node.answer, delivery),
        )

    async def init_producer_id(
        self, request: InitProducerIdRequest, _delivery: Delivery
    ) -> InitProducerIdResponse:
        """Ids for idempotent producers (docs/kafka/groups-and-transactions.md#transactions)."""
        if request.transactional_id == "":
            return InitProducerIdResponse(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is not None:
            # As for FindCoordinator: there are no transactions, and retrying will not help.
            return InitProducerIdResponse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        try:
            return InitProducerIdResponse(ErrorCode.NONE, await self._producer_ids.next_id(), 0)
        except KafkaError as error:
            return InitProducerIdResponse(error.code)

    def metadata(self, request: MetadataRequest, delivery: Delivery) -> MetadataResponse | None:
        """From the cache; missing topics are created first where the client allows it."""
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        response = self._metadata_cache.metadata(request, context.listener)
        if (
            request.topics
            and request.allow_auto_topic_creation
            and self._config["auto.create.topics.enable"]
        ):
            missing = [
                topic.name
                for topic in response.topics
                if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.name is not None
            ]
            if missing:
                self._node.reply_with(self._with_auto_creation(response, missing), delivery)
                return None
        return response

    async def _with_auto_creation(
        self, response: MetadataResponse, missing: list[str]
    ) -> MetadataResponse:
        """Create missing topics and tell what became of them
        (docs/kafka/administration.md#metadata)."""
        answers = await self._admin.auto_creation.create(missing)
        topics = tuple(
            replace(topic, error=answers[topic.name])
            if topic.name is not None and topic.name in answers
            else topic
            for topic in response.topics
        )
        return replace(response, topics=topics)
