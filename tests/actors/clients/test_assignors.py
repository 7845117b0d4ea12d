"""Assignors of modelled members: their assignments, and the encoding of those."""

from __future__ import annotations

import struct

import pytest
from fakekafka.actors.clients.assignors import (
    ASSIGNORS,
    Assignment,
    Subscription,
    cooperative_sticky_assignor,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    range_assignor,
    round_robin_assignor,
    sticky_assignor,
)
from fakekafka.coordinators.groups.records import subscribed_topics
from fakekafka.protocol.errors import ClientError
from fakekafka.protocol.values import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

BOTH = Subscription(("a", "b"))


def shown(assignment: Assignment) -> dict[str, list[str]]:
    return {member: [f"{p.topic}{p.partition}" for p in ps] for member, ps in assignment.items()}


def test_range_assigns_consecutive_partitions_of_each_topic() -> None:
    """The range assignor gives the first members one more partition of each topic."""
    found = range_assignor({"a": 3, "b": 3}, {"y": BOTH, "x": BOTH})
    assert shown(found) == {"y": ["a2", "b2"], "x": ["a0", "a1", "b0", "b1"]}


def test_round_robin_deals_partitions_out() -> None:
    members = {"x": BOTH, "y": Subscription(("b",)), "z": BOTH}
    found = round_robin_assignor({"a": 2, "b": 3}, members)
    assert shown(found) == {"x": ["a0", "b0"], "y": ["b1"], "z": ["a1", "b2"]}


def test_static_members_come_first_by_their_instance() -> None:
    members = {"x": Subscription(("a",)), "y": Subscription(("a",), (), "i")}
    assert shown(range_assignor({"a": 1}, members)) == {"x": [], "y": ["a0"]}


def test_sticky_keeps_partitions_as_far_as_balance_allows() -> None:
    owned = tuple(TopicPartition("a", number) for number in range(4))
    members = {"x": Subscription(("a",), owned), "y": Subscription(("a",))}
    assert shown(sticky_assignor({"a": 4}, members)) == {"x": ["a0", "a1"], "y": ["a2", "a3"]}


def test_cooperative_members_get_no_partition_that_another_still_owns() -> None:
    """KIP-429: a partition is revoked first and assigned anew by the next rebalance."""
    owned = tuple(TopicPartition("a", number) for number in range(4))
    members = {"x": Subscription(("a",), owned), "y": Subscription(("a",))}
    found = cooperative_sticky_assignor({"a": 4}, members)
    assert shown(found) == {"x": ["a0", "a1"], "y": []}
    members = {"x": Subscription(("a",), owned[:2]), "y": Subscription(("a",))}
    found = cooperative_sticky_assignor({"a": 4}, members)
    assert shown(found) == {"x": ["a0", "a1"], "y": ["a2", "a3"]}


TOPICS = st.sampled_from(["a", "b", "c"])
PARTITIONS = st.builds(TopicPartition, TOPICS, st.integers(0, 7))
SUBSCRIPTIONS = st.builds(
    Subscription,
    st.sets(TOPICS, min_size=1).map(lambda found: tuple(sorted(found))),
    st.lists(PARTITIONS, max_size=4, unique=True).map(tuple),
)


@pytest.mark.pure  # Hypothesis asks a named tuple for its types, which are classes there
@pytest.mark.parametrize("name", ASSIGNORS)
@given(
    counts=st.dictionaries(TOPICS, st.integers(1, 6), min_size=1),
    members=st.dictionaries(st.sampled_from("uvwxyz"), SUBSCRIPTIONS, min_size=1),
)
def test_no_partition_is_assigned_twice_or_to_a_member_that_does_not_subscribe(
    name: str, counts: dict[str, int], members: dict[str, Subscription]
) -> None:
    found = ASSIGNORS[name](counts, members)
    assert list(found) == list(members)
    given_out = [p for partitions in found.values() for p in partitions]
    assert len(set(given_out)) == len(given_out)
    for member, partitions in found.items():
        assert {p.topic for p in partitions} <= set(members[member].topics)
    if name != "cooperative-sticky":
        subscribed = {topic for s in members.values() for topic in s.topics}
        assert len(given_out) == sum(counts[topic] for topic in counts if topic in subscribed)


@given(st.lists(PARTITIONS, unique=True))
def test_assignments_survive_encoding(partitions: list[TopicPartition]) -> None:
    assert sorted(decode_assignment(encode_assignment(partitions))) == sorted(partitions)
    assert decode_assignment(b"") == ()


@given(SUBSCRIPTIONS)
def test_subscriptions_survive_encoding_and_coordinators_read_their_topics(
    subscription: Subscription,
) -> None:
    data = encode_subscription(subscription.topics, subscription.owned)
    found = decode_subscription(data)
    assert found.topics == subscription.topics == subscribed_topics(data)
    assert sorted(found.owned) == sorted(subscription.owned)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">hih", 1, 2**31 - 1, -8),  # the name would end before it begins
        struct.pack(">hih", 1, 1, 30),
        struct.pack(">hi", 1, 1),
        struct.pack(">hih1si", 1, 1, 1, b"\xff", 0),
        struct.pack(">hih1si", 1, 1, 1, b"a", 2**31 - 1),
    ],
)
def test_malformed_assignments_are_refused_whatever_length_they_announce(data: bytes) -> None:
    with pytest.raises(ClientError):
        decode_assignment(data)
