"""Claims of articles on selectors and state machines against the emulated versions.

Each docstring gives the claim and what the code does (docs/kafka/articles.md#claims).
"""

from __future__ import annotations

import pytest
from fakekafka.protocol.control import StopReplicaRequest, UpdateMetadataRequest
from fakekafka.protocol.values import LeaderAndIsr, PartitionReplica, TopicPartition
from fakekafka.statemachines.machines.transitions import PartitionState, ReplicaState
from fakekafka.tests.support.articles import ALL, TP, decisions, recipients
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now


def change_unseen(cluster: ControllerCluster, isr: tuple[int, ...]) -> None:
    """Change the stored ISR without the controller's knowledge."""
    state = cluster.state("t")
    new = LeaderAndIsr(state.leader, state.leader_epoch, isr, state.zk_version)
    assert (
        run_now(cluster.zk.topics.update_partition_isr(TP, new, cluster.active.epoch)) is not None
    )


def fail_over_without(cluster: ControllerCluster, dead: int) -> None:
    """Let another broker die, and then broker 1, the controller, before it has noticed."""
    cluster.freeze(dead)
    cluster.zookeeper.close_session(cluster.processes.pop(dead).client.session_id)
    cluster.kill(1)


# --- leader selectors


@pytest.mark.parametrize("version", ALL)
def test_a_new_partition_is_initialised_not_elected(version: str) -> None:
    """Claim: the Offline selector also picks the leader of a new topic. Code: initialisation does;
    the ISR is every live replica with epoch 0, and unclean election plays no role."""
    cluster = ControllerCluster([1, 2, 3], version, unclean_leader_election_enable=True)
    cluster.create_topic("t", (9, 3, 2))
    state = cluster.state("t")
    assert (state.leader, state.leader_epoch, state.isr) == (3, 0, (3, 2))
    assert cluster.active.context.unclean_leader_elections == 0
    assert {new for _, _, _, new in decisions(cluster, TP)} == {True}


def test_there_is_a_selector_for_preferred_replicas() -> None:
    """Claim: there are four selectors. Code: a fifth one elects the first replica or none; it is
    no error if that replica leads already."""
    cluster = ControllerCluster([1, 2, 3], "0.10")
    cluster.create_topic("t", (2, 3, 1))
    cluster.create_topic("led", (1, 2))
    cluster.kill(2)
    asked = [TP, TopicPartition("led", 0)]
    run_now(cluster.zk.admin.create_preferred_replica_election(asked))
    cluster.settle()
    assert (cluster.state("t").leader, cluster.state("t").leader_epoch) == (3, 1)
    cluster.start(2)
    cluster.catch_up("t")
    cluster.catch_up("led")
    before = cluster.state("led")
    run_now(cluster.zk.admin.create_preferred_replica_election(asked))
    cluster.settle()
    assert (cluster.state("t").leader, cluster.state("t").leader_epoch) == (2, 2)
    assert cluster.state("led") == before
    context = cluster.active.context
    assert context.states.partition_state(TopicPartition("led", 0)) is PartitionState.ONLINE


