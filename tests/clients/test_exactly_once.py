"""Consume, transform and produce with real clients: exactly once, whichever broker dies.

``FAKEKAFKA_EXACTLY_ONCE_KILLS`` sets how many brokers are killed (20).
"""

from __future__ import annotations

import os
import random
import threading
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from fakekafka import Cluster
from fakekafka.testing.handles.broker import BrokerHandle
from fakekafka.zkfake.messages import ZooKeeperError

pytestmark = [pytest.mark.clients, pytest.mark.slow]

KILLS = int(os.environ.get("FAKEKAFKA_EXACTLY_ONCE_KILLS", "20"))
STARTS_MAX = 4
PARTITIONS = 2
GROUP = "copiers"
STUCK_S = 15
"""Seconds after which a copier counts as stuck; longer than its transactions and the consumer's
poll interval.
"""
POLLED: dict[str, Any] = {"max.poll.interval.ms": 10_000}
FAST = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100}


def consumer_of(cluster: Cluster, group: str = GROUP, **config: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "log_level": 0,
            **FAST,
            **config,
        }
    )


class Copier(threading.Thread):
    """Copies from one topic to the other, and restarts after each error that ends a transaction.

    A stuck instance is abandoned and fenced by the next one, as a supervisor of a program would do:
    ``send_offsets_to_transaction`` of librdkafka 2.16 may wait for a coordinator that has left its
    metadata, whatever the timeout (librdkafka issues 5511 and 5456).
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(name="copier")
        self.cluster = cluster
        self.stopping = threading.Event()
        self.committed = 0
        self.aborted = 0
        self.instances = 0
        self.failure: BaseException | None = None
        self._busy_since_s: float | None = None
        """When the transaction began that is under way."""

    def run(self) -> None:
        while not self.stopping.is_set() and self.failure is None:
            self.instances += 1
            self._busy_since_s = None
            instance = threading.Thread(
                target=self._be_instance, args=(self.instances,), name="copier", daemon=True
            )
            instance.start()
            while instance.is_alive() and not self._is_stuck():
                instance.join(0.2)

    def _is_stuck(self) -> bool:
        since_s = self._busy_since_s
        return since_s is not None and time.monotonic() - since_s > STUCK_S

    def _be_instance(self, number: int) -> None:
        try:
            self._copy()
        except BaseException as error:
            if number == self.instances:
                self.failure = error

    def _copy(self) -> None:
        """Copy until a fatal error, after which another producer has to continue."""
        consumer = consumer_of(self.cluster, GROUP, **POLLED)
        producer = Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "transactional.id": "copy",
                "log_level": 0,
                **FAST,
            }
        )
        try:
            producer.init_transactions(60)
            consumer.subscribe(["in"])
            while not self.stopping.is_set():
                messages = [m for m in consumer.consume(20, 0.2) if m.error() is None]
                if not messages:
                    continue
                self._busy_since_s = time.monotonic()
                goes_on = self._transact(producer, consumer, messages)
                self._busy_since_s = None
                if not goes_on:
                    return
        except KafkaException as error:
            if not self._is_expected(error.args[0]):
                raise
        finally:
            consumer.close()

    def _transact(self, producer: Producer, consumer: Consumer, messages: list[Any]) -> bool:
        """Run one transaction; return False if another instance has to resume from the committed
        offsets.
        """
        positions = {(m.topic(), m.partition()): m.offset() + 1 for m in messages}
        group = consumer.consumer_group_metadata()
        try:
            producer.begin_transaction()
            for message in messages:
                producer.produce("out", message.value(), partition=message.partition())
            offsets = [TopicPartition(*where, offset) for where, offset in positions.items()]
            producer.send_offsets_to_transaction(offsets, group, 30)
            self._commit(producer)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.txn_requires_abort():
                self.aborted += 1
                producer.abort_transaction(60)
            elif not self._is_expected(reason):
                raise
            return False
        self.committed += 1
        return True

    def _commit(self, producer: Producer) -> None:
        while True:
            try:
                producer.commit_transaction(30)
                return
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def _is_expected(self, error: KafkaError) -> bool:
        """Return whether an application restarts after this error."""
        return bool(error.fatal() or error.retriable() or error.txn_requires_abort())


def read_all(cluster: Cluster, topic: str, count: int) -> dict[int, list[int]]:
    """Return the committed values of each partition: ``count`` of them and any that follow a moment
    later.
    """
    consumer = consumer_of(cluster, "checker")
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    values: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    deadline_s = time.monotonic() + 60
    late_s: float | None = None
    while time.monotonic() < (deadline_s if late_s is None else late_s):
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                values[message.partition() or 0].append(int(message.value() or b""))
        if late_s is None and sum(map(len, values.values())) >= count:
            late_s = time.monotonic() + 1
    consumer.close()
    return values


def start(broker: BrokerHandle) -> None:
    """Start a broker, again if its session expires meanwhile, as on a busy machine."""
    for attempt in range(STARTS_MAX):
        try:
            broker.start()
            return
        except ZooKeeperError:
            if attempt == STARTS_MAX - 1:
                raise


def test_random_kills_while_confluent_kafka_copies() -> None:
    """DP-133: brokers die, including coordinators and leaders, and the copy equals the original."""
    chance = random.Random(7)
    config = {
        "zookeeper.session.timeout.ms": "500",
        "replica.fetch.backoff.ms": "10",
        "zookeeper.connection.timeout.ms": "5000",
    }
    topics = {"in": PARTITIONS, "out": PARTITIONS}
    with Cluster(4, config=config, topics=topics) as cluster:
        source = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 1,
                "log_level": 0,
                **FAST,
            }
        )
        copier = Copier(cluster)
        copier.start()
        sent = 0
        pause = threading.Event()
        for _ in range(KILLS):
            for _ in range(chance.randint(5, 40)):
                source.produce("in", b"%d" % sent, partition=sent % PARTITIONS)
                sent += 1
            source.poll(0)
            topic = chance.choice(["__transaction_state", "__consumer_offsets", "in", "out"])
            number = 0 if topic.startswith("__") else chance.randrange(PARTITIONS)
            leader = cluster.partition(topic, number).leader if topic in cluster.topics() else None
            victim = cluster.broker(leader if leader in (1, 2, 3, 4) else chance.randint(1, 4))
            victim.kill()
            pause.wait(chance.choice((0.05, 0.3, 0.6)))
            start(victim)
            pause.wait(chance.choice((0.0, 0.2)))
        assert source.flush(60) == 0
        originals = read_all(cluster, "in", sent)
        copies = read_all(cluster, "out", sent)
        copier.stopping.set()
        copier.join(60)
        assert copier.failure is None
        assert sorted(v for values in originals.values() for v in values) == list(range(sent))
        assert copies == originals
        assert copier.committed > 0
        assert cluster.failures == []
