"""Mapping of groups and transactional ids to partitions of the internal topics (Kafka:
``GroupMetadataManager.partitionFor``, ``TransactionStateManager.partitionFor``)."""

from __future__ import annotations

from ..protocol.config import BrokerConfig
from ..protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ..protocol.java_hashing import bucket_of, java_string_hash
from ..replication.partition.metadata_cache import MetadataCache

_COUNT_CONFIGS = {
    OFFSETS_TOPIC: "offsets.topic.num.partitions",
    TRANSACTIONS_TOPIC: "transaction.state.log.num.partitions",
}


def coordinating_partition(
    topic: str, key: str, metadata_cache: MetadataCache, config: BrokerConfig
) -> int:
    """Return the number of the partition whose leader coordinates the key.

    While the topic does not exist, the configured number of partitions applies.
    """
    count = metadata_cache.partition_count(topic) or config[_COUNT_CONFIGS[topic]]
    return bucket_of(java_string_hash(key), count)
