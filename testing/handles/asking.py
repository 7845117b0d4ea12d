"""``ask``: which response each request of Kafka has, for type checkers and for people."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from ...protocol import admin, control, data, groups, transactions
    from ...protocol.security import acls, authentication, delegation_tokens, quotas
    from ..running import RunningCluster
    from .admin import AdminClient


class Asking(abc.ABC):
    """A cluster that can be asked as one broker asks another."""

    @property
    @abc.abstractmethod
    def running(self) -> RunningCluster:
        """The running cluster; ``UsageError`` before the start, and after the stop of a
        ``Cluster``."""

    @overload
    def ask(
        self, broker: int | str, request: control.LeaderAndIsrRequest, timeout_s: float = 30
    ) -> control.LeaderAndIsrResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: control.UpdateMetadataRequest, timeout_s: float = 30
    ) -> control.UpdateMetadataResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: control.StopReplicaRequest, timeout_s: float = 30
    ) -> control.StopReplicaResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: control.ControlledShutdownRequest, timeout_s: float = 30
    ) -> control.ControlledShutdownResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: control.AllocateProducerIdsRequest, timeout_s: float = 30
    ) -> control.AllocateProducerIdsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: control.AlterIsrRequest, timeout_s: float = 30
    ) -> control.AlterIsrResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: data.ProduceRequest, timeout_s: float = 30
    ) -> data.ProduceResponse | None: ...

    @overload
    def ask(
        self, broker: int | str, request: data.FetchRequest, timeout_s: float = 30
    ) -> data.FetchResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: data.ListOffsetsRequest, timeout_s: float = 30
    ) -> data.ListOffsetsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: data.OffsetForLeaderEpochRequest, timeout_s: float = 30
    ) -> data.OffsetForLeaderEpochResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: data.DeleteRecordsRequest, timeout_s: float = 30
    ) -> data.DeleteRecordsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: data.InitProducerIdRequest, timeout_s: float = 30
    ) -> data.InitProducerIdResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: data.MetadataRequest, timeout_s: float = 30
    ) -> data.MetadataResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: data.FindCoordinatorRequest, timeout_s: float = 30
    ) -> data.FindCoordinatorResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: admin.CreateTopicsRequest, timeout_s: float = 30
    ) -> admin.CreateTopicsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: admin.DeleteTopicsRequest, timeout_s: float = 30
    ) -> admin.DeleteTopicsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: admin.CreatePartitionsRequest, timeout_s: float = 30
    ) -> admin.CreatePartitionsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: admin.ElectLeadersRequest, timeout_s: float = 30
    ) -> admin.ElectLeadersResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: admin.AlterPartitionReassignmentsRequest,
        timeout_s: float = 30,
    ) -> admin.AlterPartitionReassignmentsResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: admin.ListPartitionReassignmentsRequest,
        timeout_s: float = 30,
    ) -> admin.ListPartitionReassignmentsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: admin.DescribeConfigsRequest, timeout_s: float = 30
    ) -> admin.DescribeConfigsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: admin.AlterConfigsRequest, timeout_s: float = 30
    ) -> admin.AlterConfigsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: admin.DescribeLogDirsRequest, timeout_s: float = 30
    ) -> admin.DescribeLogDirsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: admin.AlterReplicaLogDirsRequest, timeout_s: float = 30
    ) -> admin.AlterReplicaLogDirsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: admin.UpdateFeaturesRequest, timeout_s: float = 30
    ) -> admin.UpdateFeaturesResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: groups.JoinGroupRequest, timeout_s: float = 30
    ) -> groups.JoinGroupResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: groups.SyncGroupRequest, timeout_s: float = 30
    ) -> groups.SyncGroupResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: groups.HeartbeatRequest, timeout_s: float = 30
    ) -> groups.HeartbeatResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: groups.LeaveGroupRequest, timeout_s: float = 30
    ) -> groups.LeaveGroupResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: groups.OffsetCommitRequest, timeout_s: float = 30
    ) -> groups.OffsetCommitResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: groups.OffsetFetchRequest, timeout_s: float = 30
    ) -> groups.OffsetFetchResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: groups.OffsetDeleteRequest, timeout_s: float = 30
    ) -> groups.OffsetDeleteResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: groups.DescribeGroupsRequest, timeout_s: float = 30
    ) -> groups.DescribeGroupsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: groups.ListGroupsRequest, timeout_s: float = 30
    ) -> groups.ListGroupsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: groups.DeleteGroupsRequest, timeout_s: float = 30
    ) -> groups.DeleteGroupsResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: groups.ConsumerGroupHeartbeatRequest,
        timeout_s: float = 30,
    ) -> groups.ConsumerGroupHeartbeatResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: groups.ConsumerGroupDescribeRequest, timeout_s: float = 30
    ) -> groups.ConsumerGroupDescribeResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: transactions.AddPartitionsToTxnRequest,
        timeout_s: float = 30,
    ) -> transactions.AddPartitionsToTxnResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: transactions.AddOffsetsToTxnRequest, timeout_s: float = 30
    ) -> transactions.AddOffsetsToTxnResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: transactions.EndTxnRequest, timeout_s: float = 30
    ) -> transactions.EndTxnResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: transactions.WriteTxnMarkersRequest, timeout_s: float = 30
    ) -> transactions.WriteTxnMarkersResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: transactions.TxnOffsetCommitRequest, timeout_s: float = 30
    ) -> transactions.TxnOffsetCommitResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: transactions.DescribeProducersRequest,
        timeout_s: float = 30,
    ) -> transactions.DescribeProducersResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: transactions.DescribeTransactionsRequest,
        timeout_s: float = 30,
    ) -> transactions.DescribeTransactionsResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: transactions.ListTransactionsRequest,
        timeout_s: float = 30,
    ) -> transactions.ListTransactionsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: authentication.SaslHandshakeRequest, timeout_s: float = 30
    ) -> authentication.SaslHandshakeResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: authentication.SaslAuthenticateRequest,
        timeout_s: float = 30,
    ) -> authentication.SaslAuthenticateResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: authentication.DescribeUserScramCredentialsRequest,
        timeout_s: float = 30,
    ) -> authentication.DescribeUserScramCredentialsResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: authentication.AlterUserScramCredentialsRequest,
        timeout_s: float = 30,
    ) -> authentication.AlterUserScramCredentialsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: acls.DescribeAclsRequest, timeout_s: float = 30
    ) -> acls.DescribeAclsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: acls.CreateAclsRequest, timeout_s: float = 30
    ) -> acls.CreateAclsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: acls.DeleteAclsRequest, timeout_s: float = 30
    ) -> acls.DeleteAclsResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: quotas.DescribeClientQuotasRequest, timeout_s: float = 30
    ) -> quotas.DescribeClientQuotasResponse: ...

    @overload
    def ask(
        self, broker: int | str, request: quotas.AlterClientQuotasRequest, timeout_s: float = 30
    ) -> quotas.AlterClientQuotasResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: delegation_tokens.CreateDelegationTokenRequest,
        timeout_s: float = 30,
    ) -> delegation_tokens.CreateDelegationTokenResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: delegation_tokens.RenewDelegationTokenRequest,
        timeout_s: float = 30,
    ) -> delegation_tokens.RenewDelegationTokenResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: delegation_tokens.ExpireDelegationTokenRequest,
        timeout_s: float = 30,
    ) -> delegation_tokens.ExpireDelegationTokenResponse: ...

    @overload
    def ask(
        self,
        broker: int | str,
        request: delegation_tokens.DescribeDelegationTokenRequest,
        timeout_s: float = 30,
    ) -> delegation_tokens.DescribeDelegationTokenResponse: ...

    def ask(self, broker: int | str, request: Any, timeout_s: float = 30) -> Any:
        """Send a broker any request of Kafka, as another broker would; return its response.

        A ``FetchRequest`` of ``fakekafka.protocol.data`` gives a ``FetchResponse``, and so on for
        those of ``admin``, ``control``, ``groups``, ``transactions`` and ``security`` beside it.
        The result is None for a ``ProduceRequest`` with ``acks=0``, which has no response. Raises
        ``Disconnected`` or ``RequestTimeout`` of ``fakekafka.protocol.awaiting``.
        """
        return self._admin.ask(broker, request, timeout_s)

    @property
    def _admin(self) -> AdminClient:
        from .admin import AdminClient  # a cluster starts without it

        return AdminClient(self.running)
