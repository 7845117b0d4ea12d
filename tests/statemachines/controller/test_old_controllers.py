"""Differences of controllers of 0.10 and 1.1: the flags of releases before 2.0."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol import znode_payloads
from fakekafka.protocol.control import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from fakekafka.protocol.values import LEADER_DURING_DELETE, TopicPartition
from fakekafka.statemachines.machines.transitions import PartitionState
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now

TP = TopicPartition("t", 0)


def requests(cluster: ControllerCluster, kind: type[Any]) -> list[Any]:
    """Return the requests of a kind that were sent since ``sent`` was cleared."""
    return [request for _, request in cluster.sent if isinstance(request, kind)]


@pytest.mark.parametrize(
    ("version", "expected"), [("0.10", [0, 1, 1, 0]), ("1.1", [0, 1, 0, 0]), ("2.8", [0, 1, 0, 0])]
)
def test_the_offline_count_before_2_1_is_computed_when_read(
    version: str, expected: list[int]
) -> None:
    """KAFKA-6753: since 2.1 a count is kept. Before, the gauge counted partitions when it was read,
    so that none of a deleted topic remained. KAFKA-4441: 0.10.1 counted topics being deleted, 1.1
    did not."""
    cluster = ControllerCluster([1, 2, 3], version, delete_topic_enable=True)
    cluster.create_topic("t", (2,))
    seen = []

    def look() -> None:
        seen.append(cluster.active.metrics.snapshot()["OfflinePartitionsCount"])

    look()
    cluster.kill(2)
    look()
    cluster.delete_topic("t")
    look()
    cluster.start(2)
    assert cluster.topics() == []
    look()
    assert seen == expected


@pytest.mark.parametrize(("version", "expected"), [("0.10", 1), ("1.1", 0)])
def test_the_imbalance_of_a_queued_topic_counts_in_0_10(version: str, expected: int) -> None:
    """KAFKA-4441: since 0.10.2 topics being deleted do not count."""
    cluster = ControllerCluster([1, 2, 3], version, delete_topic_enable=True)
    cluster.create_topic("t", (2, 3))
    cluster.kill(2)
    snapshot = cluster.active.metrics.snapshot
    assert snapshot()["PreferredReplicaImbalanceCount"] == 1
    cluster.delete_topic("t")
    assert snapshot()["PreferredReplicaImbalanceCount"] == expected


@pytest.mark.parametrize(
    ("version", "state", "is_announced"),
    [("0.10", PartitionState.ONLINE, True), ("1.1", PartitionState.OFFLINE, False)],
)
def test_in_0_10_a_failure_affects_only_partitions_that_the_dead_broker_led(
    version: str, state: PartitionState, is_announced: bool
) -> None:
    """Up to 0.11 partitions led by other brokers stay Online, and the death of a broker that led
    nothing is announced; since KIP-112 (1.0) every leaderless partition counts."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (2,))
    cluster.controlled_shutdown(2)
    cluster.sent.clear()
    cluster.kill(3)
    assert cluster.active.context.states.partition_state(TP) is state
    told = requests(cluster, UpdateMetadataRequest)
    assert bool(told) == is_announced
    assert all(3 not in [b.id for b in request.live_brokers] for request in told)


@pytest.mark.parametrize(("version", "is_named"), [("0.10", True), ("1.1", True), ("2.8", False)])
def test_update_metadata_names_every_topic_being_deleted(version: str, is_named: bool) -> None:
    """KAFKA-6481: before 2.0 each UpdateMetadata, whatever its cause, announced their deletion."""
    cluster = ControllerCluster([1, 2], version, delete_topic_enable=True)
    cluster.create_topic("t", (2,))
    cluster.held.add(2)
    cluster.delete_topic("t")
    cluster.sent.clear()
    cluster.create_topic("u", (1,))
    states = [s for r in requests(cluster, UpdateMetadataRequest) for s in r.partition_states]
    deleted = {(s.topic, s.leader) for s in states if s.topic != "u"}
    assert deleted == ({("t", LEADER_DURING_DELETE)} if is_named else set())
    assert {s.leader for s in states if s.topic == "u"} == {1}


