"""The controller's context (docs/kafka/controller-state.md)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.values import (
    BrokerInfo,
    EndPoint,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
)
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.machines.context import ControllerContext
from fakekafka.statemachines.machines.ordered_set import OrderedSet
from fakekafka.statemachines.machines.transitions import PartitionState, ReplicaState
from hypothesis import given
from hypothesis import strategies as st

T0, T1, T2 = (TopicPartition("t", n) for n in range(3))
U0 = TopicPartition("u", 0)


def broker(broker_id: int, rack: str | None = None) -> BrokerInfo:
    return BrokerInfo(broker_id, (EndPoint("h", 9092),), rack)


def led_by(leader: int, isr: tuple[int, ...] = (1, 2, 3)) -> LeaderIsrAndControllerEpoch:
    return LeaderIsrAndControllerEpoch(LeaderAndIsr(leader, 0, isr, 0), 1)


def new_context(*broker_ids: int) -> ControllerContext:
    context = ControllerContext(behaviour("2.8"))
    context.brokers.set_live_brokers((broker(i), 100 + i) for i in broker_ids)
    return context


def with_partitions(**replicas: tuple[int, ...]) -> ControllerContext:
    """Return a context with brokers 1 to 3, and partition t-0 for each ``t0=(1, 2)``."""
    context = new_context(1, 2, 3)
    for name, brokers in replicas.items():
        context.topics.update_partition_full_replica_assignment(
            TopicPartition(name[0], int(name[1:])), ReplicaAssignment(brokers)
        )
    return context


def test_unknown_partitions_read_as_empty() -> None:
    """CP-50: no exception."""
    context = new_context()
    assert context.topics.partition_replica_assignment(T0) == ()
    assert context.topics.partition_full_replica_assignment(T0) == ReplicaAssignment(())
    assert context.topics.partition_full_replica_assignment_for_topic("t") == {}
    assert context.topics.partition_leadership_info(T0) is None
    assert context.topics.partitions_for_topic("t") == []
    assert context.topics.replicas_for_topic("t") == []


@pytest.mark.parametrize(
    ("assignment", "target"),
    [
        pytest.param(ReplicaAssignment((1, 2, 3, 4, 5, 6), (2, 3, 4), (1, 5, 6)), (2, 3, 4),
                     id="CP-51"),
        pytest.param(ReplicaAssignment((1, 2, 3, 4), (4,), (2,)), (1, 3, 4), id="CP-52"),
    ],
)  # fmt: skip
def test_the_target_of_a_reassignment_excludes_removed_replicas(
    assignment: ReplicaAssignment, target: tuple[int, ...]
) -> None:
    """CP-51, CP-52."""
    assert assignment.target == target


def test_a_reassignment_starts_with_its_target() -> None:
    """CP-53: the target comes first, then the rest of the origin."""
    started = ReplicaAssignment((1, 2, 3, 4)).reassign_to((4, 2, 5, 3))
    assert started == ReplicaAssignment((4, 2, 5, 3, 1), (5,), (1,))


def test_reordering_is_no_reassignment() -> None:
    """CP-54."""
    reordered = ReplicaAssignment((1, 2, 3)).reassign_to((3, 1, 2))
    assert (reordered, reordered.is_being_reassigned) == (ReplicaAssignment((3, 1, 2)), False)


def test_a_redirected_reassignment_starts_from_the_origin() -> None:
    """CP-55: replicas that the first request wanted to add disappear."""
    origin = ReplicaAssignment((1, 2, 3))
    redirected = origin.reassign_to((4, 5, 6)).reassign_to((7, 8, 9))
    assert redirected == origin.reassign_to((7, 8, 9))


def test_reassigning_to_the_origin_reverts_the_reassignment() -> None:
    """CP-56."""
    ongoing = ReplicaAssignment((1, 2, 3)).reassign_to((4, 5, 6))
    assert ongoing.reassign_to(ongoing.origin) == ReplicaAssignment((1, 2, 3))


@given(
    st.lists(st.integers(0, 6), min_size=1, unique=True),
    st.lists(st.integers(0, 6), min_size=1, unique=True),
)
def test_reassigning_to_the_own_target_changes_nothing(
    origin: list[int], target: list[int]
) -> None:
    """CP-57, and no replica is lost or added on the way."""
    ongoing = ReplicaAssignment(tuple(origin)).reassign_to(target)
    assert ongoing.reassign_to(ongoing.target) == ongoing
    assert (set(ongoing.origin), ongoing.target) == (set(origin), tuple(target))
    assert set(ongoing.replicas) == set(origin) | set(target)


def test_the_imbalance_count_follows_leaders_assignments_and_deletions() -> None:
    """CP-58."""
    context = with_partitions(t0=(1, 2, 3), t1=(1, 2, 3), u0=(1, 2, 3))
    counts = []
    for tp, leader in ((T0, 1), (T1, 2), (U0, 3)):
        context.topics.put_partition_leadership_info(tp, led_by(leader))
        counts.append(context.topics.preferred_replica_imbalance_count)
    assert counts == [0, 1, 2]
    for tp in (T0, T1):
        context.topics.update_partition_full_replica_assignment(tp, ReplicaAssignment((2, 3, 1)))
    assert context.topics.preferred_replica_imbalance_count == 2
    context.topics.queue_topic_deletion(["u"])
    assert context.topics.preferred_replica_imbalance_count == 1
    context.topics.put_partition_leadership_info(U0, led_by(1))
    context.topics.put_partition_leadership_info(U0, led_by(2))
    assert context.topics.preferred_replica_imbalance_count == 1
    for topic in ("t", "u"):
        context.topics.remove_topic(topic)
    assert context.topics.preferred_replica_imbalance_count == 0


def test_a_preferred_replica_being_added_counts_once_it_is_in_sync() -> None:
    """Before that the partition does not count as imbalanced
    (docs/kafka/election.md#rebalancing)."""
    context = with_partitions(t0=(1, 2))
    context.topics.put_partition_leadership_info(T0, led_by(1, (1, 2)))
    context.topics.update_partition_full_replica_assignment(
        T0, ReplicaAssignment((1, 2)).reassign_to((3, 2))
    )
    assert context.topics.preferred_replica_imbalance_count == 0
    context.topics.put_partition_leadership_info(T0, led_by(1, (1, 2, 3)))
    assert context.topics.preferred_replica_imbalance_count == 1


def test_shutting_down_brokers_are_registered_but_not_live() -> None:
    """Their replicas are offline, unless the caller includes brokers that are shutting down."""
    context = with_partitions(t0=(1, 2))
    context.brokers.shutting_down_broker_ids.add(2)
    assert list(context.brokers.live_broker_ids) == [1, 3]
    assert list(context.brokers.live_or_shutting_down_broker_ids) == [1, 2, 3]
    assert [b.id for b in context.brokers.live_brokers()] == [1, 3]
    assert not context.brokers.is_replica_online(2, T0)
    assert context.brokers.is_replica_online(2, T0, include_shutting_down=True)
    assert not context.brokers.is_replica_online(-1, T0)


def test_a_replica_on_a_failed_directory_is_offline() -> None:
    """Only that replica is offline; its broker is live (JBOD)."""
    context = with_partitions(t0=(1,), t1=(1,))
    context.brokers.replicas_on_offline_dirs[1] = OrderedSet([T0])
    assert not context.brokers.is_replica_online(1, T0, include_shutting_down=True)
    assert context.brokers.is_replica_online(1, T1)


def test_partitions_with_an_offline_leader() -> None:
    """The leader is missing, dead, shutting down or on a failed directory; topics queued for
    deletion are excluded."""
    context = with_partitions(t0=(1,), t1=(2,), t2=(3,), u0=(1,), u1=(1,), u2=(9,), d0=(9,))
    deleted = TopicPartition("d", 0)
    u1, u2 = TopicPartition("u", 1), TopicPartition("u", 2)
    for tp, leader in ((T0, 1), (T1, 2), (T2, 3), (U0, 1), (u1, -1), (u2, 9), (deleted, 9)):
        context.topics.put_partition_leadership_info(tp, led_by(leader))
    context.brokers.shutting_down_broker_ids.add(2)
    context.brokers.replicas_on_offline_dirs[1] = OrderedSet([U0])
    context.topics.queue_topic_deletion(["d"])
    assert sorted(context.topics.partitions_with_offline_leader()) == [T1, U0, u1, u2]
    assert sorted(context.topics.partitions_with_leaders()) == [T0, T1, T2, U0, u1, u2]


def test_partition_leaders_on_a_broker_need_other_replicas() -> None:
    """Partitions with one replica, or of topics queued for deletion, are excluded."""
    context = with_partitions(t0=(1, 2), t1=(1,), t2=(2, 1), u0=(1, 2))
    for tp, leader in ((T0, 1), (T1, 1), (T2, 2), (U0, 1)):
        context.topics.put_partition_leadership_info(tp, led_by(leader))
    context.topics.queue_topic_deletion(["u"])
    assert context.topics.partition_leaders_on_broker(1) == [T0]
    context.topics.put_partition_leadership_info(T0, led_by(2))
    assert context.topics.partition_leaders_on_broker(1) == []


def test_partitions_on_a_broker_include_those_moving_in_or_out() -> None:
    """The full replica list counts."""
    context = with_partitions(t0=(1,), t1=(2,))
    ongoing = ReplicaAssignment((1,)).reassign_to((3,))
    context.topics.update_partition_full_replica_assignment(T0, ongoing)
    assert context.topics.partitions_on_broker(1) == context.topics.partitions_on_broker(3) == [T0]
    context.topics.update_partition_full_replica_assignment(T0, ReplicaAssignment((3,)))
    assert context.topics.partitions_on_broker(1) == []
    assert context.topics.replicas_on_brokers([2, 3]) == [
        PartitionReplica("t", 1, 2),
        PartitionReplica("t", 0, 3),
    ]


def test_replicas_are_split_into_online_and_offline() -> None:
    """Every assigned replica is in exactly one of the two maps, by its broker."""
    context = with_partitions(t0=(1, 9))
    assert context.topics.online_and_offline_replicas() == ({1: [T0]}, {9: [T0]})


def test_replica_states_by_topic() -> None:
    """Deletion needs a topic's replicas in a given state."""
    context = with_partitions(t0=(1, 2))
    one, two = context.topics.replicas_for_topic("t")
    context.states.put_replica_state(one, ReplicaState.OFFLINE)
    assert context.states.replica_state(two) is ReplicaState.NON_EXISTENT
    assert context.states.replicas_in_state("t", ReplicaState.OFFLINE) == [one]
    context.states.put_replica_state(two, ReplicaState.OFFLINE)
    assert context.states.replicas_in_state("t", ReplicaState.OFFLINE) == [one, two]
    context.states.put_replica_state(one, ReplicaState.NON_EXISTENT)
    assert context.states.replicas_in_state("t", ReplicaState.OFFLINE) == [two]
    assert context.states.replica_states_on_broker(1) == {}


def test_eligible_topics_are_queued_and_not_ineligible() -> None:
    """A queued deletion is not yet in progress."""
    context = with_partitions(t0=(1,))
    assert not context.topics.is_topic_eligible_for_deletion("t")
    context.topics.queue_topic_deletion(["t"])
    assert context.topics.is_topic_eligible_for_deletion("t")
    assert not context.topics.is_topic_deletion_in_progress("t")
    context.topics.topics_ineligible_for_deletion.add("t")
    assert not context.topics.is_topic_eligible_for_deletion("t")
    context.topics.begin_topic_deletion(["t"])
    assert context.topics.is_topic_deletion_in_progress("t")
    assert context.topics.topics_queued_for_deletion() == ["t"]


def test_removing_a_topic_forgets_all_facts_about_it() -> None:
    """Ids, assignments, leadership, queues and indexes."""
    context = with_partitions(t0=(1, 2), u0=(1,))
    context.topics.set_all_topics(["t", "u"])
    context.topics.add_topic_id("t", "id")
    context.topics.put_partition_leadership_info(T0, led_by(1))
    context.topics.queue_topic_deletion(["t"])
    context.topics.remove_topic("t")
    assert list(context.topics.all_partitions()) == [U0]
    assert context.topics.partitions_on_broker(1) == [U0]
    assert context.topics.partition_leaders_on_broker(1) == []
    assert context.topics.topics_queued_for_deletion() == []
    assert (list(context.topics.all_topics), context.topics.topic_ids) == (["u"], {})


def test_a_topic_keeps_its_id() -> None:
    """CP-203: a second, different id is refused."""
    context = new_context()
    context.topics.add_topic_id("t", "one")
    context.topics.add_topic_id("t", "one")
    with pytest.raises(ValueError, match="has id one, not two"):
        context.topics.add_topic_id("t", "two")


def test_the_leader_epoch_for_stop_replica() -> None:
    """For an unknown partition, a known one, and one of a topic being deleted
    (docs/kafka/control-requests.md#stopreplica)."""
    context = with_partitions(t0=(1,))
    assert context.topics.leader_epoch(T0) == -1
    context.topics.put_partition_leadership_info(
        T0, LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 7, (1,), 0), 1)
    )
    assert context.topics.leader_epoch(T0) == 7
    context.topics.queue_topic_deletion(["t"])
    assert context.topics.leader_epoch(T0) == -2