@pytest.mark.parametrize(
    ("version", "expected"), [("0.10", {2, 3}), ("1.1", {3}), ("2.8", {2, 3}), ("3.9", {2, 3})]
)
def test_a_leaving_broker_gets_leader_and_isr_with_the_new_leader(
    version: str, expected: set[int]
) -> None:
    """Claim: ControlledShutdown tells live assigned replicas. Code: live or shutting down ones;
    only 1.x forgot the leaving broker."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (2, 3))
    cluster.controlled_shutdown(2)
    assert (cluster.state("t").leader, cluster.state("t").isr) == (3, (3,))
    assert recipients(cluster, TP, epoch=1) == expected


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("isr", [(4, 3, 2), (2,)], ids=["clean", "unclean"])
def test_the_offline_election_follows_the_order_of_the_assignment(
    version: str, isr: tuple[int, ...]
) -> None:
    """Claim: Offline picks any live broker. Code: the first one in the order of the assignment,
    whatever the order of the ISR."""
    cluster = ControllerCluster([1, 2, 3, 4], version, unclean_leader_election_enable=True)
    cluster.create_topic("t", (2, 3, 4))
    cluster.set_isr("t", 0, isr)
    cluster.kill(2)
    assert cluster.state("t").leader == 3


# --- the state machines


@pytest.mark.parametrize("version", ALL)
def test_startup_elects_for_new_and_offline_partitions(version: str) -> None:
    """Claim: for New and Online ones. Code: New and Offline; partitions with a live leader are
    skipped."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("online", (3, 2))
    cluster.create_topic("offline", (1, 2))
    cluster.create_topic("new", (4,))
    assert "/brokers/topics/new/partitions" not in cluster.zookeeper.tree.nodes
    cluster.freeze(1)
    cluster.start(4)  # the next controller finds it there
    cluster.zookeeper.close_session(cluster.processes.pop(1).client.session_id)
    cluster.settle()
    assert (cluster.state("new").leader, cluster.state("new").leader_epoch) == (4, 0)
    assert cluster.state("offline").leader == 2
    assert (cluster.state("online").leader, cluster.state("online").leader_epoch) == (3, 0)


@pytest.mark.parametrize("version", ALL)
def test_only_the_new_replica_gets_leader_and_isr(version: str) -> None:
    """Claim: NewReplica sends LeaderAndIsr to all replicas of the partition. Code: only to the new
    one; UpdateMetadata goes to every broker."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (1, 2))
    cluster.sent.clear()
    replica = PartitionReplica("t", 0, 3)
    run_now(cluster.active.replica_state_machine.handle_state_changes([replica], ReplicaState.NEW))
    assert decisions(cluster, TP) == [(3, 1, 0, True)]
    told = [to for to, request in cluster.sent if isinstance(request, UpdateMetadataRequest)]
    assert sorted(told) == [1, 2, 3]


@pytest.mark.parametrize(
    ("version", "expected"), [("0.10", (1,)), ("1.1", (1, 2)), ("2.8", (1, 2)), ("3.9", (1, 2))]
)
def test_a_new_replica_gets_the_cached_leadership_of_the_controller(
    version: str, expected: tuple[int, ...]
) -> None:
    """Claim: NewReplica reads the state from ZooKeeper. Code: 0.10 did; from 1.1 the cache."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (1, 2))
    change_unseen(cluster, (1,))
    replica = PartitionReplica("t", 0, 3)
    run_now(cluster.active.replica_state_machine.handle_state_changes([replica], ReplicaState.NEW))
    cluster.settle()
    assert cluster.brokers[3].roles[TP].isr == expected


@pytest.mark.parametrize(
    ("version", "is_legal"), [("0.10", False), ("1.1", False), ("2.8", True), ("3.9", True)]
)
def test_an_offline_replica_may_become_ineligible(version: str, is_legal: bool) -> None:
    """Claim: ReplicaDeletionIneligible comes only after DeletionStarted. Code: from 2.3 also after
    Offline."""
    cluster = ControllerCluster([1, 2], version)
    cluster.create_topic("t", (1, 2))
    cluster.kill(2)
    replica = PartitionReplica("t", 0, 2)
    context = cluster.active.context
    assert context.states.replica_state(replica) is ReplicaState.OFFLINE
    machine = cluster.active.replica_state_machine
    run_now(machine.handle_state_changes([replica], ReplicaState.DELETION_INELIGIBLE))
    expected = ReplicaState.DELETION_INELIGIBLE if is_legal else ReplicaState.OFFLINE
    assert context.states.replica_state(replica) is expected


