"""A test's own key set, and tokens signed with it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa


def key_pair(kid: str) -> tuple[Any, dict[str, Any]]:
    """Return a private key and its public half as an entry of a JSON Web Key Set."""
    private = rsa.generate_private_key(65537, 2048)
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(private.public_key()))
    return private, {**public, "kid": kid, "alg": "RS256", "use": "sig"}


def signing_keys() -> tuple[dict[str, Any], Callable[[str], str]]:
    """Return a key set and a function that signs a token for a subject, valid for an hour."""
    private, public = key_pair("one")

    def sign(subject: str) -> str:
        claims = {"sub": subject, "exp": int(time.time()) + 3600}
        return jwt.encode(claims, private, "RS256", {"kid": "one"})

    return {"keys": [public]}, sign