def test_broker_metadata_can_be_replaced() -> None:
    """The broker's epoch stays."""
    context = new_context(1)
    context.brokers.update_broker_metadata(broker(1), broker(1, "rack"))
    assert context.brokers.live_or_shutting_down_broker(1) == broker(1, "rack")
    assert context.brokers.live_broker_id_and_epochs == {1: 101}
    context.brokers.remove_live_brokers([1])
    assert context.brokers.live_or_shutting_down_broker(1) is None
    assert not context.brokers.is_live_or_shutting_down_broker(1)


def memory_of(context: ControllerContext) -> dict[str, Any]:
    """Return all data of a context's parts, except the objects they were constructed with."""
    handed = {"_behaviour", "_brokers", "_state_listener", "_topics", "replica_predecessors"}
    parts: list[Any] = [context.brokers, context.topics, context.states]
    held: dict[str, Any] = {"epoch": context.epoch, "zk_version": context.epoch_zk_version}
    for part in parts:
        names = (name for name in vars(part) if part is context.brokers or name not in handed)
        held.update({f"{type(part).__name__}.{name}": getattr(part, name) for name in names})
    return held


def test_reset_forgets_everything_but_the_unclean_count() -> None:
    """At resignation (docs/kafka/controller-failover.md#resignation)."""
    context = with_partitions(t0=(1, 2))
    context.epoch, context.epoch_zk_version = 3, 4
    context.topics.put_partition_leadership_info(T0, led_by(2))
    context.states.put_partition_state(T0, PartitionState.OFFLINE)
    context.unclean_leader_elections = 5
    context.reset_context()
    assert memory_of(context) == memory_of(ControllerContext(context.behaviour))
    assert context.unclean_leader_elections == 5


