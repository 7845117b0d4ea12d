"""Kafka's internal topics: their names, and the settings they are created with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .config import BrokerConfig

if TYPE_CHECKING:
    from .admin import NewTopic

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)


def internal_topic(name: str, config: BrokerConfig) -> NewTopic | None:
    """Return the settings of a new internal topic; None for any other name.

    Kafka: ``GroupCoordinator.offsetsTopicConfigs``,
    ``TransactionStateManager.transactionTopicConfigs``.
    """
    from .admin import NewTopic  # not imported until needed, so that a cluster starts faster

    if name == OFFSETS_TOPIC:
        return NewTopic(
            name,
            config["offsets.topic.num.partitions"],
            config["offsets.topic.replication.factor"],
            (),
            (
                ("compression.type", "producer"),
                ("cleanup.policy", "compact"),
                ("segment.bytes", str(config["offsets.topic.segment.bytes"])),
            ),
        )
    if name == TRANSACTIONS_TOPIC:
        return NewTopic(
            name,
            config["transaction.state.log.num.partitions"],
            config["transaction.state.log.replication.factor"],
            (),
            (
                ("unclean.leader.election.enable", "false"),
                ("compression.type", "uncompressed"),
                ("cleanup.policy", "compact"),
                ("min.insync.replicas", str(config["transaction.state.log.min.isr"])),
                ("segment.bytes", str(config["transaction.state.log.segment.bytes"])),
            ),
        )
    return None
