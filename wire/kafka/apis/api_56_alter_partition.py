"""AlterPartition (key 56): a leader proposes an ISR to the controller (KIP-497).

Versions 0-3, flexible. 1: the recovery state (KIP-704). 2: topic ids. 3: broker epochs with the ISR
(KIP-903). Brokers advertise it, as Kafka's do; those of this package send each other messages. So
whoever sends it over TCP is a client, and is answered as Kafka answers one that is no broker.
"""

from __future__ import annotations

from ....protocol.control import (
    AlterIsrPartition,
    AlterIsrPartitionResponse,
    AlterIsrRequest,
    AlterIsrResponse,
)
from ....protocol.values import TopicPartition
from ..api import Api
from ..primitives import Reader, Writer, by_topic
from ..topic_names import error_to_answer, id_to_answer, resolved_name


def decode(reader: Reader, version: int) -> AlterIsrRequest:
    broker_id, broker_epoch = reader.int32(), reader.int64()
    partitions: list[AlterIsrPartition] = []
    for _ in range(reader.array()):
        topic = resolved_name(reader.names, reader.uuid()) if version >= 2 else reader.string()
        for _ in range(reader.array()):
            number, leader_epoch = reader.int32(), reader.int32()
            isr = _isr_with_epochs(reader) if version >= 3 else reader.int32s()
            if version >= 1:
                reader.int8()  # the recovery state: recovered, without KRaft
            partition = TopicPartition(topic, number)
            partitions.append(AlterIsrPartition(partition, leader_epoch, isr, reader.int32()))
            reader.tags()
        reader.tags()
    reader.tags()
    return AlterIsrRequest(broker_id, broker_epoch, tuple(partitions))


def _isr_with_epochs(reader: Reader) -> tuple[int, ...]:
    members: list[int] = []
    for _ in range(reader.array()):
        members.append(reader.int32())
        reader.int64()  # the member's broker epoch
        reader.tags()
    return tuple(members)


def encode(
    writer: Writer, version: int, response: AlterIsrResponse, request: AlterIsrRequest | None
) -> None:
    writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    topics = by_topic(response.partitions)
    writer.array(len(topics))
    for topic, results in topics:
        if version >= 2:
            writer.uuid(id_to_answer(writer.names, topic))
        else:
            writer.string(topic)
        writer.array(len(results))
        for result in results:
            _encode_partition(writer, version, result)
        writer.tags()
    writer.tags()


def _encode_partition(writer: Writer, version: int, result: AlterIsrPartitionResponse) -> None:
    partition, stored = result.topic_partition, result.leader_and_isr
    writer.int32(partition.partition)
    writer.int16(error_to_answer(partition.topic, result.error))
    writer.int32(0 if stored is None else stored.leader)
    writer.int32(0 if stored is None else stored.leader_epoch)
    writer.int32s(() if stored is None else stored.isr)
    if version >= 1:
        writer.int8(0)  # the recovery state
    writer.int32(0 if stored is None else stored.zk_version)
    writer.tags()


API = Api(56, "AlterPartition", 0, 3, flexible_from=0, decode=decode, encode=encode)
