"""The assignors of the coordinator (KIP-848): ``range`` and ``uniform``."""

from __future__ import annotations

from fakekafka.coordinators.consumer_groups.assignors import (
    ASSIGNORS,
    MemberSpec,
    range_assignor,
    uniform_assignor,
)
from fakekafka.protocol.groups import TopicIdPartitions
from hypothesis import given
from hypothesis import strategies as st


def spec(
    *topics: str, target: TopicIdPartitions | None = None, instance: str | None = None
) -> MemberSpec:
    names = tuple(sorted(topics))
    return MemberSpec(names, names, target or {}, instance)


def test_range_assigns_the_same_consecutive_partitions_of_equal_topics() -> None:
    """KIP-848's example: topics of equal size are assigned alike."""
    found = range_assignor({"m0": spec("t1", "t2"), "m1": spec("t1", "t2")}, {"t1": 3, "t2": 3})
    assert found == {"m0": {"t1": (0, 1), "t2": (0, 1)}, "m1": {"t1": (2,), "t2": (2,)}}


def test_range_puts_static_members_first() -> None:
    """The range assignor orders static members by instance id, so that a restart moves no
    partitions."""
    members = {"a": spec("t"), "z": spec("t", instance="i-1"), "b": spec("t", instance="i-2")}
    assert range_assignor(members, {"t": 3}) == {
        "z": {"t": (0,)},
        "b": {"t": (1,)},
        "a": {"t": (2,)},
    }


def test_range_assigns_a_topic_to_its_subscribers_only() -> None:
    members = {"a": spec("t", "u"), "b": spec("u")}
    assert range_assignor(members, {"t": 2, "u": 3}) == {
        "a": {"t": (0, 1), "u": (0, 1)},
        "b": {"u": (2,)},
    }


def test_uniform_keeps_partitions_as_far_as_balance_allows() -> None:
    """A joining member gets the partitions that the other members have above the balance."""
    members = {"a": spec("t", target={"t": (0, 1, 2)}), "b": spec("t")}
    assert uniform_assignor(members, {"t": 3}) == {"a": {"t": (0, 1)}, "b": {"t": (2,)}}


def test_uniform_balances_members_that_read_different_topics() -> None:
    """A member that reads only the small topic gets it; the other members share the rest."""
    members = {"a": spec("t", "u", target={"t": (0, 1, 2), "u": (0,)}), "b": spec("u")}
    assert uniform_assignor(members, {"t": 3, "u": 2}) == {
        "a": {"t": (0, 1, 2)},
        "b": {"u": (0, 1)},
    }


SUBSCRIPTIONS = st.dictionaries(
    st.sampled_from("abcde"), st.sets(st.sampled_from("tuv"), min_size=1), min_size=1
)
COUNTS = st.fixed_dictionaries({topic: st.integers(1, 7) for topic in "tuv"})


@given(SUBSCRIPTIONS, SUBSCRIPTIONS, COUNTS, st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_has_one_owner_that_subscribes_to_it(
    before: dict[str, set[str]], after: dict[str, set[str]], counts: dict[str, int], name: str
) -> None:
    """Whatever members owned before, each partition goes to one reader, evenly among equal
    subscriptions."""
    first = ASSIGNORS[name]({m: spec(*topics) for m, topics in before.items()}, counts)
    members = {m: spec(*topics, target=first.get(m)) for m, topics in after.items()}
    found = ASSIGNORS[name](members, counts)
    owned = [
        (topic, number, member)
        for member, partitions in found.items()
        for topic, numbers in partitions.items()
        for number in numbers
    ]
    read = {topic for topics in after.values() for topic in topics}
    everything = sorted((t, n) for t in read for n in range(counts[t]))
    assert sorted((topic, number) for topic, number, _ in owned) == everything
    assert all(topic in after[member] for topic, _, member in owned)
    if name == "uniform":
        for one in after:
            for other in after:
                if after[one] == after[other]:
                    sizes = [sum(map(len, found[m].values())) for m in (one, other)]
                    assert abs(sizes[0] - sizes[1]) <= 1
    assert ASSIGNORS[name](members, counts) == found
