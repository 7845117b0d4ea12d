"""What kio and the codec are compared by, for the APIs of security: see ``response_trees``."""

from __future__ import annotations

import datetime
from typing import Any

from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.security import acls, authentication, delegation_tokens, quotas
from hypothesis import strategies as st

_texts = st.text(max_size=8)
_nullable_texts = st.none() | _texts
_errors = st.sampled_from([ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND, ErrorCode(-1)])
_int8s = st.integers(-(2**7), 2**7 - 1)
_int32s = st.integers(-(2**31), 2**31 - 1)
_durations = st.integers(0, 2**40)
_bytes = st.binary(max_size=12)
_times = st.integers(0, 4_000_000_000_000)


def _some(items: Any) -> Any:
    return st.lists(items, max_size=3).map(tuple)


def _enum(kind: Any) -> Any:
    return st.sampled_from([value for value in kind if value > 1])


_acls = st.builds(
    acls.Acl,
    st.builds(
        acls.Resource,
        _enum(acls.ResourceType),
        _texts,
        st.sampled_from([acls.PatternType.LITERAL, acls.PatternType.PREFIXED]),
    ),
    st.builds(acls.AclEntry, _texts, _texts, _enum(acls.AclOperation), _enum(acls.Permission)),
)

_entities = _some(st.tuples(_texts, _nullable_texts))
_floats = st.floats(allow_nan=False)

_principals = st.builds(lambda kind, name: f"{kind}:{name}", st.just("User"), _texts)
_tokens = st.builds(
    delegation_tokens.DelegationToken,
    _texts,
    _principals,
    _principals,
    _some(_principals),
    _times,
    _times,
    _times,
    _bytes,
)

RESPONSES: dict[int, Any] = {
    38: st.builds(delegation_tokens.CreateDelegationTokenResponse, _errors, _tokens),
    39: st.builds(delegation_tokens.RenewDelegationTokenResponse, _errors, _times),
    40: st.builds(delegation_tokens.ExpireDelegationTokenResponse, _errors, _times),
    41: st.builds(delegation_tokens.DescribeDelegationTokenResponse, _errors, _some(_tokens)),
    48: st.builds(
        quotas.DescribeClientQuotasResponse,
        _errors,
        _nullable_texts,
        _some(st.tuples(_entities, _some(st.tuples(_texts, _floats)))),
    ),
    49: st.builds(
        quotas.AlterClientQuotasResponse, _some(st.tuples(_entities, _errors, _nullable_texts))
    ),
    29: st.builds(acls.DescribeAclsResponse, _errors, _nullable_texts, _some(_acls)),
    30: st.builds(acls.CreateAclsResponse, _some(st.tuples(_errors, _nullable_texts))),
    31: st.builds(
        acls.DeleteAclsResponse,
        _some(st.builds(acls.DeletedAcls, _errors, _nullable_texts, _some(_acls))),
    ),
    17: st.builds(authentication.SaslHandshakeResponse, _errors, _some(_texts)),
    36: st.builds(
        authentication.SaslAuthenticateResponse, _errors, _nullable_texts, _bytes, _durations
    ),
    50: st.builds(
        authentication.DescribeUserScramCredentialsResponse,
        _errors,
        _nullable_texts,
        _some(
            st.builds(
                authentication.UserScramCredentials,
                _texts,
                _errors,
                _nullable_texts,
                _some(st.tuples(_int8s, _int32s)),
            )
        ),
    ),
    51: st.builds(
        authentication.AlterUserScramCredentialsResponse,
        _some(st.tuples(_texts, _errors, _nullable_texts)),
    ),
}
"""By key: responses that a broker may give."""


def _sasl_handshake(r: Any, version: int) -> Any:
    return {"error_code": r.error, "mechanisms": list(r.mechanisms)}


def _sasl_authenticate(r: Any, version: int) -> Any:
    return {
        "error_code": r.error,
        "error_message": r.error_message,
        "auth_bytes": r.token,
        "session_lifetime": r.session_lifetime_ms,
    }


def _describe_scram(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "error_message": r.error_message or (None if r.error else ""),
        "results": [
            {
                "user": one.user,
                "error_code": one.error,
                "error_message": one.error_message,
                "credential_infos": [
                    {"mechanism": mechanism, "iterations": iterations}
                    for mechanism, iterations in one.credentials
                ],
            }
            for one in r.results
        ],
    }


def _alter_scram(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "results": [
            {"user": user, "error_code": error, "error_message": message}
            for user, error, message in r.results
        ],
    }


def _acl(acl: Any) -> Any:
    return {
        "principal": acl.entry.principal,
        "host": acl.entry.host,
        "operation": acl.entry.operation,
        "permission_type": acl.entry.permission,
    }


def _describe_acls(r: Any, version: int) -> Any:
    by_resource: dict[Any, list[Any]] = {}
    for acl in r.acls:
        by_resource.setdefault(acl.resource, []).append(_acl(acl))
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "error_message": r.error_message,
        "resources": [
            {
                "resource_type": resource.type,
                "resource_name": resource.name,
                "pattern_type": resource.pattern,
                "acls": found,
            }
            for resource, found in by_resource.items()
        ],
    }


def _delete_acls(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "filter_results": [
            {
                "error_code": one.error,
                "error_message": one.error_message,
                "matching_acls": [
                    {
                        **_acl(acl),
                        "error_code": 0,
                        "error_message": None,
                        "resource_type": acl.resource.type,
                        "resource_name": acl.resource.name,
                        "pattern_type": acl.resource.pattern,
                    }
                    for acl in one.acls
                ],
            }
            for one in r.results
        ],
    }


def _entity(entity: Any) -> Any:
    return [{"entity_type": kind, "entity_name": name} for kind, name in entity]


