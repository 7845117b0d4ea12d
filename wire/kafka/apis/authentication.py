"""SASL exchanges, and SCRAM credentials of users."""

from __future__ import annotations

from ....protocol.errors import ErrorCode
from ....protocol.security.authentication import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    ScramUpsertion,
)
from ..api import Api, ApiCall, each, reads, writes

SASL_HANDSHAKE = Api(
    17, reads(SaslHandshakeRequest, "mechanism"), writes("errorCode=error mechanisms")
)
"""The mechanism that a client wants to authenticate with.

After 1 the tokens come in SaslAuthenticate requests (KIP-152), after 0 bare.
"""

SASL_AUTHENTICATE = Api(
    36,
    reads(SaslAuthenticateRequest, "authBytes"),
    writes("errorCode=error errorMessage authBytes=token sessionLifetimeMs"),
)
"""One token of a SASL exchange. 1: how long the session lasts (KIP-368)."""


def _described(
    response: DescribeUserScramCredentialsResponse, _call: ApiCall
) -> DescribeUserScramCredentialsResponse:
    """Without an error the message is empty, with one it is null where there is none."""
    text = response.error_message or ("" if response.error is ErrorCode.NONE else None)
    return DescribeUserScramCredentialsResponse(response.error, text, response.results)


DESCRIBE_USER_SCRAM_CREDENTIALS = Api(
    50,
    reads(
        DescribeUserScramCredentialsRequest,
        "users(name)",
        users=lambda users: None if users is None else tuple(name for (name,) in users),
    ),
    writes(
        "errorCode=error errorMessage results(user errorCode=error errorMessage "
        "credentialInfos=credentials[mechanism iterations])",
        of=_described,
    ),
)
"""Which SCRAM credentials users have (KIP-554)."""

ALTER_USER_SCRAM_CREDENTIALS = Api(
    51,
    reads(
        AlterUserScramCredentialsRequest,
        "deletions(name mechanism) upsertions(name mechanism iterations salt saltedPassword)",
        upsertions=each(ScramUpsertion),
    ),
    writes("results[user errorCode errorMessage]"),
)
"""Set and delete SCRAM credentials of users (KIP-554)."""
