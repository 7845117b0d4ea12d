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
"""Select the mechanism with which a client authenticates.

After version 1, tokens are sent in SaslAuthenticate requests (KIP-152), after version 0 without a
request around them.
"""

SASL_AUTHENTICATE = Api(
    36,
    reads(SaslAuthenticateRequest, "authBytes"),
    writes("errorCode=error errorMessage authBytes=token sessionLifetimeMs"),
)
"""Exchange one SASL token. Version 1 adds the lifetime of the session (KIP-368)."""


def _described(
    response: DescribeUserScramCredentialsResponse, _call: ApiCall
) -> DescribeUserScramCredentialsResponse:
    """Return the response; its message is empty without an error, null if the error has none."""
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
        convert=_described,
    ),
)
"""List the SCRAM credentials of users (KIP-554)."""

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