def _describe_quotas(r: Any, version: int) -> Any:
    if r.error:
        return {
            "throttle_time": 0,
            "error_code": r.error,
            "error_message": r.error_message,
            "entries": None,
        }
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "error_message": r.error_message or "",
        "entries": [
            {
                "entity": _entity(entity),
                "values": [{"key": name, "value": value} for name, value in values],
            }
            for entity, values in r.entries
        ],
    }


def _alter_quotas(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "entries": [
            {"error_code": error, "error_message": text, "entity": _entity(entity)}
            for entity, error, text in r.results
        ],
    }


def _principal(principal: str, prefix: str = "") -> Any:
    kind, _, name = principal.partition(":")
    return {f"{prefix}principal_type": kind, f"{prefix}principal_name": name}


def _token(token: Any) -> Any:
    times = (token.issued_at_ms, token.expires_at_ms, token.ends_at_ms)
    return {
        **_principal(token.owner),
        **_principal(token.requester, "token_requester_"),
        **dict(zip(("issue_timestamp", "expiry_timestamp", "max_timestamp"), times, strict=True)),
        "token_id": token.token_id,
        "hmac": token.hmac,
        "renewers": [_principal(renewer) for renewer in token.renewers],
    }


def _expiry(r: Any, version: int) -> Any:
    return {"error_code": r.error, "expiry_timestamp": r.expires_at_ms, "throttle_time": 0}


TREES: dict[int, Any] = {
    38: lambda r, version: {"error_code": r.error, **_token(r.token), "throttle_time": 0},
    39: _expiry,
    40: _expiry,
    41: lambda r, version: {
        "error_code": r.error,
        "tokens": [_token(token) for token in r.tokens],
        "throttle_time": 0,
    },
    48: _describe_quotas,
    49: _alter_quotas,
    29: _describe_acls,
    30: lambda r, version: {
        "throttle_time": 0,
        "results": [{"error_code": e, "error_message": text} for e, text in r.results],
    },
    31: _delete_acls,
    17: _sasl_handshake,
    36: _sasl_authenticate,
    50: _describe_scram,
    51: _alter_scram,
}
"""By key: what kio must read of such a response."""


def _number(kind: Any, value: int) -> Any:
    return kind(value) if value in list(kind) else kind(0)


def _filter(e: Any) -> Any:
    return acls.AclFilter(
        _number(acls.ResourceType, getattr(e, "resource_type_filter", 0)),
        getattr(e, "resource_name_filter", None),
        _number(acls.PatternType, getattr(e, "pattern_type_filter", 3)),
        e.principal_filter,
        e.host_filter,
        _number(acls.AclOperation, e.operation),
        _number(acls.Permission, e.permission_type),
    )


def _created(e: Any) -> Any:
    return acls.Acl(
        acls.Resource(
            _number(acls.ResourceType, e.resource_type),
            e.resource_name,
            _number(acls.PatternType, getattr(e, "resource_pattern_type", 3)),
        ),
        acls.AclEntry(
            e.principal,
            e.host,
            _number(acls.AclOperation, e.operation),
            _number(acls.Permission, e.permission_type),
        ),
    )


def _alteration(e: Any) -> Any:
    return quotas.QuotaAlteration(
        tuple((one.entity_type, one.entity_name) for one in e.entity),
        tuple((op.key, None if op.remove else float(op.value)) for op in e.ops),
    )


def _named(e: Any) -> str:
    return f"{e.principal_type}:{e.principal_name}"


def _ms(value: Any) -> int:
    return int(value / datetime.timedelta(milliseconds=1))


def _created_token(e: Any) -> Any:
    name = getattr(e, "owner_principal_name", None)
    owner = f"{e.owner_principal_type or ''}:{name}" if name else None
    return delegation_tokens.CreateDelegationTokenRequest(
        tuple(map(_named, e.renewers)), _ms(e.max_lifetime), owner
    )


EXPECTED: dict[int, Any] = {
    38: _created_token,
    39: lambda e: delegation_tokens.RenewDelegationTokenRequest(bytes(e.hmac), _ms(e.renew_period)),
    40: lambda e: delegation_tokens.ExpireDelegationTokenRequest(
        bytes(e.hmac), _ms(e.expiry_time_period)
    ),
    41: lambda e: delegation_tokens.DescribeDelegationTokenRequest(
        None if e.owners is None else tuple(map(_named, e.owners))
    ),
    48: lambda e: quotas.DescribeClientQuotasRequest(
        tuple(
            quotas.QuotaFilterComponent(c.entity_type, c.match_type, c.match) for c in e.components
        ),
        e.strict,
    ),
    49: lambda e: quotas.AlterClientQuotasRequest(
        tuple({one.entity: one for one in map(_alteration, e.entries)}.values()), e.validate_only
    ),
    29: lambda e: acls.DescribeAclsRequest(_filter(e)),
    30: lambda e: acls.CreateAclsRequest(tuple(map(_created, e.creations))),
    31: lambda e: acls.DeleteAclsRequest(tuple(map(_filter, e.filters))),
    17: lambda e: authentication.SaslHandshakeRequest(e.mechanism),
    36: lambda e: authentication.SaslAuthenticateRequest(bytes(e.auth_bytes)),
    50: lambda e: authentication.DescribeUserScramCredentialsRequest(
        None if e.users is None else tuple(user.name for user in e.users)
    ),
    51: lambda e: authentication.AlterUserScramCredentialsRequest(
        tuple((d.name, d.mechanism) for d in e.deletions),
        tuple(
            authentication.ScramUpsertion(
                u.name, u.mechanism, u.iterations, bytes(u.salt), bytes(u.salted_password)
            )
            for u in e.upsertions
        ),
    ),
}
"""By key: the request that an entity of kio's stands for."""
