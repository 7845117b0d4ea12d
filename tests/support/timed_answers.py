"""Raw requests to a broker, and the processor time of their responses."""

from __future__ import annotations

import socket
import struct
import time

import pytest
from fakekafka import Cluster

_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def cost_unanswered(cluster: Cluster, frame: bytes) -> float:
    """Return the processor time in seconds of a request that is never answered, including that of
    another client's small request, whose response comes after it.
    """
    host, port = cluster.bootstrap_servers.rsplit(":", 1)
    with (
        socket.create_connection((host, int(port)), 60) as client,
        socket.create_connection((host, int(port)), 60) as other,
    ):
        began_s = time.process_time()
        client.sendall(frame)
        for _ in range(50):  # the first ones may overtake a request that has not arrived whole
            other.sendall(_API_VERSIONS)
            assert other.recv(1 << 20)
        cost_s = time.process_time() - began_s
        client.settimeout(0.001)
        with pytest.raises(TimeoutError):
            client.recv(1)
    return cost_s


def answer(cluster: Cluster, frame: bytes) -> tuple[bytes, float]:
    """Return the body of the response and the processor time of this process until it."""
    host, port = cluster.bootstrap_servers.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 60) as client:
        began_s = time.process_time()
        client.sendall(frame)
        received = b""
        while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
            part = client.recv(1 << 20)
            assert part, "every shape is a request that is answered"
            received += part
        return received[8:], time.process_time() - began_s