def test_with_deletion_disabled_0_10_leaves_the_request() -> None:
    """Deletion is disabled by default, and the request is not noticed. The next controller does not
    delete the topic either, but announces to brokers that it is being deleted (KAFKA-3175, fixed in
    0.10.2)."""
    cluster = ControllerCluster([1, 2], "0.10")
    cluster.create_topic("t", (2,))
    cluster.sent.clear()
    cluster.delete_topic("t")
    assert run_now(cluster.zk.admin.get_topic_deletions()) == ["t"]
    assert cluster.sent == []
    cluster.kill(1)
    assert run_now(cluster.zk.admin.get_topic_deletions()) == ["t"]
    assert cluster.topics() == ["t"]
    last = requests(cluster, UpdateMetadataRequest)[-1]
    assert [(s.topic, s.leader) for s in last.partition_states] == [("t", LEADER_DURING_DELETE)]
    assert requests(cluster, StopReplicaRequest) == []
    assert cluster.state("t").leader == 2


def test_with_deletion_disabled_1_1_drops_the_request() -> None:
    """KAFKA-3175: since 0.10.2 the request is removed, so that the next controller does not find
    it."""
    cluster = ControllerCluster([1, 2], "1.1", delete_topic_enable=False)
    cluster.create_topic("t", (2,))
    cluster.delete_topic("t")
    assert run_now(cluster.zk.admin.get_topic_deletions()) == []
    assert cluster.topics() == ["t"]


@pytest.mark.parametrize(("version", "is_moved"), [("0.10", True), ("1.1", False)])
def test_a_partition_added_to_a_pending_reassignment_is_moved_in_0_10(
    version: str, is_moved: bool
) -> None:
    """ZkClient reported every change of the request node, since KAFKA-5642 only its creation is."""
    other = TopicPartition("t", 1)
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (1,), (1,))
    run_now(cluster.zk.admin.create_partition_reassignment({TP: (2,)}))
    cluster.settle()
    run_now(cluster.zk.admin.set_or_create_partition_reassignment({TP: (2,), other: (3,)}))
    cluster.settle()
    assert set(cluster.assignment("t", 0).replicas) == {1, 2}
    assert set(cluster.assignment("t", 1).replicas) == ({1, 3} if is_moved else {1})
    cluster.catch_up("t", 0)
    cluster.catch_up("t", 1)
    assert cluster.assignment("t", 0).replicas == (2,)
    if is_moved:
        assert cluster.assignment("t", 1).replicas == (3,)
        assert "/admin/reassign_partitions" not in cluster.zookeeper.tree.nodes


def test_a_request_node_deleted_by_hand_in_0_10_does_not_blind_the_controller() -> None:
    """ZkClient armed the watch again after every change, so that the next request is handled."""
    cluster = ControllerCluster([1, 2, 3], "0.10")
    cluster.create_topic("t", (1,))
    cluster.create_topic("u", (1,))
    run_now(cluster.zk.admin.create_partition_reassignment({TP: (2,)}))
    cluster.settle()
    run_now(cluster.zk.admin.delete_partition_reassignment())
    cluster.settle()
    run_now(cluster.zk.admin.create_partition_reassignment({TopicPartition("u", 0): (3,)}))
    cluster.settle()
    assert set(cluster.assignment("u").replicas) == {1, 3}


