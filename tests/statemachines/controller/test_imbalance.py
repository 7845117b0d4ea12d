"""Partitions that the rebalance timer elects (docs/kafka/election.md#rebalancing)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fakekafka.protocol.values import (
    BrokerInfo,
    EndPoint,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
)
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.controller.flows.rebalance import BrokerImbalance, leader_imbalances
from fakekafka.statemachines.machines.context import ControllerContext


def context_with(leaders: Sequence[int | None], version: str = "2.8") -> ControllerContext:
    """Return a context with partitions t-0, t-1, ... assigned to (1, 2), led as given; None for no
    leadership."""
    context = ControllerContext(behaviour(version))
    context.brokers.set_live_brokers(
        [(BrokerInfo(i, (EndPoint("h", 9092),)), 100 + i) for i in (1, 2, 3)]
    )
    context.topics.set_all_topics(["t"])
    for number, leader in enumerate(leaders):
        tp = TopicPartition("t", number)
        context.topics.update_partition_full_replica_assignment(tp, ReplicaAssignment((1, 2)))
        if leader is not None:
            context.topics.put_partition_leadership_info(
                tp, LeaderIsrAndControllerEpoch(LeaderAndIsr(leader, 0, (2, 1), 0), 1)
            )
    return context


def candidates(
    context: ControllerContext, percentage: int = 10
) -> dict[int, tuple[TopicPartition, ...]]:
    found = leader_imbalances(context, percentage, context.behaviour)
    return {imbalance.broker_id: imbalance.candidates for imbalance in found}


@pytest.mark.parametrize(
    ("partitions", "is_moved"), [(10, False), (9, True)], ids=["1-of-10", "1-of-9"]
)
def test_the_limit_must_be_exceeded(partitions: int, is_moved: bool) -> None:
    """Exactly ten percent is not more than ten percent."""
    context = context_with([2] + [1] * (partitions - 1))
    assert is_moved == bool(candidates(context)[1])


def test_the_ratio_counts_only_partitions_that_a_broker_should_lead() -> None:
    """The ratio is per preferred broker, not over the whole cluster."""
    context = context_with([2])
    for number in range(1, 50):
        tp = TopicPartition("t", number)
        context.topics.update_partition_full_replica_assignment(tp, ReplicaAssignment((3, 2)))
        context.topics.put_partition_leadership_info(
            tp, LeaderIsrAndControllerEpoch(LeaderAndIsr(3, 0, (3, 2), 0), 1)
        )
    only = TopicPartition("t", 0)
    assert [
        BrokerImbalance(1, 1, (only,), (only,)),
        BrokerImbalance(3, 49, (), ()),
    ] == leader_imbalances(context, 10, context.behaviour)


def test_brokers_take_their_partitions_back_by_their_ids() -> None:
    """The order in which partitions are known does not matter; each broker has its own ratio."""
    context = context_with([2, 1, 1])
    for number, assignment in ((0, (3, 2)), (3, (2, 1))):
        tp = TopicPartition("t", number)
        context.topics.update_partition_full_replica_assignment(tp, ReplicaAssignment(assignment))
        context.topics.put_partition_leadership_info(
            tp, LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 0, (1, 2, 3), 0), 1)
        )
    found = leader_imbalances(context, 10, context.behaviour)
    assert [(one.broker_id, one.preferred_count, len(one.candidates)) for one in found] == [
        (1, 2, 0),
        (2, 1, 1),
        (3, 1, 1),
    ]


def test_leaderless_partitions_count_and_unknown_ones_do_not() -> None:
    """A partition with leader -1 is imbalanced; one without leadership only counts for the
    total."""
    context = context_with([-1, None, None])
    [imbalance] = leader_imbalances(context, 10, context.behaviour)
    assert ((TopicPartition("t", 0),), 3) == (imbalance.imbalanced, imbalance.preferred_count)


@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_a_reassignment_anywhere_stops_all_rebalancing_before_3_4(version: str) -> None:
    """From 3.4 on all partitions take part, even those being reassigned (KAFKA-10149)."""
    context = context_with([2, 2], version)
    context.topics.partitions_being_reassigned.add(TopicPartition("t", 0))
    both = (TopicPartition("t", 0), TopicPartition("t", 1))
    expected = both if version == "3.9" else ()
    assert {1: expected} == candidates(context)


@pytest.mark.parametrize("version", ["1.1", "2.8"])
def test_a_preferred_replica_outside_the_isr_is_skipped_from_2_6_on(version: str) -> None:
    """Before, the preferred replica only had to be online, and the election then failed."""
    context = context_with([2], version)
    tp = TopicPartition("t", 0)
    context.topics.put_partition_leadership_info(
        tp, LeaderIsrAndControllerEpoch(LeaderAndIsr(2, 0, (2,), 0), 1)
    )
    assert {1: (tp,) if version == "1.1" else ()} == candidates(context)


def test_dead_preferred_replicas_deleted_and_unknown_topics_are_skipped() -> None:
    """They may be imbalanced, but there are no candidates for election."""
    context = context_with([2])
    context.brokers.remove_live_brokers([1])
    assert candidates(context) == {1: ()}
    context = context_with([2])
    context.topics.set_all_topics([])
    assert candidates(context) == {1: ()}
    context = context_with([2])
    context.topics.queue_topic_deletion(["t"])
    assert candidates(context) == {}
