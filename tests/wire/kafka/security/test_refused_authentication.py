"""Refused SASL authentication on a connection, frame by frame, and the messages of the errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.kafka_listener import MakeWire
from fakekafka.tests.support.sasl import (
    AUTHENTICATE,
    METADATA,
    NOW_S,
    SCRAM,
    ScramClient,
    bearer,
    log_in,
    plain,
    send_token,
    serving,
    shake_hands,
)
from fakekafka.wire.kafka.security.tokens import unsecured_token

INVALID = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
)
OTHER_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
REFUSED_TOKENS = {
    "wrong password": (
        "PLAIN",
        plain("alice", "x"),
        "Authentication failed: Invalid username or password",
    ),
    "unknown user": (
        "PLAIN",
        plain("eve", "secret"),
        "Authentication failed: Invalid username or password",
    ),
    "no user": ("PLAIN", plain("", "x"), "Authentication failed: username not specified"),
    "no password": ("PLAIN", plain("alice", ""), "Authentication failed: password not specified"),
    "another authorization id": ("PLAIN", plain("alice", "secret", "bob"), OTHER_ID),
    "two parts": (
        "PLAIN",
        b"alice\0secret",
        "Invalid SASL/PLAIN response: expected 3 tokens, got 2",
    ),
    "four parts": (
        "PLAIN",
        b"\0alice\0secret\0more",
        "Invalid SASL/PLAIN response: expected 3 tokens, got 4",
    ),
    **{
        f"{mechanism}: {name}": (mechanism, token, text or INVALID + mechanism)
        for mechanism in SCRAM
        for name, token, text in (
            ("no message", b"hello", None),
            ("empty token", b"", None),
            ("channel binding", b"y,,n=alice,r=abc", None),
            ("unknown user", b"n,,n=eve,r=abc", None),
            ("too few iterations", b"n,,n=weak,r=abc", None),
            ("unknown token", b"n,,n=t9,r=abc,tokenauth=true", None),
            ("another authorization id", b"n,a=bob,n=alice,r=abc", OTHER_ID),
        )
    },
    **{
        f"OAUTHBEARER: {name}": ("OAUTHBEARER", token, text or INVALID + "OAUTHBEARER")
        for name, token, text in (
            ("no message", b"hello", None),
            ("no auth", b"n,,\1host=h\1\1", None),
            ("another scheme", b"n,,\1auth=Basic abc\1\1", None),
            ("no token", b"n,,\1auth=Bearer\1\1", None),
            (
                "another authorization id",
                bearer(unsecured_token("carol", NOW_S), "dave"),
                "Authentication failed: Client requested an authorization id (dave) that is "
                "different from the token's principal name (carol)",
            ),
        )
    },
}


@pytest.mark.parametrize("name", REFUSED_TOKENS)
async def test_a_bad_token_is_refused(make_wire: MakeWire, name: str) -> None:
    """The error is SASL_AUTHENTICATION_FAILED with Kafka's message, and the connection ends."""
    mechanism, token, text = REFUSED_TOKENS[name]
    wire = serving(make_wire)
    client = await wire.connect()
    await shake_hands(client, mechanism)
    answer = await send_token(client, token)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == text
    assert await client.ended()
    assert wire.backend.requests == []


def _swapped(final: bytes) -> bytes:
    """Return a final message with a nonce that differs from the broker's."""
    head, _, rest = final.partition(b",r=")
    _, _, proof = rest.partition(b",p=")
    return head + b",r=clientnonceXYZ,p=" + proof


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize(
    ("password", "change"),
    [("wrong", bytes), ("secret", _swapped), ("secret", lambda _: b"p=abc"), ("", bytes)],
    ids=["wrong password", "other nonce", "malformed", "empty password"],
)
async def test_a_bad_proof_is_refused(
    make_wire: MakeWire, mechanism: str, password: str, change: Callable[[bytes], bytes]
) -> None:
    """The client is not told what is wrong with its proof."""
    wire = serving(make_wire)
    scram = ScramClient(mechanism, "alice", password)
    client = await wire.connect()
    await shake_hands(client, mechanism)
    challenge = (await send_token(client, scram.first())).auth_bytes
    answer = await send_token(client, change(scram.final(challenge)))
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == INVALID + mechanism
    assert await client.ended()


