"""Assignment of new replicas to brokers (docs/kafka/topics.md#replica-assignment)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from fakekafka.election.assignment import (
    BrokerRack,
    RackAwareMode,
    assign_added_partitions,
    assign_replicas_to_brokers,
    broker_metadatas,
    rack_alternated_list,
)
from fakekafka.protocol.errors import ErrorCode, KafkaError
from hypothesis import given
from hypothesis import strategies as st

SIX_RACKED: list[BrokerRack] = [
    (0, "rack1"),
    (1, "rack3"),
    (2, "rack3"),
    (3, "rack2"),
    (4, "rack2"),
    (5, "rack1"),
]
EVEN: list[BrokerRack] = [(6, "a"), (7, "b"), (8, "b"), (9, "c"), (10, "c"), (11, "a")]


def plain(count: int) -> list[BrokerRack]:
    return [(broker_id, None) for broker_id in range(count)]


def leaders(assignment: Mapping[int, Sequence[int]]) -> Counter[int]:
    return Counter(replicas[0] for replicas in assignment.values())


def replica_counts(assignment: Mapping[int, Sequence[int]]) -> Counter[int]:
    return Counter(broker for replicas in assignment.values() for broker in replicas)


def racks_of(brokers: list[BrokerRack], replicas: Sequence[int]) -> list[str | None]:
    return [dict(brokers)[replica] for replica in replicas]


def test_ten_partitions_on_five_brokers() -> None:
    """CP-107: the shift grows by one with every round over the brokers."""
    expected = {
        0: (0, 1, 2),
        1: (1, 2, 3),
        2: (2, 3, 4),
        3: (3, 4, 0),
        4: (4, 0, 1),
        5: (0, 2, 3),
        6: (1, 3, 4),
        7: (2, 4, 0),
        8: (3, 0, 1),
        9: (4, 1, 2),
    }
    assert expected == assign_replicas_to_brokers(plain(5), 10, 3, fixed_start_index=0)


def test_brokers_are_used_in_the_order_given() -> None:
    """Without racks, the order of the brokers is the caller's."""
    brokers: list[BrokerRack] = [(9, None), (3, None), (5, None)]
    assert assign_replicas_to_brokers(brokers, 2, 2, 0) == {0: (9, 3), 1: (3, 5)}


def test_rack_alternated_lists() -> None:
    """CP-96: racks by name, brokers by id, exhausted racks skipped."""
    assert rack_alternated_list(SIX_RACKED) == [0, 3, 1, 5, 4, 2]
    assert rack_alternated_list(SIX_RACKED[:5]) == [0, 3, 1, 4, 2]
    assert rack_alternated_list([]) == []


def test_seven_partitions_over_three_racks() -> None:
    """CP-97: the worked example of the reference."""
    expected = {
        0: (0, 3, 1),
        1: (3, 1, 5),
        2: (1, 5, 4),
        3: (5, 4, 2),
        4: (4, 2, 0),
        5: (2, 0, 3),
        6: (0, 4, 2),
    }
    assert expected == assign_replicas_to_brokers(SIX_RACKED, 7, 3, fixed_start_index=0)


@pytest.mark.parametrize("start", [0, 2, None], ids=["fixed-0", "fixed-2", "random"])
def test_balanced_racks_get_distinct_racks_and_even_load(start: int | None) -> None:
    """CP-98: three racks of two brokers, six partitions."""
    rng = random.Random(7)
    assignment = assign_replicas_to_brokers(
        SIX_RACKED, 6, 3, -1 if start is None else start, rng=rng
    )
    assert all(len(set(racks_of(SIX_RACKED, r))) == 3 for r in assignment.values())
    assert {broker_id: 1 for broker_id, _ in SIX_RACKED} == leaders(assignment)
    assert {broker_id: 3 for broker_id, _ in SIX_RACKED} == replica_counts(assignment)


def test_added_partitions_stay_even_over_racks() -> None:
    """CP-99: twelve more partitions, numbered from twelve."""
    assignment = assign_replicas_to_brokers(EVEN, 12, 2, 0, start_partition_id=12)
    assert list(range(12, 24)) == list(assignment)
    assert all(len(set(racks_of(EVEN, r))) == 2 for r in assignment.values())
    assert {broker_id: 2 for broker_id, _ in EVEN} == leaders(assignment)
    assert {broker_id: 4 for broker_id, _ in EVEN} == replica_counts(assignment)


def test_racks_stay_distinct_when_partitions_do_not_divide() -> None:
    """CP-100: thirteen partitions on six brokers."""
    assignment = assign_replicas_to_brokers(SIX_RACKED, 13, 3, rng=random.Random(1))
    assert all(len(set(racks_of(SIX_RACKED, r))) == 3 for r in assignment.values())


def test_uneven_racks_keep_leaders_even() -> None:
    """CP-101: racks of one, two and three brokers."""
    brokers: list[BrokerRack] = [
        (0, "rack1"),
        (1, "rack1"),
        (2, "rack2"),
        (3, "rack3"),
        (4, "rack3"),
        (5, "rack1"),
    ]
    assignment = assign_replicas_to_brokers(brokers, 12, 3, 0)
    assert all(len(set(racks_of(brokers, r))) == 3 for r in assignment.values())
    assert {broker_id: 2 for broker_id, _ in brokers} == leaders(assignment)


def test_more_replicas_than_racks_cover_every_rack() -> None:
    """CP-102: five replicas, three racks."""
    assignment = assign_replicas_to_brokers(SIX_RACKED, 6, 5, rng=random.Random(3))
    for replicas in assignment.values():
        assert {"rack1", "rack2", "rack3"} == set(racks_of(SIX_RACKED, replicas))
        assert len(set(replicas)) == 5


