"""The controller's election, resignation, fencing, session expiry and shutdown."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol import znode_paths
from fakekafka.protocol import znode_payloads as payloads
from fakekafka.protocol.admin import FeatureUpdate
from fakekafka.protocol.control import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import BrokerInfo, EndPoint, ReplicaAssignment, TopicPartition
from fakekafka.statemachines.controller.events import (
    ApiPartitionReassignment,
    ControlledShutdown,
    ControllerChange,
    ElectionTrigger,
    Expire,
    ListPartitionReassignments,
    RegisterBrokerAndReelect,
    ReplicaLeaderElection,
    TopicChange,
    TopicUncleanLeaderElectionEnable,
    UncleanLeaderElectionEnable,
    UpdateFeatures,
)
from fakekafka.statemachines.zookeeper.errors import IllegalState
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now
from fakekafka.zkfake.messages import CreateRequest, DeleteRequest, SetDataRequest, ZkCode

TP = TopicPartition("t", 0)


def moved_on(cluster: ControllerCluster) -> None:
    """Let another controller win without the old one noticing."""
    run_now(cluster.zk.brokers.set_controller_epoch(99, -1))


def test_the_first_controller_has_epoch_one() -> None:
    """CP-67: epoch 1, version 1; CP-68, CP-69: the epoch outlives the controller and continues."""
    cluster = ControllerCluster([1])
    assert (cluster.active.epoch, cluster.active.context.epoch_zk_version) == (1, 1)
    zk = cluster.zk
    cluster.shut_down(1)
    assert "/controller" not in cluster.zookeeper.tree.nodes
    assert cluster.zookeeper.get("/controller_epoch") == b"1"
    cluster.start(1)
    assert cluster.active.epoch == 2
    assert zk is not cluster.zk


def test_the_first_controller_before_2_1_assumes_version_one() -> None:
    """The node is created with epoch 1, and version 1 is assumed though it is 0
    (docs/kafka/controller-failover.md#election)."""
    cluster = ControllerCluster([1], "1.1")
    assert (cluster.active.epoch, cluster.active.context.epoch_zk_version) == (1, 1)
    cluster.kill(1)
    cluster.start(2)
    assert (cluster.active.epoch, cluster.active.context.epoch_zk_version) == (2, 1)


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8", "3.9"])
def test_exactly_one_broker_is_the_controller(version: str) -> None:
    """Each time it dies, another one takes over with a larger epoch (CP-66)."""
    cluster = ControllerCluster([1, 2, 3], version)
    epochs = [cluster.active.epoch]
    for _ in range(2):
        cluster.kill(cluster.active.broker_id)
        epochs.append(cluster.active.epoch)
    assert epochs == [1, 2, 3]


def test_a_deposed_controller_cannot_create_topics() -> None:
    """CP-70: its guarded write fails; it logs this at level info and reads the controller's id."""
    cluster = ControllerCluster([1, 2])
    controller = cluster.active
    moved_on(cluster)
    run_now(cluster.zk.requests.delete_path("/controller"))
    run_now(
        cluster.zk.requests.send([CreateRequest("/controller", payloads.encode_controller(7, 0))])
    )
    run_now(cluster.zk.topics.create_topic_assignment("t", {0: ReplicaAssignment((1,))}))
    controller.event_manager.clear_and_put(TopicChange())
    cluster.settle()
    assert not controller.is_active
    assert "/brokers/topics/t/partitions" not in cluster.zookeeper.tree.nodes
    assert controller.epoch == 0
    assert [level for _, level, text in cluster.log if "controller moved" in text] == ["info"]


@pytest.mark.parametrize("what", ["delete", "elect", "reassign"])
def test_any_write_of_a_deposed_controller_makes_it_resign(what: str) -> None:
    """CP-70, CP-73: deletions, elections and reassignments meet ControllerMoved."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    controller = cluster.active
    before = cluster.state("t")
    moved_on(cluster)
    node = cluster.zookeeper.tree.nodes["/controller"]
    node.data = payloads.encode_controller(9, 0)
    answers: list[Any] = []
    if what == "delete":
        run_now(cluster.zk.admin.create_delete_topic_path("t"))
    elif what == "elect":
        from_api = ElectionTrigger.ADMIN_CLIENT_TRIGGERED
        controller.put(ReplicaLeaderElection((TP,), 1, from_api, answers.append))
        controller.context.topics.put_partition_leadership_info(TP, _leaderless(controller))
    else:
        controller.put(ApiPartitionReassignment(((TP, (2, 1)),), answers.append))
    cluster.settle()
    assert not controller.is_active
    assert answers == []
    assert cluster.state("t") == before
    assert "t" in cluster.topics()


def _leaderless(controller: Any) -> Any:
    known = controller.context.topics.partition_leadership_info(TP)
    value = known.leader_and_isr
    return type(known)(
        type(value)(-1, value.leader_epoch, value.isr, value.zk_version), known.controller_epoch
    )


def test_broken_batches_make_another_broker_controller() -> None:
    """CP-66: a batch that cannot be sent ends the tenure; the error is not swallowed."""
    cluster = ControllerCluster([1, 2])
    controller = cluster.active
    controller.batch.add_update_metadata_request_for_brokers([1], [])
    with pytest.raises(IllegalState):
        run_now(controller.parts.requests.send_update_metadata([1, 2]))
    assert controller.rebalance._timer is None
    assert not controller.is_active
    cluster.settle()
    assert cluster.active.epoch == 2


def test_a_failed_failover_deletes_the_controller_znode() -> None:
    """Any error during failover deletes /controller
    (docs/kafka/controller-failover.md#election)."""
    cluster = ControllerCluster([1, 2])
    client = cluster.processes[2].client
    client.fail_next(lambda request: getattr(request, "path", "") == "/brokers/topics",
                     RuntimeError("broken"))  # fmt: skip
    cluster.kill(1)
    assert cluster.active.broker_id == 2
    assert cluster.active.epoch == 3
    assert any("becoming the controller failed" in text for _, _, text in cluster.log)


def test_the_channel_of_a_broker_ends_with_its_registration() -> None:
    """A dead broker has no channel; a bounced one gets a new channel without old requests."""
    cluster = ControllerCluster([1, 2, 3])
    log = cluster.active.parts.channels.log  # type: ignore[attr-defined]
    log.clear()
    cluster.kill(3)
    assert log == ["remove 3"]
    log.clear()
    cluster.bounce(2)
    assert log == ["remove 2", "add 2"]


def test_broker_epochs_follow_the_registrations() -> None:
    """CP-75: the controller's cached epochs always equal the czxids."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.kill(3)
    cluster.start(3)
    cluster.bounce(2)
    stored = run_now(cluster.zk.brokers.get_all_broker_and_epochs_in_cluster())
    expected = {broker.id: epoch for broker, epoch in stored}
    assert cluster.active.context.brokers.live_broker_id_and_epochs == expected
    own = {i: p.controller.broker_epoch for i, p in cluster.processes.items()}
    assert own == expected


def test_requests_carry_the_destinations_broker_epoch() -> None:
    """Requests carry the destination's epoch, or -1 before 2.2
    (docs/kafka/controller-failover.md#broker-epochs)."""
    for version in ("1.1", "2.8"):
        cluster = ControllerCluster([1, 2], version)
        cluster.create_topic("t", (1, 2))
        epochs = cluster.active.context.brokers.live_broker_id_and_epochs
        for broker_id, request in cluster.sent:
            known = version == "2.8"
            assert request.broker_epoch == (epochs[broker_id] if known else -1)


def test_failover_announces_brokers_before_leaders() -> None:
    """It sends live brokers first, then replicas' roles, then elected leaders
    (docs/kafka/controller-failover.md#failover)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    cluster.sent.clear()
    run_now(cluster.zk.requests.delete_path("/controller"))
    cluster.settle()
    kinds = [(broker_id, type(request)) for broker_id, request in cluster.sent]
    assert kinds == [
        *[(broker_id, UpdateMetadataRequest) for broker_id in (1, 2, 3)],
        (2, LeaderAndIsrRequest),
        (3, LeaderAndIsrRequest),
        *[(broker_id, UpdateMetadataRequest) for broker_id in (1, 2, 3)],
    ]
    assert cluster.sent[0][1].partition_states == ()
    assert len(cluster.sent[0][1].live_brokers) == 3


def test_failover_sets_watches_before_it_reads() -> None:
    """The exact order of a new controller's ZooKeeper requests
    (docs/kafka/controller-failover.md#failover)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    client = cluster.processes[2].client
    client.requests.clear()
    cluster.kill(1)
    # Guarded writes are multis without a path of their own.
    paths = [getattr(request, "path", "multi") for request in client.requests]
    first = {path: position for position, path in reversed(list(enumerate(paths)))}
    in_order = [
        "/controller",
        "/controller_epoch",
        "/feature",
        "/admin/preferred_replica_election",
        "/admin/reassign_partitions",
        "/log_dir_event_notification",
        "/isr_change_notification",
        "/brokers/ids",
        "/brokers/topics",
        "/brokers/topics/t",
        "/brokers/ids/2",
        "/brokers/topics/t/partitions/0/state",
        "/admin/delete_topics",
    ]
    positions = [first[path] for path in in_order[:-3]]
    assert positions == sorted(positions)
    assert all(path in first for path in in_order)


def test_expiry_drops_queued_events_and_registers_again() -> None:
    """Expire preempts the queue; then come registration with a new epoch and election
    (docs/kafka/controller-failover.md#session-expiry)."""
    cluster = ControllerCluster([1, 2])
    process = cluster.processes[1]
    old_epoch = process.controller.broker_epoch
    answers: list[Any] = []
    process.controller.put(ListPartitionReassignments(None, answers.append))
    seen: list[str] = []
    process.controller.event_manager.on_event = lambda event, phase: seen.append(
        f"{event.name} {phase}"
    )
    cluster.expire(1)
    assert answers == [ErrorCode.NOT_CONTROLLER]
    assert seen[:3] == ["ListPartitionReassignments preempted", "Expire enqueued", "Expire started"]
    assert seen.index("Expire finished") < seen.index("RegisterBrokerAndReelect started")
    assert process.controller.broker_epoch > old_epoch
    assert cluster.active.epoch == 2


def test_a_controller_whose_session_expired_is_inactive_until_it_is_elected_again() -> None:
    """Until then it is not active, and has no epoch."""
    cluster = ControllerCluster([1])
    controller = cluster.active
    controller.event_manager.put(Expire())
    cluster.settle()
    assert (controller.is_active, controller.epoch) == (False, 0)


def test_a_second_session_expiry_in_0_10_leaves_the_cluster_without_a_controller() -> None:
    """KAFKA-4229: ZkClient reports two new sessions. At the second, the broker finds the node that
    the first created, resigns, and does not stand for election while the node exists. The node's
    deletion ends this."""
    cluster = ControllerCluster([1, 2], "0.10")
    controller = cluster.active
    controller.event_manager.put(RegisterBrokerAndReelect())
    cluster.settle()
    assert run_now(cluster.zk.brokers.get_controller_id()) == 1
    assert not any(p.controller.is_active for p in cluster.processes.values())
    assert not controller.context.topics.all_topics
    run_now(cluster.zk.requests.delete_path("/controller"))
    cluster.settle()
    assert cluster.active.epoch == 2


@pytest.mark.parametrize(("version", "epoch"), [("0.10", 1), ("1.0", 0), ("1.1", 0), ("3.9", 0)])
def test_a_lone_broker_with_a_new_session_elects_leaders_anew_in_0_10(
    version: str, epoch: int
) -> None:
    """It is elected before it is registered, and takes itself for dead until then
    (docs/kafka/controller-failover.md#session-expiry)."""
    cluster = ControllerCluster([1], version)
    cluster.create_topic("t", (1,))
    cluster.expire(1)
    assert cluster.active.epoch == 2
    state = cluster.state("t")
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1,), epoch)


@pytest.mark.parametrize(("version", "elects"), [("1.0", True), ("1.1", False), ("3.9", False)])
def test_a_deletion_between_two_watches_is_missed_by_all_brokers(
    version: str, elects: bool
) -> None:
    """A broker that is notified of the creation of ``/controller``, and finds no node, does not
    stand for election; up to 1.0 the client reports the deletion
    (``ZkClient.fireDataChangedEvents``, docs/kafka/controller-failover.md#election)."""
    cluster = ControllerCluster([1, 2], version)
    tree = cluster.zookeeper.tree
    session_id = cluster.processes[1].client.session_id
    tree.apply(tree.last_zxid + 1, 0, session_id, DeleteRequest("/controller", -1))
    assert [path for _, path in tree.take_changes()] == ["/controller"]
    for process in cluster.processes.values():
        process.controller.event_manager.put(ControllerChange())
    cluster.settle()
    assert any(p.controller.is_active for p in cluster.processes.values()) is elects
    cluster.start(3)
    assert cluster.active.epoch == 2


def test_shutdown_resigns_and_leaves_the_node_to_the_session() -> None:
    """CP-68: the ephemeral node disappears with the session, and the other brokers elect."""
    cluster = ControllerCluster([1, 2])
    first = cluster.active
    cluster.shut_down(1)
    assert not first.is_active
    assert list(first.context.topics.all_topics) == []
    assert cluster.active.broker_id == 2
    run_now(first.shutdown())


def test_a_crashed_controller_sends_nothing() -> None:
    """A killed process does not react to anything."""
    cluster = ControllerCluster([1, 2])
    controller = cluster.active
    cluster.freeze(1)
    cluster.sent.clear()
    controller.event_manager.put(TopicChange())
    cluster.host.advance(1_000_000)
    assert cluster.sent == []


def test_an_inactive_controller_answers_not_controller() -> None:
    """Every request is refused, and every notification is ignored
    (docs/kafka/controller-state.md#events)."""
    cluster = ControllerCluster([1, 2])
    inactive = cluster.processes[2].controller
    answers: list[Any] = []
    from_api = ElectionTrigger.ADMIN_CLIENT_TRIGGERED
    inactive.put(ReplicaLeaderElection((TP,), 0, from_api, answers.append))
    inactive.put(ApiPartitionReassignment(((TP, (1,)),), answers.append))
    inactive.put(ListPartitionReassignments((TP,), answers.append))
    inactive.put(UpdateFeatures((FeatureUpdate("f", 1),), answers.append))
    inactive.put(ControlledShutdown(1, -1, answers.append))
    inactive.put(TopicUncleanLeaderElectionEnable("t"))
    inactive.put(UncleanLeaderElectionEnable())
    cluster.settle()
    assert answers[0] == {TP: (ErrorCode.NOT_CONTROLLER, answers[0][TP][1])}
    assert answers[1:4] == [ErrorCode.NOT_CONTROLLER] * 3
    assert type(answers[4]).__name__ == "ControllerMoved"
    assert inactive.metrics.snapshot()["ActiveControllerCount"] == 0


def rewrite_registration(cluster: ControllerCluster, info: BrokerInfo) -> None:
    """Rewrite a broker's znode, as a broker does whose listeners change while it runs."""
    zk = cluster.processes[info.id].zk
    payload = payloads.encode_broker(info, 0, zk.requests.behaviour.broker_znode_version)
    request = SetDataRequest(znode_paths.broker_id_path(info.id), payload)
    assert run_now(zk.requests.send_one(request)).is_ok


def test_changed_endpoints_are_announced_and_a_changed_rack_is_not() -> None:
    """A new endpoint is sent to all brokers, a new rack is not
    (docs/kafka/controller-state.md#events)."""
    cluster = ControllerCluster([1, 2])
    cluster.sent.clear()
    old = cluster.processes[2].info
    rewrite_registration(cluster, BrokerInfo(2, old.endpoints, "rack"))
    cluster.settle()
    assert cluster.sent == []
    rewrite_registration(cluster, BrokerInfo(2, (EndPoint("new", 1),)))
    cluster.settle()
    assert [broker_id for broker_id, _ in cluster.sent] == [1, 2]
    announced = cluster.sent[0][1].live_brokers
    assert announced[1].endpoints == (EndPoint("new", 1),)


def test_changed_features_are_announced() -> None:
    """Changed features of a broker are sent to all brokers (KIP-584)."""
    cluster = ControllerCluster([1, 2])
    cluster.sent.clear()
    old = cluster.processes[2].info
    rewrite_registration(cluster, BrokerInfo(2, old.endpoints, None, (("f", 1, 3),)))
    cluster.settle()
    assert [broker_id for broker_id, _ in cluster.sent] == [1, 2]


def test_a_dead_broker_that_hosts_nothing_may_go_unnoticed() -> None:
    """A leaderless partition anywhere suppresses the announcement; fixed in 3.1
    (docs/kafka/brokers.md#a-broker-disappears)."""
    for version, is_announced in (("2.8", False), ("3.9", True)):
        cluster = ControllerCluster([1, 2, 3], version)
        cluster.create_topic("t", (2,))
        cluster.kill(2)
        cluster.sent.clear()
        cluster.kill(3)
        live = cluster.brokers[1].live_brokers
        assert (live == (1,)) == is_announced


def test_responses_of_control_requests_become_events() -> None:
    """Responses to LeaderAndIsr and UpdateMetadata pass through the queue."""
    cluster = ControllerCluster([1])
    seen: list[str] = []
    cluster.active.event_manager.on_event = lambda event, phase: (
        seen.append(event.name) if phase == "finished" else None
    )
    cluster.create_topic("t", (1,))
    assert seen == [
        "TopicChange",
        "PartitionModifications",  # the controller gave the topic an id
        "LeaderAndIsrResponseReceived",
        "UpdateMetadataResponseReceived",
    ]


def test_lost_answers_of_the_election_are_recognised() -> None:
    """The repeated transaction fails, but /controller and the epoch are this broker's
    (docs/kafka/controller-failover.md#election)."""
    cluster = ControllerCluster([1, 2])
    client = cluster.processes[2].client
    client.fail_next(
        lambda request: type(request).__name__ == "MultiRequest",
        ZkCode.CONNECTIONLOSS,
        applied=True,
    )
    cluster.kill(1)
    assert cluster.active.broker_id == 2
    assert cluster.active.epoch == 2


def test_stop_replica_flags_share_a_request_since_2_6() -> None:
    """Deleting a topic sends one kind of StopReplica per step
    (docs/kafka/control-requests.md#stopreplica)."""
    cluster = ControllerCluster([1])
    cluster.create_topic("t", (1,))
    cluster.sent.clear()
    cluster.delete_topic("t")
    stops = [r for _, r in cluster.sent if isinstance(r, StopReplicaRequest)]
    assert [s.partition_states[0].delete_partition for s in stops] == [False, True]


def test_winning_the_node_but_not_the_epoch_deletes_the_node() -> None:
    """There are two steps; a broker that fails in the second one cannot be the controller
    (docs/kafka/controller-failover.md#election)."""
    cluster = ControllerCluster([1, 2], "1.1")
    client = cluster.processes[2].client
    client.fail_next(
        lambda request: isinstance(request, SetDataRequest) and request.path == "/controller_epoch",
        ZkCode.BADVERSION,
    )
    cluster.kill(1)
    assert cluster.active.broker_id == 2
    assert cluster.active.epoch == 2
    assert any("raised the controller epoch" in text for _, _, text in cluster.log)
