"""Claims of articles on elections and brokers against the code of the emulated versions.

Each docstring gives the claim and what the code does (docs/kafka/articles.md#claims). The articles
are about 0.10 and 1.x; a claim whose truth depends on the version is tested in several.
"""

from __future__ import annotations

import random

import pytest
from fakekafka.election.assignment import assign_replicas_to_brokers
from fakekafka.protocol.admin import PREFERRED, UNCLEAN
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import PartitionReplica, TopicPartition
from fakekafka.statemachines.controller.events import ElectionTrigger, ReplicaLeaderElection
from fakekafka.statemachines.machines.transitions import PartitionState, ReplicaState
from fakekafka.tests.support.articles import ALL, TP, decisions, recipients, spy_on_replica_states
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now
from fakekafka.zkfake.server.quorum_messages import Vote

# --- strategies and triggers


@pytest.mark.parametrize("version", ALL)
def test_zk_triggered_means_the_election_znode(version: str) -> None:
    """Claim: ZkTriggered = /controller changed. Code: /admin/preferred_replica_election was
    created, or was found at a failover."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (3, 2))
    cluster.kill(3)
    cluster.start(3)
    cluster.catch_up("t")
    run_now(cluster.zk.requests.delete_path("/controller"))
    cluster.settle()
    assert cluster.active.epoch == 2
    assert cluster.state("t").leader == 2, "a new controller elects nobody by itself"

    triggers: list[ElectionTrigger] = []
    for process in cluster.processes.values():
        process.controller.event_manager.on_event = lambda event, phase: (
            triggers.append(event.trigger)
            if isinstance(event, ReplicaLeaderElection) and phase == "started"
            else None
        )
    run_now(cluster.zk.admin.create_preferred_replica_election([TP]))
    cluster.settle()
    assert set(triggers) == {ElectionTrigger.ZK_TRIGGERED}
    assert cluster.state("t").leader == 3


def test_an_admin_clients_election_is_unclean_only_if_requested() -> None:
    """Claim: AdminClientTriggered always allows unclean leaders. Code: only with the type
    UNCLEAN."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    cluster.set_isr("t", 0, (2,))
    cluster.kill(2)
    refused, _ = cluster.elect(PREFERRED, TP)[TP]
    assert refused is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert cluster.state("t").leader == -1
    assert cluster.elect(UNCLEAN, TP)[TP] == (ErrorCode.NONE, 3)
    assert cluster.state("t").leader == 3


@pytest.mark.parametrize("version", ALL)
def test_imbalance_is_counted_per_preferred_broker(version: str) -> None:
    """Claim: non-preferred leaders / all partitions. Code: per preferred broker, strictly
    greater."""
    cluster = ControllerCluster([1, 2], version)
    cluster.create_topic("lone", *[(1, 2)] * 30)
    cluster.create_topic("t", (2, 1), (2, 1))
    cluster.kill(2)
    cluster.start(2)
    for topic, count in (("lone", 30), ("t", 2)):
        for number in range(count):
            cluster.catch_up(topic, number)
    assert [cluster.state("t", p).leader for p in (0, 1)] == [1, 1], "2 of 32: under ten percent"
    cluster.host.advance(300_000)
    assert [cluster.state("t", p).leader for p in (0, 1)] == [2, 2]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.10", [(2, 1)]), ("1.1", [(2, 1)]), ("2.8", [(-1, 1), (2, 2)]), ("3.9", [(-1, 1), (2, 2)])],
)
def test_no_leader_is_written_by_the_replicas_end(
    version: str, expected: list[tuple[int, int]]
) -> None:
    """Claim: an election without outcome writes nothing, and the replica state machine writes
    leader -1. Code: this is so after a broker's failure; at a controller's failover -1 comes first
    and the epoch rises by two (from 2.3)."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("alone", (3,))
    cluster.create_topic("t", (1, 2))
    cluster.kill(3)
    assert (cluster.state("alone").leader, cluster.state("alone").leader_epoch) == (-1, 1)
    assert cluster.state("alone").zk_version == 1, "written once"
    cluster.sent.clear()
    cluster.kill(1)
    taken = [(leader, epoch) for _, leader, epoch, _ in decisions(cluster, TP, to=2) if epoch]
    assert taken == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.1", PartitionState.ONLINE),
        ("2.8", PartitionState.NON_EXISTENT),
        ("3.9", PartitionState.NON_EXISTENT),
    ],
)
def test_partitions_of_a_dying_topic_cease_to_exist_at_once(
    version: str, expected: PartitionState
) -> None:
    """Claim: they stay Offline until the topic is gone. Code: until 2.0 their state does not change
    before the end; from 2.1 they become NonExistent when the deletion starts."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (1, 2))
    cluster.kill(2)
    cluster.delete_topic("t")
    assert cluster.active.context.states.partition_state(TP) is expected
    cluster.start(2)
    assert cluster.active.context.states.partition_state(TP) is PartitionState.NON_EXISTENT
    assert cluster.topics() == []


