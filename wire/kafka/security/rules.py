"""What each request needs, as Kafka's ``KafkaApis`` asks its authorizer.

Requests in ``FREE`` need no permission. A request that is in no table is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....protocol import admin, control, data, groups, transactions
from ....protocol.security import acls, authentication, delegation_tokens, quotas
from ....protocol.security.acls import AclOperation
from . import admin_rules, data_rules, group_rules
from .permissions import (
    Decision,
    Permissions,
)
from .simple_rules import cluster, group, partitions, transaction

RULES: dict[type, Callable[[Permissions, Any], Decision]] = {
    data.ProduceRequest: data_rules.produce,
    data.FetchRequest: data_rules.fetch,
    data.ListOffsetsRequest: partitions(AclOperation.DESCRIBE),
    data.MetadataRequest: data_rules.metadata,
    data.OffsetForLeaderEpochRequest: data_rules.leader_epochs,
    data.InitProducerIdRequest: data_rules.init_producer_id,
    data.DeleteRecordsRequest: data_rules.delete_records,
    data.FindCoordinatorRequest: data_rules.find_coordinator,
    groups.JoinGroupRequest: group(AclOperation.READ),
    groups.SyncGroupRequest: group(AclOperation.READ),
    groups.HeartbeatRequest: group(AclOperation.READ),
    groups.LeaveGroupRequest: group(AclOperation.READ),
    groups.OffsetCommitRequest: group_rules.offset_commit,
    groups.OffsetFetchRequest: group_rules.offset_fetch,
    groups.OffsetDeleteRequest: group_rules.offset_delete,
    groups.DescribeGroupsRequest: group_rules.describe_groups,
    groups.ListGroupsRequest: group_rules.list_groups,
    groups.ConsumerGroupHeartbeatRequest: group(AclOperation.READ),
    groups.ConsumerGroupDescribeRequest: group_rules.describe_groups,
    groups.DeleteGroupsRequest: group_rules.delete_groups,
    transactions.AddPartitionsToTxnRequest: group_rules.add_partitions,
    transactions.AddOffsetsToTxnRequest: group_rules.add_offsets,
    transactions.EndTxnRequest: transaction,
    transactions.WriteTxnMarkersRequest: cluster(AclOperation.CLUSTER_ACTION),
    transactions.TxnOffsetCommitRequest: group_rules.txn_offset_commit,
    transactions.DescribeProducersRequest: partitions(AclOperation.READ),
    transactions.DescribeTransactionsRequest: group_rules.describe_transactions,
    transactions.ListTransactionsRequest: group_rules.list_transactions,
    admin.CreateTopicsRequest: admin_rules.create_topics,
    admin.DeleteTopicsRequest: admin_rules.delete_topics,
    admin.CreatePartitionsRequest: admin_rules.topics(AclOperation.ALTER),
    admin.ElectLeadersRequest: cluster(AclOperation.ALTER),
    admin.AlterPartitionReassignmentsRequest: cluster(AclOperation.ALTER),
    admin.ListPartitionReassignmentsRequest: cluster(AclOperation.DESCRIBE),
    admin.DescribeConfigsRequest: admin_rules.configs(AclOperation.DESCRIBE_CONFIGS),
    admin.AlterConfigsRequest: admin_rules.configs(AclOperation.ALTER_CONFIGS),
    admin.DescribeLogDirsRequest: cluster(AclOperation.DESCRIBE),
    admin.AlterReplicaLogDirsRequest: cluster(AclOperation.ALTER),
    admin.UpdateFeaturesRequest: cluster(AclOperation.ALTER),
    control.AlterIsrRequest: cluster(AclOperation.CLUSTER_ACTION),
    control.AllocateProducerIdsRequest: cluster(AclOperation.CLUSTER_ACTION),
    authentication.DescribeUserScramCredentialsRequest: cluster(AclOperation.DESCRIBE),
    authentication.AlterUserScramCredentialsRequest: cluster(AclOperation.ALTER),
    quotas.DescribeClientQuotasRequest: cluster(AclOperation.DESCRIBE_CONFIGS),
    quotas.AlterClientQuotasRequest: cluster(AclOperation.ALTER_CONFIGS),
    acls.DescribeAclsRequest: cluster(AclOperation.DESCRIBE),
    acls.CreateAclsRequest: cluster(AclOperation.ALTER),
    acls.DeleteAclsRequest: cluster(AclOperation.ALTER),
}
"""By type of request."""

FREE = frozenset(
    (
        authentication.SaslHandshakeRequest,
        authentication.SaslAuthenticateRequest,
        delegation_tokens.CreateDelegationTokenRequest,
        delegation_tokens.RenewDelegationTokenRequest,
        delegation_tokens.ExpireDelegationTokenRequest,
        delegation_tokens.DescribeDelegationTokenRequest,
    )
)
"""Requests that every client may send; the broker itself decides on those about tokens."""