@pytest.mark.parametrize(
    ("version", "nonce", "is_taken"),
    [
        ("3.9", "clientnonceXYZ", False),
        ("3.9", "clientnonce", False),
        ("2.8", "clientnonceXYZ", True),
        ("1.1", "another", True),
    ],
)
async def test_a_proof_over_another_nonce_is_refused_since_3_7_2(
    make_wire: MakeWire, version: str, nonce: str, is_taken: bool
) -> None:
    """CVE-2024-56128: ``ScramSaslServer`` did not compare the nonce of the final message."""
    wire = serving(make_wire, kafka_version=version)
    scram = ScramClient("SCRAM-SHA-256", "alice", "secret")
    client = await wire.connect()
    await shake_hands(client, "SCRAM-SHA-256")
    challenge = (await send_token(client, scram.first(), 0)).auth_bytes
    answer = await send_token(client, scram.final(challenge, nonce), 0)
    expected = ErrorCode.NONE if is_taken else ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_code == expected


REFUSED_BEARERS = {
    "expired": unsecured_token("carol", NOW_S - 100, 50),
    "of the future": unsecured_token("carol", NOW_S + 100),
    "without an end": unsecured_token("carol", NOW_S, exp=None),
    "an end that is no number": unsecured_token("carol", NOW_S, exp="soon"),
    "ends before it begins": unsecured_token("carol", NOW_S - 10, exp=NOW_S - 20),
    "without a subject": unsecured_token("", NOW_S),
    "a subject that is no name": unsecured_token("carol", NOW_S, sub=7),
    "signed": unsecured_token("carol", NOW_S) + "abc",
    "with an algorithm": "eyJhbGciOiJIUzI1NiJ9."
    + unsecured_token("carol", NOW_S).split(".")[1]
    + ".",
    "two parts": "abc.def",
    "no JSON": "YWJj.YWJj.",
}


@pytest.mark.parametrize("name", REFUSED_BEARERS)
async def test_a_bad_bearer_token_is_refused(make_wire: MakeWire, name: str) -> None:
    """The error comes as in RFC 7628, and authentication fails once the client has answered."""
    wire = serving(make_wire)
    client = await wire.connect()
    await shake_hands(client, "OAUTHBEARER")
    answer = await send_token(client, bearer(REFUSED_BEARERS[name]))
    assert answer.error_code == ErrorCode.NONE
    assert answer.auth_bytes == b'{"status":"invalid_token"}'
    answer = await send_token(client, b"\1")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == '{"status":"invalid_token"}'
    assert await client.ended()


async def test_a_bearer_token_without_the_scope_is_refused(make_wire: MakeWire) -> None:
    """The error for a bearer token without the required scopes names them."""
    wire = serving(make_wire, required_scope=("kafka", "write"))
    client = await wire.connect()
    await shake_hands(client, "OAUTHBEARER")
    token = unsecured_token("carol", NOW_S, scope=["kafka"])
    answer = await send_token(client, bearer(token))
    assert answer.auth_bytes == b'{"status":"insufficient_scope", "scope":"[kafka, write]"}'


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("mechanism", ["PLAIN", "GSSAPI", "plain", ""])
async def test_a_mechanism_that_is_not_enabled_is_refused(
    make_wire: MakeWire, mechanism: str, version: int
) -> None:
    """UNSUPPORTED_SASL_MECHANISM is answered with the enabled mechanisms."""
    wire = serving(make_wire, mechanisms=("SCRAM-SHA-256",))
    client = await wire.connect()
    answer = await shake_hands(client, mechanism, version)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ("SCRAM-SHA-256",)
    assert await client.ended()