@pytest.mark.parametrize("version", ALL)
def test_state_is_stored_under_brokers_topics(version: str) -> None:
    """Claim: /broker/topics/... Code: /brokers/topics/T/partitions/P/state."""
    cluster = ControllerCluster([1], version)
    cluster.create_topic("t", (1,))
    paths = cluster.zookeeper.tree.nodes
    assert "/brokers/topics/t/partitions/0/state" in paths
    assert "/broker" not in paths


@pytest.mark.parametrize(
    ("target", "expected"),
    [((1, 3), (1, 3)), ((1, 2), (1, 1)), ((3, 2), (3, 3))],
    ids=["leader stays", "nothing changes", "leader goes"],
)
def test_a_reassignment_without_election_raises_the_epoch_too(
    target: tuple[int, ...], expected: tuple[int, int]
) -> None:
    """Claim: elects only if the leader is dead or not in the target. Code: right, but otherwise the
    epoch rises, too, and LeaderAndIsr is sent."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (1, 2))
    cluster.sent.clear()
    cluster.reassign({TP: target})
    cluster.catch_up("t")
    leader, epoch = expected
    assert cluster.reassigning() == ()
    assert (cluster.state("t").leader, cluster.state("t").leader_epoch) == (leader, epoch)
    told = {epoch for _, _, epoch, _ in decisions(cluster, TP, to=leader)}
    assert told >= set(range(1, epoch + 1))


@pytest.mark.parametrize("version", ALL)
def test_a_dead_broker_leaves_the_isr_at_once(version: str) -> None:
    """An article asks whether it does. Code: yes, the controller removes it, except for the last
    member."""
    cluster = ControllerCluster([1, 2, 3], version, unclean_leader_election_enable=False)
    cluster.create_topic("t", (1, 2, 3))
    cluster.create_topic("alone", (3,))
    cluster.kill(3)
    assert cluster.host.clock.now_ms == 0, "no time has passed"
    assert cluster.state("t").isr == (1, 2)
    assert cluster.state("alone").isr == (3,)


# --- the controller


def test_a_replica_has_seven_states() -> None:
    """Claim: four. Code: seven, all of which occur in a deletion with a failure."""
    cluster = ControllerCluster([1, 2, 3])
    seen = spy_on_replica_states(cluster)
    cluster.create_topic("t", (1, 2))
    cluster.kill(2)
    cluster.delete_topic("t")
    cluster.start(2)
    assert cluster.topics() == []
    assert seen == set(ReplicaState)


@pytest.mark.parametrize("version", ALL)
def test_new_topics_are_watched_under_brokers_topics(version: str) -> None:
    """Claim: a watch on /brokers/kafkas. Code: on /brokers/topics."""
    cluster = ControllerCluster([1], version)
    events: list[str] = []
    cluster.active.event_manager.on_event = lambda event, phase: events.append(event.name)
    run_now(cluster.zk.requests.create_recursive("/brokers/kafkas/t", b""))
    cluster.settle()
    assert events == []
    cluster.create_topic("t", (1,))
    assert "TopicChange" in events


@pytest.mark.parametrize(
    ("version", "unclean", "leader"),
    [("0.10", None, 3), ("1.1", None, -1), ("2.8", None, -1), ("2.8", True, 3), ("3.9", False, -1)],
)
def test_a_leader_from_outside_the_isr_needs_permission(
    version: str, unclean: bool | None, leader: int
) -> None:
    """Claim: if all of the ISR is dead, the first live replica leads. Code: only if unclean
    election is allowed, which it was by default before 0.11."""
    config = {} if unclean is None else {"unclean_leader_election_enable": unclean}
    cluster = ControllerCluster([1, 2, 3], version, **config)
    cluster.create_topic("t", (2, 3))
    cluster.set_isr("t", 0, (2,))
    cluster.kill(2)
    assert cluster.state("t").leader == leader


@pytest.mark.parametrize("version", ALL)
def test_a_starting_broker_leads_only_partitions_without_a_leader(version: str) -> None:
    """Claim: its preferred partitions are elected back. Code: only New and Offline partitions get
    leaders."""
    cluster = ControllerCluster([1, 2], version, unclean_leader_election_enable=False)
    cluster.create_topic("t", (2, 1))
    cluster.create_topic("alone", (2,))
    cluster.kill(2)
    cluster.create_topic("unborn", (2,))
    assert (
        cluster.active.context.states.partition_state(TopicPartition("unborn", 0))
        is PartitionState.NEW
    )
    cluster.start(2)
    cluster.catch_up("t")
    leaders = [cluster.state(topic).leader for topic in ("t", "alone", "unborn")]
    assert leaders == [1, 2, 2]


@pytest.mark.parametrize("version", ALL)
def test_replicas_never_move_by_themselves(version: str) -> None:
    """Claim: brokers that join or leave trigger reassignments. Code: never."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (1, 2), (2, 3), (3, 1))
    before = [cluster.assignment("t", number) for number in range(3)]
    for broker_id in (4, 5):
        cluster.start(broker_id)
    cluster.kill(3)
    cluster.host.advance(3_600_000)
    assert [cluster.assignment("t", number) for number in range(3)] == before
    assert not any(cluster.active.context.topics.partitions_on_broker(b) for b in (4, 5))


