"""A test rig of a group coordinator, whose clock, log and members the test controls."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from fakekafka.coordinators.consumer_groups.coordinator import group_coordinator
from fakekafka.coordinators.groups.group import JoiningClient
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.data import ProducePartitionResponse, ProduceRequest, ProduceResponse
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import (
    CommittedOffset,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fakekafka.protocol.internal_topics import OFFSETS_TOPIC
from fakekafka.protocol.records.batch import RecordBatch, build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import behaviour
from fakekafka.tests.support.batches import parse_batches
from fakekafka.tests.support.hosts import FakeClock, FakeHost

ORDERS = TopicPartition("orders", 0)
AUDIT = TopicPartition("audit", 3)
START_MS = 1_000_000
NONE = ErrorCode.NONE


class StubLog:
    """The part of a log that a coordinator reads when it loads a partition."""

    log_start_offset = 0

    def __init__(self) -> None:
        self.batches: list[RecordBatch] = []

    @property
    def log_end_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def append(self, data: Any) -> int:
        """Store a batch and return its base offset."""
        offset = self.log_end_offset
        (batch,) = parse_batches(bytes(data))
        raw = bytearray(batch.data)
        raw[0:8] = offset.to_bytes(8, "big")
        self.batches.append(RecordBatch.from_bytes(bytes(raw)))
        return offset

    def read(self, offset: int, max_bytes: int, upper_bound_offset: int) -> Any:
        found = [b for b in self.batches if b.last_offset >= offset]
        return SimpleNamespace(batches=tuple(found[:1]))

    def records(self) -> list[Record]:
        return [record for batch in self.batches for record in batch.records()]


def log_of(*pairs: tuple[bytes | None, bytes | None]) -> StubLog:
    """Return a log with a batch for each record."""
    log = StubLog()
    for key, value in pairs:
        log.append(build_batch([Record(0, 0, key, value, ())]))
    return log


class Replicas:
    """Replaces the replica manager: knows topics, stores appended batches and responds."""

    def __init__(self, partition_count: int, metadata_cache: Any = None) -> None:
        self.known = [ORDERS, AUDIT, TopicPartition("orders", 1)]
        self.metadata_cache = metadata_cache or SimpleNamespace(
            partition_count=lambda _topic: partition_count,
            contains=lambda partition: partition in self.known,
            takes_offsets=self._takes_offsets,
        )
        self.looks_at_topics_only = False
        self.led: dict[TopicPartition, Any] = {}
        self.hosted = SimpleNamespace(partition=self.led.get)
        self.produce = SimpleNamespace(append_records=self._append_records)
        self.appended: list[ProduceRequest] = []
        self.is_held = False
        """True if appends complete only when ``answer`` is called."""
        self.error = NONE
        self._waiting: list[tuple[int, Callable[[ProduceResponse], object]]] = []

    def _takes_offsets(self, partition: TopicPartition) -> bool:
        if self.looks_at_topics_only:
            return any(known.topic == partition.topic for known in self.known)
        return partition in self.known

    def _append_records(
        self,
        request: ProduceRequest,
        _context: Any,
        respond: Callable[[ProduceResponse], object],
        origin: str,
    ) -> None:
        assert origin == "coordinator"
        self.appended.append(request)
        (entry,) = request.partitions
        offset = self.led[entry.topic_partition].log.append(entry.records)
        self._waiting.append((offset, respond))
        if not self.is_held:
            self.answer(self.error)

    def answer(self, error: ErrorCode = NONE) -> None:
        """Respond to the oldest pending append."""
        offset, respond = self._waiting.pop(0)
        where = TopicPartition(OFFSETS_TOPIC, 0)
        respond(ProduceResponse((ProducePartitionResponse(where, error, offset),)))

    def lead(self, number: int, epoch: int, log: StubLog) -> Any:
        where = TopicPartition(OFFSETS_TOPIC, number)
        hosted = SimpleNamespace(topic_partition=where, log=log, leader_epoch=epoch, is_leader=True)
        self.led[where] = hosted
        return hosted


class GroupRig:
    """A coordinator that leads the only partition of the offsets topic, and its responses."""

    def __init__(
        self,
        kafka_version: str = "3.9",
        *,
        partition_count: int = 1,
        lead: bool = True,
        log: StubLog | None = None,
        metadata_cache: Any = None,
        **config: Any,
    ) -> None:
        values = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1000}
        values.update({name.replace("_", "."): value for name, value in config.items()})
        self.host = FakeHost(clock=FakeClock(START_MS), rng=random.Random(0))
        self.replicas = Replicas(partition_count, metadata_cache)
        self.behaviour = behaviour(kafka_version)
        self.replicas.looks_at_topics_only = self.behaviour.offsets_of_unknown_partitions
        self.config = BrokerConfig({"broker.id": 1, **values}, kafka_version)
        self.lines: list[str] = []
        self.coordinator = group_coordinator(
            self.host,
            self.config,
            self.behaviour,
            cast(Any, self.replicas),
            lambda level, line: self.lines.append(line),
            self.host.now_ms(),
        )
        self.log = log or StubLog()
        self.answers: dict[str, Any] = {}
        """Last response to join or sync by member name; absent while it is pending."""
        self.ids: dict[str, str] = {}
        """Member ids by member name."""
        self.commits: list[OffsetCommitResponse] = []
        if lead:
            self.lead()

    # -- leadership ----------------------------------------------------------------------------

    def lead(self, number: int = 0, epoch: int = 0) -> None:
        """Become leader and load the partition."""
        hosted = self.replicas.lead(number, epoch, self.log)
        self.coordinator.leadership_changed([hosted], [])
        self.host.advance(0)

    def follow(self, number: int = 0, epoch: int = 1) -> None:
        """Become follower and unload the partition."""
        hosted = self.replicas.led[TopicPartition(OFFSETS_TOPIC, number)]
        hosted.is_leader, hosted.leader_epoch = False, epoch
        self.coordinator.leadership_changed([], [hosted])
        self.host.advance(0)

    # -- members -------------------------------------------------------------------------------

    @property
    def group(self) -> Any:
        return self.coordinator.groups["group"]

    @property
    def state(self) -> str:
        return str(self.group.state.value)

    def join(
        self,
        name: str,
        *,
        member_id: str | None = None,
        instance: str | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        protocol_type: str = "consumer",
        protocols: tuple[tuple[str, bytes], ...] = (("range", b"m"),),
        group: str = "group",
        needs_id: bool = False,
        may_skip: bool = False,
        reason: str | None = None,
    ) -> JoinGroupResponse | None:
        """Send JoinGroup for a member; return the response, or None while it is pending."""
        self.answers.pop(name, None)
        known = self.ids.get(name, "") if member_id is None else member_id

        def answered(response: JoinGroupResponse) -> None:
            self.answers[name] = response
            if response.member_id:
                self.ids[name] = response.member_id

        self.coordinator.join(
            JoinGroupRequest(
                group, session_ms, rebalance_ms, known, instance, protocol_type, protocols, reason
            ),
            JoiningClient(name, "/127.0.0.1", needs_id, may_skip),
            answered,
        )
        return self.answers.get(name)

    def sync(
        self,
        name: str,
        assignments: dict[str, bytes] | None = None,
        *,
        generation: int | None = None,
        member_id: str | None = None,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> SyncGroupResponse | None:
        """Send SyncGroup for a member; return the response, or None while it is pending."""
        self.answers.pop(name, None)
        known = self.ids.get(name, name) if member_id is None else member_id
        if generation is None:
            group = self.coordinator.groups.get("group")
            generation = -1 if group is None else group.generation
        named = {self.ids.get(n, n): data for n, data in (assignments or {}).items()}
        self.coordinator.sync(
            SyncGroupRequest(
                "group", generation, known, instance, protocol_type, protocol, tuple(named.items())
            ),
            lambda response: self.answers.__setitem__(name, response),
        )
        return self.answers.get(name)

    def heartbeat(
        self,
        name: str,
        generation: int | None = None,
        instance: str | None = None,
        member_id: str | None = None,
    ) -> ErrorCode:
        known = self.ids.get(name, name) if member_id is None else member_id
        if generation is None:
            group = self.coordinator.groups.get("group")
            generation = -1 if group is None else group.generation
        return self.coordinator.heartbeat(HeartbeatRequest("group", generation, known, instance))

    def leave(self, *leaving: str | LeavingMember) -> LeaveGroupResponse:
        members = tuple(
            member
            if isinstance(member, LeavingMember)
            else LeavingMember(self.ids.get(member, member))
            for member in leaving
        )
        answers: list[LeaveGroupResponse] = []
        self.coordinator.leave(LeaveGroupRequest("group", members), answers.append)
        return answers[0]

    def stable(self, *names: str, **settings: Any) -> None:
        """Form a stable group of these members, the first of which leads."""
        for name in names:
            self.join(name, **settings)
        self.host.advance(0)
        while any(name not in self.answers for name in names):
            for name in names:
                if name in self.answers:
                    self.join(name, **settings)
            self.host.advance(0)
        for name in reversed(names):
            self.sync(name, {n: n.encode() for n in names} if name == names[0] else None)
        assert self.state == "Stable", self.state

    # -- offsets -------------------------------------------------------------------------------

    def commit(
        self,
        *partitions: OffsetCommitPartition,
        generation: int = -1,
        member: str = "",
        instance: str | None = None,
        group: str = "group",
        retention_ms: int = -1,
    ) -> ErrorCode | None:
        """Commit offsets; return the first partition's error, or None while it is pending."""
        count = len(self.commits)
        wanted = partitions or (OffsetCommitPartition(ORDERS, 7),)
        self.coordinator.commit(
            OffsetCommitRequest(
                group, generation, self.ids.get(member, member), instance, wanted, retention_ms
            ),
            self.commits.append,
        )
        return self.commits[-1].partitions[0][1] if len(self.commits) > count else None

    def fetch(
        self, *partitions: TopicPartition, group: str = "group", stable: bool = False
    ) -> tuple[CommittedOffset, ...]:
        response = self.coordinator.fetch_offsets(
            OffsetFetchRequest(group, partitions or None, stable)
        )
        assert response.error == NONE, response
        return response.partitions

    def offset(self, partition: TopicPartition = ORDERS, group: str = "group") -> int:
        """Return the committed offset of a partition, or -1 if there is none."""
        return self.fetch(partition, group=group)[0].offset


def error_of(answer: object) -> ErrorCode:
    """Return the error of a response, which must be there."""
    error: ErrorCode = answer.error  # type: ignore[attr-defined]
    return error
