"""SASL SCRAM: the client proves that it knows the password (RFC 5802, KIP-84), or the HMAC of a
delegation token (KIP-48). Kafka: ``ScramSaslServer``, ``ScramMessages``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets

from ....protocol.security.scram import HASHES, ITERATIONS_MIN, ScramCredential, mac
from .sasl import Credentials, SaslAuthenticationError, SaslError

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<user>{_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(
    rf"(?P<unproved>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)


class ScramServer:
    """The broker's side of SCRAM."""

    __slots__ = (
        "_checks_nonce",
        "_credential",
        "_credentials",
        "_first",
        "_mechanism",
        "_nonce",
        "_server_first",
        "expires_at_ms",
        "is_complete",
        "is_token_authenticated",
        "user",
    )

    def __init__(
        self, mechanism: str, credentials: Credentials, *, checks_nonce: bool = True
    ) -> None:
        """Without ``checks_nonce`` a client may end with another nonce than it was given."""
        self._checks_nonce = checks_nonce
        self._mechanism = mechanism
        self._credentials = credentials
        self._first = ""
        self._server_first = ""
        self._nonce = ""
        self._credential: ScramCredential | None = None
        self.is_complete: bool = False
        self.user: str = ""
        self.is_token_authenticated: bool = False
        self.expires_at_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        text = token.decode("utf-8", "replace")
        if self._credential is None:
            return self._answer_first(text).encode()
        return self._answer_final(text, self._credential).encode()

    def _answer_first(self, text: str) -> str:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise SaslError(f"Invalid SCRAM client first message format: {text}")
        name = match["user"].replace("=2C", ",").replace("=3D", "=")
        extensions = dict(
            part.partition("=")[::2] for part in match["extensions"].split(",") if part
        )
        credential = self._find(name, extensions.get("tokenauth", "").lower() == "true")
        if match["authzid"] not in (None, name):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        if credential.iterations < ITERATIONS_MIN:
            raise SaslError(
                f"Iterations {credential.iterations} is less than the minimum {ITERATIONS_MIN} "
                f"for {self._mechanism}"
            )
        self._credential = credential
        self._first = match["bare"]
        self._nonce = match["nonce"] + secrets.token_hex(16)
        salt = base64.b64encode(credential.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        return self._server_first

    def _find(self, name: str, by_token: bool) -> ScramCredential:
        self.is_token_authenticated = by_token
        if by_token:
            token = self._credentials.delegation_token(self._mechanism, name)
            if token is None:
                raise SaslError(f"Token Authentication failed: Invalid tokenId : {name}")
            self.user, self.expires_at_ms = token.owner, token.expires_at_ms
            return token.credential
        self.user = name
        credential = self._credentials.scram(self._mechanism, name)
        if credential is None:
            raise SaslError("Authentication failed: Invalid user credentials")
        return credential

    def _answer_final(self, text: str, credential: ScramCredential) -> str:
        match = _FINAL.fullmatch(text)
        if match is None:
            raise SaslError(f"Invalid SCRAM client final message format: {text}")
        # Kafka asks how it ends; RFC 5802 wants the very same.
        if self._checks_nonce and not match["nonce"].endswith(self._nonce):
            raise SaslError("Invalid client nonce in the final client message.")
        signed = f"{self._first},{self._server_first},{match['unproved']}".encode()
        proof = base64.b64decode(match["proof"])
        signature = mac(self._mechanism, credential.stored_key, signed)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        stored_key = hashlib.new(HASHES[self._mechanism], client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise SaslError("Invalid client credentials")
        self.is_complete = True
        verifier = base64.b64encode(mac(self._mechanism, credential.server_key, signed))
        return f"v={verifier.decode()}"
