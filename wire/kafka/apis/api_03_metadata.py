"""Metadata (key 3): brokers, controller, topics and the leaders of their partitions.

Versions 0-12. 0: an empty list asks for all topics. 1: null does; racks, controller, internal
topics. 2: cluster id. 4: automatic creation may be declined. 5: offline replicas. 7: leader
epochs. 8-10: authorized operations of the cluster (then DescribeCluster). 9: flexible. 10: topic
ids. 12: topics asked for by id. The hot path of a client's start, written with as few calls as
possible. LISTENER_NOT_FOUND came with 6; only version 0 hides replicas on dead brokers
(docs/kafka/administration.md#metadata).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from struct import pack

from ....protocol.data import MetadataPartition, MetadataRequest, MetadataResponse, MetadataTopic
from ....protocol.errors import ErrorCode
from ....protocol.values import ZERO_UUID, uuid_bytes, uuid_text
from ..api import Api, CodecAnswer
from ..endpoints import write_address
from ..primitives import CompactWriter, Reader, Writer

NOT_ASKED = -2147483648
"""Authorized operations where the client did not ask for them."""
ALL_CLUSTER_OPERATIONS = 8096
ALL_TOPIC_OPERATIONS = 3576
"""Bit sets of all operations of the resource type: what a broker without an authorizer answers."""
_COUNT_IN_ONE_BYTE_MAX = 126
_FIRST_WITH_IDS = 12


def decode(reader: Reader, version: int) -> MetadataRequest | CodecAnswer:
    names: list[str] | None = []
    ids: list[str] = []
    asked: list[tuple[str | None, bytes]] = []
    count = reader.nullable_array() if version >= 1 else reader.array()
    if count < 0 or (version == 0 and count == 0):
        names = None
    else:
        names = []
        for _ in range(count):
            topic_id = reader.uuid() if version >= 10 else ZERO_UUID
            name = reader.nullable_string() if version >= 10 else reader.string()
            reader.tags()
            asked.append((name, topic_id))
            if topic_id != ZERO_UUID:
                ids.append(uuid_text(topic_id))
            else:
                names.append(name or "")
        if ids:
            names = []  # KafkaApis.handleTopicMetadataRequest looks for names or for ids
    may_create = reader.boolean() if version >= 4 else True
    cluster_operations = reader.boolean() if 8 <= version <= 10 else False
    topic_operations = reader.boolean() if version >= 8 else False
    reader.tags()
    if version >= 10 and (error := _refusal(asked, version)) is not None:
        return CodecAnswer(_refused(asked, error))
    return MetadataRequest(
        None if names is None else tuple(names),
        may_create,
        tuple(ids),
        cluster_operations,
        topic_operations,
    )


def _refusal(asked: Sequence[tuple[str | None, bytes]], version: int) -> ErrorCode | None:
    """Why the whole request fails, if it does.

    ``KafkaApis.handleTopicMetadataRequest`` takes ids from version 12 on, and needs names before;
    a null name among names ends in a NullPointerException.
    """
    has_ids = any(topic_id != ZERO_UUID for _, topic_id in asked)
    has_nulls = any(name is None for name, _ in asked)
    if version < _FIRST_WITH_IDS:
        return ErrorCode.INVALID_REQUEST if has_ids or has_nulls else None
    return ErrorCode.UNKNOWN_SERVER_ERROR if has_nulls and not has_ids else None


def _refused(asked: Sequence[tuple[str | None, bytes]], error: ErrorCode) -> MetadataResponse:
    """Nothing but the topics and the error (``MetadataRequest.getErrorResponse``)."""
    topics = [
        MetadataTopic(error, name or "", False, (), "" if i == ZERO_UUID else uuid_text(i))
        for name, i in asked
    ]
    return MetadataResponse((), "", -1, tuple(topics))


def encode(writer: Writer, version: int, response: MetadataResponse, request: object) -> None:
    if version >= 3:
        writer.int32(writer.throttle_ms)
    writer.array(len(response.brokers))
    for broker in response.brokers:
        write_address(writer, broker)
        if version >= 1:
            writer.nullable_string(broker.rack)
        writer.tags()
    if version >= 2:
        writer.nullable_string(response.cluster_id or None)
    if version >= 1:
        writer.int32(response.controller_id)
    asked = isinstance(request, MetadataRequest) and request.include_topic_authorized_operations
    writer.array(len(response.topics))
    alive = frozenset(broker.id for broker in response.brokers) if version == 0 else None
    for topic in response.topics:
        _encode_topic(writer, version, topic, asked, alive)
    if 8 <= version <= 10:
        asked = (
            isinstance(request, MetadataRequest) and request.include_cluster_authorized_operations
        )
        writer.int32(operations(response.authorized_operations, asked, ALL_CLUSTER_OPERATIONS))
    writer.tags()


def operations(allowed: int | None, asked: bool, all_operations: int) -> int:
    """The bit set of authorized operations to answer."""
    if not asked:
        return NOT_ASKED
    return all_operations if allowed is None else allowed


def _encode_topic(
    writer: Writer, version: int, topic: MetadataTopic, asked: bool, alive: frozenset[int] | None
) -> None:
    writer.int16(topic.error)
    if version >= 12:
        writer.nullable_string(topic.name)
    else:
        writer.string(topic.name or "")
    if version >= 10:
        writer.uuid(uuid_bytes(topic.topic_id))
    if version >= 1:
        writer.boolean(topic.is_internal)
    writer.array(len(topic.partitions))
    parts = writer.parts
    for partition in topic.partitions:
        if alive is not None:
            partition = _without_dead_replicas(partition, alive)
        parts.append(
            _flexible_partition(partition)
            if version >= 9
            else _classic_partition(partition, version)
        )
    if version >= 8:
        writer.int32(operations(topic.authorized_operations, asked, ALL_TOPIC_OPERATIONS))
    writer.tags()


def _flexible_partition(partition: MetadataPartition) -> bytes:
    replicas, isr, offline = partition.replicas, partition.isr, partition.offline_replicas
    replica_count, isr_count, offline_count = len(replicas), len(isr), len(offline)
    if max(replica_count, isr_count, offline_count) > _COUNT_IN_ONE_BYTE_MAX:
        return _many_replicas_partition(partition)
    return pack(
        f">hiiiB{replica_count}iB{isr_count}iB{offline_count}iB",
        partition.error,
        partition.partition,
        partition.leader,
        partition.leader_epoch,
        replica_count + 1,
        *replicas,
        isr_count + 1,
        *isr,
        offline_count + 1,
        *offline,
        0,
    )


def _many_replicas_partition(partition: MetadataPartition) -> bytes:
    writer = CompactWriter()
    writer.int16(partition.error)
    writer.int32(partition.partition)
    writer.int32(partition.leader)
    writer.int32(partition.leader_epoch)
    writer.int32s(partition.replicas)
    writer.int32s(partition.isr)
    writer.int32s(partition.offline_replicas)
    writer.tags()
    return b"".join(writer.parts)


def _without_dead_replicas(
    partition: MetadataPartition, alive: frozenset[int]
) -> MetadataPartition:
    """The partition for clients of version 0, which cannot be told of brokers that are down."""
    replicas = tuple(replica for replica in partition.replicas if replica in alive)
    isr = tuple(replica for replica in partition.isr if replica in alive)
    if replicas == partition.replicas and isr == partition.isr:
        return partition
    error = partition.error
    if error is ErrorCode.NONE:
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return replace(partition, error=error, replicas=replicas, isr=isr)


def _classic_partition(partition: MetadataPartition, version: int) -> bytes:
    replicas, isr, offline = partition.replicas, partition.isr, partition.offline_replicas
    error = partition.error
    if version < 6 and error is ErrorCode.LISTENER_NOT_FOUND:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    encoded = pack(">hii", error, partition.partition, partition.leader)
    if version >= 7:
        encoded += pack(">i", partition.leader_epoch)
    encoded += pack(f">i{len(replicas)}ii{len(isr)}i", len(replicas), *replicas, len(isr), *isr)
    if version >= 5:
        encoded += pack(f">i{len(offline)}i", len(offline), *offline)
    return encoded


API = Api(3, "Metadata", 0, 12, flexible_from=9, decode=decode, encode=encode)
