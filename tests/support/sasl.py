"""The client's side of SASL, by hand, and a listener that knows a few users."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any

from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.data import MetadataResponse
from fakekafka.protocol.security.configuration import MECHANISMS, SASL_PLAINTEXT
from fakekafka.protocol.security.scram import (
    HASHES,
    ScramCredential,
    credential_of,
    mac,
    salted_password,
)
from fakekafka.protocol.versions import behaviour
from fakekafka.tests.support.kafka_listener import MakeWire, RawClient, Wire
from fakekafka.wire.kafka.security.listener_security import ListenerSecurity, SaslSettings
from fakekafka.wire.kafka.security.sasl import TokenCredential
from fakekafka.wire.kafka.security.tokens import check_unsecured

NOW_MS = 1_700_000_000_000
SALT = b"0123456789abcdef"


class KnownUsers:
    """A user store in which ``weak`` has too few iterations and ``t1`` is alice's token."""

    def password(self, user: str) -> str | None:
        return {"alice": "secret", "bob": "hidden"}.get(user)

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        password = self.password("alice" if user == "weak" else user)
        if password is None:
            return None
        return credential_of(mechanism, password, SALT, 100 if user == "weak" else 4096)

    def delegation_token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        if token_id != "t1":
            return None
        return TokenCredential("alice", credential_of(mechanism, "hmac", SALT), NOW_MS + 60_000)


class Clock:
    """Milliseconds that a test sets."""

    def __init__(self) -> None:
        self.ms = NOW_MS

    def __call__(self) -> int:
        return self.ms


def sasl_listener(
    mechanisms: Sequence[str] = MECHANISMS,
    *,
    kafka_version: str = "3.9",
    clock: Clock | None = None,
    wall_clock: Clock | None = None,
    required_scope: Sequence[str] = (),
    **config: Any,
) -> ListenerSecurity:
    """Return a SASL_PLAINTEXT listener with the users above and no delay for refused clients."""
    clock = clock or Clock()
    values = {"connection.failed.authentication.delay.ms": 0, **config}
    settings = SaslSettings(
        tuple(mechanisms),
        KnownUsers(),
        lambda token, now_ms: check_unsecured(token, now_ms, required_scope),
        clock,
        wall_clock or clock,
        behaviour(kafka_version),
        BrokerConfig(values, kafka_version),
    )
    return ListenerSecurity(SASL_PLAINTEXT, sasl=settings)


class ScramClient:
    """Creates the two messages of a SCRAM client."""

    def __init__(
        self, mechanism: str, user: str, password: str, *, authzid: str = "", extensions: str = ""
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._bare = f"n={user},r=clientnonce{extensions}"
        self._header = f"n,{f'a={authzid}' if authzid else ''},"

    def first(self) -> bytes:
        return (self._header + self._bare).encode()

    def final(self, challenge: bytes, nonce: str | None = None) -> bytes:
        """Return the message that proves the password, with the broker's or another nonce."""
        fields = dict(part.split("=", 1) for part in challenge.decode().split(","))
        salted = salted_password(
            self._mechanism,
            self._password.encode(),
            base64.b64decode(fields["s"]),
            int(fields["i"]),
        )
        header = base64.b64encode(self._header.encode()).decode()
        unproved = f"c={header},r={fields['r'] if nonce is None else nonce}"
        signed = f"{self._bare},{challenge.decode()},{unproved}".encode()
        client_key = mac(self._mechanism, salted, b"Client Key")
        stored = hashlib.new(HASHES[self._mechanism], client_key).digest()
        signature = mac(self._mechanism, stored, signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{unproved},p={base64.b64encode(proof).decode()}".encode()


HANDSHAKE, API_VERSIONS, AUTHENTICATE, METADATA = 17, 18, 36, 3
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
NOW_S = NOW_MS // 1000


def plain(user: str, password: str, authzid: str = "") -> bytes:
    return f"{authzid}\0{user}\0{password}".encode()


def bearer(token: str, authzid: str = "") -> bytes:
    header = f"n,{f'a={authzid}' if authzid else ''},"
    return f"{header}\1auth=Bearer {token}\1\1".encode()


async def shake_hands(client: RawClient, mechanism: str, version: int = 1) -> Any:
    client.request(HANDSHAKE, version, 1, mechanism=mechanism)
    _, answer = await client.response(HANDSHAKE, version)
    return answer


async def send_token(client: RawClient, token: bytes, version: int = 2) -> Any:
    client.request(AUTHENTICATE, version, 2, auth_bytes=token)
    _, answer = await client.response(AUTHENTICATE, version)
    return answer


async def log_in(client: RawClient, user: str = "alice", password: str = "secret") -> Any:
    await shake_hands(client, "PLAIN")
    return await send_token(client, plain(user, password))


async def metadata(client: RawClient) -> None:
    client.request(
        METADATA,
        12,
        9,
        topics=(),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    await client.response(METADATA, 12)


def serving(make_wire: MakeWire, **options: Any) -> Wire:
    wire = make_wire(security=sasl_listener(**options))
    wire.backend.answer = lambda _: MetadataResponse((), "c", -1, ())
    return wire


def principals(wire: Wire) -> list[str]:
    return [context.principal for context in wire.backend.contexts]
