"""Throttled replication (KIP-73, docs/kafka/replica-fetchers.md#throttles).

Topics name replicas that are throttled, and a broker how many bytes a second of these it may send
as leader and take as follower. Only replicas that are not in sync are held back, but what the
others copy counts. Source: Kafka's ``ReplicationQuotaManager`` and ``TopicConfigHandler``.
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
"""Bytes of an answer to a fetch that names no partition."""


class ReplicationQuota:
    """One side of a broker: which partitions are throttled there, and how much passed of them."""

    def __init__(
        self,
        config: BrokerConfig,
        rate_name: str,
        now_ms: Callable[[], int],
    ) -> None:
        self.answers_followers: Callable[[], bool] = lambda: False
        """Whether there are followers that this side answers all the time."""
        self._begin_ms = now_ms()
        self._config = config
        self._rate_name = rate_name
        self._now_ms = now_ms
        self._passed = ByteRate(
            config["replication.quota.window.num"],
            1000 * config["replication.quota.window.size.seconds"],
        )
        self.topics: dict[str, frozenset[int] | None] = {}
        """Partitions by topic, None for all of them. Whoever fetches or answers fetches keeps this
        very object, which is mostly empty: then nothing is throttled."""

    def throttle(self, topic: str, partitions: frozenset[int] | None) -> None:
        """Throttle these partitions of a topic, None for all, and no others of it.

        Kafka's leader counts all the time what is around the records of its answers. Here it begins
        when something is throttled, and what it would have counted before is made up for: how far
        back the windows reach says how much may pass at once.
        """
        if not self.topics and self.answers_followers():
            self._passed.fill(ANSWER_SIZE, self._begin_ms, self._now_ms())
        self.topics[topic] = partitions

    def release(self, topic: str) -> None:
        """Throttle no partition of a topic."""
        self.topics.pop(topic, None)

    def forget(self) -> None:
        """Throttle nothing and have counted nothing."""
        self.topics.clear()
        self._passed.clear()
        self._begin_ms = self._now_ms()

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        partitions = self.topics.get(topic_partition.topic, ())
        return partitions is None or topic_partition.partition in partitions

    def record(self, size: int) -> None:
        """Note that bytes of throttled partitions passed."""
        self._passed.record(size, self._now_ms())

    def record_answer(self, responses: Iterable[FetchPartitionResponse]) -> None:
        """Note what a follower is answered; records that are not throttled do not count."""
        size = ANSWER_SIZE
        for response in responses:
            if response.records and self.is_throttled(response.topic_partition):
                size += sum(len(batch.data) for batch in response.records)
        self.record(size)

    @property
    def is_exceeded(self) -> bool:
        """Whether more passed than is allowed."""
        return bool(self.per_second > self._config[self._rate_name])

    @property
    def per_second(self) -> float:
        """Bytes of throttled partitions, over the last windows."""
        return self._passed.per_second(self._now_ms())


class ReplicationQuotas:
    """Both sides of one broker, and how they follow the configurations of topics."""

    def __init__(self, broker_id: int, config: BrokerConfig, now_ms: Callable[[], int]) -> None:
        self._broker_id = broker_id
        self.leader: ReplicationQuota = ReplicationQuota(config, LEADER_THROTTLED_RATE, now_ms)
        self.follower: ReplicationQuota = ReplicationQuota(config, FOLLOWER_THROTTLED_RATE, now_ms)

    def topic_changed(self, topic: str, overrides: Mapping[str, str]) -> None:
        """The configuration of a topic changed, or was read at the start.

        A topic that is created with throttled replicas is not announced, so they are not throttled
        yet; and what was throttled when a topic was deleted still is (CP-202).
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
        """Throttle nothing and have counted nothing, as a broker that starts."""
        self.leader.forget()
        self.follower.forget()

    def _partitions(self, text: str) -> frozenset[int] | None:
        """Partitions of which this broker's replica is listed; None for all.

        Raises ``ValueError`` for what is no such list: Kafka fails, and nothing changes.
        """
        text = text.strip()
        if text == ALL_REPLICAS:
            return None
        partitions = set()
        for item in text.split(",") if text else ():
            if re.fullmatch("[0-9]+:[0-9]+", item.strip()) is None:
                raise ValueError(f"{item!r} in {text!r} is no partition:broker")
            partition, _, broker_id = item.partition(":")
            if int(broker_id) == self._broker_id:
                partitions.add(int(partition))
        return frozenset(partitions)