def test_fewer_replicas_than_racks_are_on_distinct_racks() -> None:
    """CP-103: two replicas, three racks."""
    assignment = assign_replicas_to_brokers(SIX_RACKED, 6, 2, rng=random.Random(4))
    assert all(len(set(racks_of(SIX_RACKED, r))) == 2 for r in assignment.values())


def test_a_single_rack_is_as_good_as_none() -> None:
    """CP-104: every broker leads once, and no broker is in a partition twice."""
    brokers: list[BrokerRack] = [(broker_id, "only") for broker_id in range(6)]
    assignment = assign_replicas_to_brokers(brokers, 6, 3, rng=random.Random(5))
    assert all(len(set(r)) == 3 for r in assignment.values())
    assert dict.fromkeys(range(6), 1) == leaders(assignment)


def test_skewed_racks_never_repeat_a_broker() -> None:
    """CP-105: racks a, b, c, a, a and four replicas."""
    brokers: list[BrokerRack] = list(enumerate("abcaa"))
    assignment = assign_replicas_to_brokers(brokers, 6, 4, fixed_start_index=2)
    assert all(len(set(r)) == 4 for r in assignment.values())


@pytest.mark.parametrize("replication_factor", [0, 6])
def test_impossible_replication_factors(replication_factor: int) -> None:
    """CP-106: a factor of 0, or more replicas than brokers."""
    with pytest.raises(KafkaError) as refused:
        assign_replicas_to_brokers(plain(5), 10, replication_factor, 0)
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_errors_are_checked_in_kafkas_order() -> None:
    """The number of partitions, then the replication factor, then racks."""
    with pytest.raises(KafkaError) as refused:
        assign_replicas_to_brokers([(0, "a"), (1, None)], 0, 0)
    assert refused.value.code == ErrorCode.INVALID_PARTITIONS
    with pytest.raises(KafkaError) as refused:
        assign_replicas_to_brokers([(0, "a"), (1, None)], 1, 3)
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(KafkaError) as refused:
        assign_replicas_to_brokers([(0, "a"), (1, None)], 1, 1)
    assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_large_racked_cluster_is_even() -> None:
    """CP-108: 96 partitions, three racks of four brokers."""
    brokers: list[BrokerRack] = [(broker_id, f"r{broker_id % 3}") for broker_id in range(12)]
    assignment = assign_replicas_to_brokers(brokers, 96, 3, rng=random.Random(6))
    assert dict.fromkeys(range(12), 8) == leaders(assignment)
    assert dict.fromkeys(range(12), 24) == replica_counts(assignment)


def test_rack_modes() -> None:
    """CP-95: brokers 0-5 of which 4 has no rack."""
    brokers: list[BrokerRack] = [(b, None if b == 4 else "r") for b in (5, 4, 3, 2, 1, 0)]
    without = [(b, None) for b in range(6)]
    assert without == broker_metadatas(brokers, RackAwareMode.DISABLED)
    assert without == broker_metadatas(brokers, RackAwareMode.SAFE)
    with pytest.raises(KafkaError):
        broker_metadatas(brokers, RackAwareMode.ENFORCED)
    chosen = broker_metadatas(brokers, RackAwareMode.ENFORCED, broker_list=[0, 1, 2, 3, 5])
    assert [(b, "r") for b in (0, 1, 2, 3, 5)] == chosen


def test_added_partitions_continue_after_partition_zeros_leader() -> None:
    """CP-92: partition 0 on [1, 2] of four brokers, grown to three partitions."""
    added = assign_added_partitions({0: (1, 2)}, plain(4), 2)
    assert added == {1: (2, 0), 2: (3, 1)}


def test_added_partitions_of_fully_replicated_topics_rotate_leaders() -> None:
    """CP-93: partition 0 on [2, 3, 0, 1], grown to seven partitions."""
    added = assign_added_partitions({0: (2, 3, 0, 1)}, plain(4), 6)
    assert [replicas[0] for replicas in added.values()] == [3, 0, 1, 2, 3, 0]
    assert all({0, 1, 2, 3} == set(replicas) for replicas in added.values())


def test_added_partitions_start_at_the_next_broker_if_the_leader_is_gone() -> None:
    """They start at the first broker whose id is not below the leader's, or at the first broker."""
    brokers: list[BrokerRack] = [(0, None), (2, None), (4, None)]
    assert assign_added_partitions({0: (1,)}, brokers, 1) == {1: (4,)}
    assert assign_added_partitions({0: (9,)}, brokers, 1) == {1: (2,)}


def test_a_topic_without_partition_zero_cannot_grow() -> None:
    """CP-91: the error names the missing partition."""
    with pytest.raises(KafkaError, match="partition id 0 is missing"):
        assign_added_partitions({1: (1,)}, plain(3), 1)


@given(
    rack_names=st.lists(st.sampled_from("abc"), min_size=1, max_size=9),
    partitions=st.integers(1, 30),
    data=st.data(),
)
def test_any_racked_cluster_gets_valid_assignments(
    rack_names: list[str], partitions: int, data: st.DataObject
) -> None:
    """No broker is in a partition twice, and replicas are on as many racks as possible."""
    brokers: list[BrokerRack] = list(enumerate(rack_names))
    factor = data.draw(st.integers(1, len(brokers)))
    rng = random.Random(data.draw(st.integers(0, 1000)))
    assignment = assign_replicas_to_brokers(brokers, partitions, factor, rng=rng)
    assert list(range(partitions)) == list(assignment)
    for replicas in assignment.values():
        assert factor == len(set(replicas))
        used = set(racks_of(brokers, replicas))
        assert min(factor, len(set(rack_names))) == len(used)
