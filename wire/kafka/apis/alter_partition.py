"""AlterPartition: a leader proposes an ISR to the controller (KIP-497).

Brokers advertise this API, as Kafka's do, but send each other messages of actors instead. So a
sender over TCP is a client, and is answered as Kafka answers a client that is not a broker.
"""

from __future__ import annotations

from typing import Any

from ....protocol.control import (
    AlterIsrPartition,
    AlterIsrPartitionResponse,
    AlterIsrRequest,
    AlterIsrResponse,
)
from ....protocol.errors import ErrorCode
from ....protocol.values import TopicPartition
from ..api import Api, ApiCall, reads, writes
from ..topic_names import error_for_response, id_for_response, resolved_name
from ..topics import by_topic


def _read(
    call: ApiCall, broker_id: int, broker_epoch: int, topics: tuple[Any, ...]
) -> AlterIsrRequest:
    partitions = []
    for topic, topic_id, entries in topics:
        if call.version >= 2:
            topic = resolved_name(call.topic_names, topic_id)
        for number, leader_epoch, isr, isr_with_epochs, partition_epoch in entries:
            if call.version >= 3:
                isr = tuple([member for (member,) in isr_with_epochs])
            partition = TopicPartition(topic, number)
            partitions.append(AlterIsrPartition(partition, leader_epoch, isr, partition_epoch))
    return AlterIsrRequest(broker_id, broker_epoch, tuple(partitions))


def _answered(response: AlterIsrResponse, call: ApiCall) -> tuple[ErrorCode, list[Any]]:
    topics = [
        (
            topic,
            id_for_response(call.topic_names, topic),
            [_partition(result) for result in results],
        )
        for topic, results in by_topic(response.partitions)
    ]
    return response.error, topics


def _partition(result: AlterIsrPartitionResponse) -> tuple[Any, ...]:
    (topic, number), stored = result.topic_partition, result.leader_and_isr
    error = error_for_response(topic, result.error)
    if stored is None:
        return number, error, 0, 0, (), 0
    return number, error, stored.leader, stored.leader_epoch, stored.isr, stored.zk_version


ALTER_PARTITION = Api(
    56,
    reads(
        _read,
        "call brokerId brokerEpoch topics(topicName topicId partitions(partitionIndex leaderEpoch "
        "newIsr newIsrWithEpochs(brokerId) partitionEpoch))",
    ),
    writes(
        "[errorCode topics[topicName topicId partitions[partitionIndex errorCode leaderId "
        "leaderEpoch isr partitionEpoch]]]",
        convert=_answered,
    ),
)
"""Version 1 adds the recovery state, which is always ``recovered`` without KRaft (KIP-704), 2 topic
ids, 3 broker epochs with the ISR (KIP-903)."""
