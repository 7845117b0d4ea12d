"""SCRAM credentials: their derivation from passwords, and Kafka's text format (RFC 5802, KIP-84).

Kafka: ``ScramFormatter``, ``ScramCredentialUtils``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from ..values import message

ITERATIONS_MIN = 4096
"""Minimum number of iterations, for both mechanisms."""
ITERATIONS_MAX = 16384
"""Maximum number of iterations when credentials are altered (KIP-554)."""
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISM_NUMBERS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""Numbers of mechanisms in requests -> their names."""


@message
class ScramCredential:
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def salted_password(mechanism: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations)


def mac(mechanism: str, key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, HASHES[mechanism])


def credential(mechanism: str, salt: bytes, salted: bytes, iterations: int) -> ScramCredential:
    """Derive the credential from a salted password."""
    client_key = mac(mechanism, salted, b"Client Key")
    stored_key = hashlib.new(HASHES[mechanism], client_key).digest()
    return ScramCredential(salt, stored_key, mac(mechanism, salted, b"Server Key"), iterations)


def credential_of(
    mechanism: str, password: str, salt: bytes, iterations: int = ITERATIONS_MIN
) -> ScramCredential:
    salted = salted_password(mechanism, password.encode(), salt, iterations)
    return credential(mechanism, salt, salted, iterations)


def credential_text(value: ScramCredential) -> str:
    """Return a credential in the format of a user's configuration."""
    salt, stored, server = (
        base64.b64encode(part).decode() for part in (value.salt, value.stored_key, value.server_key)
    )
    return f"salt={salt},stored_key={stored},server_key={server},iterations={value.iterations}"


def parse_credential(text: str) -> ScramCredential:
    """Parse a credential from a user's configuration; raises ``ValueError`` if malformed."""
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    if sorted(parts) != ["iterations", "salt", "server_key", "stored_key"]:
        raise ValueError("Credentials not valid")
    return ScramCredential(
        base64.b64decode(parts["salt"]),
        base64.b64decode(parts["stored_key"]),
        base64.b64decode(parts["server_key"]),
        int(parts["iterations"]),
    )
