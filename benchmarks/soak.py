"""Memory of a server in which topics, groups and transactional ids come and go."""

from __future__ import annotations

import os
import sys
from typing import Any

from benchmarks.figures import announced_cluster, line, sized

FIRST, LAST = sized((200, 2000), (20, 40))
TOGETHER = 20
MB_MAX = 6
SERVE = [sys.executable, "-m", "fakekafka.cli.main", "serve", "--topic", "kept:3:3", "--log", "off"]
SOON = {
    "transactional.id.expiration.ms": 10_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 3_000,
    "max.incremental.fetch.session.cache.slots": 10,
    "offsets.topic.segment.bytes": 100_000,
    "transaction.state.log.segment.bytes": 100_000,
    "log.cleaner.backoff.ms": 2_000,
    "log.cleaner.min.cleanable.ratio": 0.1,
    "log.cleaner.delete.retention.ms": 1_000,
}
"""Settings with which Kafka keeps state for seconds that it keeps for days by default."""
SOON_MB_MAX = 2


def _megabytes(process_id: int) -> float:
    with open(f"/proc/{process_id}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _create_and_delete(servers: dict[str, Any], admin: Any, numbers: range) -> None:
    """Create topics, write to each in a transaction with its own id, commit an offset for a group
    of its own, and delete groups and topics."""
    import confluent_kafka
    from confluent_kafka.admin import NewTopic

    topics = {number: f"soak-{number}" for number in numbers}
    for created in admin.create_topics([NewTopic(t, 2, 3) for t in topics.values()]).values():
        created.result()
    for number, topic in topics.items():
        producer = confluent_kafka.Producer({**servers, "transactional.id": f"soak-{number}"})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(topic, b"x" * 100, partition=0)
        producer.commit_transaction()
        consumer = confluent_kafka.Consumer({**servers, "group.id": f"soak-{number}"})
        consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 1)], asynchronous=False)
        consumer.close()
    groups = [f"soak-{number}" for number in numbers]
    for group in groups:
        admin.delete_consumer_groups([group])[group].result()
    for deleted in admin.delete_topics(list(topics.values())).values():
        deleted.result()


def _sizes(config: dict[str, Any]) -> tuple[float, float]:
    """Return the resident memory of a server after ``FIRST`` topics, and after ``LAST``."""
    from confluent_kafka.admin import AdminClient

    sizes: dict[int, float] = {}
    options = [word for item in config.items() for word in ("--config", "{}={}".format(*item))]
    with announced_cluster([*SERVE, *options]) as (bootstrap_servers, process_id):
        servers: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
        admin = AdminClient(servers)
        for first in range(0, LAST, TOGETHER):
            _create_and_delete(servers, admin, range(first, first + TOGETHER))
            sizes[first + TOGETHER] = _megabytes(process_id)
    return sizes[FIRST], sizes[LAST]


def measure() -> None:
    """Print the growth with Kafka's defaults, and with settings under which ids expire and internal
    topics are compacted meanwhile."""
    title = "topics, groups, transactional ids that came and went"
    for condition, config, limit_mb in (
        (title, {}, MB_MAX),
        ("where they expire", SOON, SOON_MB_MAX),
    ):
        first_mb, last_mb = _sizes(config)
        line(f"after {FIRST:,} {condition}", f"{first_mb:.1f} MB")
        growth_mb = last_mb - first_mb
        line(
            f"  growth up to {LAST:,}",
            f"{growth_mb:.1f} MB",
            f"<= {limit_mb} MB",
            growth_mb <= limit_mb,
        )
