"""Tokens of OAUTHBEARER: makes them for tests, and checks them as Kafka does.

Kafka: for unsecured tokens ``OAuthBearerUnsecuredJws`` and
``OAuthBearerUnsecuredValidatorCallbackHandler``; for signed tokens
``ValidatorAccessTokenValidator`` (KIP-768), with a key set that the user gives.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Any

from ....protocol.errors import UsageError
from ....protocol.values import message


class TokenRefused(Exception):
    """The token is not valid; ``status`` and ``scope`` are sent to the client."""

    def __init__(self, reason: str, status: str = "invalid_token", scope: str | None = None):
        super().__init__(reason)
        self.status = status
        self.scope = scope


@message
class BearerToken:
    """The claims that a broker takes from a valid token."""

    user: str
    expires_at_ms: int


Validator = Callable[[str, int], BearerToken]
"""Checks a token at a time in milliseconds; raises ``TokenRefused`` if it is invalid."""


def unsecured_token(
    subject: str,
    issued_at_s: float,
    lifetime_s: float = 3600,
    scope: Sequence[str] = (),
    **claims: Any,
) -> str:
    """Return an unsecured JSON Web Token, as OAUTHBEARER clients of test clusters send it."""
    payload: dict[str, Any] = {"sub": subject, "iat": issued_at_s, "exp": issued_at_s + lifetime_s}
    if scope:
        payload["scope"] = list(scope)
    payload.update(claims)
    return f"{_encoded({'alg': 'none'})}.{_encoded(payload)}."


def _encoded(value: dict[str, Any]) -> str:
    text = json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _decoded(part: str) -> dict[str, Any]:
    try:
        data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise TokenRefused("malformed Base64 URL encoded value") from None
    try:
        value = json.loads(data)
    except ValueError:
        raise TokenRefused("malformed JSON") from None
    if not isinstance(value, dict):
        raise TokenRefused("malformed JSON")
    return value


def _number(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TokenRefused(f"The '{name}' claim was not of type Number")
    return value


def _scopes(claims: dict[str, Any]) -> list[str]:
    value = claims.get("scope")
    return [value] if isinstance(value, str) else list(value or ())


def check_unsecured(token: str, now_ms: int, required_scope: Sequence[str] = ()) -> BearerToken:
    """Check a token without a signature; raise ``TokenRefused`` if it is invalid."""
    parts = token.split(".")
    if ".." in token or len(parts) != 3:
        raise TokenRefused("Unsecured JWS compact serializations must have 3 dot-separated values")
    header, claims = _decoded(parts[0]), _decoded(parts[1])
    if header.get("alg") != "none":
        raise TokenRefused("Unsecured JWS must have 'none' for an algorithm")
    if parts[2]:
        raise TokenRefused("Unsecured JWS must not contain a digital signature")
    expires_at, issued_at = _number(claims, "exp"), _number(claims, "iat")
    subject = claims.get("sub")
    if expires_at is None:
        raise TokenRefused("No expiration time in JWT")
    if not isinstance(subject, str) or not subject.strip():
        raise TokenRefused("No principal name in JWT claim: sub")
    if issued_at is not None and 1000 * issued_at > now_ms:
        raise TokenRefused(f"The Issued At value ({issued_at} seconds) was in the future")
    if now_ms >= 1000 * expires_at:
        raise TokenRefused(f"The token expired at {expires_at} seconds")
    if issued_at is not None and expires_at <= issued_at:
        raise TokenRefused("The Expiration Time was not after the Issued At time")
    missing = [scope for scope in required_scope if scope not in _scopes(claims)]
    if missing:
        scope_text = f"[{', '.join(required_scope)}]"
        raise TokenRefused(f"missing scope {missing[0]}", "insufficient_scope", scope_text)
    return BearerToken(subject, round(1000 * expires_at))


class SignedTokens:
    """Checks tokens against a JSON Web Key Set."""

    def __init__(self, keys: Any, issuer: str | None, audience: Sequence[str]) -> None:
        """``keys`` is a key set as a dictionary or its JSON; raises ``UsageError`` if it is not."""
        try:
            import jwt
        except ImportError:
            raise UsageError(
                "token_keys needs the package PyJWT: pip install 'fakekafka[security]'"
            ) from None
        try:
            key_set = json.loads(keys) if isinstance(keys, (str, bytes)) else keys
            self._keys = jwt.PyJWKSet.from_dict(key_set)
        except (ValueError, TypeError, AttributeError, jwt.PyJWTError) as error:
            raise UsageError(f"token_keys is not a JSON Web Key Set: {error}") from None
        self._issuer = issuer
        self._audience = list(audience) or None

    def check(self, token: str, now_ms: int) -> BearerToken:
        """Check signature and claims; raise ``TokenRefused`` if the token is invalid."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            keys = [k for k in self._keys.keys if header.get("kid") in (None, k.key_id)]
            if not keys:
                raise TokenRefused(f"no key {header.get('kid')!r} in the key set")
            claims = jwt.decode(
                token,
                keys[0],
                algorithms=[keys[0].algorithm_name],
                audience=self._audience,
                issuer=self._issuer,
                options={"require": ["exp"], "verify_aud": self._audience is not None},
            )
        except jwt.PyJWTError as error:
            raise TokenRefused(str(error)) from None
        subject = claims.get("sub")
        if not isinstance(subject, str) or not subject.strip():
            raise TokenRefused("the claim sub is missing")
        if now_ms >= 1000 * claims["exp"]:
            raise TokenRefused("the token expired")
        return BearerToken(subject, round(1000 * claims["exp"]))
