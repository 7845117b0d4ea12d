"""The controller's request batch (docs/kafka/control-requests.md)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.control import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
)
from fakekafka.statemachines.machines.ordered_set import OrderedSet
from fakekafka.statemachines.zookeeper.errors import IllegalState
from fakekafka.tests.support.controller_core import Core, MakeCore

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
U0 = TopicPartition("u", 0)
V0 = TopicPartition("v", 0)
REPLICAS = (1, 2, 3)


@pytest.fixture
def cluster(make_core: MakeCore) -> Any:
    """Return brokers 1, 2, 3 and partitions t-0, t-1, u-0, v-0 led by 1 in epoch 3."""
    return prepared(make_core(1, 2, 3))


def prepared(core: Core) -> Any:
    for tp in (T0, T1, U0, V0):
        core.assign(tp, *REPLICAS)
        core.context.topics.put_partition_leadership_info(tp, decision())
    return core


def decision(leader: int = 1, leader_epoch: int = 3) -> LeaderIsrAndControllerEpoch:
    return LeaderIsrAndControllerEpoch(LeaderAndIsr(leader, leader_epoch, REPLICAS, 8), 1)


def add_leader_and_isr(
    core: Core, tp: TopicPartition, *broker_ids: int, is_new: bool = False
) -> None:
    core.batch.add_leader_and_isr_request_for_brokers(
        broker_ids, tp, decision(), ReplicaAssignment(REPLICAS), is_new
    )


def send(core: Core, controller_epoch: int = 7) -> None:
    core.batch.send_requests_to_brokers(controller_epoch)


def respond(core: Core, kind: type, response: Any) -> None:
    for _broker_id, request, callback in core.channels.sent:
        if isinstance(request, kind):
            callback(response)


def test_leader_and_isr_brings_metadata_along(cluster: Any) -> None:
    """CP-166: one request of each kind has the controller's id and epoch, and causes an event."""
    cluster.batch.new_batch()
    for tp in (T0, T1, U0):
        add_leader_and_isr(cluster, tp, 2)
    send(cluster)
    [(broker_id, request)] = cluster.channels.of(LeaderAndIsrRequest)
    assert (broker_id, request.controller_id, request.controller_epoch) == (2, 5, 7)
    assert request.broker_epoch == 102
    assert [state.topic_partition for state in request.partition_states] == [T0, T1, U0]
    assert [leader.id for leader in request.live_leaders] == [1]
    metadata = cluster.channels.update_metadata()
    assert sorted(metadata) == [1, 2, 3]
    assert (metadata[2].controller_id, metadata[2].controller_epoch) == (5, 7)
    assert [state.topic_partition for state in metadata[2].partition_states] == [T0, T1, U0]
    response = LeaderAndIsrResponse(ErrorCode.NONE, ((T0, ErrorCode.NONE),))
    respond(cluster, LeaderAndIsrRequest, response)
    assert cluster.events.received == [("LeaderAndIsr", 2, response)]


def test_a_partition_state_carries_the_whole_decision(cluster: Any) -> None:
    """It has the controller epoch of the decision, not of the sender, and the adding and removing
    replicas."""
    assignment = ReplicaAssignment((1, 2)).reassign_to((2, 3))
    cluster.batch.add_leader_and_isr_request_for_brokers([3], T0, decision(), assignment, True)
    send(cluster)
    [state] = cluster.channels.leader_and_isr()[3]
    assert (state.controller_epoch, state.leader, state.leader_epoch) == (1, 1, 3)
    assert (state.isr, state.zk_version) == (REPLICAS, 8)
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == (
        (2, 3, 1),
        (3,),
        (1,),
    )


def test_is_new_sticks(cluster: Any) -> None:
    """CP-167: true, then false, stays true; the rest is as decided last."""
    add_leader_and_isr(cluster, T0, 2, is_new=True)
    cluster.batch.add_leader_and_isr_request_for_brokers(
        [2, 3], T0, decision(leader_epoch=4), ReplicaAssignment(REPLICAS), False
    )
    send(cluster)
    states = {b: s for b, [s] in cluster.channels.leader_and_isr().items()}
    assert (states[2].is_new, states[2].leader_epoch) == (True, 4)
    assert states[3].is_new is False


def test_requests_go_only_to_registered_brokers(cluster: Any) -> None:
    """CP-168: broker 2 is shutting down and 3 is dead; negative ids are ignored."""
    cluster.context.brokers.shutting_down_broker_ids.add(2)
    cluster.context.brokers.remove_live_brokers([3])
    add_leader_and_isr(cluster, T0, 1, 2, 3, -1)
    send(cluster)
    assert sorted(cluster.channels.leader_and_isr()) == [1, 2]
    [request, same] = cluster.channels.update_metadata().values()
    assert [broker.id for broker in request.live_brokers] == [1, 2]
    assert request.partition_states[0].offline_replicas == (2, 3)
    assert request.partition_states is same.partition_states


