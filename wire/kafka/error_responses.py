"""The response that has one error for everything a request asks (Kafka: getErrorResponse)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol import admin, control, data, groups, transactions
from ...protocol.errors import ErrorCode, UsageError
from ...protocol.security import acls, authentication, delegation_tokens, quotas

_Builder = Callable[[Any, ErrorCode], Any]


def _per_partition(response: type, answer: type) -> _Builder:
    return lambda request, error: response(
        tuple(answer(partition.topic_partition, error) for partition in request.partitions)
    )


def _topics(response: type) -> _Builder:
    def build(request: Any, error: ErrorCode) -> Any:
        names = [getattr(topic, "name", topic) for topic in request.topics]
        return response(
            (
                *(admin.TopicResult(name, error, None) for name in names),
                *(
                    admin.TopicResult("", error, None, topic_id)
                    for topic_id in getattr(request, "topic_ids", ())
                ),
            )
        )

    return build


def _metadata(request: data.MetadataRequest, error: ErrorCode) -> data.MetadataResponse:
    topics = tuple(data.MetadataTopic(error, name, False, ()) for name in request.topics or ())
    return data.MetadataResponse((), "", -1, topics)


def _fetch(request: data.FetchRequest, error: ErrorCode) -> data.FetchResponse:
    if error in (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH):
        return data.FetchResponse(error, 0, ())
    return data.FetchResponse(
        ErrorCode.NONE,
        0,
        tuple(data.FetchPartitionResponse(p.topic_partition, error) for p in request.partitions),
    )


def _add_partitions(
    request: transactions.AddPartitionsToTxnRequest, error: ErrorCode
) -> transactions.AddPartitionsToTxnResponse:
    return transactions.AddPartitionsToTxnResponse(
        tuple(
            transactions.AddPartitionsToTxnResult(
                one.transactional_id,
                tuple((name, error) for name in one.partitions),
            )
            for one in request.transactions
        ),
        error,
    )


_COORDINATOR_TEXTS = {
    ErrorCode.ILLEGAL_SASL_STATE: "Request is not valid given the current SASL state.",
}
"""Error messages in a FindCoordinator response for errors of the connection, not of a key
(``FindCoordinatorResponse.prepareErrorResponse``)."""

_BUILDERS: dict[type, _Builder] = {
    data.ProduceRequest: _per_partition(data.ProduceResponse, data.ProducePartitionResponse),
    data.FetchRequest: _fetch,
    data.ListOffsetsRequest: _per_partition(
        data.ListOffsetsResponse, data.ListOffsetsPartitionResponse
    ),
    data.OffsetForLeaderEpochRequest: _per_partition(
        data.OffsetForLeaderEpochResponse, data.OffsetForLeaderEpochPartitionResponse
    ),
    data.MetadataRequest: _metadata,
    data.InitProducerIdRequest: lambda _, error: data.InitProducerIdResponse(error),
    data.FindCoordinatorRequest: lambda request, error: data.FindCoordinatorResponse(
        tuple(
            data.Coordinator(key, error, error_message=_COORDINATOR_TEXTS.get(error))
            for key in request.keys
        )
    ),
    groups.JoinGroupRequest: lambda request, error: groups.JoinGroupResponse(
        error, request.member_id
    ),
    groups.SyncGroupRequest: lambda _, error: groups.SyncGroupResponse(error),
    groups.HeartbeatRequest: lambda _, error: groups.HeartbeatResponse(error),
    groups.LeaveGroupRequest: lambda _, error: groups.LeaveGroupResponse(error),
    groups.OffsetCommitRequest: lambda request, error: groups.OffsetCommitResponse(
        tuple((partition.topic_partition, error) for partition in request.partitions)
    ),
    groups.OffsetFetchRequest: lambda _, error: groups.OffsetFetchResponse(error, ()),
    groups.OffsetDeleteRequest: lambda _, error: groups.OffsetDeleteResponse(error),
    groups.DescribeGroupsRequest: lambda request, error: groups.DescribeGroupsResponse(
        tuple(groups.DescribedGroup(error, group_id) for group_id in request.group_ids)
    ),
    groups.ConsumerGroupHeartbeatRequest: lambda _, error: groups.ConsumerGroupHeartbeatResponse(
        error
    ),
    groups.ConsumerGroupDescribeRequest: lambda request, error: (
        groups.ConsumerGroupDescribeResponse(
            tuple(
                groups.ConsumerGroupDescription(error, group_id) for group_id in request.group_ids
            )
        )
    ),
    groups.ListGroupsRequest: lambda _, error: groups.ListGroupsResponse(error),
    groups.DeleteGroupsRequest: lambda request, error: groups.DeleteGroupsResponse(
        tuple((group_id, error) for group_id in request.group_ids)
    ),
    delegation_tokens.CreateDelegationTokenRequest: lambda request, error: (
        delegation_tokens.CreateDelegationTokenResponse(
            error,
            delegation_tokens.DelegationToken("", request.owner or "", "", (), -1, -1, -1),
        )
    ),
    delegation_tokens.RenewDelegationTokenRequest: lambda _, error: (
        delegation_tokens.RenewDelegationTokenResponse(error)
    ),
    delegation_tokens.ExpireDelegationTokenRequest: lambda _, error: (
        delegation_tokens.ExpireDelegationTokenResponse(error)
    ),
    delegation_tokens.DescribeDelegationTokenRequest: lambda _, error: (
        delegation_tokens.DescribeDelegationTokenResponse(error)
    ),
    quotas.DescribeClientQuotasRequest: lambda _, error: quotas.DescribeClientQuotasResponse(error),
    quotas.AlterClientQuotasRequest: lambda request, error: quotas.AlterClientQuotasResponse(
        tuple((alteration.entity, error, None) for alteration in request.alterations)
    ),
    acls.DescribeAclsRequest: lambda _, error: acls.DescribeAclsResponse(error),
    acls.CreateAclsRequest: lambda request, error: acls.CreateAclsResponse(
        ((error, None),) * len(request.acls)
    ),
    acls.DeleteAclsRequest: lambda request, error: acls.DeleteAclsResponse(
        (acls.DeletedAcls(error),) * len(request.filters)
    ),
    authentication.SaslHandshakeRequest: lambda _, error: authentication.SaslHandshakeResponse(
        error
    ),
    authentication.SaslAuthenticateRequest: lambda _, error: (
        authentication.SaslAuthenticateResponse(error)
    ),
    authentication.DescribeUserScramCredentialsRequest: lambda _, error: (
        authentication.DescribeUserScramCredentialsResponse(error)
    ),
    authentication.AlterUserScramCredentialsRequest: lambda request, error: (
        authentication.AlterUserScramCredentialsResponse(
            tuple(
                (user, error, None)
                for user in dict.fromkeys(
                    [user for user, _ in request.deletions] + [u.user for u in request.upsertions]
                )
            )
        )
    ),
    data.DeleteRecordsRequest: lambda request, error: data.DeleteRecordsResponse(
        tuple((partition, error, -1) for partition, _ in request.offsets)
    ),
    transactions.AddPartitionsToTxnRequest: _add_partitions,
    transactions.AddOffsetsToTxnRequest: lambda _, error: transactions.AddOffsetsToTxnResponse(
        error
    ),
    transactions.EndTxnRequest: lambda _, error: transactions.EndTxnResponse(error),
    transactions.WriteTxnMarkersRequest: lambda request, error: (
        transactions.WriteTxnMarkersResponse(
            tuple(
                (marker.producer_id, tuple((name, error) for name in marker.partitions))
                for marker in request.markers
            )
        )
    ),
    transactions.TxnOffsetCommitRequest: lambda request, error: (
        transactions.TxnOffsetCommitResponse(
            tuple((partition.topic_partition, error) for partition in request.partitions)
        )
    ),
    transactions.DescribeProducersRequest: lambda request, error: (
        transactions.DescribeProducersResponse(
            tuple(transactions.DescribedProducers(name, error) for name in request.partitions)
        )
    ),
    transactions.DescribeTransactionsRequest: lambda request, error: (
        transactions.DescribeTransactionsResponse(
            tuple(
                transactions.DescribedTransaction(name, error) for name in request.transactional_ids
            )
        )
    ),
    transactions.ListTransactionsRequest: lambda _, error: transactions.ListTransactionsResponse(
        error
    ),
    admin.CreateTopicsRequest: _topics(admin.CreateTopicsResponse),
    admin.DeleteTopicsRequest: _topics(admin.DeleteTopicsResponse),
    admin.CreatePartitionsRequest: _topics(admin.CreatePartitionsResponse),
    admin.ElectLeadersRequest: lambda _, error: admin.ElectLeadersResponse(error),
    admin.AlterPartitionReassignmentsRequest: lambda _, error: (
        admin.AlterPartitionReassignmentsResponse(error)
    ),
    admin.ListPartitionReassignmentsRequest: lambda _, error: (
        admin.ListPartitionReassignmentsResponse(error)
    ),
    admin.DescribeConfigsRequest: lambda request, error: admin.DescribeConfigsResponse(
        tuple(
            admin.DescribeConfigsResult(resource, error, None, ())
            for resource, _ in request.resources
        )
    ),
    admin.UpdateFeaturesRequest: lambda _, error: admin.UpdateFeaturesResponse(error),
    admin.DescribeLogDirsRequest: lambda _, error: admin.DescribeLogDirsResponse(error),
    admin.AlterReplicaLogDirsRequest: lambda request, error: admin.AlterReplicaLogDirsResponse(
        tuple((partition, error) for partition, _ in request.moves)
    ),
    admin.AlterConfigsRequest: lambda request, error: admin.AlterConfigsResponse(
        tuple((resource, error, None) for resource, _ in request.resources)
    ),
    control.LeaderAndIsrRequest: lambda _, error: control.LeaderAndIsrResponse(error),
    control.UpdateMetadataRequest: lambda _, error: control.UpdateMetadataResponse(error),
    control.StopReplicaRequest: lambda _, error: control.StopReplicaResponse(error),
    control.ControlledShutdownRequest: lambda _, error: control.ControlledShutdownResponse(error),
    control.AllocateProducerIdsRequest: lambda _, error: control.AllocateProducerIdsResponse(error),
    control.AlterIsrRequest: lambda _, error: control.AlterIsrResponse(error),
}


def has_error_response(request_type: type) -> bool:
    """Return whether requests of this type can be answered with an error."""
    return request_type in _BUILDERS


def error_response(request: Any, error: ErrorCode) -> Any:
    """Build the error response to a request; raise ``UsageError`` if the request has none."""
    try:
        build = _BUILDERS[type(request)]
    except KeyError:
        raise UsageError(
            f"{type(request).__name__} has no error response; inject delay_ms or disconnect"
        ) from None
    return build(request, error)
