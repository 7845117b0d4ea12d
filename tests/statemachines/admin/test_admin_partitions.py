"""ElectLeaders and reassignments by API; automatic creation."""

from __future__ import annotations

import pytest
from fakekafka.protocol.admin import (
    PREFERRED,
    TOPIC_RESOURCE,
    UNCLEAN,
    AlterPartitionReassignmentsRequest,
    ConfigResource,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from fakekafka.protocol.awaiting import Task
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import behaviour
from fakekafka.tests.support.controller_cluster import ControllerCluster

TP = TopicPartition("t", 0)
T = ConfigResource(TOPIC_RESOURCE, "t")


def elect(
    cluster: ControllerCluster, kind: int, partitions: tuple[TopicPartition, ...] | None
) -> dict[TopicPartition, ErrorCode]:
    request = ElectLeadersRequest(kind, partitions, 1000)
    response = cluster.ask(cluster.admin().partitions.elect_leaders(request), 1000)
    assert response.error is ErrorCode.NONE
    return {tp: error for tp, error, _ in response.partitions}


@pytest.mark.parametrize(
    ("kafka_version", "error"),
    [("2.2", ErrorCode.NONE), ("2.3", ErrorCode.NONE), ("2.4", ErrorCode.ELECTION_NOT_NEEDED)],
)
def test_an_election_where_the_preferred_replica_leads_succeeds_until_2_3(
    kafka_version: str, error: ErrorCode
) -> None:
    """CP-124: the error ELECTION_NOT_NEEDED came with 2.4 (KIP-460)."""
    cluster = ControllerCluster([1, 2, 3], kafka_version)
    cluster.create_topic("t", (2, 3))
    assert elect(cluster, PREFERRED, (TP,)) == {TP: error}


def test_an_election_for_all_partitions_answers_only_those_that_needed_it(
    cluster: ControllerCluster,
) -> None:
    """CP-124, CP-128: the response to a null list leaves out partitions that need no election."""
    cluster.create_topic("t", (2, 3), (3, 2))
    assert elect(cluster, PREFERRED, None) == {}
    assert elect(cluster, PREFERRED, (TP,)) == {TP: ErrorCode.ELECTION_NOT_NEEDED}
    cluster.set_isr("t", 0, (2,))
    cluster.kill(2)
    assert elect(cluster, UNCLEAN, None) == {TP: ErrorCode.NONE}
    cluster.start(2)
    cluster.catch_up("t")
    assert elect(cluster, PREFERRED, None) == {TP: ErrorCode.NONE}
    assert cluster.state("t").leader == 2


def test_an_elected_leader_must_show_in_the_metadata(cluster: ControllerCluster) -> None:
    """REQUEST_TIMED_OUT is answered for a partition whose leader is not known in time
    (docs/kafka/election.md#elections-on-request)."""
    cluster.create_topic("t", (2, 3))
    cluster.kill(2)
    cluster.start(2)
    cluster.catch_up("t")
    cluster.held.add(1)
    assert elect(cluster, PREFERRED, (TP,)) == {TP: ErrorCode.REQUEST_TIMED_OUT}
    assert cluster.state("t").leader == 2


def test_an_election_for_a_partition_that_never_had_a_leader_is_not_answered(
    cluster: ControllerCluster,
) -> None:
    """The controller's event fails, and no timeout answers instead
    (docs/kafka/election.md#elections-on-request)."""
    cluster.kill(3)
    cluster.create_topic("t", (3,))
    request = ElectLeadersRequest(PREFERRED, (TP,), 1000)
    task = Task(cluster.admin().partitions.elect_leaders(request))
    cluster.host.advance(100_000)
    assert not task.done
    assert any("no leadership" in text for _, level, text in cluster.log if level == "error")


def test_reassignments_pass_through_to_the_controller(cluster: ControllerCluster) -> None:
    """CP-142, CP-144, CP-148: start, list, cancel."""
    cluster.create_topic("t", (1,))
    admin = cluster.admin()
    alter = AlterPartitionReassignmentsRequest(((TP, (2,)), (TopicPartition("x", 0), None)))
    response = cluster.ask(admin.partitions.alter_partition_reassignments(alter))
    assert [(tp, error) for tp, error, _ in response.partitions] == [
        (TP, ErrorCode.NONE),
        (TopicPartition("x", 0), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ]
    listing = ListPartitionReassignmentsRequest(None)
    (ongoing,) = cluster.ask(admin.partitions.list_partition_reassignments(listing)).reassignments
    assert (ongoing.replicas, ongoing.adding, ongoing.removing) == ((2, 1), (2,), (1,))
    cancel = AlterPartitionReassignmentsRequest(((TP, None),))
    cluster.ask(admin.partitions.alter_partition_reassignments(cancel))
    assert cluster.ask(admin.partitions.list_partition_reassignments(listing)).reassignments == ()


def test_elsewhere_reassignments_are_answered_not_controller(cluster: ControllerCluster) -> None:
    admin = cluster.admin(2)
    alter = AlterPartitionReassignmentsRequest(((TP, (2,)),))
    response = cluster.ask(admin.partitions.alter_partition_reassignments(alter))
    assert response.error is ErrorCode.NOT_CONTROLLER
    listing = ListPartitionReassignmentsRequest(None)
    response = cluster.ask(admin.partitions.list_partition_reassignments(listing))
    assert response.error is ErrorCode.NOT_CONTROLLER
    request = ElectLeadersRequest(PREFERRED, (TP,))
    response = cluster.ask(admin.partitions.elect_leaders(request))
    assert response.partitions[0][1] is ErrorCode.NOT_CONTROLLER


def test_versions_without_these_apis_write_the_znodes() -> None:
    """Before 2.4 tools write znodes, and reassignments cannot be cancelled
    (docs/kafka/releases.md)."""
    cluster = ControllerCluster([1, 2, 3], "1.1")
    cluster.create_topic("t", (2, 3))
    cluster.kill(2)
    cluster.start(2)
    cluster.catch_up("t")
    admin = cluster.admin()
    response = cluster.ask(admin.partitions.elect_leaders(ElectLeadersRequest(PREFERRED, (TP,))))
    assert response.partitions == ((TP, ErrorCode.NONE, None),)
    assert cluster.state("t").leader == 2
    unknown = TopicPartition("nothing", 0)
    both = ElectLeadersRequest(PREFERRED, (TP, unknown))
    response = cluster.ask(admin.partitions.elect_leaders(both))
    assert response.partitions == (
        (TP, ErrorCode.NONE, None),
        (unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    )
    response = cluster.ask(admin.partitions.elect_leaders(ElectLeadersRequest(UNCLEAN, (TP,))))
    assert response.error is ErrorCode.UNSUPPORTED_VERSION
    alter = AlterPartitionReassignmentsRequest(((TP, (3, 1)),))
    assert (
        cluster.ask(admin.partitions.alter_partition_reassignments(alter)).error is ErrorCode.NONE
    )
    response = cluster.ask(admin.partitions.alter_partition_reassignments(alter))
    assert response.error is ErrorCode.REASSIGNMENT_IN_PROGRESS
    cancel = AlterPartitionReassignmentsRequest(((TP, None),))
    response = cluster.ask(admin.partitions.alter_partition_reassignments(cancel))
    assert response.error is ErrorCode.UNSUPPORTED_VERSION


def test_before_2_4_only_preferred_leaders_can_be_requested() -> None:
    """KIP-183 came with 2.2, requests for unclean elections (KIP-460) with 2.4."""
    cluster = ControllerCluster()
    cluster.behaviour = behaviour("2.8", unclean_elections_api=False)
    cluster.start(1)
    cluster.create_topic("t", (1,))
    admin = cluster.admin()
    response = cluster.ask(admin.partitions.elect_leaders(ElectLeadersRequest(UNCLEAN, (TP,))))
    assert response.error is ErrorCode.UNSUPPORTED_VERSION
    response = cluster.ask(admin.partitions.elect_leaders(ElectLeadersRequest(PREFERRED, (TP,))))
    assert response.partitions[0][1] is ErrorCode.ELECTION_NOT_NEEDED


def test_missing_topics_are_checked_before_they_are_created(cluster: ControllerCluster) -> None:
    """Data plane 15.4 and DP-124: names that are invalid or collide, and too many replicas."""
    cluster.create_topic("a.b", (1,))
    admin = cluster.admin()

    def check(name: str) -> ErrorCode:
        return admin.auto_creation.check(name, taken)

    taken = admin.auto_creation.taken_names()
    assert check("t") is ErrorCode.NONE
    assert check("a b") is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert check("a_b") is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert check("c.d") is ErrorCode.NONE
    assert check("c_d") is ErrorCode.INVALID_TOPIC_EXCEPTION
    cluster.processes[1].config.static["default.replication.factor"] = 4
    cluster.processes[1].config.set_dynamic({})
    assert check("e.f") is ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.processes[1].config.static["default.replication.factor"] = 1
    cluster.processes[1].config.set_dynamic({})
    assert check("e_f") is ErrorCode.NONE


def test_internal_topics_have_their_own_shape(cluster: ControllerCluster) -> None:
    """They are compacted, and have the configured numbers of partitions and replicas."""
    admin = cluster.admin()
    offsets = admin.auto_creation.topic_for("__consumer_offsets")
    assert (offsets.partitions, offsets.replication_factor) == (50, 3)
    assert ("cleanup.policy", "compact") in offsets.config
    transactions = admin.auto_creation.topic_for("__transaction_state")
    assert ("min.insync.replicas", "2") in transactions.config
    plain = admin.auto_creation.topic_for("t")
    assert (plain.partitions, plain.replication_factor, plain.config) == (1, 1, ())
