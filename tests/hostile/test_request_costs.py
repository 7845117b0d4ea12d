"""No request costs more than in proportion to its size, whichever of its arrays is long."""

from __future__ import annotations

import socket
import time

import pytest
from fakekafka import Cluster
from fakekafka.tests.support.request_shapes import Shape, shapes
from fakekafka.wire.kafka.registry import APIS

SHAPES = {shape.name: shape for shape in shapes()}
CHEAP_S = 0.25
"""For 4,000 elements: what is quadratic takes longer, and nothing else needs a second look."""


def cost_s(cluster: Cluster, shape: Shape, size: int) -> float:
    """Processor time of this process until a request is answered, or its connection closed."""
    frame = shape.frame(size)
    host, port = cluster.bootstrap_servers.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 60) as client:
        began_s = time.process_time()
        client.sendall(frame)
        received = b""
        while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
            part = client.recv(1 << 20)
            assert part, "every shape is a request that is answered"
            received += part
        return time.process_time() - began_s


@pytest.mark.parametrize("name", SHAPES)
def test_eight_times_the_request_costs_about_eight_times_as_much(
    cluster: Cluster, name: str
) -> None:
    """20,000 partitions in ListOffsets took 35 s, 6,000 names in AlterConfigs 13 s."""
    shape = SHAPES[name]
    large_s = cost_s(cluster, shape, 4000)
    if large_s < CHEAP_S:
        return
    small_s = min(cost_s(cluster, shape, 500) for _ in range(2))
    large_s = min(large_s, cost_s(cluster, shape, 4000))
    assert large_s < 24 * small_s


def test_every_api_has_a_shape() -> None:
    """Also those that come later."""
    assert {shape.key for shape in SHAPES.values()} == set(APIS)
