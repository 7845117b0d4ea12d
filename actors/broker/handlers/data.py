"""Handlers of the data APIs: produce, fetch, offsets, metadata, producer ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

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
from .broker_base import BrokerBase

if TYPE_CHECKING:
    from ...delivery import Delivery


class DataHandlers(BrokerBase):
    """What producers, consumers and followers ask."""

    def on_produce_request(self, request: ProduceRequest, delivery: Delivery) -> None:
        self.replica_manager.append_records(
            request,
            delivery.context or INTERNAL_CONTEXT,
            partial(self.answer, delivery),
        )

    def on_fetch_request(self, request: FetchRequest, delivery: Delivery) -> None:
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        reply: Callable[[FetchResponse], object] = partial(self.answer, delivery)
        if context is not INTERNAL_CONTEXT and 0 <= context.api_version <= NEWEST_OLD_FETCH:
            reply = partial(self._answer_old_fetch, request, delivery)
        self.replica_manager.fetch_messages(request, context, reply)

    def _answer_old_fetch(
        self, request: FetchRequest, delivery: Delivery, response: FetchResponse
    ) -> None:
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        hosted = self.replica_manager.partition
        self.reply(delivery, down_converted(request, response, context.api_version, hosted))

    def on_list_offsets_request(
        self, request: ListOffsetsRequest, delivery: Delivery
    ) -> ListOffsetsResponse:
        return self.replica_manager.list_offsets(request, delivery.context or INTERNAL_CONTEXT)

    def on_offset_for_leader_epoch_request(
        self, request: OffsetForLeaderEpochRequest, delivery: Delivery
    ) -> OffsetForLeaderEpochResponse:
        return self.replica_manager.offsets_for_leader_epoch(
            request, delivery.context or INTERNAL_CONTEXT
        )

    def on_delete_records_request(self, request: DeleteRecordsRequest, delivery: Delivery) -> None:
        self.replica_manager.delete_records(
            request,
            delivery.context or INTERNAL_CONTEXT,
            partial(self.answer, delivery),
        )

    async def on_init_producer_id_request(
        self, request: InitProducerIdRequest, _delivery: Delivery
    ) -> InitProducerIdResponse:
        """Ids for idempotent producers (docs/kafka/groups-and-transactions.md#transactions)."""
        if request.transactional_id == "":
            return InitProducerIdResponse(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is not None:
            # As for FindCoordinator: there are no transactions, and retrying will not help.
            return InitProducerIdResponse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        try:
            return InitProducerIdResponse(ErrorCode.NONE, await self.producer_ids.next_id(), 0)
        except KafkaError as error:
            return InitProducerIdResponse(error.code)

    def on_metadata_request(
        self, request: MetadataRequest, delivery: Delivery
    ) -> MetadataResponse | None:
        """From the cache; missing topics are created first where the client allows it."""
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        response = self.metadata_cache.metadata(request, context.listener)
        if (
            request.topics
            and request.allow_auto_topic_creation
            and self.config["auto.create.topics.enable"]
        ):
            missing = [
                topic.name
                for topic in response.topics
                if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.name is not None
            ]
            if missing:
                self._run_coroutine(
                    lambda *_: self._with_auto_creation(response, missing), self, request, delivery
                )
                return None
        return response

    async def _with_auto_creation(
        self, response: MetadataResponse, missing: list[str]
    ) -> MetadataResponse:
        """Create missing topics and tell what became of them
        (docs/kafka/administration.md#metadata)."""
        answers = await self.admin.auto_creation.create(missing)
        topics = tuple(
            replace(topic, error=answers[topic.name])
            if topic.name is not None and topic.name in answers
            else topic
            for topic in response.topics
        )
        return replace(response, topics=topics)
