"""Requests that change nothing are answered byte for byte as real brokers answered them.

``recorded_answers.json`` has the answers of one broker of 1.1.1, 2.8.2 or 3.9.1 with ZooKeeper,
without the correlation id; ``closed`` where it closed the connection.
"""

from __future__ import annotations

import json
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
from fakekafka import Cluster

RECORDED: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("recorded_answers.json").read_text(encoding="utf-8")
)
FLEXIBLE = (56, 57, 58, 67)


def answer(port: int, key: int, version: int, body: bytes) -> str:
    """Return a broker's answer to one request on a connection of its own, as hex."""
    header = struct.pack(">hhih", key, version, 7, 5) + b"probe"
    frame = header + (b"\0" if key in FLEXIBLE else b"") + body
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(struct.pack(">i", len(frame)) + frame)
        with client.makefile("rb") as stream:
            size = stream.read(4)
            return stream.read(*struct.unpack(">i", size))[4:].hex() if size else "closed"


@pytest.mark.parametrize("kafka_version", RECORDED)
def test_a_broker_answers_as_the_real_one(kafka_version: str) -> None:
    """The requests are UpdateFeatures, AlterReplicaLogDirs and requests between brokers."""
    config = {"log.dirs": "a,b"}
    with Cluster(1, kafka_version=kafka_version, config=config) as cluster:
        port = cluster.broker(1).port
        for recorded in RECORDED[kafka_version]:
            body = bytes.fromhex(recorded["body"])
            found = answer(port, recorded["key"], recorded["version"], body)
            assert found == recorded["answer"], recorded["request"]
