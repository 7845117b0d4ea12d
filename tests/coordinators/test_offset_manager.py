"""The coordinator of offsets, with a log that the test holds in its hands."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fakekafka.coordinators.offsets.manager import OffsetManager
from fakekafka.coordinators.offsets.records import (
    OffsetKey,
    OffsetValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.data import ACKS_ALL, ProduceRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import (
    CommittedOffset,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
)
from fakekafka.protocol.internal_topics import OFFSETS_TOPIC
from fakekafka.protocol.records.batch import Record, parse_batches
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.follower.manager import java_string_hash

ORDERS = TopicPartition("orders", 0)
AUDIT = TopicPartition("audit", 3)
NOW_MS = 12_345


class Replicas:
    """Stands for the replica manager: knows topics, and keeps what is appended until told."""

    def __init__(self, partition_count: int) -> None:
        self.metadata_cache = SimpleNamespace(
            partition_count=lambda _topic: partition_count,
            contains=lambda partition: partition in (ORDERS, AUDIT),
        )
        self.appended: list[tuple[ProduceRequest, Callable[[Any], object]]] = []

    def append_records(
        self, request: ProduceRequest, _context: Any, done: Callable[[Any], object], origin: str
    ) -> None:
        assert origin == "coordinator"
        self.appended.append((request, done))

    def answer(self, error: ErrorCode = ErrorCode.NONE) -> None:
        _, done = self.appended.pop(0)
        done(SimpleNamespace(partitions=[SimpleNamespace(error=error)]))


class Desk:
    """A manager that leads the only partition of the offsets topic, and its answers."""

    def __init__(self, partition_count: int = 1) -> None:
        self.replicas = Replicas(partition_count)
        self.manager = OffsetManager(
            cast(Any, SimpleNamespace(now_ms=lambda: NOW_MS)),
            BrokerConfig({"broker.id": 1, "offset.metadata.max.bytes": 10}, "3.9"),
            cast(Any, self.replicas),
        )
        self.answers: list[OffsetCommitResponse] = []

    def lead(self, number: int, records: list[Record] | None = None) -> None:
        batch = SimpleNamespace(is_control=False, records=lambda: records or [])
        log = SimpleNamespace(batches=lambda: [batch])
        self.manager.leadership_changed([hosted(number, log)], [])

    def commit(self, *partitions: OffsetCommitPartition, generation: int = -1) -> None:
        request = OffsetCommitRequest("group", generation, "", None, partitions)
        self.manager.commit(request, self.answers.append)

    def fetch(self, *partitions: TopicPartition) -> tuple[CommittedOffset, ...]:
        response = self.manager.fetch(OffsetFetchRequest("group", partitions or None))
        assert response.error == ErrorCode.NONE
        return response.partitions


def hosted(number: int, log: Any = None) -> Any:
    return SimpleNamespace(topic_partition=TopicPartition(OFFSETS_TOPIC, number), log=log)


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.lead(0)
    return desk


def test_a_commit_is_visible_once_it_is_replicated(desk: Desk) -> None:
    desk.commit(OffsetCommitPartition(ORDERS, 7, 2, "note"))
    assert desk.answers == []
    assert desk.fetch(ORDERS) == (CommittedOffset(ORDERS, ErrorCode.NONE),)
    desk.replicas.answer()
    assert desk.answers == [OffsetCommitResponse(((ORDERS, ErrorCode.NONE),))]
    assert desk.fetch(ORDERS) == (CommittedOffset(ORDERS, ErrorCode.NONE, 7, 2, "note"),)


def test_what_is_appended_is_one_batch_for_all_replicas(desk: Desk) -> None:
    desk.commit(OffsetCommitPartition(ORDERS, 7, 2), OffsetCommitPartition(AUDIT, 9))
    ((request, _),) = desk.replicas.appended
    assert request.acks == ACKS_ALL
    (part,) = request.partitions
    assert part.topic_partition == TopicPartition(OFFSETS_TOPIC, 0)
    records = [record for batch in parse_batches(part.records) for record in batch.records()]
    assert [(decode_key(r.key or b""), decode_value(r.value or b"")) for r in records] == [
        (OffsetKey("group", "orders", 0), OffsetValue(7, 2, "", NOW_MS)),
        (OffsetKey("group", "audit", 3), OffsetValue(9, -1, "", NOW_MS)),
    ]


def test_all_of_a_group_come_in_order_and_no_other_groups() -> None:
    desk = Desk()
    mine = [OffsetKey("group", "orders", 0), OffsetKey("group", "audit", 3)]
    keys = [*mine, OffsetKey("other", "orders", 0)]
    value = encode_value(OffsetValue(4, 1, "", 0))
    desk.lead(0, [Record(0, 0, encode_key(key), value, ()) for key in keys])
    assert [(c.topic_partition, c.offset) for c in desk.fetch()] == [(AUDIT, 4), (ORDERS, 4)]


def test_loading_takes_the_last_record_of_a_key_and_forgets_deleted_ones() -> None:
    desk = Desk()
    key, gone = encode_key(OffsetKey("group", *ORDERS)), encode_key(OffsetKey("group", *AUDIT))
    values = [encode_value(OffsetValue(offset, 0, "", 0)) for offset in (1, 2)]
    group = b"\x00\x02\x00\x05group"
    pairs = [(key, values[0]), (gone, values[0]), (group, b""), (key, values[1]), (gone, None)]
    desk.lead(0, [Record(0, 0, k, v, ()) for k, v in pairs] + [Record(0, 0, None, b"", ())])
    assert [(c.topic_partition, c.offset) for c in desk.fetch()] == [(ORDERS, 2)]


def test_without_leadership_it_is_not_the_coordinator(desk: Desk) -> None:
    desk.manager.leadership_changed([], [hosted(0)])
    desk.commit(OffsetCommitPartition(ORDERS, 7))
    assert desk.answers == [OffsetCommitResponse(((ORDERS, ErrorCode.NOT_COORDINATOR),))]
    response = desk.manager.fetch(OffsetFetchRequest("group", None))
    assert (response.error, response.partitions) == (ErrorCode.NOT_COORDINATOR, ())


def test_other_topics_do_not_make_a_coordinator() -> None:
    desk = Desk()
    orders: Any = SimpleNamespace(topic_partition=ORDERS, log=None)
    desk.manager.leadership_changed([orders], [])
    assert desk.manager.fetch(OffsetFetchRequest("g", None)).error == ErrorCode.NOT_COORDINATOR


def test_offsets_of_deleted_partitions_go_with_a_tombstone_for_each() -> None:
    """As Kafka's cleanupGroupMetadata: one append per group, and nobody waits for it."""
    desk = Desk()
    keys = [
        OffsetKey("group", "orders", 0),
        OffsetKey("other", "orders", 0),
        OffsetKey("group", "audit", 3),
        OffsetKey("group", "orders", 1),
    ]
    value = encode_value(OffsetValue(4, 1, "", 0))
    desk.lead(0, [Record(0, 0, encode_key(key), value, ()) for key in keys])
    desk.manager.partitions_deleted([ORDERS, TopicPartition("orders", 1)])
    assert [(c.topic_partition, c.offset) for c in desk.fetch()] == [(AUDIT, 4)]
    written = []
    for request, _ in desk.replicas.appended:
        (part,) = request.partitions
        records = [record for batch in parse_batches(part.records) for record in batch.records()]
        written.append((request.acks, [(decode_key(r.key or b""), r.value) for r in records]))
    assert written == [
        (0, [(keys[0], None), (keys[3], None)]),
        (0, [(keys[1], None)]),
    ]