def test_partitions_without_leadership_are_left_out_of_metadata(cluster: Any) -> None:
    """CP-169: the broker list is sent nevertheless."""
    cluster.batch.add_update_metadata_request_for_brokers([1], [TopicPartition("new", 0)])
    send(cluster)
    [request] = cluster.channels.update_metadata().values()
    assert request.partition_states == ()
    assert [broker.id for broker in request.live_brokers] == [1, 2, 3]


def test_metadata_of_a_queued_topic_marks_the_deletion(cluster: Any) -> None:
    """CP-170: leader -2, epochs 0, and the same ISR; other topics are not affected."""
    cluster.context.topics.queue_topic_deletion(["t"])
    cluster.batch.add_update_metadata_request_for_brokers([1], [T0, U0])
    send(cluster)
    deleted, kept = cluster.channels.update_metadata()[1].partition_states
    assert (deleted.leader, deleted.leader_epoch, deleted.zk_version) == (-2, 0, 0)
    assert deleted.isr == REPLICAS
    assert (kept.leader, kept.leader_epoch, kept.zk_version) == (1, 3, 8)


def test_metadata_has_the_leadership_last_added(cluster: Any) -> None:
    """Adding a partition again replaces its leadership by the newer one."""
    cluster.batch.add_update_metadata_request_for_brokers([1], [T0])
    cluster.context.topics.put_partition_leadership_info(T0, decision(2, 4))
    cluster.batch.add_update_metadata_request_for_brokers([1], [T0])
    cluster.context.topics.put_partition_leadership_info(T0, decision(3, 5))
    send(cluster)
    [state] = cluster.channels.update_metadata()[1].partition_states
    assert (state.leader, state.leader_epoch) == (2, 4)


def test_metadata_of_a_queued_topic_has_the_isr_known_when_last_added(cluster: Any) -> None:
    """Its leader and epochs are always the same, so that only the ISR tells two additions apart."""
    cluster.context.topics.queue_topic_deletion(["t"])
    cluster.batch.add_update_metadata_request_for_brokers([1], [T0])
    shrunk = LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 4, (1, 2), 9), 1)
    cluster.context.topics.put_partition_leadership_info(T0, shrunk)
    cluster.batch.add_update_metadata_request_for_brokers([1], [T0])
    send(cluster)
    [state] = cluster.channels.update_metadata()[1].partition_states
    assert (state.leader, state.isr) == (-2, (1, 2))


def test_metadata_response_becomes_an_event(cluster: Any) -> None:
    """The controller only logs its error."""
    cluster.batch.add_update_metadata_request_for_brokers([3], [])
    send(cluster)
    response = UpdateMetadataResponse(ErrorCode.STALE_CONTROLLER_EPOCH)
    respond(cluster, UpdateMetadataRequest, response)
    assert cluster.events.received == [("UpdateMetadata", 3, response)]


@pytest.mark.parametrize(("version", "count"), [("1.1", 4), ("2.8", 0)])
def test_no_partitions_meant_all_partitions_before_2_2(
    make_core: MakeCore, version: str, count: int
) -> None:
    """Up to 2.1 an empty list stood for all partitions (KAFKA-7537)."""
    core = prepared(make_core(1, 2, 3, version=version))
    core.batch.add_update_metadata_request_for_brokers([1], [])
    send(core)
    assert len(core.channels.update_metadata()[1].partition_states) == count


def test_older_requests_carry_neither_broker_epoch_nor_topic_ids(make_core: MakeCore) -> None:
    """KIP-380 and KIP-516 added them, and 1.0 the offline replicas."""
    for version, epoch, ids, offline in (
        ("0.10", -1, (), ()),
        ("1.1", -1, (), (3,)),
        ("2.8", 101, (("t", "id"),), (3,)),
    ):
        core = prepared(make_core(1, 2, version=version))
        core.context.topics.add_topic_id("t", "id")
        add_leader_and_isr(core, T0, 1)
        send(core)
        [(_, request)] = core.channels.of(LeaderAndIsrRequest)
        metadata = core.channels.update_metadata()[1]
        assert (request.broker_epoch, request.topic_ids) == (epoch, ids)
        assert (metadata.broker_epoch, metadata.topic_ids) == (epoch, ids)
        assert metadata.partition_states[0].offline_replicas == offline


def test_delete_sticks(cluster: Any) -> None:
    """CP-171: true, then false, stays true."""
    cluster.batch.add_stop_replica_request_for_brokers([2], T0, True)
    cluster.batch.add_stop_replica_request_for_brokers([2], T0, False)
    send(cluster)
    assert cluster.channels.stop_replica() == [(2, "t-0", 3, True)]


def stop_with_response(core: Core, delete: bool = True) -> list[Any]:
    """Stop t-0 and u-0 on broker 2, and return the events that its response caused."""
    for tp in (T0, U0):
        core.batch.add_stop_replica_request_for_brokers([2, -1], tp, delete)
    send(core)
    answers = ((T0, ErrorCode.NONE), (U0, ErrorCode.KAFKA_STORAGE_ERROR))
    respond(core, StopReplicaRequest, StopReplicaResponse(ErrorCode.NONE, answers))
    return list(core.events.received)


