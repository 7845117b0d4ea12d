"""Handlers of the data APIs: produce, fetch, offsets, metadata."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial

from ....protocol.data import (
    INTERNAL_CONTEXT,
    DeleteRecordsRequest,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    RequestContext,
)
from ....protocol.errors import ClosingAnswer, ErrorCode, KafkaError
from ....protocol.host import sleep
from ....protocol.values import changed
from ....replication.leader.down_conversion import NEWEST_OLD_FETCH, conversion
from ....replication.leader.verified_produce import transactional_producer
from ...delivery import Delivery
from ...port import Handler
from .broker_handlers import BrokerHandlers


class DataHandlers(BrokerHandlers):
    """Requests of producers, consumers and followers."""

    def by_type(self) -> dict[type, Handler]:
        return {
            ProduceRequest: self.produce,
            FetchRequest: self.fetch,
            ListOffsetsRequest: self.list_offsets,
            OffsetForLeaderEpochRequest: self.offset_for_leader_epoch,
            DeleteRecordsRequest: self.delete_records,
            MetadataRequest: self.metadata,
        }

    def produce(self, request: ProduceRequest, delivery: Delivery) -> None:
        for entry in request.partitions:
            if entry.records is None and self._has_failing_null_records(entry, delivery):
                self._produce_null_records(request, delivery)
                return
        if request.transactional_id is not None:
            self._produce_verified(request, delivery)
            return
        if delivery.context is not None and self._lacks_transactional_id(request):
            self._broker.reply(delivery, _unauthorized(request))
            return
        self._broker.replica_manager.produce.append_records(
            request,
            delivery.context or INTERNAL_CONTEXT,
            partial(self._broker.answer, delivery),
        )

    def _has_failing_null_records(self, entry: ProducePartition, delivery: Delivery) -> bool:
        """Return whether null records of a client cause a NullPointerException in Kafka."""
        return delivery.context is not None and self._broker.metadata_cache.contains(
            entry.topic_partition
        )

    def _produce_null_records(self, request: ProduceRequest, delivery: Delivery) -> None:
        """Handle a request with null records. Since 3.6 Kafka inspects it before appending
        anything, and never answers. Earlier releases append the other records and send the answer.
        Then the request fails: its error is a second answer, which closes the connection
        (``KafkaChannel.setSend``).
        """
        if self._broker.behaviour.null_records_unanswered:
            return
        failure = ErrorCode.UNKNOWN_SERVER_ERROR
        rest = tuple(entry for entry in request.partitions if entry.records is not None)
        fail = self._broker.replica_manager.produce.failed_produce

        def close(answer: ProduceResponse) -> None:
            failed = [
                fail(entry.topic_partition, failure)
                for entry in request.partitions
                if entry.records is None
            ]
            error = KafkaError(failure)
            if request.acks != 0:
                whole = changed(answer, partitions=(*answer.partitions, *failed))
                error = ClosingAnswer(failure, whole)
            self._broker.reply(delivery, error)

        self._broker.replica_manager.produce.append_records(
            changed(request, partitions=rest), delivery.context or INTERNAL_CONTEXT, close
        )

    def _produce_verified(self, request: ProduceRequest, delivery: Delivery) -> None:
        """Append records of a transactional producer; leaders since 3.6 verify the transaction with
        its coordinator first, unless configured otherwise (KIP-890)."""
        manager = self._broker.replica_manager
        append = (
            manager.verified_produce.append
            if self._broker.config["transaction.partition.verification.enable"]
            else manager.produce.append_records
        )
        append(
            request, delivery.context or INTERNAL_CONTEXT, partial(self._broker.answer, delivery)
        )

    def _lacks_transactional_id(self, request: ProduceRequest) -> bool:
        """Return whether a client sends batches of a transaction without the transactional id that
        this release requires."""
        if self._broker.behaviour.transactional_batches_need_id:
            for entry in request.partitions:
                if transactional_producer(entry.records) is not None:
                    return True
        return False

    def fetch(self, request: FetchRequest, delivery: Delivery) -> None:
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        reply: Callable[[FetchResponse], object] = partial(self._broker.answer, delivery)
        if context is not INTERNAL_CONTEXT and 0 <= context.api_version <= NEWEST_OLD_FETCH:
            reply = partial(self._answer_old_fetch, request, delivery)
        self._broker.replica_manager.fetch.fetch_messages(request, context, reply)

    def _answer_old_fetch(
        self, request: FetchRequest, delivery: Delivery, response: FetchResponse
    ) -> None:
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        hosted = self._broker.replica_manager.hosted.partition
        steps = conversion(request, response, context.api_version, hosted)
        self._broker.reply_with(self._converted(steps), delivery)

    async def _converted(self, steps: Generator[None, None, FetchResponse]) -> FetchResponse:
        """Run the steps of a conversion: the first at once, each other one after yielding."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            await sleep(self._broker, 0)

    def list_offsets(self, request: ListOffsetsRequest, delivery: Delivery) -> ListOffsetsResponse:
        return self._broker.replica_manager.offsets.list_offsets(
            request, delivery.context or INTERNAL_CONTEXT
        )

    def offset_for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest, _delivery: Delivery
    ) -> OffsetForLeaderEpochResponse:
        return self._broker.replica_manager.offsets.offsets_for_leader_epoch(request)

    def delete_records(self, request: DeleteRecordsRequest, delivery: Delivery) -> None:
        self._broker.replica_manager.offsets.delete_records(
            request,
            delivery.context or INTERNAL_CONTEXT,
            partial(self._broker.answer, delivery),
        )

    def metadata(self, request: MetadataRequest, delivery: Delivery) -> MetadataResponse | None:
        """Answer from the cache; missing topics are created first if client and broker allow it."""
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        response = self._broker.metadata_cache.metadata(request, context.listener)
        if (
            request.topics
            and request.allow_auto_topic_creation
            and self._broker.config["auto.create.topics.enable"]
        ):
            missing = [
                topic.name
                for topic in response.topics
                if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.name is not None
            ]
            if missing:
                self._broker.reply_with(self._with_auto_creation(response, missing), delivery)
                return None
        return response

    async def _with_auto_creation(
        self, response: MetadataResponse, missing: list[str]
    ) -> MetadataResponse:
        """Create missing topics, and return the response with the results
        (docs/kafka/administration.md#metadata)."""
        answers = await self._broker.admin.auto_creation.create(missing)
        topics = tuple(
            changed(topic, error=answers[topic.name])
            if topic.name is not None and topic.name in answers
            else topic
            for topic in response.topics
        )
        return changed(response, topics=topics)


def _unauthorized(request: ProduceRequest) -> ProduceResponse:
    error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ProduceResponse(
        tuple(ProducePartitionResponse(p.topic_partition, error) for p in request.partitions)
    )
