"""Successful SASL authentication on a connection, frame by frame."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.kafka_listener import MakeWire
from fakekafka.tests.support.sasl import (
    API_VERSIONS,
    NOW_S,
    SCRAM,
    ScramClient,
    bearer,
    metadata,
    plain,
    principals,
    send_token,
    serving,
    shake_hands,
)
from fakekafka.wire.kafka.security.tokens import unsecured_token


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_user_with_the_right_password_is_authenticated(
    make_wire: MakeWire, version: int
) -> None:
    """Requests after the authentication carry the user's principal."""
    wire = serving(make_wire)
    client = await wire.connect()
    client.request(API_VERSIONS, 2, 0)
    await client.response(API_VERSIONS, 2)
    answer = await shake_hands(client, "PLAIN")
    assert answer.error_code == ErrorCode.NONE
    assert answer.mechanisms == ("PLAIN", *SCRAM, "OAUTHBEARER")
    answer = await send_token(client, plain("alice", "secret"), version)
    assert (answer.error_code, answer.auth_bytes) == (ErrorCode.NONE, b"")
    await metadata(client)
    assert principals(wire) == ["User:alice"]


@pytest.mark.parametrize("mechanism", SCRAM)
async def test_scram_proves_both_sides(make_wire: MakeWire, mechanism: str) -> None:
    """The broker's last token proves that the broker knows the credential, too."""
    wire = serving(make_wire)
    scram = ScramClient(mechanism, "alice", "secret")
    client = await wire.connect()
    await shake_hands(client, mechanism)
    challenge = (await send_token(client, scram.first())).auth_bytes
    answer = await send_token(client, scram.final(challenge))
    assert answer.auth_bytes.startswith(b"v=")
    await metadata(client)
    assert principals(wire) == ["User:alice"]


async def test_tokens_come_bare_after_a_handshake_of_version_0(make_wire: MakeWire) -> None:
    """Only the size precedes a token, in both directions (KIP-43)."""
    wire = serving(make_wire, kafka_version="0.10", mechanisms=("PLAIN",))
    client = await wire.connect()
    await shake_hands(client, "PLAIN", 0)
    token = plain("alice", "secret")
    client.send(len(token).to_bytes(4, "big") + token)
    assert await client.frame() == b""
    await metadata(client)
    assert principals(wire) == ["User:alice"]


async def test_a_bearer_token_names_the_user_and_the_end_of_its_session(
    make_wire: MakeWire,
) -> None:
    """A session ends when its bearer token expires (KIP-368)."""
    wire = serving(make_wire)
    client = await wire.connect()
    await shake_hands(client, "OAUTHBEARER")
    answer = await send_token(client, bearer(unsecured_token("carol", NOW_S, 300)))
    assert answer.session_lifetime.total_seconds() == 300
    await metadata(client)
    assert principals(wire) == ["User:carol"]


async def test_a_delegation_token_stands_for_its_owner(make_wire: MakeWire) -> None:
    """A client authenticates by SCRAM with the token's id as the user's name (KIP-48)."""
    wire = serving(make_wire)
    scram = ScramClient("SCRAM-SHA-256", "t1", "hmac", extensions=",tokenauth=true")
    client = await wire.connect()
    await shake_hands(client, "SCRAM-SHA-256")
    challenge = (await send_token(client, scram.first())).auth_bytes
    await send_token(client, scram.final(challenge))
    await metadata(client)
    (context,) = wire.backend.contexts
    assert (context.principal, context.is_token_authenticated) == ("User:alice", True)


class SlowLink:
    """A link with a latency of ten milliseconds each way."""

    def to_broker_s(self, size: int) -> float:
        assert size > 0
        return 0.01

    to_client_s = to_broker_s


async def test_a_handshake_is_as_late_as_the_link_is_slow(make_wire: MakeWire) -> None:
    """Each step of a handshake is late, and so is a refusal, after which the connection ends."""
    wire = serving(make_wire)
    wire.service.link = SlowLink()
    client = await wire.connect()
    began_s = wire.loop.time()
    await shake_hands(client, "PLAIN")
    assert wire.loop.time() - began_s >= 0.019  # seconds are floats: 20 ms may be a little less
    answer = await send_token(client, plain("alice", "wrong"))
    assert wire.loop.time() - began_s >= 0.038
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert await client.ended()
