"""Memory of a server in which topics, groups and transactional ids come and go."""

from __future__ import annotations

import os
import sys
from typing import Any

from benchmarks.figures import announced_cluster, line, sized

FIRST, LAST = sized((200, 2000), (20, 40))
TOGETHER = 20
MB_MAX = 8
SERVE = [sys.executable, "-m", "fakekafka.cli.main", "serve", "--topic", "kept:1:3", "--log", "off"]


def _megabytes(process_id: int) -> float:
    with open(f"/proc/{process_id}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _come_and_go(servers: dict[str, Any], admin: Any, numbers: range) -> None:
    """Create topics, write to each in a transaction of an id of its own, commit for a group of its
    own, delete groups and topics."""
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


def measure() -> None:
    """Resident size of the server after so many, and after ten times as many."""
    from confluent_kafka.admin import AdminClient

    sizes: dict[int, float] = {}
    with announced_cluster(SERVE) as (bootstrap_servers, process_id):
        servers: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
        admin = AdminClient(servers)
        for first in range(0, LAST, TOGETHER):
            _come_and_go(servers, admin, range(first, first + TOGETHER))
            sizes[first + TOGETHER] = _megabytes(process_id)
    what = "topics, groups, transactional ids that came and went"
    line(f"after {FIRST:,} {what}", f"{sizes[FIRST]:.1f} MB")
    grown = sizes[LAST] - sizes[FIRST]
    line(f"  growth up to {LAST:,}", f"{grown:.1f} MB", f"<= {MB_MAX} MB", grown <= MB_MAX)
