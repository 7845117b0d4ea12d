"""The broker's side of the SASL mechanisms PLAIN, SCRAM and OAUTHBEARER."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from typing import Protocol

from ....protocol.security.scram import HASHES, ITERATIONS_MIN, ScramCredential, mac
from ....protocol.values import message
from .tokens import TokenRefused, Validator

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_SCRAM_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<user>{_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_SCRAM_FINAL = re.compile(
    rf"(?P<unproved>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)
_PAIRS = r"(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*"
_BEARER_FIRST = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


class SaslError(Exception):
    """The exchange failed, for a reason hidden from the client (Kafka: ``SaslException``)."""


class SaslAuthenticationError(SaslError):
    """The exchange failed, and the client is sent the reason."""


@message
class TokenCredential:
    """The credential that belongs to a delegation token."""

    owner: str
    """Name of the principal that owns the token."""
    credential: ScramCredential
    expires_at_ms: int


class Credentials(Protocol):
    """A broker's knowledge of users."""

    def password(self, user: str) -> str | None:
        """Return a user's password, for PLAIN; None for an unknown user."""
        ...

    def scram(self, mechanism: str, user: str) -> ScramCredential | None: ...

    def delegation_token(self, mechanism: str, token_id: str) -> TokenCredential | None: ...


class SaslServer(Protocol):
    """The broker's side of one exchange."""

    is_complete: bool
    user: str
    """Name of the client's user, once the exchange is complete."""
    expires_at_ms: int | None
    """Time in milliseconds at which the client's credential expires; None for never."""
    is_token_authenticated: bool
    """True if the client authenticates with a delegation token."""

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to a token of the client; raise ``SaslError`` if it is refused."""
        ...


class PlainServer:
    """The broker's side of PLAIN: user and password in one token (RFC 4616).

    Kafka: ``PlainSaslServer``.
    """

    is_token_authenticated = False

    def __init__(self, credentials: Credentials, *, explains_malformed: bool) -> None:
        """With ``explains_malformed``, a client is sent the reason why its token is malformed."""
        self._credentials = credentials
        self._malformed_error = SaslAuthenticationError if explains_malformed else SaslError
        self.is_complete: bool = False
        self.user: str = ""
        self.expires_at_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        parts = token.decode("utf-8", "replace").split("\0", 3)
        if len(parts) != 3:
            raise self._malformed_error(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            )
        authorization_id, user, password = parts
        if not user:
            raise self._malformed_error("Authentication failed: username not specified")
        if not password:
            raise self._malformed_error("Authentication failed: password not specified")
        if self._credentials.password(user) != password:
            raise SaslAuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.user = user
        self.is_complete = True
        return b""


class ScramServer:
    """The broker's side of SCRAM: the client proves that it knows the password (RFC 5802, KIP-84),
    or the HMAC of a delegation token (KIP-48).

    Kafka: ``ScramSaslServer``, ``ScramMessages``.
    """

    def __init__(
        self, mechanism: str, credentials: Credentials, *, checks_nonce: bool = True
    ) -> None:
        """Without ``checks_nonce``, a client's final message may have any nonce."""
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
        match = _SCRAM_FIRST.fullmatch(text)
        if match is None:
            raise SaslError(f"Invalid SCRAM client first message format: {text}")
        name = match["user"].replace("=2C", ",").replace("=3D", "=")
        extensions = dict(
            part.partition("=")[::2] for part in match["extensions"].split(",") if part
        )
        credential = self._find_credential(name, extensions.get("tokenauth", "").lower() == "true")
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

    def _find_credential(self, name: str, by_token: bool) -> ScramCredential:
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
        match = _SCRAM_FINAL.fullmatch(text)
        if match is None:
            raise SaslError(f"Invalid SCRAM client final message format: {text}")
        # Kafka only checks the end of the nonce; RFC 5802 requires the whole nonce to be equal.
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


class OAuthBearerServer:
    """The broker's side of OAUTHBEARER: the client brings a JSON Web Token (RFC 7628, KIP-255).

    Kafka: ``OAuthBearerSaslServer``, ``OAuthBearerClientInitialResponse``.
    """

    is_token_authenticated = False

    def __init__(self, validate: Validator, wall_ms: Callable[[], int]) -> None:
        self._validate = validate
        self._wall_ms = wall_ms
        self._refusal = ""
        """Error sent to the client; the exchange fails once the client acknowledges it with a
        single byte."""
        self.is_complete: bool = False
        self.user: str = ""
        self.expires_at_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        if token == b"\1" and self._refusal:
            raise SaslAuthenticationError(self._refusal)
        authorization_id, value = _bearer_token(token.decode("utf-8", "replace"))
        try:
            bearer_token = self._validate(value, self._wall_ms())
        except TokenRefused as refused:
            scope = f', "scope":"{refused.scope}"' if refused.scope is not None else ""
            self._refusal = f'{{"status":"{refused.status}"{scope}}}'
            return self._refusal.encode()
        if authorization_id not in ("", bearer_token.user):
            raise SaslAuthenticationError(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) "
                f"that is different from the token's principal name ({bearer_token.user})"
            )
        self.user, self.expires_at_ms = bearer_token.user, bearer_token.expires_at_ms
        self.is_complete = True
        return b""


def _bearer_token(text: str) -> tuple[str, str]:
    """Return authorization id and token of a client's first message; raise ``SaslError`` if it is
    malformed."""
    match = _BEARER_FIRST.fullmatch(text)
    if match is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.partition("=")[::2] for pair in match["pairs"].split("\1") if pair)
    auth = pairs.get("auth")
    if auth is None:
        raise SaslError("Invalid OAUTHBEARER client first message: 'auth' not specified")
    authorization = _AUTH.fullmatch(auth)
    if authorization is None:
        raise SaslError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if authorization["scheme"].lower() != "bearer":
        scheme = authorization["scheme"]
        raise SaslError(f"Invalid scheme in OAUTHBEARER client first message: {scheme}")
    return match["authzid"] or "", authorization["token"]
