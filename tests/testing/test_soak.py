"""Deleted topics, groups and ids leave only objects that Kafka, too, keeps until they expire."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import pytest
from fakekafka import Cluster, WaitTimeout

KEPT = {
    # Fetch sessions, until their slots are needed: max.incremental.fetch.session.cache.slots.
    "FetchSession", "FollowerFetch", "CachedPartition", "FetchRequest", "FetchPartition",
    "TopicPartition",
    # Transactional ids: transactional.id.expiration.ms.
    "TransactionMetadata",
    # Idempotent producers of a topic that stays: producer.id.expiration.ms.
    "ProducerEntry", "BatchMetadata",
    # Completed operations not yet purged: fetch.purgatory.purge.interval.requests.
    "DelayedFetch",
    # Slots of the timing wheels, created on first use; their number is bounded.
    "Bucket",
}  # fmt: skip
FEW = 12
"""Tolerated difference per class, for messages and requests in flight."""


def kinds() -> Counter[str]:
    """Return the number of objects of each class of this package."""
    gc.collect()
    return Counter(
        type(one).__name__
        for one in gc.get_objects()
        if str(type(one).__module__).startswith("fakekafka.")
    )


def come_and_go(cluster: Cluster, numbers: range, *, alone: bool) -> None:
    """Create and delete topics with a record, groups with a commit, and transactional ids."""
    import confluent_kafka
    from confluent_kafka.admin import AdminClient, NewTopic

    servers: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap_servers}
    admin = AdminClient(servers)
    topics = {number: f"soak-{number}" for number in numbers}
    for created in admin.create_topics([NewTopic(t, 2, 3) for t in topics.values()]).values():
        created.result()
    for number, topic in topics.items():
        cluster.produce(topic, "x")
        if number % 5 == 0 and not alone:
            producer = confluent_kafka.Producer({**servers, "transactional.id": topic})
            producer.init_transactions()
            producer.begin_transaction()
            producer.produce("kept", b"x")
            producer.commit_transaction()
            consumer = confluent_kafka.Consumer({**servers, "group.id": topic})
            consumer.commit(
                offsets=[confluent_kafka.TopicPartition("kept", 0, 1)], asynchronous=False
            )
            consumer.close()
            admin.delete_consumer_groups([topic])[topic].result()
    for deleted in admin.delete_topics(list(topics.values())).values():
        deleted.result()


SOON = {
    "transactional.id.expiration.ms": 1000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
    "max.incremental.fetch.session.cache.slots": 10,
    "offsets.topic.segment.bytes": 4000,
    "transaction.state.log.segment.bytes": 4000,
    "log.cleaner.backoff.ms": 500,
    "log.cleaner.min.cleanable.ratio": 0.1,
    "log.cleaner.delete.retention.ms": 100,
}
"""Configuration that shortens expiry from days to about a second."""
KEPT_STILL = {"DelayedFetch", "Bucket", "ProducerEntry", "BatchMetadata"}
"""Classes of ``KEPT`` that remain even so; expired producer ids are removed every ten minutes."""
INTERNAL = {"__consumer_offsets", "__transaction_state"}
INTERNAL_BYTES_MAX = 20_000


def internal_bytes(cluster: Cluster) -> int:
    """Return the size in bytes of the internal topics on one broker."""
    return sum(
        replica.size_bytes
        for directory in cluster.broker(1).log_dirs
        for replica in directory.replicas
        if replica.topic in INTERNAL
    )


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("alone", "config", "kept"),
    [(True, {}, KEPT), (False, {}, KEPT), (False, SOON, KEPT_STILL)],
    ids=["topics", "topics-groups-ids", "expired-and-compacted"],
)
def test_deleted_topics_groups_and_transactions_leave_no_objects(
    alone: bool, config: dict[str, Any], kept: set[str]
) -> None:
    """After 300 topics, groups and transactional ids no more objects remain than after 100.

    If only topics come and go, followers start and stop fetching with each.
    """
    pytest.importorskip("confluent_kafka")
    # Each broker leads a partition that stays, or its followers' fetchers would come and go as
    # well.
    with Cluster(3, topics={} if alone else {"kept": 3}, config=config) as cluster:
        for first in range(0, 100, 25):
            come_and_go(cluster, range(first, first + 25), alone=alone)
        before = kinds()
        for first in range(100, 300, 25):
            come_and_go(cluster, range(first, first + 25), alone=alone)
        more: dict[str, int] = {}
        left: dict[str, int] = {}

        def nothing_is_left() -> bool:
            more.clear()
            more.update((kinds() - before).items())
            left.clear()
            left.update((k, n) for k, n in more.items() if k not in kept and n > FEW)
            return not left

        try:
            cluster.wait_until(nothing_is_left, 20)
        except WaitTimeout as error:
            raise AssertionError(f"left behind: {left}") from error
        if config:
            cluster.wait_until(lambda: internal_bytes(cluster) < INTERNAL_BYTES_MAX, 20)
        else:
            assert more.get("TransactionMetadata", 0) == (0 if alone else 40)
            assert alone or internal_bytes(cluster) > INTERNAL_BYTES_MAX
