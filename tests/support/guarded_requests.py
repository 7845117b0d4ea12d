"""A guard with a few rights, and requests of every kind with the rights that they need."""

from __future__ import annotations

import dataclasses
from typing import Any

from fakekafka.protocol import admin, data, groups, transactions
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.data import RequestContext
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.security import acls, authentication, quotas
from fakekafka.protocol.security.acls import (
    CLUSTER_NAME,
    AclEntry,
    AclOperation,
    Permission,
    Resource,
    ResourceType,
)
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.security.authorizer import Authorizer
from fakekafka.tests.support.kafka_listener import StubBackend
from fakekafka.wire.kafka.security.guard import GuardedBackend

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
RECORDS = build_batch([Record(0, 0, None, b"x")])
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TXN = ResourceType.TRANSACTIONAL_ID
Right = tuple[ResourceType, str, AclOperation]


class Guarded:
    """A guard before a broker that only records the requests that reach it."""

    def __init__(self, *rights: Right, kafka_version: str = "3.9") -> None:
        flags = behaviour(kafka_version)
        self.authorizer = Authorizer(BrokerConfig({}, kafka_version), flags)
        by_resource: dict[Resource, list[AclEntry]] = {}
        for kind, name, operation in rights:
            entry = AclEntry("User:alice", "*", operation, Permission.ALLOW)
            by_resource.setdefault(Resource(kind, name), []).append(entry)
        for resource, entries in by_resource.items():
            self.authorizer.set_acls(resource, entries)
        self.backend = StubBackend()
        self.guard = GuardedBackend(
            self.backend, flags, lambda _: self.authorizer, lambda _, topic: topic != "new"
        )

    def ask(self, request: Any, response: Any = None, api_version: int = -1) -> Any:
        """Return the response to Alice's request, or None while it is pending."""
        answers: list[Any] = []
        if response is not None:
            self.backend.answer = lambda _: response
        context = RequestContext(
            principal="User:alice", client_host="1.2.3.4", api_version=api_version
        )
        self.guard.submit(1, "c", request, context, answers.append)
        return answers[0] if answers else None


def errors_in(value: Any) -> set[ErrorCode]:
    """Return every error code anywhere in a response except NONE."""
    if isinstance(value, ErrorCode):
        return {value} - {ErrorCode.NONE}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, (tuple, list)):
        return {error for item in value for error in errors_in(item)}
    return set()


def fetch(replica_id: int = -1) -> data.FetchRequest:
    return data.FetchRequest(replica_id, 0, 1, 1000, (data.FetchPartition(A, 0),))