@pytest.mark.parametrize(("version", "is_heeded"), [("0.10", True), ("1.1", False)])
def test_an_election_request_that_stayed_may_be_changed_in_0_10(
    version: str, is_heeded: bool
) -> None:
    """A partition that never had a leader ends the election early, and its request stays. In 0.10
    another request written over it starts an election; since KAFKA-5642 the controller does not
    notice it."""
    path = "/admin/preferred_replica_election"
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (2, 3))
    cluster.kill(2)
    cluster.create_topic("unborn", (2,))
    unborn = TopicPartition("unborn", 0)
    assert cluster.active.context.topics.partition_leadership_info(unborn) is None
    run_now(cluster.zk.admin.create_preferred_replica_election([unborn]))
    cluster.settle()
    assert path in cluster.zookeeper.tree.nodes
    cluster.set_isr("t", 0, (3, 2))
    run_now(cluster.zk.requests.set_or_create(path, znode_payloads.encode_partition_list([TP]), -1))
    cluster.settle()
    assert (path in cluster.zookeeper.tree.nodes) is not is_heeded
    run_now(cluster.zk.requests.delete_path(path))
    cluster.settle()
    cluster.start(2)
    cluster.catch_up("t")
    run_now(cluster.zk.admin.create_preferred_replica_election([TP]))
    cluster.settle()
    assert cluster.state("t").leader == (2 if is_heeded else 3), "the change had spent the watch"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.10", [LeaderAndIsrRequest, UpdateMetadataRequest]),
        ("1.1", [UpdateMetadataRequest, LeaderAndIsrRequest]),
    ],
)
def test_when_a_new_controller_names_the_living_brokers(
    version: str, expected: list[type[Any]]
) -> None:
    """KAFKA-4443: 0.10.1 sends roles first, and all metadata to all brokers at the end."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (2, 3))
    cluster.create_topic("u", (3, 2))
    cluster.sent.clear()
    run_now(cluster.zk.requests.delete_path("/controller"))
    cluster.settle()
    assert cluster.active.epoch == 2
    to_2 = [request for to, request in cluster.sent if to == 2]
    assert list(dict.fromkeys(type(request) for request in to_2)) == expected
    announced = to_2[-1 if version == "0.10" else 0]
    assert isinstance(announced, UpdateMetadataRequest)
    assert {state.topic for state in announced.partition_states} == {"t", "u"}


@pytest.mark.parametrize(("version", "is_kept"), [("0.10", True), ("1.1", False)])
def test_announced_isrs_outlive_a_controller_of_0_10(version: str, is_kept: bool) -> None:
    """Since KAFKA-5642 a new controller deletes the notifications; before, they were processed with
    the next one."""
    cluster = ControllerCluster([1, 2], version)
    cluster.create_topic("t", (2,))
    cluster.freeze(1)
    survivor = cluster.processes[2].zk
    run_now(survivor.admin.propagate_isr_changes([TP]))
    process = cluster.processes.pop(1)
    cluster.zookeeper.close_session(process.client.session_id)
    cluster.settle()
    assert bool(run_now(survivor.admin.get_all_isr_change_notifications())) == is_kept
    cluster.sent.clear()
    run_now(survivor.admin.propagate_isr_changes([TP]))
    cluster.settle()
    assert run_now(survivor.admin.get_all_isr_change_notifications()) == []
    assert requests(cluster, UpdateMetadataRequest)


@pytest.mark.parametrize(
    ("version", "config_roots", "has_log_dir_events", "has_producer_ids"),
    [
        ("0.10", {"changes", "topics", "clients"}, False, False),
        ("1.1", {"changes", "topics", "clients", "users", "brokers"}, True, True),
        ("2.8", {"changes", "topics", "clients", "users", "brokers", "ips"}, True, True),
    ],
)
def test_a_broker_creates_the_paths_of_its_release(
    version: str, config_roots: set[str], has_log_dir_events: bool, has_producer_ids: bool
) -> None:
    """KIP-612 (2.8) brought /config/ips, KIP-112 the log directories, KIP-98 the producer ids."""
    nodes = ControllerCluster([1], version).zookeeper.tree.nodes
    assert {path.split("/")[2] for path in nodes if path.startswith("/config/")} == config_roots
    assert ("/log_dir_event_notification" in nodes) == has_log_dir_events
    assert ("/latest_producer_id_block" in nodes) == has_producer_ids