@pytest.mark.parametrize(
    ("version", "isr", "epoch"),
    [("0.10", (2, 3), 0), ("1.1", (2, 3), 0), ("2.8", (2,), 1), ("3.9", (2,), 1)],
)
def test_startup_takes_dead_replicas_out_of_the_isr(
    version: str, isr: tuple[int, ...], epoch: int
) -> None:
    """Claim: the replica machine's startup moves live replicas only. Code: from 2.3 the dead ones
    become Offline, which takes them out of the ISR."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (2, 3))
    fail_over_without(cluster, 3)
    assert cluster.active.broker_id == 2
    assert (cluster.state("t").isr, cluster.state("t").leader_epoch) == (isr, epoch)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.10", ReplicaState.ONLINE),
        ("1.1", ReplicaState.OFFLINE),
        ("2.8", ReplicaState.OFFLINE),
        ("3.9", ReplicaState.OFFLINE),
    ],
)
def test_a_replica_goes_offline_without_leadership(version: str, expected: ReplicaState) -> None:
    """Claim: OfflineReplica needs leadership information, else it is an error. Code: this is so in
    0.10; later the replica becomes Offline nevertheless, and UpdateMetadata goes to all brokers."""
    cluster = ControllerCluster([1, 2], version)
    cluster.create_topic("t", (9,))
    cluster.sent.clear()
    machine = cluster.active.replica_state_machine
    replica = PartitionReplica("t", 0, 9)
    context = cluster.active.context
    assert context.states.replica_state(replica) is ReplicaState.ONLINE
    run_now(machine.handle_state_changes([replica], ReplicaState.OFFLINE))
    assert context.states.replica_state(replica) is expected
    updates = [to for to, request in cluster.sent if isinstance(request, UpdateMetadataRequest)]
    assert updates == ([1, 2] if expected is ReplicaState.OFFLINE else [])
    assert not any(isinstance(request, StopReplicaRequest) for _, request in cluster.sent)


@pytest.mark.parametrize("version", ALL)
def test_the_first_online_transition_informs_live_replicas_only(version: str) -> None:
    """Claim: every move to Online ends with an election and LeaderAndIsr to all replicas. Code:
    from New it is an initialisation, with LeaderAndIsr to live replicas."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.kill(3)
    cluster.create_topic("t", (3, 2, 1))
    assert cluster.state("t").leader_epoch == 0
    assert sorted(decisions(cluster, TP)) == [(1, 2, 0, True), (2, 2, 0, True)]


@pytest.mark.parametrize(
    ("version", "is_early"), [("0.10", False), ("1.1", False), ("2.8", True), ("3.9", True)]
)
def test_partitions_end_when_the_deletion_starts(version: str, is_early: bool) -> None:
    """Claim: they become Offline and NonExistent in completeDeleteTopic. Code: from 2.1 when the
    deletion starts, before any replica has confirmed."""
    cluster = ControllerCluster([1, 2], version, delete_topic_enable=True)
    cluster.create_topic("t", (1, 2))
    cluster.held.update((1, 2))
    cluster.delete_topic("t")
    context = cluster.active.context
    replicas = {context.states.replica_state(PartitionReplica("t", 0, b)) for b in (1, 2)}
    assert replicas == {ReplicaState.DELETION_STARTED}
    assert (context.states.partition_state(TP) is PartitionState.NON_EXISTENT) == is_early
    cluster.held.clear()
    for broker_id in (1, 2):
        cluster.active.parts.channels.release(broker_id)  # type: ignore[attr-defined]
    cluster.settle()
    assert context.states.partition_state(TP) is PartitionState.NON_EXISTENT
    assert cluster.topics() == []


def test_any_failure_takes_every_leaderless_partition_offline() -> None:
    """Claim: onBrokerFailure puts partitions led by the dead broker Offline. Code: all whose leader
    is not online, such as those of a broker that is shutting down."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2,))
    cluster.create_topic("elsewhere", (3, 1))
    cluster.controlled_shutdown(2)
    context = cluster.active.context
    assert context.states.partition_state(TP) is PartitionState.ONLINE
    cluster.kill(3)
    assert context.states.partition_state(TP) is PartitionState.OFFLINE
    assert cluster.state("t").leader == 2, "nothing was written: nobody else can lead"
    assert cluster.state("elsewhere").leader == 1