async def test_a_request_before_the_handshake_ends_the_connection(make_wire: MakeWire) -> None:
    """A request of an unauthenticated client is not parsed, and gets no answer."""
    wire = serving(make_wire)
    client = await wire.connect()
    client.request(METADATA, 0, 1, topics=())
    assert await client.ended()
    assert wire.backend.requests == []


async def last_answer(make_wire: MakeWire, api_key: int, version: int, **fields: Any) -> Any:
    """Return the answer to a request after the handshake, which is followed by a disconnect."""
    wire = serving(make_wire)
    client = await wire.connect()
    await shake_hands(client, "PLAIN")
    client.request(api_key, version, 5, **fields)
    _, answer = await client.response(api_key, version)
    assert await client.ended()
    assert wire.backend.requests == []
    return answer


async def test_a_request_in_place_of_a_token_is_an_illegal_state(make_wire: MakeWire) -> None:
    """ILLEGAL_SASL_STATE is answered in the form of the request's API, then the connection ends."""
    answer = await last_answer(make_wire, 32, 1, resources=(), include_synonyms=False)
    assert answer.results == ()


async def test_find_coordinator_in_place_of_a_token_gets_an_error_message(
    make_wire: MakeWire,
) -> None:
    """FindCoordinator gets an error message, too (``FindCoordinatorRequest.getErrorResponse``)."""
    answer = await last_answer(make_wire, 10, 4, key_type=0, coordinator_keys=("g",))
    (found,) = answer.coordinators
    assert found.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert found.error_message == "Request is not valid given the current SASL state."


@pytest.mark.parametrize("frame", [b"\x60\x82\x01\x02", b"", b"\xff" * 40])
async def test_bytes_that_are_no_request_end_the_connection(
    make_wire: MakeWire, frame: bytes
) -> None:
    """A bare token of Kerberos is no request, for example."""
    wire = serving(make_wire)
    client = await wire.connect()
    client.send(len(frame).to_bytes(4, "big") + frame)
    assert await client.ended()


@pytest.mark.parametrize("token", [plain("alice", "x"), b"nonsense"])
async def test_a_bad_bare_token_ends_the_connection_without_a_word(
    make_wire: MakeWire, token: bytes
) -> None:
    """An answer to a bare token has no field for an error."""
    wire = serving(make_wire)
    client = await wire.connect()
    await shake_hands(client, "PLAIN", 0)
    client.send(len(token).to_bytes(4, "big") + token)
    assert await client.ended()


async def test_a_token_that_is_too_large_is_refused(make_wire: MakeWire) -> None:
    """``sasl.server.max.receive.size`` limits requests of unauthenticated clients."""
    wire = serving(make_wire, **{"sasl.server.max.receive.size": 100})
    client = await wire.connect()
    await shake_hands(client, "PLAIN")
    client.request(AUTHENTICATE, 0, 2, auth_bytes=plain("alice", "x" * 200))
    assert await client.ended()


async def test_before_2_2_a_refusal_does_not_mention_reauthentication(make_wire: MakeWire) -> None:
    """Before 2.2 clients could not reauthenticate, so messages do not name that case (KIP-368), nor
    is a malformed PLAIN token described (Kafka: ``PlainSaslServer`` at 1.1.1).
    """
    wire = serving(make_wire, kafka_version="1.1")
    client = await wire.connect()
    await shake_hands(client, "PLAIN")
    answer = await send_token(client, b"nonsense", 0)
    assert answer.error_message == (
        "Authentication failed due to invalid credentials with SASL mechanism PLAIN"
    )


async def test_a_refused_client_waits_for_the_answer(make_wire: MakeWire) -> None:
    """``connection.failed.authentication.delay.ms`` slows down guessing of passwords (KIP-306)."""
    wire = serving(make_wire, **{"connection.failed.authentication.delay.ms": 40})
    client = await wire.connect()
    begun = wire.loop.time()
    answer = await log_in(client, password="x")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert round((wire.loop.time() - begun) * 1000) >= 40
    assert await client.ended()
