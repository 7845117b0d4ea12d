"""Delegation tokens: requested by authenticated users and used for SCRAM (KIP-48)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fakekafka import Cluster
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.kafka_listener import RawClient, parse_response
from fakekafka.tests.support.sasl import ScramClient, plain, send_token, shake_hands
from kio.schema.create_delegation_token.v3.request import CreatableRenewers
from kio.static.primitive import i64Timedelta

CREATE, RENEW, EXPIRE, DESCRIBE = 38, 39, 40, 41
KEY = "master"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    security = {
        "listeners": "PLAINTEXT;SASL_PLAINTEXT",
        "users": {"alice": "a", "bob": "b"},
        "delegation_token_key": KEY,
    }
    with Cluster(2, security=security) as cluster:
        yield cluster
        assert cluster.failures == []


async def connected(
    cluster: Cluster, listener: str = "SASL_PLAINTEXT", broker: int = 1
) -> RawClient:
    port = cluster.broker(broker).ports[listener]
    return RawClient(*await asyncio.open_connection("127.0.0.1", port))


async def logged_in(cluster: Cluster, user: str) -> RawClient:
    client = await connected(cluster)
    await shake_hands(client, "PLAIN")
    answer = await send_token(client, plain(user, user[0]))
    assert answer.error_code == ErrorCode.NONE
    return client


async def answer_to(client: RawClient, key: int, version: int, **fields: Any) -> Any:
    """Return the answer; of a refusal, whose times kio cannot parse, only the error."""
    client.request(key, version, 7, **fields)
    frame = await client.frame()
    error = int.from_bytes(frame[5:7], "big", signed=True)
    if error:
        return SimpleNamespace(error_code=error)
    return parse_response(key, version, frame)[1]


async def create(client: RawClient, **fields: Any) -> Any:
    values: dict[str, Any] = {
        "owner_principal_type": None,
        "owner_principal_name": None,
        "renewers": (CreatableRenewers(principal_type="User", principal_name="bob"),),
        "max_lifetime": _ms(-1),
        **fields,
    }
    return await answer_to(client, CREATE, 3, **values)


def _ms(value: int) -> Any:
    import datetime

    return i64Timedelta.parse(datetime.timedelta(milliseconds=value))


async def authenticate(cluster: Cluster, token: Any, broker: int = 2) -> Any:
    """Authenticate by SCRAM with a token and return the last answer."""
    client = await connected(cluster, broker=broker)
    await shake_hands(client, "SCRAM-SHA-256")
    password = base64.b64encode(token.hmac).decode()
    scram = ScramClient("SCRAM-SHA-256", token.token_id, password, extensions=",tokenauth=true")
    answer = await send_token(client, scram.first())
    if answer.error_code == ErrorCode.NONE:
        answer = await send_token(client, scram.final(answer.auth_bytes))
    return client, answer


def test_a_token_stands_for_its_owner_at_every_broker(cluster: Cluster) -> None:
    """It is stored in ZooKeeper without its HMAC, and sessions end when it expires."""

    async def test() -> None:
        client = await logged_in(cluster, "alice")
        token = await create(client)
        assert token.error_code == ErrorCode.NONE
        assert token.principal_name == "alice"
        stored = json.loads(
            cluster.zookeeper.get(f"/delegation_token/tokens/{token.token_id}") or b""
        )
        assert (stored["owner"], stored["renewers"]) == ("User:alice", ["User:bob"])
        await asyncio.to_thread(
            cluster.wait_until,
            lambda: all(b.security.tokens.all() for b in cluster.running.living_brokers()),
        )
        other, answer = await authenticate(cluster, token)
        assert answer.error_code == ErrorCode.NONE
        assert 0 < answer.session_lifetime.total_seconds() <= 86400
        refused = await create(other)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        for one in (client, other):
            await one.close()

    asyncio.run(test())


def test_a_renewer_may_let_a_token_live_longer_or_end(cluster: Cluster) -> None:
    """Other users may not; an expired token is not found and cannot be used to authenticate."""

    async def test() -> None:
        alice, bob = await logged_in(cluster, "alice"), await logged_in(cluster, "bob")
        token, own = await create(alice), await create(bob, renewers=())
        answer = await answer_to(bob, RENEW, 2, hmac=token.hmac, renew_period=_ms(1000))
        assert answer.error_code == ErrorCode.NONE
        answer = await answer_to(alice, RENEW, 2, hmac=own.hmac, renew_period=_ms(1000))
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        listed = await answer_to(alice, DESCRIBE, 3, owners=None)
        assert {found.token_id for found in listed.tokens} >= {token.token_id}
        answer = await answer_to(bob, EXPIRE, 2, hmac=token.hmac, expiry_time_period=_ms(-1))
        assert answer.error_code == ErrorCode.NONE
        answer = await answer_to(bob, RENEW, 2, hmac=token.hmac, renew_period=_ms(1000))
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        client, answer = await authenticate(cluster, token, broker=1)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        for one in (alice, bob, client):
            await one.close()

    asyncio.run(test())


def test_an_anonymous_client_gets_no_token(cluster: Cluster) -> None:
    """A renewer that is no user is refused, too."""

    async def test() -> None:
        anybody = await connected(cluster, "PLAINTEXT")
        answer = await create(anybody)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        alice = await logged_in(cluster, "alice")
        group = CreatableRenewers(principal_type="Group", principal_name="g")
        answer = await create(alice, renewers=(group,))
        assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
        for one in (anybody, alice):
            await one.close()

    asyncio.run(test())


def test_without_a_key_there_are_no_tokens() -> None:
    """The error is DELEGATION_TOKEN_AUTH_DISABLED."""
    security = {"listeners": "SASL_PLAINTEXT", "users": {"alice": "a"}}
    with Cluster(1, security=security) as cluster:

        async def test() -> None:
            alice = await logged_in(cluster, "alice")
            answer = await create(alice)
            assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
            await alice.close()

        asyncio.run(test())
