"""The metadata cache merges UpdateMetadata requests and answers Metadata
(docs/kafka/control-requests.md#updatemetadata, docs/kafka/administration.md#metadata)."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.control import UpdateMetadataPartitionState, UpdateMetadataRequest
from fakekafka.protocol.data import MetadataRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import BrokerInfo, EndPoint, TopicPartition
from fakekafka.replication.partition.metadata_cache import MetadataCache, is_valid_topic_name


def broker(broker_id: int, listener: str = "PLAINTEXT", rack: str | None = None) -> BrokerInfo:
    return BrokerInfo(broker_id, (EndPoint("h", 9092, listener),), rack)


def state(
    topic: str = "t",
    partition: int = 0,
    leader: int = 1,
    isr: tuple[int, ...] = (1, 2),
    replicas: tuple[int, ...] = (1, 2),
    epoch: int = 3,
    offline: Any = (),
) -> Any:
    return UpdateMetadataPartitionState(
        topic, partition, 1, leader, epoch, isr, 0, replicas, offline
    )


def cache(
    *states: Any,
    brokers: tuple[int, ...] = (1, 2),
    controller: int = 1,
    topic_ids: Any = (),
    listeners: Any = None,
) -> Any:
    found = MetadataCache(1, "cluster")
    live = tuple(broker(b, (listeners or {}).get(b, "PLAINTEXT")) for b in brokers)
    found.update(UpdateMetadataRequest(controller, 1, -1, states, live, topic_ids))
    return found


def only_partition(metadata_cache: Any, listener: str = "PLAINTEXT") -> Any:
    answer = metadata_cache.metadata(MetadataRequest(None), listener)
    return answer.topics[0].partitions[0]


def test_states_are_merged_and_brokers_replaced() -> None:
    """A later update adds partitions and replaces the whole list of live brokers."""
    found = cache(state(partition=0), brokers=(1, 2))
    found.update(UpdateMetadataRequest(2, 1, -1, (state(partition=1),), (broker(3),)))
    assert [s.partition for s in found.topic_partitions("t")] == [0, 1]
    assert [b.id for b in found.alive_brokers()] == [3]
    assert found.controller_id == 2


def test_the_announced_objects_themselves_are_kept() -> None:
    """All brokers share one state object per partition."""
    announced = state()
    assert cache(announced).partition_state(TopicPartition("t", 0)) is announced


def test_negative_controller_id_is_unknown() -> None:
    """A controller id below zero means unknown; Metadata then answers -1."""
    found = cache(state(), controller=0)
    assert found.controller_id == 0
    found.update(UpdateMetadataRequest(-1, 1, -1, (), ()))
    assert found.controller_id is None
    assert found.metadata(MetadataRequest(())).controller_id == -1


def test_deleted_partitions_leave_and_take_the_topic_along() -> None:
    """Leader -2 removes the partition; the topic and its id are removed with the last one."""
    found = cache(state(partition=0), state(partition=1), topic_ids=(("t", "id"),))
    gone = found.update(UpdateMetadataRequest(1, 1, -1, (state(partition=0, leader=-2),), ()))
    assert gone == [TopicPartition("t", 0)]
    assert found.contains_topic("t")
    found.update(UpdateMetadataRequest(1, 1, -1, (state(partition=1, leader=-2),), ()))
    assert not found.contains_topic("t")
    assert found.topic_name("id") is None
    assert found.topic_id("t") == ""


def test_partitions_may_come_in_any_order_and_leave_gaps() -> None:
    """Partitions are listed by number; a missing number is no partition."""
    found = cache(state(partition=2))
    for number in (0, 5):
        found.update(UpdateMetadataRequest(1, 1, -1, (state(partition=number),), ()))
    assert [s.partition for s in found.topic_partitions("t")] == [0, 2, 5]
    assert [s.partition for s in found.partition_states()] == [0, 2, 5]
    assert found.partition_count("t") == 3
    assert [found.contains(TopicPartition("t", n)) for n in (-1, 1, 2, 6)] == [
        False,
        False,
        True,
        False,
    ]
    gone = [state(partition=number, leader=-2) for number in (5, 1, 9)]
    found.update(UpdateMetadataRequest(1, 1, -1, tuple(gone), ()))
    assert [s.partition for s in found.topic_partitions("t")] == [0, 2]
    newer = state(partition=2, epoch=9)
    found.update(UpdateMetadataRequest(1, 1, -1, (newer,), ()))
    assert found.partition_state(TopicPartition("t", 2)) is newer


def test_an_only_partition_is_replaced_and_removed_by_its_number() -> None:
    """A newer state replaces a topic's only partition; the deletion of another partition does not
    affect it."""
    found = cache(state(partition=3))
    newer = state(partition=3, epoch=9)
    other = state(partition=0, leader=-2)
    found.update(UpdateMetadataRequest(1, 1, -1, (newer, other), ()))
    assert found.topic_partitions("t") == (newer,)
    assert not found.contains(TopicPartition("t", 0))
    found.update(UpdateMetadataRequest(1, 1, -1, (state(partition=3, leader=-2),), ()))
    assert not found.contains_topic("t")


def test_a_request_by_id_returns_only_the_requested_topics() -> None:
    """A request by id has no names, but that does not make it a request for all topics."""
    found = cache(state(), state("u"), topic_ids=(("t", "id-t"), ("u", "id-u")))
    answer = found.metadata(MetadataRequest(None, topic_ids=("id-u",)))
    assert [topic.name for topic in answer.topics] == ["u"]


def test_healthy_partition() -> None:
    """A partition whose leader is live and has the requested listener has no error."""
    found = only_partition(cache(state()))
    assert (found.error, found.leader, found.leader_epoch) == (ErrorCode.NONE, 1, 3)
    assert (found.replicas, found.isr, found.offline_replicas) == ((1, 2), (1, 2), ())


def test_dead_leader_is_not_available() -> None:
    """A partition whose leader is dead or missing answers LEADER_NOT_AVAILABLE with leader -1."""
    for found in (cache(state(), brokers=(2,)), cache(state(leader=-1))):
        partition = only_partition(found)
        assert (partition.error, partition.leader) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_missing_listener() -> None:
    """A leader without the requested listener counts as none, with the error LISTENER_NOT_FOUND."""
    found = cache(state(), listeners={1: "SSL", 2: "SSL"})
    assert only_partition(found).error is ErrorCode.LISTENER_NOT_FOUND
    assert only_partition(found).leader == -1
    assert only_partition(found, "SSL").error is ErrorCode.NONE


def test_down_replica() -> None:
    """DP-124: a replica on a dead broker stays listed, without an error.

    A replica is offline if the controller says so (``ZkMetadataCache.getPartitionMetadata``).
    """
    for offline in ((), (2,)):
        new = only_partition(cache(state(offline=offline), brokers=(1,)))
        assert (new.error, new.replicas, new.isr) == (ErrorCode.NONE, (1, 2), (1, 2))
        assert new.offline_replicas == offline


def test_offline_directories_are_offline_replicas() -> None:
    """A replica in a failed directory of a live broker is listed as offline."""
    assert only_partition(cache(state(offline=(2,)))).offline_replicas == (2,)


def test_null_requests_all_topics_and_an_empty_list_none() -> None:
    """DP-124: null asks for all topics, an empty list for none."""
    found = cache(state("a"), state("b"))

    def names(topics: Any) -> Any:
        return [topic.name for topic in found.metadata(MetadataRequest(topics)).topics]

    assert names(None) == ["a", "b"]
    assert names(()) == []
    assert names(("b", "b")) == ["b"]


def test_unknown_and_invalid_names() -> None:
    """An unknown topic is error 3, a malformed name 17; only the unknown topic may be created."""
    found = cache()
    request = MetadataRequest(("absent", "no/slash"))
    errors = [t.error for t in found.metadata(request).topics]
    assert errors == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_topics_by_id() -> None:
    """A request may name a topic by id; an unknown id answers UNKNOWN_TOPIC_ID."""
    found = cache(state(), topic_ids=(("t", "known"),))
    topics = found.metadata(MetadataRequest((), topic_ids=("known", "other"))).topics
    assert [(t.name, t.error) for t in topics] == [
        ("t", ErrorCode.NONE),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_topic_names() -> None:
    """Topic names obey Kafka's rules: length, characters, and not dots alone."""
    assert all(is_valid_topic_name(n) for n in ("a", "a.b_c-1", "x" * 249))
    assert not any(is_valid_topic_name(n) for n in ("", ".", "..", "x" * 250, "a b", "ä"))


def test_internal_topics_are_marked() -> None:
    """The two topics of the coordinators are internal."""
    found = cache(state("__consumer_offsets"), state("t"))
    assert [t.is_internal for t in found.metadata(MetadataRequest(None)).topics] == [True, False]
