"""Throttled replication (KIP-73, docs/kafka/replica-fetchers.md#throttles).

A topic's configuration names its throttled replicas, and a broker's the bytes per second that it
may send as leader and receive as follower for them. Only replicas that are not in sync are held
back, but the data of the others counts, too. Source: Kafka's ``ReplicationQuotaManager`` and
``TopicConfigHandler``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from ..protocol.config import BrokerConfig
from ..protocol.data import FetchPartitionResponse
from ..protocol.release_configs import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
)
from ..protocol.values import TopicPartition
from .byte_rate import ByteRate

ALL_REPLICAS = "*"
ANSWER_SIZE = 14
"""Size in bytes of a fetch response without partitions."""


class ReplicationQuota:
    """The throttled partitions of a broker as leader or as follower, and their data rate."""

    def __init__(
        self,
        config: BrokerConfig,
        rate_name: str,
        now_ms: Callable[[], int],
    ) -> None:
        self.answers_followers: Callable[[], bool] = lambda: False
        """Returns whether this broker constantly answers fetches of followers."""
        self._begin_ms = now_ms()
        self._config = config
        self._rate_name = rate_name
        self._now_ms = now_ms
        self._passed = ByteRate(
            config["replication.quota.window.num"],
            1000 * config["replication.quota.window.size.seconds"],
        )
        self.topics: dict[str, frozenset[int] | None] = {}
        """Throttled partitions by topic, None for all of a topic. Fetchers and fetch handlers keep
        a reference to this dictionary; it is usually empty, and then nothing is throttled."""

    def throttle(self, topic: str, partitions: frozenset[int] | None) -> None:
        """Throttle only these partitions of a topic, or all of them if None.

        Kafka's leader always counts the bytes of its responses around the records. Here, counting
        begins with the first throttle, and the counts missed before are added: how far back the
        windows reach determines how much may be sent at once.
        """
        if not self.topics and self.answers_followers():
            self._passed.fill(ANSWER_SIZE, self._begin_ms, self._now_ms())
        self.topics[topic] = partitions

    def release(self, topic: str) -> None:
        """Stop throttling a topic."""
        self.topics.pop(topic, None)

    def forget(self) -> None:
        """Remove all throttles and counts."""
        self.topics.clear()
        self._passed.clear()
        self._begin_ms = self._now_ms()

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        partitions = self.topics.get(topic_partition.topic, ())
        return partitions is None or topic_partition.partition in partitions

    def record(self, size: int) -> None:
        """Count bytes of throttled partitions."""
        self._passed.record(size, self._now_ms())

    def record_answer(self, responses: Iterable[FetchPartitionResponse]) -> None:
        """Count a response to a follower, without the records of partitions not throttled."""
        size = ANSWER_SIZE
        for response in responses:
            if response.records and self.is_throttled(response.topic_partition):
                size += sum(len(batch.data) for batch in response.records)
        self.record(size)

    @property
    def is_exceeded(self) -> bool:
        """True if the rate is above the configured limit."""
        return bool(self.per_second > self._config[self._rate_name])

    @property
    def per_second(self) -> float:
        """Bytes per second of throttled partitions, over the last windows."""
        return self._passed.per_second(self._now_ms())


class ReplicationQuotas:
    """The leader and follower quotas of one broker, kept up to date with topic configurations."""

    def __init__(self, broker_id: int, config: BrokerConfig, now_ms: Callable[[], int]) -> None:
        self._broker_id = broker_id
        self.leader: ReplicationQuota = ReplicationQuota(config, LEADER_THROTTLED_RATE, now_ms)
        self.follower: ReplicationQuota = ReplicationQuota(config, FOLLOWER_THROTTLED_RATE, now_ms)

    def topic_changed(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Apply a topic configuration that changed or was read at the start.

        A topic created with throttled replicas is not announced, so they are not throttled yet;
        partitions that were throttled when their topic was deleted still are (CP-202).
        """
        for quota, name in (
            (self.leader, LEADER_THROTTLED_REPLICAS),
            (self.follower, FOLLOWER_THROTTLED_REPLICAS),
        ):
            text = overrides.get(name, "")
            if text:
                quota.throttle(topic, self._partitions(text))
            else:
                quota.release(topic)

    def forget(self) -> None:
        """Remove all throttles and counts, as at the start of a broker."""
        self.leader.forget()
        self.follower.forget()

    def _partitions(self, text: str) -> frozenset[int] | None:
        """Return the partitions whose replica on this broker is listed; None for all.

        Raises ``ValueError`` for a malformed list: Kafka fails, and nothing changes.
        """
        text = text.strip()
        if text == ALL_REPLICAS:
            return None
        partitions = set()
        for item in text.split(",") if text else ():
            if re.fullmatch("[0-9]+:[0-9]+", item.strip()) is None:
                raise ValueError(f"{item!r} in {text!r} is not of the form partition:broker")
            partition, _, broker_id = item.partition(":")
            if int(broker_id) == self._broker_id:
                partitions.add(int(partition))
        return frozenset(partitions)
