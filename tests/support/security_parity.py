"""What kio and the codec are compared by, for the APIs of security: see ``response_trees``."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.security import authentication
from hypothesis import strategies as st

_texts = st.text(max_size=8)
_nullable_texts = st.none() | _texts
_errors = st.sampled_from([ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND, ErrorCode(-1)])
_int8s = st.integers(-(2**7), 2**7 - 1)
_int32s = st.integers(-(2**31), 2**31 - 1)
_durations = st.integers(0, 2**40)
_bytes = st.binary(max_size=12)


def _some(items: Any) -> Any:
    return st.lists(items, max_size=3).map(tuple)


RESPONSES: dict[int, Any] = {
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
        "error_message": r.error_message,
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


TREES: dict[int, Any] = {
    17: _sasl_handshake,
    36: _sasl_authenticate,
    50: _describe_scram,
    51: _alter_scram,
}
"""By key: what kio must read of such a response."""

EXPECTED: dict[int, Any] = {
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