COMMIT = groups.OffsetCommitPartition(A, 1)
RESOURCE_A = admin.ConfigResource(admin.TOPIC_RESOURCE, "a")
BROKER = admin.ConfigResource(admin.BROKER_RESOURCE, "1")
NEEDS: dict[str, tuple[Any, list[Right], str]] = {
    "Produce": (
        data.ProduceRequest(1, 9, (data.ProducePartition(A, RECORDS),)),
        [(TOPIC, "a", AclOperation.WRITE)],
        "TOPIC",
    ),
    "Fetch": (fetch(), [(TOPIC, "a", AclOperation.READ)], "TOPIC"),
    "Fetch of a follower": (
        fetch(2),
        [(CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION)],
        "TOPIC",
    ),
    "ListOffsets": (
        data.ListOffsetsRequest(-1, (data.ListOffsetsPartition(A, -1),)),
        [(TOPIC, "a", AclOperation.DESCRIBE)],
        "TOPIC",
    ),
    "Metadata": (
        data.MetadataRequest(("a",), False),
        [(TOPIC, "a", AclOperation.DESCRIBE)],
        "TOPIC",
    ),
    "OffsetForLeaderEpoch": (
        data.OffsetForLeaderEpochRequest(
            -1, (data.OffsetForLeaderEpochPartition(A, leader_epoch=0),)
        ),
        [(TOPIC, "a", AclOperation.DESCRIBE)],
        "TOPIC",
    ),
    "DeleteRecords": (
        data.DeleteRecordsRequest(9, ((A, 1),)),
        [(TOPIC, "a", AclOperation.DELETE)],
        "TOPIC",
    ),
    "InitProducerId": (
        data.InitProducerIdRequest(None, 9),
        [(CLUSTER, CLUSTER_NAME, AclOperation.IDEMPOTENT_WRITE)],
        "CLUSTER",
    ),
    "InitProducerId by a topic": (
        data.InitProducerIdRequest(None, 9),
        [(TOPIC, "any", AclOperation.WRITE)],
        "CLUSTER",
    ),
    "InitProducerId of a transaction": (
        data.InitProducerIdRequest("t", 9),
        [(TXN, "t", AclOperation.WRITE)],
        "TRANSACTIONAL_ID",
    ),
    "FindCoordinator": (
        data.FindCoordinatorRequest(("g",)),
        [(GROUP, "g", AclOperation.DESCRIBE)],
        "GROUP",
    ),
    "FindCoordinator of a transaction": (
        data.FindCoordinatorRequest(("t",), 1),
        [(TXN, "t", AclOperation.DESCRIBE)],
        "TRANSACTIONAL_ID",
    ),
    "JoinGroup": (
        groups.JoinGroupRequest("g", 9, 9, "", None, "consumer", ()),
        [(GROUP, "g", AclOperation.READ)],
        "GROUP",
    ),
    "SyncGroup": (
        groups.SyncGroupRequest("g", 1, "m", None, None, None, ()),
        [(GROUP, "g", AclOperation.READ)],
        "GROUP",
    ),
    "Heartbeat": (groups.HeartbeatRequest("g", 1, "m"), [(GROUP, "g", AclOperation.READ)], "GROUP"),
    "LeaveGroup": (groups.LeaveGroupRequest("g", ()), [(GROUP, "g", AclOperation.READ)], "GROUP"),
    "OffsetCommit": (
        groups.OffsetCommitRequest("g", -1, "", None, (COMMIT,)),
        [(GROUP, "g", AclOperation.READ), (TOPIC, "a", AclOperation.READ)],
        "GROUP TOPIC",
    ),
    "OffsetFetch": (
        groups.OffsetFetchRequest("g", (A,)),
        [(GROUP, "g", AclOperation.DESCRIBE), (TOPIC, "a", AclOperation.DESCRIBE)],
        "GROUP TOPIC",
    ),
    "DescribeGroups": (
        groups.DescribeGroupsRequest(("g",)),
        [(GROUP, "g", AclOperation.DESCRIBE)],
        "GROUP",
    ),
    "ConsumerGroupHeartbeat": (
        groups.ConsumerGroupHeartbeatRequest("g", "m", 1),
        [(GROUP, "g", AclOperation.READ)],
        "GROUP",
    ),
    "ConsumerGroupDescribe": (
        groups.ConsumerGroupDescribeRequest(("g",)),
        [(GROUP, "g", AclOperation.DESCRIBE)],
        "GROUP",
    ),
    "DeleteGroups": (
        groups.DeleteGroupsRequest(("g",)),
        [(GROUP, "g", AclOperation.DELETE)],
        "GROUP",
    ),
    "OffsetDelete": (
        groups.OffsetDeleteRequest("g", (A,)),
        [(GROUP, "g", AclOperation.DELETE)],
        "GROUP",
    ),
    "AddPartitionsToTxn": (
        transactions.AddPartitionsToTxnRequest(
            (transactions.TransactionPartitions("t", 1, 0, (A,)),)
        ),
        [(TXN, "t", AclOperation.WRITE), (TOPIC, "a", AclOperation.WRITE)],
        "TRANSACTIONAL_ID TOPIC",
    ),
    "AddOffsetsToTxn": (
        transactions.AddOffsetsToTxnRequest("t", 1, 0, "g"),
        [(TXN, "t", AclOperation.WRITE), (GROUP, "g", AclOperation.READ)],
        "TRANSACTIONAL_ID GROUP",
    ),
    "EndTxn": (
        transactions.EndTxnRequest("t", 1, 0, True),
        [(TXN, "t", AclOperation.WRITE)],
        "TRANSACTIONAL_ID",
    ),
    "TxnOffsetCommit": (
        transactions.TxnOffsetCommitRequest("t", "g", 1, 0, (COMMIT,)),
        [
            (TXN, "t", AclOperation.WRITE),
            (GROUP, "g", AclOperation.READ),
            (TOPIC, "a", AclOperation.READ),
        ],
        "TRANSACTIONAL_ID GROUP TOPIC",
    ),
    "WriteTxnMarkers": (
        transactions.WriteTxnMarkersRequest((transactions.TransactionMarker(1, 0, True, (A,), 0),)),
        [(CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION)],
        "CLUSTER",
    ),
    "DescribeProducers": (
        transactions.DescribeProducersRequest((A,)),
        [(TOPIC, "a", AclOperation.READ)],
        "TOPIC",
    ),
    "DescribeTransactions": (
        transactions.DescribeTransactionsRequest(("t",)),
        [(TXN, "t", AclOperation.DESCRIBE)],
        "TRANSACTIONAL_ID",
    ),
    "CreateTopics": (
        admin.CreateTopicsRequest((admin.NewTopic("a"),)),
        [(TOPIC, "a", AclOperation.CREATE)],
        "TOPIC",
    ),
    "CreateTopics by the cluster": (
        admin.CreateTopicsRequest((admin.NewTopic("a"),)),
        [(CLUSTER, CLUSTER_NAME, AclOperation.CREATE)],
        "TOPIC",
    ),
    "DeleteTopics": (
        admin.DeleteTopicsRequest(("a",)),
        [(TOPIC, "a", AclOperation.DELETE)],
        "TOPIC",
    ),
    "CreatePartitions": (
        admin.CreatePartitionsRequest((admin.NewPartitions("a", 2),)),
        [(TOPIC, "a", AclOperation.ALTER)],
        "TOPIC",
    ),
    "DescribeConfigs of a topic": (
        admin.DescribeConfigsRequest(((RESOURCE_A, None),)),
        [(TOPIC, "a", AclOperation.DESCRIBE_CONFIGS)],
        "TOPIC",
    ),
    "DescribeConfigs of a broker": (
        admin.DescribeConfigsRequest(((BROKER, None),)),
        [(CLUSTER, CLUSTER_NAME, AclOperation.DESCRIBE_CONFIGS)],
        "CLUSTER",
    ),
    "AlterConfigs of a topic": (
        admin.AlterConfigsRequest(((RESOURCE_A, ()),)),
        [(TOPIC, "a", AclOperation.ALTER_CONFIGS)],
        "TOPIC",
    ),
    "AlterConfigs of a broker": (
        admin.AlterConfigsRequest(((BROKER, ()),)),
        [(CLUSTER, CLUSTER_NAME, AclOperation.ALTER_CONFIGS)],
        "CLUSTER",
    ),
    **{
        type(request).__name__.removesuffix("Request"): (
            request,
            [(CLUSTER, CLUSTER_NAME, operation)],
            "CLUSTER",
        )
        for operation, request in (
            (AclOperation.ALTER, admin.ElectLeadersRequest(0, None)),
            (AclOperation.ALTER, admin.AlterReplicaLogDirsRequest(((A, "d"),))),
            (AclOperation.DESCRIBE, admin.DescribeLogDirsRequest(None)),
            (AclOperation.DESCRIBE_CONFIGS, quotas.DescribeClientQuotasRequest(())),
            (
                AclOperation.ALTER_CONFIGS,
                quotas.AlterClientQuotasRequest((quotas.QuotaAlteration((("user", "u"),), ()),)),
            ),
            (AclOperation.ALTER, admin.AlterPartitionReassignmentsRequest(())),
            (AclOperation.DESCRIBE, admin.ListPartitionReassignmentsRequest(None)),
            (AclOperation.DESCRIBE, authentication.DescribeUserScramCredentialsRequest(None)),
            (AclOperation.ALTER, authentication.AlterUserScramCredentialsRequest((("u", 1),))),
            (AclOperation.DESCRIBE, acls.DescribeAclsRequest(acls.AclFilter())),
            (
                AclOperation.ALTER,
                acls.CreateAclsRequest(
                    (
                        acls.Acl(
                            Resource(TOPIC, "a"),
                            AclEntry("User:x", "*", AclOperation.READ, Permission.ALLOW),
                        ),
                    )
                ),
            ),
            (AclOperation.ALTER, acls.DeleteAclsRequest((acls.AclFilter(),))),
        )
    },
}
"""Request, the rights that it needs and the errors without each of them, by name."""
