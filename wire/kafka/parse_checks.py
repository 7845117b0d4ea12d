"""Checks of old releases while they parse a request: an invalid value closes the connection.

Later releases answer with an error instead. Source: the constructors of ``ProduceRequest``,
``FetchRequest``, ``ListOffsetRequest``, ``FindCoordinatorRequest``, ``DescribeConfigsRequest`` and
``AlterConfigsRequest`` of Kafka 1.1, and ``RequestContext.parseRequest``; the ``Protocol`` of Kafka
0.10.1 for ``CreateTopicsRequest``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...protocol.errors import ClientError
from ...protocol.records.format import LENGTH_OVERHEAD, Readable
from ...protocol.versions import Behaviour
from .api import CodecAnswer, SplitRequest

if TYPE_CHECKING:
    from ...protocol.admin import AlterConfigsRequest, CreateTopicsRequest, DescribeConfigsRequest
    from ...protocol.data import (
        FetchRequest,
        FindCoordinatorRequest,
        ListOffsetsRequest,
        ProduceRequest,
    )

_BATCH_HEADER_BYTES = 61
_MAGIC_AT = 16
_FIRST_WITH_BATCHES_ONLY = 3
_COORDINATOR_TYPES = (0, 1)


def _check_produce(request: ProduceRequest | SplitRequest, version: int) -> None:
    """Check that each partition has records, since version 3 exactly one batch of format v2."""
    whole: ProduceRequest = request.whole if isinstance(request, SplitRequest) else request
    for entry in whole.partitions:
        records = entry.records
        if records is None:
            raise ClientError(f"there are no records for {entry.topic_partition}")
        if version >= _FIRST_WITH_BATCHES_ONLY and not _is_one_batch(records):
            raise ClientError(f"expected exactly one batch for {entry.topic_partition}")


def _is_one_batch(records: Readable) -> bool:
    if len(records) < _BATCH_HEADER_BYTES or records[_MAGIC_AT] != 2:
        return False
    rest = len(records) - _size_of_first(records)
    return rest >= 0 and (rest <= _MAGIC_AT or rest < _size_of_first(records[-rest:]))


def _size_of_first(records: Readable) -> int:
    size = int.from_bytes(records[8:12], "big", signed=True) + LENGTH_OVERHEAD
    return max(size, _BATCH_HEADER_BYTES)


def _check_isolation(
    request: FetchRequest | ListOffsetsRequest | CodecAnswer, _version: int
) -> None:
    """Refuse an unknown isolation level, for which decoding gives a ``CodecAnswer``."""
    if isinstance(request, CodecAnswer):
        raise ClientError("unknown isolation level")


def _check_coordinator_type(request: FindCoordinatorRequest, _version: int) -> None:
    if request.key_type not in _COORDINATOR_TYPES:
        raise ClientError(f"unknown coordinator type {request.key_type}")


def _check_resource_types(
    request: DescribeConfigsRequest | AlterConfigsRequest, _version: int
) -> None:
    for resource, _ in request.resources:
        if resource.type < 0:
            raise ClientError(f"unknown resource type {resource.type}")


def _check_topic_configs(request: CreateTopicsRequest, _version: int) -> None:
    for topic in request.topics:
        for name, value in topic.config:
            if value is None:
                raise ClientError(f"configuration {name} of topic {topic.name} is null")


def parse_checks(flags: Behaviour) -> dict[int, Callable[[Any, int], None]]:
    """Return the checks of a release by API key; each raises ``ClientError``."""
    checking: tuple[tuple[int, bool, Callable[[Any, int], None]], ...] = (
        (0, flags.produce_checked_while_parsing, _check_produce),
        (1, not flags.fetch_generated, _check_isolation),
        (2, not flags.list_offsets_generated, _check_isolation),
        (10, not flags.find_coordinator_generated, _check_coordinator_type),
        (19, not flags.topic_configs_may_be_null, _check_topic_configs),
        (32, not flags.describe_configs_generated, _check_resource_types),
        (33, not flags.alter_configs_generated, _check_resource_types),
    )
    return {key: check for key, checks, check in checking if checks}
