"""Consumers of the consumer protocol (KIP-848), whose coordinator assigns partitions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from fakekafka import Cluster, UsageError
from fakekafka.tests.support.present import present

pytestmark = [pytest.mark.clients, pytest.mark.slow]
RECORDS = 30
PROTOCOLS = {"group.coordinator.rebalance.protocols": "classic,consumer"}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    config = {**PROTOCOLS, "group.consumer.migration.policy": "bidirectional"}
    with Cluster(3, topics={"t": 6}, config=config) as cluster:
        for number in range(RECORDS):
            cluster.produce("t", str(number), partition=number % 6)
        yield cluster
        assert cluster.failures == []


class Member(threading.Thread):
    """A consumer that reads until it is stopped."""

    def __init__(self, cluster: Cluster, name: str, topic: str = "t", **settings: Any) -> None:
        super().__init__(name=name, daemon=True)
        self.read: list[bytes] = []
        self._topic = topic
        self._leaves = threading.Event()
        self.consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "client.id": name,
                "group.id": "g",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 100,
                "log_level": 0,
                **settings,
            }
        )
        self.start()

    def run(self) -> None:
        self.consumer.subscribe([self._topic])
        while not self._leaves.is_set():
            message = self.consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.read.append(present(message.value()))
        self.consumer.close()

    def leave(self) -> None:
        self._leaves.set()
        self.join(20)


def is_shared(cluster: Cluster, *names: str) -> Callable[[], bool]:
    """Return a condition: members with these client ids own all six partitions, evenly, in a stable
    group.
    """

    def look() -> bool:
        group = cluster.group("g")
        sizes = {member.client_id: len(member.assignment) for member in group.members}
        is_fair = sum(sizes.values()) == 6 and max(sizes.values()) - min(sizes.values()) <= 1
        return group.state == "Stable" and sorted(sizes) == sorted(names) and is_fair

    return look


def values(*members: Member) -> list[bytes]:
    return sorted(value for member in members for value in member.read)


def test_members_share_a_topic_and_survive_their_coordinator(cluster: Cluster) -> None:
    """Members leave, join and move to the next coordinator without losing a record.

    A partition that moves before its offsets are committed is read again, as in Kafka; one whose
    offsets are all committed is not.
    """
    members = [Member(cluster, f"m{number}") for number in range(3)]
    try:
        cluster.wait_until(is_shared(cluster, "m0", "m1", "m2"), 20)
        cluster.wait_until(lambda: sum(cluster.group("g").offsets.values()) == RECORDS, 20)
        read = values(*members)
        assert set(read) == {str(number).encode() for number in range(RECORDS)}
        gone = members[0].read
        coordinator = present(cluster.group("g").coordinator)
        cluster.broker(coordinator).kill()
        cluster.wait_until(lambda: cluster.group("g").coordinator not in (None, coordinator), 20)
        members.pop(0).leave()
        members.append(Member(cluster, "m3"))
        cluster.wait_until(is_shared(cluster, "m1", "m2", "m3"), 30)
        cluster.broker(coordinator).start()
        cluster.produce("t", "late", partition=3)
        cluster.wait_until(lambda: b"late" in values(*members), 20)
        assert sorted([*read, b"late"]) == sorted([*values(*members), *gone])
    finally:
        for member in members:
            member.leave()


def test_administrators_see_the_group(cluster: Cluster) -> None:
    """They see its type, state, assignor and assignments, and can delete it when it is empty."""
    member = Member(cluster, "m0", **{"group.instance.id": "s", "group.remote.assignor": "range"})
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    try:
        cluster.wait_until(is_shared(cluster, "m0"), 20)
        listed = admin.list_consumer_groups().result(10).valid
        assert [(g.group_id, g.type) for g in listed] == [("g", ConsumerGroupType.CONSUMER)]
        described = admin.describe_consumer_groups(["g"])["g"].result(10)
        assert (described.state.name, described.partition_assignor) == ("STABLE", "range")
        (one,) = described.members
        assert one.group_instance_id == "s"
        assert len(one.assignment.topic_partitions) == 6
    finally:
        member.leave()


def test_a_regular_expression_subscribes_to_topics(cluster: Cluster) -> None:
    """It also matches a topic that is created later."""
    member = Member(cluster, "m0", topic="^t.*")
    try:
        cluster.wait_until(lambda: len(values(member)) == RECORDS, 20)
        cluster.create_topic("tt")
        cluster.produce("tt", "new")
        cluster.wait_until(lambda: b"new" in values(member), 20)
    finally:
        member.leave()


def test_a_group_changes_its_protocol_while_it_works(cluster: Cluster) -> None:
    """The group changes when a member of the new protocol joins and the last of the old one leaves,
    and changes back likewise.
    """
    classic: dict[str, Any] = {
        "group.protocol": "classic",
        "heartbeat.interval.ms": 100,
        "session.timeout.ms": 6000,
    }
    old = Member(cluster, "old", **classic)
    members = [old]
    try:
        cluster.wait_until(is_shared(cluster, "old"), 20)
        new = Member(cluster, "new")
        members.append(new)
        cluster.wait_until(is_shared(cluster, "old", "new"), 30)
        assert cluster.group("g").protocol == "uniform"
        new.leave()
        cluster.wait_until(is_shared(cluster, "old"), 30)
        assert cluster.group("g").protocol == "range"
        cluster.produce("t", "late", partition=3)
        cluster.wait_until(lambda: b"late" in values(old), 20)
    finally:
        for member in members:
            member.leave()


def test_a_stranger_does_not_commit_to_a_group_with_members(cluster: Cluster) -> None:
    member = Member(cluster, "m0")
    stranger = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
    try:
        cluster.wait_until(is_shared(cluster, "m0"), 20)
        with pytest.raises(KafkaException, match="UNKNOWN_MEMBER_ID"):
            stranger.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    finally:
        stranger.close()
        member.leave()


def test_only_releases_that_have_the_protocol_switch_it_on() -> None:
    with pytest.raises(UsageError, match=r"need kafka_version='3\.7' or later, not '2\.8'"):
        Cluster(1, kafka_version="2.8", config=PROTOCOLS)
