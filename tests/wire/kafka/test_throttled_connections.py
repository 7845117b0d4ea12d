"""Connections of clients above their quota: when they are answered, and when they are read."""

from __future__ import annotations

import asyncio

import pytest
from fakekafka.protocol.data import MetadataResponse
from fakekafka.tests.support.kafka_listener import Wire
from fakekafka.wire.kafka.backend import Throttled
from fakekafka.wire.kafka.connection import Connection

METADATA = MetadataResponse((), "cluster", -1, ())


@pytest.mark.parametrize("is_held_back", [False, True])
async def test_a_throttled_client_is_answered_before_its_wait_or_after(
    wire: Wire, is_held_back: bool
) -> None:
    """KIP-219: the next request waits in both cases; before, the answer waited, too."""
    client = await wire.connect()
    loop = asyncio.get_running_loop()
    wire.backend.answer = lambda request: Throttled(METADATA, 20, is_held_back)
    begun = loop.time()
    client.request(3, 1, 1, topics=())
    client.request(3, 1, 2, topics=())
    answered = []
    for correlation_id in (1, 2):
        assert correlation_id == (await client.response(3, 1))[0]
        answered.append(loop.time() - begun)
    assert answered[0] >= (0.019 if is_held_back else 0)
    assert answered[1] >= (0.038 if is_held_back else 0.019)


async def test_an_answer_that_is_held_back_dies_with_its_connection(wire: Wire) -> None:
    client = await wire.connect()
    wire.backend.answer = lambda request: Throttled(METADATA, 60_000, is_held_back=True)
    client.request(3, 1, 1, topics=())
    await wire.until(lambda: wire.backend.requests)
    connection: Connection
    (connection,) = wire.listener.connections
    assert connection._mute_timer is not None
    timer = connection._mute_timer
    await client.close()
    await wire.until(lambda: connection._mute_timer is None)
    assert timer.cancelled()
