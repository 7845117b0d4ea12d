"""OAUTHBEARER tokens that are checked against a configured key set (JWKS, KIP-768)."""

from __future__ import annotations

import json
from typing import Any

import jwt
import pytest
from fakekafka.protocol.errors import UsageError
from fakekafka.tests.support.signing import key_pair
from fakekafka.wire.kafka.security.tokens import SignedTokens, TokenRefused

NOW_S = 4_000_000_000
CLAIMS = {"sub": "alice", "exp": NOW_S + 60, "iss": "issuer", "aud": "kafka"}


ONE, ONE_PUBLIC = key_pair("one")
TWO, TWO_PUBLIC = key_pair("two")
KEYS = {"keys": [ONE_PUBLIC, TWO_PUBLIC]}


def signed(key: Any = ONE, kid: str | None = "one", **changes: Any) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    headers = None if kid is None else {"kid": kid}
    return jwt.encode(claims, key, "RS256", headers)


def tokens() -> SignedTokens:
    return SignedTokens(KEYS, "issuer", ["kafka"])


@pytest.mark.parametrize(("key", "kid"), [(ONE, "one"), (TWO, "two"), (ONE, None)])
def test_a_token_signed_with_a_key_of_the_set_names_the_principal(
    key: Any, kid: str | None
) -> None:
    """The key that signed a token is found by its id."""
    found = tokens().check(signed(key, kid), 1000 * NOW_S)
    assert (found.user, found.expires_at_ms) == ("alice", 1000 * (NOW_S + 60))


def test_a_key_set_may_be_its_json() -> None:
    found = SignedTokens(json.dumps(KEYS), None, ()).check(signed(), 1000 * NOW_S)
    assert found.user == "alice"


REFUSED = [
    ("another key", signed(TWO, "one")),
    ("a key that is not there", signed(ONE, "three")),
    ("another issuer", signed(iss="somebody")),
    ("another audience", signed(aud="other")),
    ("no expiry", signed(exp=None)),
    ("no subject", signed(sub=None)),
    ("an empty subject", signed(sub=" ")),
    ("no signature", jwt.encode(CLAIMS, "", "none")),
    ("another algorithm", jwt.encode(CLAIMS, "x" * 32, "HS256", {"kid": "one"})),
    ("no token", "x.y.z"),
]


@pytest.mark.parametrize("token", [token for _, token in REFUSED], ids=[n for n, _ in REFUSED])
def test_any_other_token_is_refused(token: str) -> None:
    with pytest.raises(TokenRefused):
        tokens().check(token, 1000 * NOW_S)


def test_a_token_expires_by_the_clock_of_the_cluster() -> None:
    with pytest.raises(TokenRefused, match="expired"):
        tokens().check(signed(), 1000 * (NOW_S + 60))


@pytest.mark.parametrize("keys", ["{", {"keys": [{}]}, [], {}])
def test_an_invalid_key_set_is_refused(keys: Any) -> None:
    with pytest.raises(UsageError, match="token_keys is not a JSON Web Key Set"):
        SignedTokens(keys, None, ())