def test_a_queued_topics_stop_replica_is_no_event(cluster: Any) -> None:
    """CP-172: the deletion is queued but not started; the request has leader epoch -2."""
    cluster.context.topics.queue_topic_deletion(["t"])
    assert stop_with_response(cluster) == []
    assert cluster.channels.stop_replica() == [(2, "t-0", -2, True), (2, "u-0", 3, True)]


def test_a_started_topics_stop_replica_is_one_event(cluster: Any) -> None:
    """CP-173: the event has only that topic's partitions."""
    cluster.context.topics.queue_topic_deletion(["t"])
    cluster.context.topics.begin_topic_deletion(["t"])
    assert stop_with_response(cluster) == [("StopReplica", 2, ErrorCode.NONE, {T0: ErrorCode.NONE})]


def test_stopping_without_deleting_is_no_event(cluster: Any) -> None:
    """CP-174."""
    cluster.context.topics.queue_topic_deletion(["t"])
    cluster.context.topics.begin_topic_deletion(["t"])
    assert stop_with_response(cluster, delete=False) == []


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.8", [[(T0, 3, False), (T1, 3, True)]]),
        ("1.1", [[], [(T0, -1, False)], [(T1, -1, True)]]),
        ("0.10", [[(T0, -1, False)], [(T1, -1, True)]]),
    ],
)
def test_old_releases_send_stop_replica_partition_by_partition(
    make_core: MakeCore, version: str, expected: list[Any]
) -> None:
    """CP-175: the old request has one delete flag and no leader epochs. 1.1.1 intends to
    group partitions that are not deleted (KAFKA-4420), but none qualifies, and the group is
    sent empty."""
    core = prepared(make_core(1, 2, 3, version=version))
    core.batch.add_stop_replica_request_for_brokers([2], T0, False)
    core.batch.add_stop_replica_request_for_brokers([2], T1, True)
    send(core)
    assert expected == [
        [(s.topic_partition, s.leader_epoch, s.delete_partition) for s in r.partition_states]
        for _, r in core.channels.of(StopReplicaRequest)
    ]


def test_stop_replica_is_grouped_by_broker(cluster: Any) -> None:
    """CP-176: 2 and 3 get the same partitions; unregistered brokers are left out."""
    for tp in (T0, T1):
        cluster.batch.add_stop_replica_request_for_brokers([2, 3, 9], tp, False)
    send(cluster)
    requests = cluster.channels.of(StopReplicaRequest)
    assert [(b, len(r.partition_states)) for b, r in requests] == [(2, 2), (3, 2)]


def test_kinds_are_sent_in_order(cluster: Any) -> None:
    """The order is LeaderAndIsr, UpdateMetadata, StopReplica, each by broker id
    (docs/kafka/control-requests.md#batch)."""
    cluster.batch.add_stop_replica_request_for_brokers([1], T0, False)
    add_leader_and_isr(cluster, T0, 3, 1)
    send(cluster)
    order = [(type(request).__name__[:-7], b) for b, request, _ in cluster.channels.sent]
    assert order == [
        ("LeaderAndIsr", 1),
        ("LeaderAndIsr", 3),
        ("UpdateMetadata", 1),
        ("UpdateMetadata", 2),
        ("UpdateMetadata", 3),
        ("StopReplica", 1),
    ]


def test_leftovers_keep_the_next_batch_closed(cluster: Any) -> None:
    """The next batch opens once they are sent or dropped."""
    add_leader_and_isr(cluster, T0, 1)
    with pytest.raises(IllegalState, match="LeaderAndIsr requests to brokers"):
        cluster.batch.new_batch()
    cluster.batch.clear()
    cluster.batch.new_batch()
    cluster.batch.add_update_metadata_request_for_brokers([1], [])
    with pytest.raises(IllegalState, match="UpdateMetadata"):
        cluster.batch.new_batch()
    send(cluster)
    cluster.batch.new_batch()
    cluster.batch.add_stop_replica_request_for_brokers([1], T0, False)
    with pytest.raises(IllegalState, match="StopReplica"):
        cluster.batch.new_batch()


def test_a_refusing_channel_is_an_illegal_state(cluster: Any) -> None:
    """The error is logged and raised, upon which the controller resigns."""
    cluster.channels.failure = RuntimeError("no such queue")
    add_leader_and_isr(cluster, T0, 1)
    with pytest.raises(IllegalState, match="no such queue"):
        send(cluster)
    assert "no such queue" in cluster.errors()


def test_a_shared_partition_state_serves_all_brokers(cluster: Any) -> None:
    """Thousands of replicas share one object per partition."""
    add_leader_and_isr(cluster, T0, 1, 2, 3)
    send(cluster)
    states = [s for [s] in cluster.channels.leader_and_isr().values()]
    assert states[0] is states[1] is states[2]


def test_failed_directories_show_as_offline_replicas(cluster: Any) -> None:
    """The broker is live, but the replica counts as offline."""
    cluster.context.brokers.replicas_on_offline_dirs[2] = OrderedSet([T0])
    cluster.batch.add_update_metadata_request_for_brokers([1], [T0, T1])
    send(cluster)
    states = cluster.channels.update_metadata()[1].partition_states
    assert [state.offline_replicas for state in states] == [(2,), ()]