def test_deleted_partitions_without_offsets_write_nothing(desk: Desk) -> None:
    desk.manager.partitions_deleted([ORDERS])
    assert desk.replicas.appended == []


def test_a_stopped_partition_of_the_offsets_topic_is_coordinated_no_more(desk: Desk) -> None:
    desk.manager.partitions_stopped([ORDERS, AUDIT])
    assert desk.fetch(ORDERS)[0].error == ErrorCode.NONE
    desk.manager.partitions_stopped([TopicPartition(OFFSETS_TOPIC, 0)])
    response = desk.manager.fetch(OffsetFetchRequest("group", None))
    assert response.error == ErrorCode.NOT_COORDINATOR


def test_a_commit_under_way_while_leadership_is_lost_is_not_kept(desk: Desk) -> None:
    desk.commit(OffsetCommitPartition(ORDERS, 7))
    desk.manager.leadership_changed([], [hosted(0)])
    desk.replicas.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert desk.answers == [OffsetCommitResponse(((ORDERS, ErrorCode.NOT_COORDINATOR),))]


@pytest.mark.parametrize(
    ("from_log", "to_client"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_errors_of_the_log_become_errors_of_a_coordinator(
    desk: Desk, from_log: ErrorCode, to_client: ErrorCode
) -> None:
    desk.commit(OffsetCommitPartition(ORDERS, 7))
    desk.replicas.answer(from_log)
    assert desk.answers == [OffsetCommitResponse(((ORDERS, to_client),))]
    assert desk.fetch(ORDERS)[0].offset == -1


def test_a_refused_partition_leaves_the_others_alone(desk: Desk) -> None:
    unknown = TopicPartition("nope", 0)
    desk.commit(
        OffsetCommitPartition(unknown, 1),
        OffsetCommitPartition(ORDERS, 2, -1, "x" * 11),
        OffsetCommitPartition(AUDIT, 3, -1, "x" * 10),
    )
    desk.replicas.answer()
    assert dict(desk.answers[0].partitions) == {
        unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ORDERS: ErrorCode.OFFSET_METADATA_TOO_LARGE,
        AUDIT: ErrorCode.NONE,
    }
    assert [c.topic_partition for c in desk.fetch()] == [AUDIT]


def test_nothing_is_appended_when_nothing_is_accepted(desk: Desk) -> None:
    desk.commit(OffsetCommitPartition(TopicPartition("nope", 0), 1))
    assert desk.replicas.appended == []
    assert len(desk.answers) == 1


def test_a_member_of_a_generation_is_unknown(desk: Desk) -> None:
    desk.commit(OffsetCommitPartition(ORDERS, 7), generation=0)
    assert desk.answers == [OffsetCommitResponse(((ORDERS, ErrorCode.ILLEGAL_GENERATION),))]
    assert desk.replicas.appended == []


def test_groups_spread_by_the_hash_java_gives_their_names() -> None:
    manager = Desk(partition_count=50).manager
    assert manager.partition_for("group") == abs(java_string_hash("group")) % 50
    # The one hash without a positive counterpart goes to partition 0, as Utils.abs has it.
    assert java_string_hash("polygenelubricants") == -(1 << 31)
    assert manager.partition_for("polygenelubricants") == 0


def test_before_the_topic_exists_its_configured_size_counts() -> None:
    manager = Desk(partition_count=0).manager
    found = {manager.partition_for(f"group-{number}") for number in range(500)}
    assert found == set(range(50))
