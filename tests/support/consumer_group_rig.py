"""A coordinator for the consumer protocol (KIP-848) and members, in a test rig."""

from __future__ import annotations

from typing import Any

from fakekafka.coordinators.consumer_groups.coordinator import ConsumerGroupCoordinator
from fakekafka.coordinators.consumer_groups.heartbeats import HeartbeatClient
from fakekafka.protocol.control import UpdateMetadataPartitionState, UpdateMetadataRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescription,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
)
from fakekafka.protocol.internal_topics import OFFSETS_TOPIC
from fakekafka.protocol.values import BrokerInfo, TopicPartition, uuid_text
from fakekafka.replication.partition.metadata_cache import MetadataCache
from fakekafka.tests.support.group_rig import GroupRig, StubLog

Partitions = set[tuple[str, int]]


def topic_id(name: str) -> str:
    """Return the id of a topic in a test rig."""
    return uuid_text(name.encode().ljust(16, b"."))


class Member:
    """The state of a client of the consumer protocol: id, epoch and owned partitions."""

    def __init__(self, rig: ConsumerGroupRig, name: str, **said: Any) -> None:
        self.rig = rig
        self.name = name
        self.member_id = f"id-{name}"
        self.epoch = 0
        self.owned: Partitions = set()
        self.said = {"topics": ("orders",), "rebalance_timeout_ms": 5000, **said}
        """Fields of the member's joining heartbeat."""
        self.answer: ConsumerGroupHeartbeatResponse | None = None

    @property
    def error(self) -> ErrorCode | None:
        """Error of the last response; None while there is no response."""
        return None if self.answer is None else self.answer.error

    def send(self, epoch: int, **more: Any) -> Member:
        """Send a heartbeat with the given fields."""
        self.answer = None
        self.rig.send(self, ConsumerGroupHeartbeatRequest("group", self.member_id, epoch, **more))
        return self

    def join(self) -> Member:
        """Join without partitions."""
        self.epoch, self.owned = 0, set()
        return self._taken(self.send(0, owned=(), **self.said))

    def beat(self, **more: Any) -> Member:
        """Send a heartbeat with the owned partitions and adopt the assignment of the response."""
        if "group_instance_id" in self.said:
            more.setdefault("group_instance_id", self.said["group_instance_id"])
        by_topic: dict[str, list[int]] = {}
        for topic, number in sorted(self.owned):
            by_topic.setdefault(topic_id(topic), []).append(number)
        owned = tuple((topic, tuple(numbers)) for topic, numbers in by_topic.items())
        return self._taken(self.send(self.epoch, **{"owned": owned, **more}))

    def _taken(self, sent: Member) -> Member:
        answer = sent.answer
        if answer is not None and answer.error is ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = {
                    (self.rig.names[topic], number)
                    for topic, numbers in answer.assignment
                    for number in numbers
                }
        return self

    def leave(self, epoch: int = -1) -> Member:
        """Leave, or with epoch -2 keep a static member's place."""
        instance_id = self.said.get("group_instance_id")
        return self.send(epoch, group_instance_id=instance_id)


class ConsumerGroupRig(GroupRig):
    """A coordinator with the topics ``orders`` (4 partitions) and ``audit`` (2 partitions)."""

    def __init__(self, *, log: StubLog | None = None, **config: Any) -> None:
        self.cache = MetadataCache(1)
        super().__init__(
            "3.9",
            lead=False,
            log=log,
            metadata_cache=self.cache,
            group_coordinator_rebalance_protocols="classic,consumer",
            group_consumer_session_timeout_ms=10_000,
            **config,
        )
        self.names: dict[str, str] = {}
        """Topic names by topic id."""
        self.announce(orders=4, audit=2, **{OFFSETS_TOPIC: 1})
        self.lead()

    def announce(self, **topics: int) -> None:
        """Send metadata with the topics' partition counts to the broker; 0 deletes a topic."""
        states = []
        for topic, count in topics.items():
            known = self.cache.partition_count(topic)
            for number in range(count or known):
                leader = 1 if count else -2
                states.append(
                    UpdateMetadataPartitionState(topic, number, 1, leader, 0, (1,), 0, (1,))
                )
            self.names[topic_id(topic)] = topic
        request = UpdateMetadataRequest(
            1, 1, 1, tuple(states), (BrokerInfo(1, ()),), tuple((t, topic_id(t)) for t in topics)
        )
        self.cache.update(request)
        self.speaker.topics_changed(topics)

    @property
    def speaker(self) -> ConsumerGroupCoordinator:
        """The coordinator, checked to support the consumer protocol."""
        assert isinstance(self.coordinator, ConsumerGroupCoordinator)
        return self.coordinator

    # -- members -------------------------------------------------------------------------------

    def member(self, name: str, **said: Any) -> Member:
        """Return a member that has not joined yet."""
        return Member(self, name, **said)

    def send(self, member: Member, request: ConsumerGroupHeartbeatRequest) -> None:
        def answered(response: ConsumerGroupHeartbeatResponse) -> None:
            member.answer = response

        self.speaker.consumer_group_heartbeat(
            request, HeartbeatClient(member.name, "/127.0.0.1"), answered
        )

    def settle(self, *members: Member, rounds: int = 6) -> None:
        """Let members send heartbeats until the group is stable."""
        for _ in range(rounds):
            for member in members:
                member.beat()
        assert self.described().state == "Stable"

    @property
    def consumer_group(self) -> Any:
        return self.speaker.consumer_groups["group"]

    def described(self, group: str = "group") -> ConsumerGroupDescription:
        request = ConsumerGroupDescribeRequest((group,))
        return self.speaker.describe_consumer_groups(request).groups[0]

    # -- offsets -------------------------------------------------------------------------------

    def commit_as(
        self, member: Member, epoch: int | None = None, api_version: int = 9
    ) -> ErrorCode:
        answers: list[OffsetCommitResponse] = []
        partition = OffsetCommitPartition(TopicPartition("orders", 0), 5)
        chosen = member.epoch if epoch is None else epoch
        request = OffsetCommitRequest("group", chosen, member.member_id, None, (partition,))
        self.coordinator.commit(request, answers.append, api_version)
        return answers[0].partitions[0][1]

    def fetch_as(self, member: Member, epoch: int | None = None) -> ErrorCode:
        chosen = member.epoch if epoch is None else epoch
        return self.coordinator.fetch_offsets(
            OffsetFetchRequest("group", None, False, member.member_id, chosen)
        ).error


def owners(*members: Member) -> dict[tuple[str, int], str]:
    """Return the owner of each partition; fail if a partition has two."""
    found: dict[tuple[str, int], str] = {}
    for member in members:
        for partition in member.owned:
            assert partition not in found, f"{partition}: {found[partition]} and {member.name}"
            found[partition] = member.name
    return found