def test_followers_shift_with_every_round_and_start_anywhere() -> None:
    """Claim: replica j of partition i is on broker (i + j) mod n. Code: the distance grows with
    every round over the brokers, the start is random, and racks follow another rule."""
    brokers = [(broker_id, None) for broker_id in range(5)]
    naive = [tuple((i + j) % 5 for j in range(3)) for i in range(10)]
    fixed = assign_replicas_to_brokers(brokers, 10, 3, fixed_start_index=0, start_partition_id=0)
    assert [fixed[i] for i in range(5)] == naive[:5]
    assert [fixed[i] for i in range(5, 10)] == [
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]
    starts = {
        assign_replicas_to_brokers(brokers, 1, 3, rng=random.Random(seed))[0] for seed in range(200)
    }
    assert {replicas[0] for replicas in starts} == set(range(5))
    racks = [(broker_id, "a" if broker_id < 3 else "b") for broker_id in range(5)]
    spread = assign_replicas_to_brokers(racks, 10, 2, fixed_start_index=0, start_partition_id=0)
    assert all((one < 3) != (other < 3) for one, other in spread.values())


@pytest.mark.parametrize("version", ALL)
def test_the_first_leader_is_the_first_replica_that_lives(version: str) -> None:
    """Claim: the first replica. Code: the first online replica; the ISR is all online replicas."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.kill(2)
    cluster.create_topic("t", (2, 3, 1))
    state = cluster.state("t")
    assert (state.leader, state.leader_epoch, state.isr) == (3, 0, (3, 1))


def test_the_recipients_of_leader_and_isr_depend_on_the_strategy() -> None:
    """Claim: all live replicas. Code: for Offline the live ones, for Preferred all, for Reassign
    the target, and for ControlledShutdown the leaving broker as well."""
    cluster = ControllerCluster([1, 2, 3, 4])
    cluster.create_topic("t", (2, 3, 4))
    cluster.sent.clear()
    cluster.kill(2)
    assert recipients(cluster, TP, epoch=1) == {3, 4}
    cluster.start(2)
    cluster.catch_up("t")
    cluster.elect(PREFERRED, TP)
    assert recipients(cluster, TP, epoch=2) == {2, 3, 4}
    cluster.controlled_shutdown(2)
    assert cluster.state("t").leader == 3
    assert recipients(cluster, TP, epoch=3) == {2, 3, 4}
    cluster.bounce(2)
    cluster.catch_up("t")
    cluster.reassign({TP: (2, 4)})
    assert (cluster.state("t").leader, cluster.state("t").leader_epoch) == (2, 5)
    elected = [d for d in decisions(cluster, TP) if d[2] == 4]
    assert {(to, leader) for to, leader, _, _ in elected} == {(2, 2), (4, 2)}, "not to 3"


def test_votes_for_a_zookeeper_leader_compare_epochs_first() -> None:
    """Claim: the greater zxid wins, then the greater id. Code: the peer epoch comes before both."""
    assert Vote(2, 1, 1).beats(Vote(1, 9, 3))
    assert Vote(1, 9, 1).beats(Vote(1, 8, 3))
    assert Vote(1, 8, 3).beats(Vote(1, 8, 2))
    assert not Vote(1, 9, 3).beats(Vote(2, 1, 1))


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.10", ReplicaState.DELETION_INELIGIBLE),
        ("1.1", ReplicaState.DELETION_INELIGIBLE),
        ("2.8", ReplicaState.OFFLINE),
        ("3.9", ReplicaState.OFFLINE),
    ],
)
def test_dead_replicas_do_not_stay_ineligible(version: str, expected: ReplicaState) -> None:
    """Claim: a new controller initialises them as 'deletion failed'. Code: that is a placeholder;
    from 2.3 the startup of the machine takes them offline."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (2, 3))
    cluster.freeze(3)
    cluster.zookeeper.close_session(cluster.processes.pop(3).client.session_id)
    cluster.kill(1)
    assert cluster.active.broker_id == 2
    assert cluster.active.context.states.replica_state(PartitionReplica("t", 0, 3)) is expected
