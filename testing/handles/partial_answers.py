"""The partitions of a request, and answers with an injected error for some of them.

The broker serves the other partitions, and the error is merged into its answer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...protocol import data, groups, transactions
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from ...wire.kafka.error_responses import error_response

Errors = Mapping[TopicPartition, ErrorCode]

_PARTITION_FIELDS = ("partitions", "partition_states", "offsets")
"""Fields of requests that hold partitions, or items about one partition each."""

_DIVISIBLE: dict[type, str] = {
    data.ProduceRequest: "partitions",
    data.ListOffsetsRequest: "partitions",
    data.OffsetForLeaderEpochRequest: "partitions",
    data.DeleteRecordsRequest: "offsets",
    groups.OffsetCommitRequest: "partitions",
    transactions.TxnOffsetCommitRequest: "partitions",
    transactions.DescribeProducersRequest: "partitions",
}
"""Requests that can be served without some of their partitions, and the field that holds these."""

_FETCH_SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
)


def _key(item: Any) -> TopicPartition | None:
    """Return the partition that an item of a request or a response is about."""
    if isinstance(item, TopicPartition):
        return item
    found = getattr(item, "topic_partition", item[0] if type(item) is tuple and item else None)
    return found if isinstance(found, TopicPartition) else None


def partitions_of(request: Any, broker: Any) -> list[TopicPartition] | None:
    """Return the partitions a request is about; None for a request that is not about partitions.

    An incremental fetch is about every partition of its fetch session.
    """
    for name in _PARTITION_FIELDS:
        items = getattr(request, name, None)
        if isinstance(items, tuple):
            found = [key for item in items if (key := _key(item)) is not None]
            if type(request) is data.FetchRequest and request.session_epoch > 0:
                session = broker.replica_manager.fetch.sessions.get(request.session_id)
                session_partitions = () if session is None else session.partitions
                found += [key for key in session_partitions if key not in found]
            return found
    return None


def topics_of(request: Any, broker: Any) -> list[str] | None:
    """Return the topics a request is about; None for a request about no topics or all topics."""
    partitions = partitions_of(request, broker)
    if partitions is not None:
        return [key.topic for key in partitions]
    topics = getattr(request, "topics", None)
    if topics is None:
        return None
    return [str(getattr(topic, "name", topic)) for topic in topics]


def concerns(request: Any, broker: Any, topic: str, partition: int | None) -> bool:
    """Return whether a request is about a topic, or about one partition of it.

    A MetadataRequest for all topics is about each.
    """
    if type(request) is data.MetadataRequest:
        return request.topics is None or topic in request.topics
    if partition is None:
        return topic in (topics_of(request, broker) or ())
    return TopicPartition(topic, partition) in (partitions_of(request, broker) or ())


class Plan:
    """A request for the broker to serve, and a function that puts the error into its answer.

    ``request`` is None if the broker need not be asked; the answer is then ``answer(None)``.
    """

    __slots__ = ("answer", "request")

    def __init__(self, request: Any, answer: Callable[[Any], Any]) -> None:
        self.request: Any = request
        self.answer: Callable[[Any], Any] = answer


def plan_answer(request: Any, errors: Errors, request_error: ErrorCode) -> Plan:
    """Return the plan for answering a request with errors of some partitions.

    ``request_error`` is the error of a request that cannot be split by partition, or fails as a
    whole.
    """
    kind = type(request)
    if kind is data.MetadataRequest and errors:
        return Plan(request, lambda answer: _merge_metadata(answer, errors))
    if kind is data.FetchRequest and errors and request_error not in _FETCH_SESSION_ERRORS:
        # The broker serves all partitions, so that client and broker agree on the fetch session.
        immediate_request = dataclasses.replace(request, max_wait_ms=0)
        return Plan(immediate_request, lambda answer: _merge_fetch(answer, errors))
    field = _DIVISIBLE.get(kind)
    if field is None or not errors:
        return Plan(None, lambda _: error_response(request, request_error))
    items = getattr(request, field)
    failing = [item for item in items if _key(item) in errors]
    serving = tuple(item for item in items if _key(item) not in errors)
    results: dict[TopicPartition | None, Any] = {}
    for item in failing:
        key = _key(item)
        assert key is not None
        part = error_response(dataclasses.replace(request, **{field: (item,)}), errors[key])
        results[key] = part.partitions[0]

    def merge(answer: Any) -> Any:
        served = () if answer is None else answer.partitions
        found = {_key(result): result for result in served} | results
        every = tuple(found[_key(item)] for item in items if _key(item) in found)
        if answer is None:
            answer = error_response(request, request_error)
        return dataclasses.replace(answer, partitions=every)

    reduced_request = dataclasses.replace(request, **{field: serving}) if serving else None
    return Plan(reduced_request, merge)


def _merge_fetch(answer: data.FetchResponse, errors: Errors) -> data.FetchResponse:
    if answer.error is not ErrorCode.NONE:
        return answer
    failed = tuple(data.FetchPartitionResponse(key, error) for key, error in errors.items())
    served = tuple(part for part in answer.partitions if part.topic_partition not in errors)
    return dataclasses.replace(answer, partitions=served + failed)


def _merge_metadata(answer: data.MetadataResponse, errors: Errors) -> data.MetadataResponse:
    """Put errors into the answer, in which a failing partition has no leader.

    The key with partition -1 is the error of a topic.
    """

    def partitions(topic: data.MetadataTopic) -> Iterable[data.MetadataPartition]:
        for part in topic.partitions:
            error = errors.get(TopicPartition(topic.name or "", part.partition))
            yield part if error is None else dataclasses.replace(part, error=error, leader=-1)

    def changed(topic: data.MetadataTopic) -> data.MetadataTopic:
        error = errors.get(TopicPartition(topic.name or "", -1))
        if error is not None:
            return dataclasses.replace(topic, error=error, partitions=())
        return dataclasses.replace(topic, partitions=tuple(partitions(topic)))

    return dataclasses.replace(answer, topics=tuple(map(changed, answer.topics)))
