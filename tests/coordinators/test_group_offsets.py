"""Committed offsets: when they become visible, who may commit them, and how they are removed."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.groups.records import (
    OffsetKey,
    OffsetValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from fakekafka.protocol.data import ACKS_ALL
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import (
    CommittedOffset,
    OffsetCommitPartition,
    OffsetCommitResponse,
    OffsetFetchRequest,
)
from fakekafka.protocol.internal_topics import OFFSETS_TOPIC
from fakekafka.protocol.java_hashing import java_string_hash
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.batches import parse_batches
from fakekafka.tests.support.group_rig import (
    AUDIT,
    NONE,
    ORDERS,
    START_MS,
    GroupRig,
    StubLog,
    log_of,
)

DAY_MS = 86_400_000
VALUE = encode_value(OffsetValue(4, 1, "", START_MS))


def test_a_commit_is_visible_once_it_is_replicated(rig: GroupRig) -> None:
    rig.replicas.is_held = True
    assert rig.commit(OffsetCommitPartition(ORDERS, 7, 2, "note")) is None
    assert rig.fetch(ORDERS) == (CommittedOffset(ORDERS, NONE),)
    rig.replicas.answer()
    assert rig.commits == [OffsetCommitResponse(((ORDERS, NONE),))]
    assert rig.fetch(ORDERS) == (CommittedOffset(ORDERS, NONE, 7, 2, "note"),)


def test_a_reader_that_wants_stable_offsets_waits_for_commits_under_way(rig: GroupRig) -> None:
    """KIP-447: a reader that requires stable offsets gets UNSTABLE_OFFSET_COMMIT until the commit
    is replicated."""
    rig.replicas.is_held = True
    rig.commit()
    (told,) = rig.fetch(ORDERS, stable=True)
    assert told.error == ErrorCode.UNSTABLE_OFFSET_COMMIT
    rig.replicas.answer()
    assert rig.fetch(ORDERS, stable=True) == (CommittedOffset(ORDERS, NONE, 7),)


def test_a_commit_is_appended_as_one_batch_with_acks_all(rig: GroupRig) -> None:
    rig.commit(OffsetCommitPartition(ORDERS, 7, 2), OffsetCommitPartition(AUDIT, 9))
    (request,) = rig.replicas.appended
    assert request.acks == ACKS_ALL
    (part,) = request.partitions
    assert part.topic_partition == TopicPartition(OFFSETS_TOPIC, 0)
    records = [record for batch in parse_batches(part.records) for record in batch.records()]
    assert [(decode_key(r.key or b""), decode_value(r.value or b"")) for r in records] == [
        (OffsetKey("group", "orders", 0), OffsetValue(7, 2, "", START_MS)),
        (OffsetKey("group", "audit", 3), OffsetValue(9, -1, "", START_MS)),
    ]


def test_all_offsets_of_one_group_are_returned_in_order() -> None:
    mine = [OffsetKey("group", "orders", 0), OffsetKey("group", "audit", 3)]
    keys = [*mine, OffsetKey("other", "orders", 0)]
    rig = GroupRig(log=log_of(*((encode_key(key), VALUE) for key in keys)))
    assert [(c.topic_partition, c.offset) for c in rig.fetch()] == [(AUDIT, 4), (ORDERS, 4)]


def test_loading_takes_the_last_record_of_a_key_and_forgets_deleted_ones() -> None:
    key, gone = encode_key(OffsetKey("group", *ORDERS)), encode_key(OffsetKey("group", *AUDIT))
    newer = encode_value(OffsetValue(5, 1, "", 0))
    rig = GroupRig(log=log_of((key, VALUE), (gone, VALUE), (None, b""), (key, newer), (gone, None)))
    assert [(c.topic_partition, c.offset) for c in rig.fetch()] == [(ORDERS, 5)]


def test_records_that_cannot_be_parsed_are_skipped() -> None:
    """Records that cannot be parsed are skipped, as 3.9 does with keys of future versions."""
    key = encode_key(OffsetKey("group", *ORDERS))
    rig = GroupRig(log=log_of((b"\x00\x09g", b""), (key, b"\x00\x09"), (key, VALUE)))
    assert rig.offset() == 4


def test_a_broker_without_leadership_is_not_the_coordinator(rig: GroupRig) -> None:
    rig.follow()
    assert rig.commit() == ErrorCode.NOT_COORDINATOR
    response = rig.coordinator.fetch_offsets(OffsetFetchRequest("group", None))
    assert (response.error, response.partitions) == (ErrorCode.NOT_COORDINATOR, ())


def test_other_topics_do_not_make_a_coordinator() -> None:
    rig = GroupRig(lead=False)
    hosted = rig.replicas.lead(0, 0, StubLog())
    hosted.topic_partition = ORDERS
    rig.coordinator.leadership_changed([hosted], [])
    rig.host.advance(0)
    assert rig.commit() == ErrorCode.NOT_COORDINATOR


def test_a_stopped_partition_of_the_offsets_topic_is_coordinated_no_more(rig: GroupRig) -> None:
    rig.coordinator.partitions_stopped([ORDERS, AUDIT])
    rig.host.advance(0)
    assert rig.commit() == NONE
    rig.coordinator.partitions_stopped([TopicPartition(OFFSETS_TOPIC, 0)])
    rig.host.advance(0)
    assert rig.commit() == ErrorCode.NOT_COORDINATOR


def test_a_leadership_with_an_older_epoch_changes_nothing(rig: GroupRig) -> None:
    """A coordinator ignores leadership changes of older leader epochs
    (``maybeUpdateCoordinatorEpoch``)."""
    rig.follow(epoch=5)
    rig.lead(epoch=4)
    assert rig.commit() == ErrorCode.NOT_COORDINATOR
    rig.lead(epoch=6)
    assert rig.commit() == NONE
    rig.follow(epoch=5)
    assert rig.commit() == NONE


@pytest.mark.parametrize(
    ("version", "error"),
    [
        ("3.9", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ("2.8", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ("1.1", ErrorCode.NOT_COORDINATOR),
        ("0.10", ErrorCode.NOT_COORDINATOR),
    ],
)
def test_a_loading_coordinator_answers_load_in_progress_since_2_0(
    version: str, error: ErrorCode
) -> None:
    """A coordinator reports that it is loading since 2.0; before, an unloaded group counted as
    coordinated elsewhere."""
    rig = GroupRig(version, lead=False, log=log_of((encode_key(OffsetKey("g", *ORDERS)), VALUE)))
    hosted = rig.replicas.lead(0, 0, rig.log)
    seen = []
    rig.host.call_later_ms(0, lambda: None)
    rig.coordinator.leadership_changed([hosted], [])
    rig.host.call_later_ms(0, lambda: seen.append(rig.commit()))
    rig.host.advance(0)
    assert seen == [error]
    assert rig.offset(group="g") == 4


def test_a_commit_under_way_while_leadership_is_lost_is_not_kept(rig: GroupRig) -> None:
    rig.replicas.is_held = True
    rig.commit()
    rig.follow()
    rig.replicas.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert rig.commits == [OffsetCommitResponse(((ORDERS, ErrorCode.NOT_COORDINATOR),))]


ERRORS_OF_THE_LOG = {
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
}


@pytest.mark.parametrize(("from_log", "to_client"), ERRORS_OF_THE_LOG.items())
def test_errors_of_the_log_become_errors_of_a_coordinator(
    rig: GroupRig, from_log: ErrorCode, to_client: ErrorCode
) -> None:
    rig.replicas.error = from_log
    assert rig.commit() == to_client
    assert rig.offset() == -1
    assert rig.fetch(ORDERS, stable=True)[0].error == NONE


def test_a_refused_partition_leaves_the_others_alone() -> None:
    rig = GroupRig(offset_metadata_max_bytes=10)
    unknown = TopicPartition("nope", 0)
    rig.commit(
        OffsetCommitPartition(unknown, 1),
        OffsetCommitPartition(ORDERS, 2, -1, "x" * 11),
        OffsetCommitPartition(AUDIT, 3, -1, "x" * 10),
    )
    assert dict(rig.commits[0].partitions) == {
        unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ORDERS: ErrorCode.OFFSET_METADATA_TOO_LARGE,
        AUDIT: NONE,
    }
    assert [c.topic_partition for c in rig.fetch()] == [AUDIT]


@pytest.mark.parametrize("version", ["0.10.1", "1.1", "2.4"])
def test_before_2_5_no_reader_can_wait_for_commits_under_way(version: str) -> None:
    """Before version 7 OffsetFetch has no field that requires stable offsets (KIP-447)."""
    rig = GroupRig(version)
    rig.replicas.is_held = True
    rig.commit()
    assert rig.fetch(ORDERS, stable=True) == (CommittedOffset(ORDERS, NONE),)


@pytest.mark.parametrize(("version", "stays"), [("3.9", False), ("2.8", True), ("2.5", True)])
def test_until_3_8_an_offset_refused_for_its_metadata_stayed_pending(
    version: str, stays: bool
) -> None:
    """KAFKA-16371: an offset refused for its metadata stayed pending until 3.8, so that readers of
    stable offsets waited for ever."""
    rig = GroupRig(version, offset_metadata_max_bytes=10)
    rig.commit(OffsetCommitPartition(ORDERS, 2, -1, "x" * 11), OffsetCommitPartition(AUDIT, 3))
    (told,) = rig.fetch(ORDERS, stable=True)
    assert told.error == (ErrorCode.UNSTABLE_OFFSET_COMMIT if stays else NONE)


def test_nothing_is_appended_when_nothing_is_accepted(rig: GroupRig) -> None:
    """Unknown partitions are refused before the group is checked, and nothing is appended."""
    rig.follow()
    error = rig.commit(OffsetCommitPartition(TopicPartition("nope", 0), 1))
    assert error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert rig.replicas.appended == []


def test_a_commit_with_a_generation_to_an_unknown_group_is_illegal(rig: GroupRig) -> None:
    assert rig.commit(generation=0) == ErrorCode.ILLEGAL_GENERATION
    assert rig.replicas.appended == []


def test_a_group_without_a_name_may_commit(rig: GroupRig) -> None:
    assert rig.commit(group="") == NONE
    assert rig.offset(group="") == 7


def test_nothing_is_committed_for_an_unknown_group_which_is_no_error(rig: GroupRig) -> None:
    assert rig.fetch(ORDERS) == (CommittedOffset(ORDERS, NONE),)
    assert rig.fetch() == ()


@pytest.mark.parametrize(("version", "count"), [("3.9", 0), ("2.8", 0), ("1.1", 0), ("0.10", 1)])
def test_an_empty_list_fetches_all_offsets_in_0_10(version: str, count: int) -> None:
    rig = GroupRig(version)
    rig.commit()
    response = rig.coordinator.fetch_offsets(OffsetFetchRequest("group", ()))
    assert len(response.partitions) == count


def test_groups_are_partitioned_by_the_java_hash_of_their_names() -> None:
    coordinator = GroupRig(partition_count=50).coordinator
    assert coordinator.partition_for("group") == abs(java_string_hash("group")) % 50
    # The one hash without a positive counterpart goes to partition 0, as Utils.abs has it.
    assert java_string_hash("polygenelubricants") == -(1 << 31)
    assert coordinator.partition_for("polygenelubricants") == 0


def test_before_the_topic_exists_its_configured_size_counts() -> None:
    coordinator = GroupRig(partition_count=0, lead=False).coordinator
    found = {coordinator.partition_for(f"group-{number}") for number in range(500)}
    assert found == set(range(50))


# -- who may commit -----------------------------------------------------------------------------


def test_only_members_of_the_current_generation_may_commit(rig: GroupRig) -> None:
    rig.stable("a", "b")
    generation = rig.group.generation
    assert rig.commit(member="a", generation=generation) == NONE
    assert rig.commit(member="a", generation=generation - 1) == ErrorCode.ILLEGAL_GENERATION
    assert rig.commit(member="x", generation=generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.commit() == ErrorCode.UNKNOWN_MEMBER_ID
    rig.join("c")
    assert rig.state == "PreparingRebalance"
    assert rig.commit(member="b", generation=generation) == NONE


@pytest.mark.parametrize("version", ["3.9", "2.8", "1.1", "0.10"])
def test_no_commit_is_taken_while_the_assignment_is_awaited(version: str) -> None:
    """KAFKA-8487: until 2.3 an unknown member, too, got REBALANCE_IN_PROGRESS for its commit."""
    rig = GroupRig(version)
    rig.join("a")
    rig.host.advance(0)
    assert rig.state == "CompletingRebalance"
    rebalance = ErrorCode.REBALANCE_IN_PROGRESS
    assert rig.commit(member="a", generation=1) == rebalance
    is_new = version in ("3.9", "2.8")
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.commit(member="x", generation=1) == (unknown if is_new else rebalance)
    illegal = ErrorCode.ILLEGAL_GENERATION
    assert rig.commit(member="a", generation=0) == (illegal if is_new else rebalance)


def test_a_commit_is_as_good_as_a_heartbeat(rig: GroupRig) -> None:
    rig.stable("a")
    for _ in range(3):
        rig.host.advance(9000)
        assert rig.commit(member="a", generation=1) == NONE
    assert rig.state == "Stable"


@pytest.mark.parametrize(
    ("version", "error"), [("1.1", NONE), ("2.8", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_an_offset_for_an_unknown_partition_is_refused_since_2_0(
    version: str, error: ErrorCode
) -> None:
    """Before 2.0 ``KafkaApis.handleOffsetCommitRequest`` checked only that the topic exists."""
    rig = GroupRig(version)
    nowhere = TopicPartition("orders", 9)
    assert rig.commit(OffsetCommitPartition(nowhere, 7)) == error
    assert rig.offset(nowhere) == (7 if error == NONE else -1)