leadership_steps = st.lists(
    st.tuples(
        st.sampled_from(["assign", "lead", "state", "queue", "remove", "stop"]),
        st.integers(0, 3),
        st.permutations([1, 2, 3]),
        st.sampled_from(list(PartitionState)),
    ),
    max_size=30,
)


@given(leadership_steps)
def test_incremental_counts_and_indexes_equal_recomputed_ones(
    steps: list[tuple[str, int, list[int], PartitionState]],
) -> None:
    """After any sequence of changes, they equal counts over all partitions."""
    context = new_context(1, 2)
    for kind, number, order, state in steps:
        tp = TopicPartition("tu"[number % 2], number)
        if kind == "assign":
            context.topics.update_partition_full_replica_assignment(
                tp, ReplicaAssignment(tuple(order[: 1 + number % 3]))
            )
        elif kind == "lead" and context.topics.has_assignment(tp):
            context.topics.put_partition_leadership_info(tp, led_by(order[0], tuple(order)))
        elif kind == "state":
            context.states.put_partition_state(tp, state)
        elif kind == "queue":
            context.topics.queue_topic_deletion([tp.topic])
        elif kind == "remove":
            context.topics.remove_topic(tp.topic)
        elif kind == "stop":
            context.brokers.shutting_down_broker_ids.add(1)
    known = {
        tp: v.leader_and_isr.leader for tp, v in context.topics.partitions_leadership_info.items()
    }
    assignments = dict(context.topics.all_assignments())
    counted = {tp: leader for tp, leader in known.items() if tp.topic not in
               context.topics.topics_to_be_deleted}  # fmt: skip
    assert context.topics.preferred_replica_imbalance_count == sum(
        assignments[tp][0] != leader for tp, leader in counted.items()
    )
    assert context.states.offline_partition_count == len(
        context.states.partitions_in_states([PartitionState.OFFLINE])
    )
    assert sorted(context.topics.partitions_with_offline_leader()) == sorted(
        tp for tp, leader in counted.items() if not context.brokers.is_replica_online(leader, tp)
    )
    for broker_id in (1, 2, 3):
        hosted = [tp for tp, replicas in assignments.items() if broker_id in replicas]
        assert sorted(context.topics.partitions_on_broker(broker_id)) == sorted(hosted)
