"""Sessions that expire, and clients that reauthenticate (KIP-368)."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.kafka_listener import MakeWire, Wire
from fakekafka.tests.support.sasl import (
    AUTHENTICATE,
    HANDSHAKE,
    METADATA,
    NOW_MS,
    Clock,
    ScramClient,
    bearer,
    log_in,
    metadata,
    principals,
    send_token,
    serving,
    shake_hands,
)
from fakekafka.wire.kafka.security.tokens import unsecured_token


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def expiring(make_wire: MakeWire, clock: Clock) -> Wire:
    """Return a listener whose sessions last for 5 seconds."""
    return serving(make_wire, clock=clock, **{"connections.max.reauth.ms": 5000})


async def test_a_session_that_has_expired_ends_with_the_next_request(
    expiring: Wire, clock: Clock
) -> None:
    """A request after the end of its session is not answered (KIP-368)."""
    client = await expiring.connect()
    answer = await log_in(client)
    assert answer.session_lifetime.total_seconds() == 5
    clock.ms += 5000
    await metadata(client)
    clock.ms += 1
    client.request(METADATA, 0, 1, topics=())
    assert await client.ended()
    assert len(expiring.backend.requests) == 1


async def test_a_client_may_authenticate_again_before_its_session_ends(
    expiring: Wire, clock: Clock
) -> None:
    """After reauthentication the session lasts for its whole lifetime again."""
    client = await expiring.connect()
    await log_in(client)
    clock.ms += 4000
    answer = await log_in(client)
    assert answer.error_code == ErrorCode.NONE
    clock.ms += 4000
    await metadata(client)
    assert principals(expiring) == ["User:alice"]


@pytest.mark.parametrize(("after_ms", "reaches_broker"), [(999, True), (1000, False)])
async def test_a_client_authenticates_again_once_a_second_at_most(
    expiring: Wire, clock: Clock, after_ms: int, reaches_broker: bool
) -> None:
    """An earlier handshake is an ordinary request, which the broker refuses
    (``SaslServerAuthenticator``, KIP-368).
    """
    expiring.backend.answer = None
    client = await expiring.connect()
    await log_in(client)
    clock.ms += 2000
    assert (await log_in(client)).error_code == ErrorCode.NONE
    clock.ms += after_ms
    client.request(HANDSHAKE, 1, 1, mechanism="PLAIN")
    if reaches_broker:
        await expiring.until(lambda: expiring.backend.requests)
    else:
        _, answer = await client.response(HANDSHAKE, 1)
        assert answer.error_code == ErrorCode.NONE
    assert bool(expiring.backend.requests) is reaches_broker


@pytest.mark.parametrize(("token_s", "lifetime_s"), [(3, 3), (60, 5)])
async def test_a_session_lasts_as_long_as_the_shorter_of_token_and_setting(
    make_wire: MakeWire, clock: Clock, token_s: int, lifetime_s: int
) -> None:
    wire = serving(
        make_wire, clock=clock, mechanisms=("OAUTHBEARER",), **{"connections.max.reauth.ms": 5000}
    )
    client = await wire.connect()
    await shake_hands(client, "OAUTHBEARER")
    token = unsecured_token("carol", NOW_MS // 1000, token_s)
    answer = await send_token(client, bearer(token))
    assert answer.session_lifetime.total_seconds() == lifetime_s
    clock.ms += lifetime_s * 1000 + 1
    client.request(METADATA, 0, 1, topics=())
    assert await client.ended()


async def test_a_session_ends_when_its_delegation_token_expires(
    make_wire: MakeWire, clock: Clock
) -> None:
    """The session ends after a minute although no setting limits sessions."""
    wire = serving(make_wire, clock=clock)
    scram = ScramClient("SCRAM-SHA-256", "t1", "hmac", extensions=",tokenauth=true")
    client = await wire.connect()
    await shake_hands(client, "SCRAM-SHA-256")
    challenge = (await send_token(client, scram.first())).auth_bytes
    answer = await send_token(client, scram.final(challenge))
    assert answer.session_lifetime.total_seconds() == 60
    clock.ms += 60_000
    await metadata(client)
    clock.ms += 1
    client.request(METADATA, 0, 1, topics=())
    assert await client.ended()
    assert principals(wire) == ["User:alice"]


async def test_another_principal_cannot_take_over_a_session(expiring: Wire) -> None:
    """A client must reauthenticate as the same principal."""
    client = await expiring.connect()
    await log_in(client)
    answer = await log_in(client, "bob", "hidden")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert await client.ended()


async def test_another_mechanism_cannot_take_over_a_session(expiring: Wire) -> None:
    """The handshake succeeds and the first token fails, as in Kafka."""
    client = await expiring.connect()
    await log_in(client)
    answer = await shake_hands(client, "SCRAM-SHA-256")
    assert answer.error_code == ErrorCode.NONE
    client.request(AUTHENTICATE, 1, 2, auth_bytes=b"n,,n=alice,r=abc")
    assert await client.ended()


async def test_a_wrong_password_at_the_second_time_ends_the_session(expiring: Wire) -> None:
    """The refusal has the mechanism's reason, as in the first authentication."""
    client = await expiring.connect()
    await log_in(client)
    answer = await log_in(client, password="x")
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert await client.ended()


async def test_without_expiring_sessions_a_second_handshake_is_a_request(
    make_wire: MakeWire,
) -> None:
    """The broker's handlers answer a second handshake, with ILLEGAL_SASL_STATE."""
    wire = serving(make_wire)
    client = await wire.connect()
    await log_in(client)
    client.request(HANDSHAKE, 1, 3, mechanism="PLAIN")
    await wire.until(lambda: wire.backend.requests)
    assert [type(request).__name__ for request in wire.backend.requests] == ["SaslHandshakeRequest"]


async def test_a_token_is_judged_by_the_wall_clock_and_its_session_by_the_clusters(
    make_wire: MakeWire, clock: Clock
) -> None:
    """A process that was stopped for a minute accepts a token that was issued meanwhile. The
    session lasts as long as the token, without a deduction for the stop.
    """
    wall_clock = Clock()
    wire = serving(make_wire, clock=clock, wall_clock=wall_clock)
    client = await wire.connect()
    await shake_hands(client, "OAUTHBEARER")
    wall_clock.ms += 60_000
    token = unsecured_token("carol", (NOW_MS + 60_000) // 1000, 5)
    answer = await send_token(client, bearer(token))
    assert (answer.error_code, answer.session_lifetime.total_seconds()) == (ErrorCode.NONE, 5)
    wall_clock.ms += 60_000
    await metadata(client)
    clock.ms += 5001
    client.request(METADATA, 0, 1, topics=())
    assert await client.ended()
    assert principals(wire) == ["User:carol"]
