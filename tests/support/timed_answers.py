"""Raw requests to a broker, answered with the processor time that they took."""

from __future__ import annotations

import socket
import time

from fakekafka import Cluster


def answer(cluster: Cluster, frame: bytes) -> tuple[bytes, float]:
    """The body of the answer, and the processor time of this process meanwhile."""
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
