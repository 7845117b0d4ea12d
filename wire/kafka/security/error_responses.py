"""The part of ``error_responses`` that answers requests about security."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....protocol.errors import ErrorCode
from ....protocol.security import acls, authentication, delegation_tokens, quotas

BUILDERS: dict[type, Callable[[Any, ErrorCode], Any]] = {
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
}
